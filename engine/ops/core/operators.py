"""What Python's operators mean on tensors: promote the operands, then apply the op."""

from __future__ import annotations

from typing import Any

from ...graph import Tensor, float64, string
from ..array import axes, index
from ..linalg import matmul as linalg
from ..math import arithmetic, compare, complex_numbers, elementary
from ..math.cast import cast
from .convert import convert_to_tensor
from .elementwise import ElementwiseOp
from .promotion import promote
from .remembered_calls import remembering


def _compare(op: ElementwiseOp, x: Any, y: Any) -> Tensor:
    z = op.directly(x, y)
    if z is not None:
        return z
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    return op(x, y) if string in (x.dtype, y.dtype) else op(*promote(x, y))


def _matmul(x: Any, y: Any) -> Tensor:
    return linalg.matmul_nd(*promote(x, y))


class TensorOperators:
    """The operators of eager tensors, graph tensors and variables."""

    @staticmethod
    def add(x: Any, y: Any) -> Tensor:
        z = arithmetic.add.directly(x, y)
        return arithmetic.add(*promote(x, y)) if z is None else z

    @staticmethod
    def subtract(x: Any, y: Any) -> Tensor:
        z = arithmetic.subtract.directly(x, y)
        return arithmetic.subtract(*promote(x, y)) if z is None else z

    @staticmethod
    def multiply(x: Any, y: Any) -> Tensor:
        z = arithmetic.multiply.directly(x, y)
        return arithmetic.multiply(*promote(x, y)) if z is None else z

    @staticmethod
    def true_divide(x: Any, y: Any) -> Tensor:
        z = arithmetic.divide.directly(x, y)
        return arithmetic.divide(*promote(x, y, floating=True)) if z is None else z

    @staticmethod
    def floor_divide(x: Any, y: Any) -> Tensor:
        return arithmetic.floor_divide(*promote(x, y))

    @staticmethod
    def mod(x: Any, y: Any) -> Tensor:
        return arithmetic.mod(*promote(x, y))

    @staticmethod
    def power(x: Any, y: Any) -> Tensor:
        base, exponent = promote(x, y)
        if isinstance(y, int | float) and y == 2:
            return arithmetic.square(base)
        return elementary.power(base, exponent)

    matmul = staticmethod(remembering(_matmul, _matmul))

    @staticmethod
    def negative(x: Any) -> Tensor:
        return arithmetic.negative(x)

    @staticmethod
    def abs(x: Any) -> Tensor:
        return complex_numbers.magnitude(x)

    @staticmethod
    def round(x: Any, digits: int) -> Tensor:
        given = convert_to_tensor(x)
        if given.dtype.is_integer and digits >= 0:
            return given
        dtype = given.dtype if given.dtype.is_floating else float64
        scale = convert_to_tensor(10.0**digits, dtype)
        rounded = arithmetic.rint(arithmetic.multiply(cast(given, dtype), scale))
        return cast(arithmetic.divide(rounded, scale), given.dtype)

    @staticmethod
    def equal(x: Any, y: Any) -> Tensor:
        return _compare(compare.equal, x, y)

    @staticmethod
    def not_equal(x: Any, y: Any) -> Tensor:
        return _compare(compare.not_equal, x, y)

    @staticmethod
    def less(x: Any, y: Any) -> Tensor:
        return _compare(compare.less, x, y)

    @staticmethod
    def less_equal(x: Any, y: Any) -> Tensor:
        return _compare(compare.less_equal, x, y)

    @staticmethod
    def greater(x: Any, y: Any) -> Tensor:
        return _compare(compare.greater, x, y)

    @staticmethod
    def greater_equal(x: Any, y: Any) -> Tensor:
        return _compare(compare.greater_equal, x, y)

    @staticmethod
    def bitwise_and(x: Any, y: Any) -> Tensor:
        return compare.bitwise_and(*promote(x, y))

    @staticmethod
    def bitwise_or(x: Any, y: Any) -> Tensor:
        return compare.bitwise_or(*promote(x, y))

    @staticmethod
    def bitwise_xor(x: Any, y: Any) -> Tensor:
        return compare.bitwise_xor(*promote(x, y))

    @staticmethod
    def bitwise_not(x: Any) -> Tensor:
        return compare.bitwise_not(x)

    @staticmethod
    def get_item(x: Any, item: Any) -> Tensor:
        return index.get_item(x, item)

    @staticmethod
    def transpose(x: Any) -> Tensor:
        return axes.transpose(x)
