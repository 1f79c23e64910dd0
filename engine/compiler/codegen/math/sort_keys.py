"""Numbers by which elements are put in order: integers that compare as sorting does."""

from __future__ import annotations

from ....graph import DType
from ..function import Function, Value
from .floats import FORMATS, bits_of, select


def order_type(dtype: DType) -> DType:
    """The type of `in_order` for elements of a type."""
    return FORMATS[dtype].integer if dtype in FORMATS else dtype


def in_order(fn: Function, x: Value) -> Value:
    """An integer for each element; NaN is the greatest, and -0 is 0."""
    if x.dtype not in FORMATS:
        return x
    layout = FORMATS[x.dtype]
    bits = bits_of(fn, x + 0.0)  # -0 + 0 = 0
    # Those of negative numbers count up with the magnitude.
    key = fn.select(bits < 0, bits ^ (layout.sign_mask - 1), bits)
    return select(fn, x != x, layout.sign_mask - 1, key)
