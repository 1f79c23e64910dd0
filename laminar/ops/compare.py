"""Comparison, logic, bits, and choice by condition; operands broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, string
from laminar.engine.ops.array.search import nonzero as _nonzero
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math import compare as engine
from laminar.engine.ops.math.reduce import reduce_all

from ..typing import TensorLike
from .arguments import boolean, common, floating_pair, pair, tensor
from .recording import public

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "right_shift",
    "select",
    "where",
]


def _compare(op: OpDef, x1: TensorLike, x2: TensorLike) -> Tensor:
    """Apply a comparison to operands of a common type; strings compare with strings."""
    if isinstance(x1, str | bytes | list) or isinstance(x2, str | bytes | list):
        x1, x2 = tensor(x1), tensor(x2)
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype == x2.dtype == string:
        return op(x1, x2)
    return op(*pair(x1, x2))


@public
def equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 == x2.

    Examples:
        >>> ops.equal([1, 2], [1, 3])
        Tensor([ True, False], shape=(2,), dtype=bool)
    """
    return _compare(engine.equal, x1, x2)


@public
def not_equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 != x2.

    Examples:
        >>> ops.not_equal([1, 2], [1, 3])
        Tensor([False,  True], shape=(2,), dtype=bool)
    """
    return _compare(engine.not_equal, x1, x2)


@public
def less(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 < x2.

    Examples:
        >>> ops.less([1, 2, 3], 2)
        Tensor([ True, False, False], shape=(3,), dtype=bool)
    """
    return engine.less(*pair(x1, x2))


@public
def less_equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 <= x2.

    Examples:
        >>> ops.less_equal([1, 2, 3], 2)
        Tensor([ True,  True, False], shape=(3,), dtype=bool)
    """
    return engine.less_equal(*pair(x1, x2))


@public
def greater(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 > x2.

    Examples:
        >>> ops.greater([1, 2, 3], 2)
        Tensor([False, False,  True], shape=(3,), dtype=bool)
    """
    return engine.greater(*pair(x1, x2))


@public
def greater_equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 >= x2.

    Examples:
        >>> ops.greater_equal([1, 2, 3], 2)
        Tensor([False,  True,  True], shape=(3,), dtype=bool)
    """
    return engine.greater_equal(*pair(x1, x2))


@public
def logical_and(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Whether both hold (are not 0).

    Examples:
        >>> ops.logical_and([True, True], [True, False])
        Tensor([ True, False], shape=(2,), dtype=bool)
    """
    return engine.logical_and(boolean(x1), boolean(x2))


