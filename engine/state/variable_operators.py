"""What Python's operators mean on variables."""

from __future__ import annotations

from typing import Any

from ..graph import Tensor
from ..ops.core.convert import convert_to_tensor
from ..ops.core.operators import TensorOperators
from ..ops.math.cast import cast
from ..ops.math.compare import logical_and, logical_or, logical_xor


class VariableOperators(TensorOperators):
    """As of tensors, but that &, | and ^ ask of each element whether it is 0, as Keras's do."""

    @staticmethod
    def bitwise_and(x: Any, y: Any) -> Tensor:
        return logical_and(_truth(x), _truth(y))

    @staticmethod
    def bitwise_or(x: Any, y: Any) -> Tensor:
        return logical_or(_truth(x), _truth(y))

    @staticmethod
    def bitwise_xor(x: Any, y: Any) -> Tensor:
        return logical_xor(_truth(x), _truth(y))


def _truth(x: Any) -> Tensor:
    return cast(convert_to_tensor(x), "bool")
