"""Models: layers that train together, and the loops that train them."""

import os
from collections.abc import Mapping
from typing import Any

from laminar.registration import list_builtins

from ..training.lr_finder import LearningRates as LearningRates
from ..training.lr_finder import lr_find as lr_find
from ..training.profile import LayerProfile as LayerProfile
from ..training.profile import Profile as Profile
from .cloning import clone_model as clone_model
from .cloning import model_from_json as model_from_json
from .function import Function as Function
from .model import Functional as Functional
from .model import Model as Model
from .sequential import Sequential as Sequential

list_builtins("keras", {"Model": Model, "Sequential": Sequential, "Functional": Functional})


def load_model(
    filepath: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
    **kwargs: Any,
) -> Any:
    """Read a model from a file; see `laminar.saving.load_model`.

    Examples:
        >>> laminar.Sequential([layers.Input((3,)), layers.Dense(2)]).save("model.keras")
        >>> laminar.models.load_model("model.keras").output_shape
        (None, 2)
    """
    from laminar import saving  # the room above

    return saving.load_model(filepath, custom_objects, compile, safe_mode, **kwargs)


def save_model(
    model: Model,
    filepath: str | os.PathLike[str],
    overwrite: bool = True,
    zipped: bool | None = None,
    **kwargs: Any,
) -> None:
    """Write a model to a file; see `laminar.saving.save_model`.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> laminar.models.save_model(model, "model.keras")
        >>> laminar.models.load_model("model.keras").output_shape
        (None, 2)
    """
    from laminar import saving  # the room above

    saving.save_model(model, filepath, overwrite, zipped, **kwargs)