@public
def logical_or(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Whether one holds (is not 0).

    Examples:
        >>> ops.logical_or([True, False], [False, False])
        Tensor([ True, False], shape=(2,), dtype=bool)
    """
    return engine.logical_or(boolean(x1), boolean(x2))


@public
def logical_xor(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Whether exactly one holds (is not 0).

    Examples:
        >>> ops.logical_xor([True, True], [True, False])
        Tensor([False,  True], shape=(2,), dtype=bool)
    """
    return engine.logical_xor(boolean(x1), boolean(x2))


@public
def logical_not(x: TensorLike) -> Tensor:
    """Whether x does not hold (is 0).

    Examples:
        >>> ops.logical_not([True, False])
        Tensor([False,  True], shape=(2,), dtype=bool)
    """
    return engine.logical_not(boolean(x))


@public
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits set in both; for bools, logical and.

    Examples:
        >>> ops.bitwise_and([12, 10], 6)
        Tensor([4, 2], shape=(2,), dtype=int32)
    """
    return engine.bitwise_and(*pair(x, y))


@public
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits set in either; for bools, logical or.

    Examples:
        >>> ops.bitwise_or([12, 10], 6)
        Tensor([14, 14], shape=(2,), dtype=int32)
    """
    return engine.bitwise_or(*pair(x, y))


@public
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits set in one alone; for bools, logical exclusive or.

    Examples:
        >>> ops.bitwise_xor([12, 10], 6)
        Tensor([10, 12], shape=(2,), dtype=int32)
    """
    return engine.bitwise_xor(*pair(x, y))


@public
def bitwise_not(x: TensorLike) -> Tensor:
    """All bits turned; for bools, logical not.

    Examples:
        >>> ops.bitwise_not([0, 5])
        Tensor([-1, -6], shape=(2,), dtype=int32)
    """
    return engine.bitwise_not(tensor(x))


@public
def bitwise_invert(x: TensorLike) -> Tensor:
    """All bits turned; for bools, logical not.

    Examples:
        >>> ops.bitwise_invert([0, 5])
        Tensor([-1, -6], shape=(2,), dtype=int32)
    """
    return engine.bitwise_not(tensor(x))


@public
def bitwise_left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """x * 2**y, for integers.

    Args:
        x: integers.
        y: by how many bits; from the number of bits of the type on, and for negative `y`, all are
            lost.

    Raises:
        DTypeError: one is a float, or both are bools.

    Examples:
        >>> ops.bitwise_left_shift([1, 3], 2)
        Tensor([ 4, 12], shape=(2,), dtype=int32)
    """
    return engine.left_shift(*pair(x, y))


@public
def left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """x * 2**y, for integers.

    Args:
        x: integers.
        y: by how many bits; from the number of bits of the type on, and for negative `y`, all are
            lost.

    Raises:
        DTypeError: one is a float, or both are bools.

    Examples:
        >>> ops.left_shift([1, 3], 2)
        Tensor([ 4, 12], shape=(2,), dtype=int32)
    """
    return engine.left_shift(*pair(x, y))


@public
def bitwise_right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """floor(x / 2**y), for integers.

    Args:
        x: integers; signed ones keep their sign.
        y: by how many bits.

    Raises:
        DTypeError: one is a float, or both are bools.

    Examples:
        >>> ops.bitwise_right_shift([8, 13], 2)
        Tensor([2, 3], shape=(2,), dtype=int32)
    """
    return engine.right_shift(*pair(x, y))


@public
def right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """floor(x / 2**y), for integers.

    Args:
        x: integers; signed ones keep their sign.
        y: by how many bits.

    Raises:
        DTypeError: one is a float, or both are bools.

    Examples:
        >>> ops.right_shift([8, 13], 2)
        Tensor([2, 3], shape=(2,), dtype=int32)
    """
    return engine.right_shift(*pair(x, y))


def _none(x: Tensor) -> Tensor:
    """False for every element of `x`."""
    return zeros_like(boolean(x))


@public
def isnan(x: TensorLike) -> Tensor:
    """Whether x is NaN.

    Examples:
        >>> ops.isnan([1.0, np.inf, np.nan])
        Tensor([False, False,  True], shape=(3,), dtype=bool)
    """
    x = tensor(x)
    return engine.is_nan(x) if x.dtype.is_differentiable else _none(x)


@public
def isinf(x: TensorLike) -> Tensor:
    """Whether x is infinite.

    Examples:
        >>> ops.isinf([1.0, np.inf, np.nan])
        Tensor([False,  True, False], shape=(3,), dtype=bool)
    """
    x = tensor(x)
    return engine.is_inf(x) if x.dtype.is_differentiable else _none(x)


@public
def isfinite(x: TensorLike) -> Tensor:
    """Whether x is neither infinite nor NaN.

    Examples:
        >>> ops.isfinite([1.0, np.inf, np.nan])
        Tensor([ True, False, False], shape=(3,), dtype=bool)
    """
    x = tensor(x)
    if x.dtype.is_floating:
        return engine.is_finite(x)
    if x.dtype.is_complex:
        return engine.logical_not(engine.logical_or(engine.is_nan(x), engine.is_inf(x)))
    return engine.logical_not(_none(x))


@public
def isposinf(x: TensorLike) -> Tensor:
    """Whether x is infinity.

    Examples:
        >>> ops.isposinf([np.inf, -np.inf])
        Tensor([ True, False], shape=(2,), dtype=bool)
    """
    x = tensor(x)
    return engine.equal(x, tensor(float("inf"), x.dtype)) if x.dtype.is_floating else _none(x)


@public
def isneginf(x: TensorLike) -> Tensor:
    """Whether x is minus infinity.

    Examples:
        >>> ops.isneginf([np.inf, -np.inf])
        Tensor([False,  True], shape=(2,), dtype=bool)
    """
    x = tensor(x)
    return engine.equal(x, tensor(float("-inf"), x.dtype)) if x.dtype.is_floating else _none(x)


@public
def isreal(x: TensorLike) -> Tensor:
    """Whether x has no imaginary part.

    Examples:
        >>> ops.isreal([1 + 0j, 1 + 2j])
        Tensor([ True, False], shape=(2,), dtype=bool)
    """
    x = tensor(x)
    return engine.equal(x, arithmetic.conj(x)) if x.dtype.is_complex else _all(x)


def _all(x: Tensor) -> Tensor:
    return engine.logical_not(_none(x))


@public
def isclose(
    x1: TensorLike, x2: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether |x1 - x2| <= atol + rtol * |x2|; equal infinities are close.

    Args:
        x1: any tensor; integers become the default float.
        x2: what it is compared with; of a shape that broadcasts.
        rtol: the allowed difference relative to `x2`.
        atol: the allowed absolute difference.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Bools of the shape to which both broadcast.

    Examples:
        >>> ops.isclose([1.0, 2.0], [1.0 + 1e-7, 2.1])
        Tensor([ True, False], shape=(2,), dtype=bool)
    """
    a, b = floating_pair(x1, x2)
    limit = arithmetic.add(
        arithmetic.multiply(arithmetic.absolute(b), tensor(rtol, b.dtype)), tensor(atol, b.dtype)
    )
    near = engine.less_equal(arithmetic.absolute(arithmetic.subtract(a, b)), limit)
    near = engine.logical_and(near, engine.is_finite(b))
    close = engine.logical_or(near, engine.equal(a, b))
    if equal_nan:
        close = engine.logical_or(close, engine.logical_and(engine.is_nan(a), engine.is_nan(b)))
    return close


@public
def allclose(
    x1: TensorLike, x2: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether `isclose` holds everywhere, a scalar.

    Args:
        x1: any tensor; integers become the default float.
        x2: what it is compared with; of a shape that broadcasts.
        rtol: the allowed difference relative to `x2`.
        atol: the allowed absolute difference.
        equal_nan: whether NaN is close to NaN.

    Returns:
        A bool; True where there are no elements.

    Examples:
        >>> ops.allclose([1.0, 2.0], [1.0, 2.0 + 1e-7])
        Tensor(True, shape=(), dtype=bool)
    """
    return reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


@public
def where(condition: TensorLike, x1: TensorLike | None = None, x2: TensorLike | None = None) -> Any:
    """x1 where the condition holds (is not 0), x2 elsewhere.

    With the condition alone: for each axis, the coordinates of the places where it holds.

    Args:
        condition: bools or numbers.
        x1: taken where the condition holds.
        x2: taken elsewhere; both are converted to their common type, and all three broadcast.

    Returns:
        A tensor of the shape to which the three broadcast; of a condition alone a tuple, as
        `nonzero` gives it.

    Raises:
        InvalidArgumentError: one of `x1` and `x2` alone.
        InvalidArgumentError: one of x1 and x2 is given without the other.

    Examples:
        >>> ops.where([True, False], [1, 2], [10, 20])
        Tensor([ 1, 20], shape=(2,), dtype=int32)
    """
    if (x1 is None) != (x2 is None):
        raise InvalidArgumentError("where: give both x1 and x2, or neither")
    if x1 is None or x2 is None:
        return _nonzero(boolean(condition))
    return engine.where(boolean(condition), *pair(x1, x2))


@public
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: TensorLike = 0) -> Tensor:
    """The choice of the first condition that holds, `default` where none does.

    Args:
        condlist: the conditions, at least one.
        choicelist: what is taken for each, as many.
        default: taken where no condition holds.

    Returns:
        A tensor of the common type and shape of choices and default.

    Raises:
        InvalidArgumentError: there are no conditions, or not as many choices.
        InvalidArgumentError: the lists differ in length, or are empty.

    Examples:
        >>> x = np.array([-2, 0, 3])
        >>> ops.select([x < 0, x > 0], [-x, x * 10], default=7)
        Tensor([ 2,  7, 30], shape=(3,), dtype=int64)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise InvalidArgumentError(
            f"select: expected as many choices as conditions, at least one; "
            f"got {len(condlist)} conditions and {len(choicelist)} choices"
        )
    dtype = common(*choicelist, default)
    chosen = tensor(default, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = engine.where(boolean(condition), tensor(choice, dtype), chosen)
    return chosen
