"""laminar: a Keras-style deep-learning toolkit on its own dataflow engine.

Every public name is here; what stands behind it is loaded when it is first used, so that
`import laminar` takes no time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import activations as activations
    from . import applications as applications
    from . import backend as backend
    from . import callbacks as callbacks
    from . import compat as compat
    from . import config as config
    from . import constraints as constraints
    from . import datasets as datasets
    from . import distillation as distillation
    from . import distribute as distribute
    from . import distribution as distribution
    from . import dtype_policies as dtype_policies
    from . import engine as engine
    from . import initializers as initializers
    from . import layers as layers
    from . import losses as losses
    from . import metrics as metrics
    from . import mixed_precision as mixed_precision
    from . import models as models
    from . import ops as ops
    from . import optimizers as optimizers
    from . import preprocessing as preprocessing
    from . import quantizers as quantizers
    from . import random as random
    from . import regularizers as regularizers
    from . import saving as saving
    from . import tree as tree
    from . import utils as utils
    from . import visualization as visualization
    from . import wrappers as wrappers
    from .callbacks import Callback as Callback
    from .constraints import Constraint as Constraint
    from .dtype_policies import DTypePolicy as DTypePolicy
    from .dtype_policies import FloatDTypePolicy as FloatDTypePolicy
    from .engine import device as device
    from .engine import errors as errors
    from .engine import name_scope as name_scope
    from .engine.functions import custom_gradient as custom_gradient
    from .engine.functions import do_not_convert as do_not_convert
    from .engine.functions import function as function
    from .engine.gradients import GradientTape as GradientTape
    from .engine.gradients import grad as grad
    from .engine.gradients import value_and_grad as value_and_grad
    from .engine.graph import Tensor as Tensor
    from .engine.state import StatelessScope as StatelessScope
    from .initializers import Initializer as Initializer
    from .layers import Input as Input
    from .layers import InputSpec as InputSpec
    from .layers import KerasTensor as KerasTensor
    from .layers import Layer as Layer
    from .layers.operation import Operation as Operation
    from .layers.remat import RematScope as RematScope
    from .layers.remat import remat as remat
    from .losses import Loss as Loss
    from .metrics import Metric as Metric
    from .models import Function as Function
    from .models import Model as Model
    from .models import Sequential as Sequential
    from .models import lr_find as lr_find
    from .ops import stop_gradient as stop_gradient
    from .optimizers import Optimizer as Optimizer
    from .quantizers import Quantizer as Quantizer
    from .random import set_random_seed as set_random_seed
    from .regularizers import Regularizer as Regularizer
    from .variables import Variable as Variable

__version__ = "0.1.0"

_MODULES = frozenset(
    {
        "activations",
        "applications",
        "backend",
        "callbacks",
        "compat",
        "config",
        "constraints",
        "datasets",
        "distillation",
        "distribute",
        "distribution",
        "dtype_policies",
        "export",
        "engine",
        "initializers",
        "layers",
        "losses",
        "metrics",
        "mixed_precision",
        "models",
        "ops",
        "optimizers",
        "preprocessing",
        "quantizers",
        "random",
        "regularizers",
        "saving",
        "serialization",
        "tree",
        "utils",
        "visualization",
        "wrappers",
    }
)
# name -> the module that has it
_NAMES = {
    "Callback": "callbacks",
    "Constraint": "constraints",
    "DTypePolicy": "dtype_policies",
    "FloatDTypePolicy": "dtype_policies",
    "Function": "models",
    "GradientTape": "engine.gradients",
    "Initializer": "initializers",
    "Input": "layers",
    "InputSpec": "layers",
    "KerasTensor": "layers",
    "Layer": "layers",
    "Loss": "losses",
    "Metric": "metrics",
    "Model": "models",
    "Operation": "layers.operation",
    "Optimizer": "optimizers",
    "Regularizer": "regularizers",
    "Quantizer": "quantizers",
    "RematScope": "layers.remat",
    "Sequential": "models",
    "StatelessScope": "engine.state",
    "Tensor": "engine.graph",
    "Variable": "variables",
    "custom_gradient": "engine.functions",
    "device": "engine",
    "errors": "engine",
    "function": "engine.functions",
    "do_not_convert": "engine.functions",
    "grad": "engine.gradients",
    "lr_find": "models",
    "name_scope": "engine",
    "remat": "layers.remat",
    "set_random_seed": "random",
    "set_threads": "engine.compiler.native.threads",
    "stop_gradient": "ops",
    "value_and_grad": "engine.gradients",
}


def version() -> str:
    """The version of laminar."""
    return __version__


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _NAMES:
        value = getattr(_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'laminar' has no attribute {name!r}")


def _module(name: str) -> Any:
    """A module of laminar, loaded on first use.

    A package is loaded before what is in it: of two threads that begin at different ends, Python
    would give one a module that is not complete.
    """
    package = name.rpartition(".")[0]
    if package:
        _module(package)
    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
