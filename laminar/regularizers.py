"""Regularizers: penalties on weights, added to the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from laminar.engine.errors import InvalidArgumentError, ShapeError

from . import ops
from .recorded import Recorded
from .registration import list_builtins
from .serialization import deserialize_keras_object, lookup, serialize_keras_object
from .typing import TensorLike

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "OrthogonalRegularizer",
    "Regularizer",
    "RegularizerLike",
    "deserialize",
    "get",
    "l1",
    "l1_l2",
    "l2",
    "orthogonal_regularizer",
    "serialize",
]


class Regularizer(Recorded):
    """A penalty on a tensor. Abstract: a subclass defines `__call__` and `get_config`.

    Examples:
        >>> class SumToOne(laminar.regularizers.Regularizer):
        ...     def __call__(self, x):
        ...         return (ops.sum(x) - 1) ** 2
        >>> layer = layers.Dense(1, kernel_initializer="ones", kernel_regularizer=SumToOne())
        >>> y = layer(np.ones((1, 3)))
        >>> layer.losses
        [Tensor(4., shape=(), dtype=float32)]
    """

    def __call__(self, x: Any) -> Any:
        """The penalty of `x`, a scalar."""
        return 0.0

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_config()")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """The regularizer that `get_config` described."""
        return cls(**config)


# A name, a regularizer, its class, a function of the weight, or a config.
RegularizerLike: TypeAlias = str | Regularizer | Callable[..., Any] | Mapping[str, Any]


def _factor(who: str, name: str, value: Any, default: float) -> float:
    if value is None:
        return default
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise InvalidArgumentError(
            f"{who}: {name} must be a finite number of at least 0, got {value!r}"
        )
    return float(value)


class L1L2(Regularizer):
    """l1 * sum(|x|) + l2 * sum(x**2).

    Args:
        l1: factor of the absolute values.
        l2: factor of the squares.

    Examples:
        >>> laminar.regularizers.L1L2(0.1, 0.1)(np.array([1.0, -2.0]))
        Tensor(0.8, shape=(), dtype=float64)
    """

    def __init__(self, l1: float | None = 0.0, l2: float | None = 0.0) -> None:
        self.l1 = _factor("L1L2", "l1", l1, 0.0)
        self.l2 = _factor("L1L2", "l2", l2, 0.0)

    def __call__(self, x: TensorLike) -> Any:
        x = ops.convert_to_tensor(x)
        penalty = ops.zeros((), x.dtype)
        if self.l1:
            penalty = penalty + self.l1 * ops.sum(ops.absolute(x))
        if self.l2:
            penalty = penalty + self.l2 * ops.sum(ops.square(x))
        return penalty

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1, "l2": self.l2}


class L1(Regularizer):
    """l1 * sum(|x|).

    Args:
        l1: the factor.

    Examples:
        >>> laminar.regularizers.L1(0.1)(np.array([1.0, -2.0]))
        Tensor(0.3, shape=(), dtype=float64)
    """

    def __init__(self, l1: float | None = 0.01) -> None:
        self.l1 = _factor("L1", "l1", l1, 0.01)

    def __call__(self, x: TensorLike) -> Any:
        return self.l1 * ops.sum(ops.absolute(x))

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1}


class L2(Regularizer):
    """l2 * sum(x**2).

    Args:
        l2: the factor.

    Examples:
        >>> laminar.regularizers.L2(0.1)(np.array([1.0, -2.0]))
        Tensor(0.5, shape=(), dtype=float64)
    """

    def __init__(self, l2: float | None = 0.01) -> None:
        self.l2 = _factor("L2", "l2", l2, 0.01)

    def __call__(self, x: TensorLike) -> Any:
        return self.l2 * ops.sum(ops.square(x))

    def get_config(self) -> dict[str, Any]:
        return {"l2": self.l2}


class OrthogonalRegularizer(Regularizer):
    """factor * the mean size of the cosines between different rows (or columns) of a matrix.

    Args:
        factor: of the penalty.
        mode: "rows" or "columns".

    Examples:
        >>> penalty = laminar.regularizers.OrthogonalRegularizer(1.0)
        >>> penalty(np.array([[1.0, 0.0], [0.0, 2.0]])), penalty(np.array([[1.0, 1.0], [2.0, 2.0]]))
        (Tensor(0., shape=(), dtype=float64), Tensor(1., shape=(), dtype=float64))
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        if mode not in ("rows", "columns"):
            raise InvalidArgumentError(
                f"OrthogonalRegularizer: mode must be 'rows' or 'columns', got {mode!r}"
            )
        self.factor = _factor("OrthogonalRegularizer", "factor", factor, 0.01)
        self.mode = mode

    def __call__(self, x: TensorLike) -> Any:
        x = ops.convert_to_tensor(x)
        if x.shape.rank != 2:
            raise ShapeError(f"OrthogonalRegularizer: expected a matrix, got {x.spec}")
        rows = x if self.mode == "rows" else ops.transpose(x)
        count = ops.shape(rows)[0]
        unit = ops.normalize(rows, axis=1)
        cosines = ops.matmul(unit, ops.transpose(unit))
        apart = cosines * (1.0 - ops.eye(count, dtype=x.dtype))
        pairs = ops.cast(count, x.dtype) * (ops.cast(count, x.dtype) - 1.0) / 2.0
        return self.factor * 0.5 * ops.sum(ops.absolute(apart)) / pairs

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "mode": self.mode}


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer

_NAMES: dict[str, Any] = {
    "Regularizer": Regularizer,
    "regularizer": Regularizer,
    "L1": L1,
    "l1": L1,
    "L2": L2,
    "l2": L2,
    "L1L2": L1L2,
    "l1l2": L1L2,
    "l1_l2": L1L2,
    "OrthogonalRegularizer": OrthogonalRegularizer,
    "orthogonal_regularizer": OrthogonalRegularizer,
}
list_builtins("keras.regularizers", _NAMES)


def serialize(regularizer: Regularizer | Callable[..., Any] | None) -> Any:
    """A regularizer as plain data.

    Args:
        regularizer: a regularizer, or a registered function.

    Returns:
        a dict with its class and config, as JSON can hold it; for a function its name.

    Examples:
        >>> laminar.regularizers.serialize(laminar.regularizers.L2(0.5))["config"]
        {'l2': 0.5}
    """
    return serialize_keras_object(regularizer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The regularizer that `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        a regularizer, or the function.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> config = laminar.regularizers.serialize(laminar.regularizers.L2(0.5))
        >>> laminar.regularizers.deserialize(config)(np.array([2.0]))
        Tensor(2., shape=(), dtype=float64)
    """
    return deserialize_keras_object(config, custom_objects, module_objects=_NAMES)


def get(identifier: RegularizerLike | None) -> Any:
    """A regularizer: given as such, as a callable, by name, as a class or config; None is None.

    Args:
        identifier: a regularizer, its name, class or config, or a function.

    Returns:
        a regularizer, or the function; None for None.

    Raises:
        InvalidArgumentError: nothing of that name exists.

    Examples:
        >>> laminar.regularizers.get("l2")(np.array([10.0]))
        Tensor(1., shape=(), dtype=float64)
    """
    return lookup("regularizer", identifier, _NAMES)
