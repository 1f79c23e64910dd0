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
from laminar.engine.ops.text import encodings, formatting, siphash, string_match
from laminar.engine.ops.text import string as strings
from laminar.engine.ops.text.tokens import string_characters

from .adapting import v1
from .inputs import known_text
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
    source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None
) -> Any:
    """The pieces of each string of a vector between any of the characters of `sep`, sparse.

    Args:
        source: a vector of strings.
        sep, delimiter: the characters, by default a blank; none of them cuts at each byte.
        skip_empty: whether empty pieces are left out.
    """
    marks = delimiter if sep is None else sep
    marks = " " if marks is None else known_text(marks)
    x = symbol(source, "string")
    if not marks:
        pieces, counts = string_characters(x, "byte")
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


@v1()
def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3
) -> Tensor:
    """A text with the values of tensors in it, one for each `placeholder` of the template.

    Args:
        template: the text.
        inputs: a tensor, or a list of them.
        placeholder: what stands for a tensor.
        summarize: how many entries are written at each end of an axis; -1 for all.
    """
    given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    parts = tuple(template.split(placeholder))
    return formatting.string_format(
        *(tensor(x) for x in given), template=parts, summarize=summarize
    )


@v1()
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = ""
) -> Tensor:
    """The strings that share a number as one, with `separator` between them."""
    ids = tensor(segment_ids)
    return formatting.unsorted_segment_join(
        tensor(inputs, "string"), ids, tensor(num_segments), separator=separator
    )


@v1()
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
) -> Tensor:
    """Texts in another encoding; see the op of this name."""
    return encodings.unicode_transcode(
        tensor(input, "string"),
        input_encoding=input_encoding,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
    )
