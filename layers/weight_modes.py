"""How a layer keeps a large weight in few bits, and computes with it: a class for each mode.

A mode says which variables there are instead of the weight, or beside it, what they hold for a
given weight, how a product with it is made, and in which order files have the variables. The
modes are in `weight_integers.py`, `weight_float8.py` and `weight_calibrated.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from laminar import ops
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.quantizers import QuantizationConfig

from .contraction import Contraction


class LargeWeight(NamedTuple):
    """A weight of a layer.

    Attributes:
        name: "kernel".
        attribute: of the layer, which holds the variable: "_kernel".
        shape: of the weight.
        matrix: its rows and columns, for a mode that keeps it as a matrix of these.
        product: what is computed with it.
        group_axis: along which axis of the matrix numbers that follow each other have one scale.
        pack_axis: along which two numbers are put into a byte.
    """

    name: str
    attribute: str
    shape: tuple[int, ...]
    matrix: tuple[int, int]
    product: Contraction
    group_axis: int = 0
    pack_axis: int = 1


class WeightMode(ABC):
    """One weight of a layer in one mode. Abstract.

    Attributes:
        name: of the mode.
        saved: the attributes that files have, in order; "{}" stands for the name of the weight.
        floats_made: whether `build` of the layer makes the weight itself besides.
        floats_stay: whether `quantize` of the layer leaves it.

    Args:
        layer: the owner of the variables.
        weight: which of its weights.
        config: how it is quantized; None for what the policy of the layer says, and defaults.
    """

    name: ClassVar[str]
    saved: ClassVar[Sequence[str]]
    floats_made: ClassVar[bool] = False
    floats_stay: ClassVar[bool] = False

    def __init__(self, layer: Any, weight: LargeWeight, config: QuantizationConfig | None) -> None:
        self.layer = layer
        self.weight = weight
        self.product = weight.product
        self.config = config

    @abstractmethod
    def build(self) -> None:
        """Make the variables."""

    def encode(self, value: Any) -> dict[str, Any]:
        """What the variables hold for floats, by attribute; nothing where that takes data."""
        return {}

    @abstractmethod
    def dequantized(self) -> Any:
        """The floats that the variables stand for, in the shape of the weight."""

    def shown(self) -> Any:
        """What the layer shows as its weight."""
        return self.variable()

    def multiply(self, x: Any, training: bool | None) -> Any:
        """The product of an input with the weight."""
        return self.product(x, ops.cast(self.dequantized(), self.layer.compute_dtype))

    def add_bias(self, y: Any, bias: Any) -> Any:
        """y + bias."""
        return ops.add(y, bias)

    # For derived classes

    def variable(self, suffix: str = "") -> Any:
        """One of its variables; "" is what stands in the place of the weight."""
        return getattr(self.layer, self.attribute(suffix))

    def attribute(self, suffix: str = "") -> str:
        """The name of the attribute that has a variable."""
        return f"{self.weight.name}{suffix}" if suffix else self.weight.attribute

    def make(
        self,
        attribute: str,
        shape: Sequence[int],
        initializer: InitializerLike = "zeros",
        *,
        dtype: str | None = None,
        name: str | None = None,
    ) -> Variable:
        """Make a variable that is not trained.

        Args:
            attribute: of the layer.
            shape: of the variable.
            initializer: of the variable.
            dtype: by default that of the layer's variables, which are read as it computes.
            name: by default the attribute.
        """
        made: Variable = self.layer.add_weight(
            tuple(shape),
            initializer,
            dtype=dtype,
            trainable=False,
            autocast=dtype is None,
            name=name or attribute,
        )
        setattr(self.layer, attribute, made)
        return made
