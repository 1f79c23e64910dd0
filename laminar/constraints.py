"""Constraints: what weights are brought back to after each update."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from . import ops
from .recorded import Recorded
from .registration import list_builtins
from .serialization import deserialize_keras_object, lookup, serialize_keras_object
from .settings import epsilon
from .typing import TensorLike

__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "UnitNorm",
    "ConstraintLike",
    "deserialize",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "serialize",
    "unit_norm",
]

Axes = int | Sequence[int]


class Constraint(Recorded):
    """A projection of weights. Abstract: a subclass defines `__call__` and `get_config`.

    Examples:
        >>> class AtMostOne(laminar.constraints.Constraint):
        ...     def __call__(self, w):
        ...         return ops.minimum(w, 1.0)
        >>> w = laminar.Variable([0.5, 0.5])
        >>> w.constraint = AtMostOne()
        >>> laminar.optimizers.SGD(1.0).apply([ops.array([-2.0, 0.25])], [w])
        >>> w.numpy()
        array([1.  , 0.25], dtype=float32)
    """

    def __call__(self, w: Any) -> Any:
        """The weights that stand in for `w`."""
        return w

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Constraint:
        """The constraint that `get_config` described."""
        return cls(**config)


# A name, a constraint, its class, a function of the weight, or a config.
ConstraintLike: TypeAlias = str | Constraint | Callable[..., Any] | Mapping[str, Any]


def _lengths(w: TensorLike, axis: Axes) -> Any:
    """The lengths of the vectors of `w` along `axis`, which stays with size 1."""
    return ops.sqrt(ops.sum(ops.square(w), axis=axis, keepdims=True))


class MaxNorm(Constraint):
    """Vectors longer than `max_value` are shortened to it.

    Args:
        max_value: the greatest length.
        axis: the axis, or axes, of the vectors: 0 for the inputs of each unit of a Dense layer,
            [0, 1, 2] for each filter of a Conv2D layer.

    Examples:
        >>> laminar.constraints.MaxNorm(1.0)(np.array([[3.0, 0.3], [4.0, 0.4]]))
        Tensor([[0.6, 0.3],
                [0.8, 0.4]], shape=(2, 2), dtype=float64)
    """

    def __init__(self, max_value: float = 2, axis: Axes = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w: TensorLike) -> Any:
        w = ops.convert_to_tensor(w)
        lengths = _lengths(w, self.axis)
        return w * (ops.clip(lengths, 0, self.max_value) / (epsilon() + lengths))

    def get_config(self) -> dict[str, Any]:
        return {"max_value": self.max_value, "axis": self.axis}


class NonNeg(Constraint):
    """Negative weights become 0.

    Examples:
        >>> laminar.constraints.NonNeg()(np.array([-1.0, 2.0]))
        Tensor([0., 2.], shape=(2,), dtype=float64)
    """

    def __call__(self, w: TensorLike) -> Any:
        return ops.maximum(w, 0)


class UnitNorm(Constraint):
    """Vectors get the length 1.

    Args:
        axis: the axis, or axes, of the vectors; see `MaxNorm`.

    Examples:
        >>> laminar.constraints.UnitNorm()(np.array([[3.0], [4.0]]))
        Tensor([[0.6],
                [0.8]], shape=(2, 1), dtype=float64)
    """

    def __init__(self, axis: Axes = 0) -> None:
        self.axis = axis

    def __call__(self, w: TensorLike) -> Any:
        w = ops.convert_to_tensor(w)
        return w / (epsilon() + _lengths(w, self.axis))

    def get_config(self) -> dict[str, Any]:
        return {"axis": self.axis}


class MinMaxNorm(Constraint):
    """The lengths of vectors move towards a range.

    Args:
        min_value: the least length.
        max_value: the greatest length.
        rate: how far a length moves to the nearest one of the range: 1 all the way.
        axis: the axis, or axes, of the vectors; see `MaxNorm`.

    Examples:
        >>> laminar.constraints.MinMaxNorm(1.0, 2.0)(np.array([[3.0, 0.3], [4.0, 0.4]]))
        Tensor([[1.2, 0.6],
                [1.6, 0.8]], shape=(2, 2), dtype=float64)
    """

    def __init__(
        self,
        min_value: float = 0.0,
        max_value: float = 1.0,
        rate: float = 1.0,
        axis: Axes = 0,
    ) -> None:
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w: TensorLike) -> Any:
        w = ops.convert_to_tensor(w)
        lengths = _lengths(w, self.axis)
        inside = ops.clip(lengths, self.min_value, self.max_value)
        wanted = self.rate * inside + (1 - self.rate) * lengths
        return w * (wanted / (epsilon() + lengths))

    def get_config(self) -> dict[str, Any]:
        return {
            "min_value": self.min_value,
            "max_value": self.max_value,
            "rate": self.rate,
            "axis": self.axis,
        }


max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm

_NAMES: dict[str, Any] = {
    "Constraint": Constraint,
    "constraint": Constraint,
    "MaxNorm": MaxNorm,
    "max_norm": MaxNorm,
    "MinMaxNorm": MinMaxNorm,
    "min_max_norm": MinMaxNorm,
    "NonNeg": NonNeg,
    "non_neg": NonNeg,
    "UnitNorm": UnitNorm,
    "unit_norm": UnitNorm,
}
list_builtins("keras.constraints", _NAMES)


def serialize(constraint: Constraint | Callable[..., Any] | None) -> Any:
    """A constraint as plain data.

    Args:
        constraint: a constraint, or a registered function.

    Returns:
        a dict with its class and config, as JSON can hold it; for a function its name.

    Examples:
        >>> laminar.constraints.serialize(laminar.constraints.MaxNorm(3))["config"]
        {'max_value': 3, 'axis': 0}
    """
    return serialize_keras_object(constraint)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The constraint that `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        a constraint, or the function.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> config = laminar.constraints.serialize(laminar.constraints.MaxNorm(3))
        >>> laminar.constraints.deserialize(config).max_value
        3
    """
    return deserialize_keras_object(config, custom_objects, module_objects=_NAMES)


def get(identifier: ConstraintLike | None) -> Any:
    """A constraint: given as such, as a callable, by name, as a class or config; None is None.

    Args:
        identifier: a constraint, its name, class or config, or a function.

    Returns:
        a constraint, or the function; None for None.

    Raises:
        InvalidArgumentError: nothing of that name exists.

    Examples:
        >>> laminar.constraints.get("non_neg")(np.array([-1.0, 2.0]))
        Tensor([0., 2.], shape=(2,), dtype=float64)
    """
    return lookup("constraint", identifier, _NAMES)
