"""Strings in pieces, where TensorFlow 1 has other arguments."""

from __future__ import annotations

import re
from typing import Any

from laminar import engine
from laminar.engine.graph import Tensor, string
from laminar.engine.ops.array.creation import sequence_mask
from laminar.engine.ops.array.gather import gather, gather_nd
from laminar.engine.ops.array.join import stack
from laminar.engine.ops.array.search import argwhere
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.math.arithmetic import subtract
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import not_equal
from laminar.engine.ops.math.cumulative import cumsum
from laminar.engine.ops.math.reduce import reduce_max, reduce_sum
from laminar.engine.ops.text import siphash, string_match
from laminar.engine.ops.text import string as strings
from laminar.engine.ops.text.tokens import string_characters

from .adapting import v1
from .values import symbol, tensor


def _as_sparse(pieces: Tensor, there: Tensor) -> Any:
    """The pieces of (rows, most) that are there, moved together in each row."""
    flags = cast(there, "int64")
    columns = subtract(cumsum(flags, 1), constant(1, "int64"))
    places = argwhere(there)
    moved = stack([gather(places, constant(0), axis=1), gather_nd(columns, places)], 1)
    # A row more, without pieces: there may be none at all.
    most = reduce_max(engine.lookup("Pad")(reduce_sum(flags, 1), paddings=((0, 1),), **_ZERO))
    shape = stack([cast(dim_of(pieces, axis=0), "int64"), most])
    return engine.SparseValues(moved, gather_nd(pieces, places), shape)


_ZERO: dict[str, Any] = {"mode": "constant", "value": 0}


@v1()
def string_split(
    source: Any, sep: str | None = None, skip_empty: bool = True, delimiter: str | None = None
) -> Any:
    """The pieces of each string of a vector between any of the characters of `sep`, sparse.

    Args:
        source: a vector of strings.
        sep, delimiter: the characters, by default a blank; none of them cuts at each character.
        skip_empty: whether empty pieces are left out.
    """
    marks = delimiter if sep is None else sep
    marks = " " if marks is None else marks
    x = symbol(source, "string")
    if not marks:
        pieces, counts = string_characters(x)
    else:
        if len(marks) > 1:
            one = f"[{re.escape(marks)}]"
            x = string_match.regex_replace(x, one, marks[0].replace("\\", r"\\"))
        pieces, counts = strings.string_split(x, marks[0])
    if skip_empty:
        return _as_sparse(pieces, not_equal(pieces, constant("", string)))
    return _as_sparse(pieces, sequence_mask(counts, dim_of(pieces, axis=1)))


@v1(source="input")
def split(input: Any = None, sep: str | None = None, maxsplit: int = -1, **more: Any) -> Any:
    """The pieces of each string of a vector between two `sep`, sparse; by default blanks."""
    if more.get("result_type", "SparseTensor") != "SparseTensor":
        raise ValueError("strings.split: only sparse tensors are given")
    x = symbol(input, "string")
    if x.shape.rank == 0:
        x = engine.lookup("ExpandDims")(x, axis=(0,))
    pieces, counts = strings.string_split(x, sep or "", maxsplit)
    return _as_sparse(pieces, sequence_mask(counts, dim_of(pieces, axis=1)))


@v1()
def string_to_hash_bucket_strong(input: Any, num_buckets: int, key: Any) -> Tensor:
    """A number below `num_buckets` for each string, by SipHash with a key of two numbers."""
    return siphash.to_hash_bucket_strong(tensor(input), num_buckets, (int(key[0]), int(key[1])))
