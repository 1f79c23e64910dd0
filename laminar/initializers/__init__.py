"""Initializers: the first values of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, TensorShape
from laminar.engine.state.initial_values import set_initializer_lookup

from .. import ops
from ..registration import list_builtins
from ..serialization import deserialize_keras_object, lookup, serialize_keras_object
from ..typing import DTypeLike
from .constant import STFT, Constant, Identity, Ones, Zeros
from .initializer import Initializer, InitializerLike
from .random_values import (
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    LecunNormal,
    LecunUniform,
    Orthogonal,
    RandomInitializer,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
    compute_fans,
)

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "RandomInitializer",
    "RandomNormal",
    "RandomUniform",
    "STFT",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "compute_fans",
    "InitializerLike",
    "deserialize",
    "get",
    "serialize",
]

_CLASSES: tuple[type[Initializer], ...] = (
    Initializer,
    Constant,
    Identity,
    Ones,
    STFT,
    Zeros,
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    LecunNormal,
    LecunUniform,
    Orthogonal,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
)


constant, zeros, ones, identity = Constant, Zeros, Ones, Identity
glorot_normal, glorot_uniform = GlorotNormal, GlorotUniform
he_normal, he_uniform = HeNormal, HeUniform
lecun_normal, lecun_uniform = LecunNormal, LecunUniform
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling, orthogonal, stft = VarianceScaling, Orthogonal, STFT
IdentityInitializer, OrthogonalInitializer = Identity, Orthogonal
STFTInitializer = STFT

_NAMES: dict[str, Any] = {
    **{cls.__name__: cls for cls in _CLASSES},
    "constant": Constant,
    "zeros": Zeros,
    "zero": Zeros,
    "ones": Ones,
    "one": Ones,
    "identity": Identity,
    "IdentityInitializer": Identity,
    "glorot_normal": GlorotNormal,
    "glorot_uniform": GlorotUniform,
    "he_normal": HeNormal,
    "he_uniform": HeUniform,
    "lecun_normal": LecunNormal,
    "lecun_uniform": LecunUniform,
    "random_normal": RandomNormal,
    "normal": RandomNormal,
    "random_uniform": RandomUniform,
    "uniform": RandomUniform,
    "truncated_normal": TruncatedNormal,
    "variance_scaling": VarianceScaling,
    "stft": STFT,
    "STFTInitializer": STFT,
    "orthogonal": Orthogonal,
    "OrthogonalInitializer": Orthogonal,
}
list_builtins("keras.initializers", _NAMES)


def serialize(initializer: Initializer | Callable[..., Any]) -> Any:
    """An initializer as plain data.

    Args:
        initializer: an initializer, or a registered function of shape and dtype.

    Returns:
        a dict with its class and config; for a function its name.

    Examples:
        >>> laminar.initializers.serialize(laminar.initializers.Constant(2.0))["config"]
        {'value': 2.0}
    """
    return serialize_keras_object(initializer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The initializer that `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        the initializer, or the function.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> config = laminar.initializers.serialize(laminar.initializers.Constant(2.0))
        >>> laminar.initializers.deserialize(config)((2,))
        Tensor([2., 2.], shape=(2,), dtype=float32)
    """
    return deserialize_keras_object(config, custom_objects, module_objects=_NAMES)


def get(identifier: InitializerLike | None) -> Any:
    """An initializer: given as such, as a callable, by name, as a class, config or array.

    Args:
        identifier: an array or tensor becomes an initializer that gives it; None is None.

    Returns:
        an initializer, or a function of shape and dtype.

    Raises:
        InvalidArgumentError: nothing of that name exists.

    Examples:
        >>> laminar.initializers.get("ones")((2,))
        Tensor([1., 1.], shape=(2,), dtype=float32)
    """
    if isinstance(identifier, Tensor | np.ndarray | np.generic):
        return _giving(identifier)
    return lookup("initializer", identifier, _NAMES)


def _giving(value: Any) -> Callable[..., Tensor]:
    def initialize(shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        if tuple(shape) != tuple(value.shape):
            raise ShapeError(
                f"an array of shape {tuple(value.shape)} cannot initialize a variable of "
                f"shape {TensorShape(shape)}"
            )
        return ops.convert_to_tensor(value, dtype)

    return initialize


set_initializer_lookup(get)  # Variable("ones", shape=(2, 3))
