"""Quantizers: how floats become whole numbers, as objects that layers keep."""

from __future__ import annotations

from typing import Any

from ..engine.errors import InvalidArgumentError
from ..serialization import lookup
from ..typing import TensorLike
from .rounding import Axes, abs_max_quantize


class Quantizer:
    """What makes whole numbers of floats: called on floats, it gives (outputs, scale).

    Args:
        output_dtype: of the outputs.

    Examples:
        >>> issubclass(laminar.quantizers.AbsMaxQuantizer, laminar.Quantizer)
        True
    """

    def __init__(self, output_dtype: str = "int8") -> None:
        self.output_dtype = output_dtype

    def __call__(self, x: TensorLike) -> Any:
        """The numbers as they are: derived classes say otherwise."""
        return x

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {"output_dtype": self.output_dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Quantizer:
        """The quantizer that `get_config` described."""
        return cls(**config)


class AbsMaxQuantizer(Quantizer):
    """`abs_max_quantize` with its arguments.

    Raises:
        InvalidArgumentError: the range is beyond that of int8, if that is the type of outputs.

    Examples:
        >>> values, scale = laminar.quantizers.AbsMaxQuantizer(axis=-1)(
        ...     np.array([[0.5, -1.0]], "float32")
        ... )
        >>> values
        Tensor([[  63, -127]], shape=(1, 2), dtype=int8)
    """

    def __init__(
        self,
        axis: Axes = None,
        value_range: tuple[int, int] = (-127, 127),
        epsilon: float = 1e-7,
        output_dtype: str = "int8",
    ) -> None:
        super().__init__(output_dtype)
        self.axis = (axis,) if isinstance(axis, int) else None if axis is None else tuple(axis)
        self.value_range = tuple(value_range)
        self.epsilon = epsilon
        if output_dtype == "int8" and not -128 <= min(value_range) <= max(value_range) <= 127:
            raise InvalidArgumentError(
                f"AbsMaxQuantizer: value_range of int8 must be within (-128, 127), "
                f"got {tuple(value_range)}"
            )

    def __call__(self, x: TensorLike, axis: Axes = None, to_numpy: bool = False) -> tuple[Any, Any]:
        """The outputs and their scale; `axis` instead of the one that it was made with."""
        low, high = self.value_range
        return abs_max_quantize(
            x,
            self.axis if axis is None else axis,
            (low, high),
            self.output_dtype,
            self.epsilon,
            to_numpy,
        )

    def get_config(self) -> dict[str, Any]:
        config = {
            "value_range": self.value_range,
            "epsilon": self.epsilon,
            "output_dtype": self.output_dtype,
        }
        return config if self.axis is None else {**config, "axis": self.axis}


_BY_NAME = {
    "AbsMaxQuantizer": AbsMaxQuantizer,
    "Quantizer": Quantizer,
    "abs_max_quantizer": AbsMaxQuantizer,
}


def get_quantizer(identifier: Any) -> Any:
    """A quantizer: given as such, by its name or its config; None stays None."""
    if identifier is None or isinstance(identifier, Quantizer):
        return identifier
    return lookup("quantizer", identifier, _BY_NAME)
