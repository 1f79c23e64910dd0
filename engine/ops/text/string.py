"""Byte strings: measured, joined, split, changed, read as numbers. On the host alone.

A tensor of dtype "string" holds bytes. Where an op works on text the bytes are read as UTF-8; bytes
that are none pass through unchanged. `unit` is "byte" or "char", a character of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph import (
    DENSE,
    INTEGER,
    REAL,
    STRING,
    Array,
    Tensor,
    TensorSpec,
    as_dtype,
    broadcast_shapes,
    canonical_axis,
    float32,
    int32,
    string,
)
from ..core.registry import define, no_gradient


def decode(item: bytes) -> str:
    """The text of a string."""
    return item.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The string of a text."""
    return text.encode("utf-8", "surrogateescape")


def collect(values: Sequence[Any], shape: Sequence[int], dtype: Any = object) -> Array:
    """The values as an array of `shape`; NumPy would take a list of strings for its own kind."""
    out = np.empty(len(values), dtype)
    out[:] = values
    return out.reshape(shape)


def fill_rows(rows: Sequence[list[bytes]], shape: Sequence[int]) -> tuple[Array, Array]:
    """Rows of any length as an array of `shape` + (the greatest,), filled with b"" at their ends.

    The second array, of `shape`, has the lengths.
    """
    width = max(map(len, rows), default=0)
    flat = [item for row in rows for item in row + [b""] * (width - len(row))]
    counts = np.asarray([len(row) for row in rows], np.int32)
    return collect(flat, (*shape, width)), counts.reshape(shape)


def map_strings(function: Callable[[bytes], Any], x: Array, dtype: Any = object) -> Array:
    """`function` of each string."""
    return collect([function(item) for item in x.ravel().tolist()], x.shape, dtype)


def map_text(function: Callable[[str], str], x: Array) -> Array:
    """`function` of the text of each string."""
    return map_strings(lambda item: encode(function(decode(item))), x)


def check_unit(who: str, unit: str) -> None:
    """InvalidArgumentError unless `unit` is one of the two."""
    if unit not in ("byte", "char"):
        raise InvalidArgumentError(f'{who}: unit must be "byte" or "char", got {unit!r}')


@define("StringLength", dtypes=STRING)
def string_length(x: TensorSpec, *, unit: str = "byte") -> TensorSpec:
    """The number of bytes, or of characters, of each string; int32."""
    check_unit("StringLength", unit)
    return TensorSpec(x.shape, int32)


@string_length.kernel("cpu")
def _string_length_kernel(x: Array, *, unit: str) -> Array:
    return map_strings(len if unit == "byte" else lambda item: len(decode(item)), x, np.int32)


string_length.grad(no_gradient)


@define("StringConcat", dtypes=STRING)
def _string_concat(*xs: TensorSpec) -> TensorSpec:
    """The strings of the inputs, which broadcast, one after the other."""
    if not xs:
        raise InvalidArgumentError("StringConcat: expected at least one tensor, got none")
    return TensorSpec(broadcast_shapes("StringConcat", *(x.shape for x in xs)), string)


@_string_concat.kernel("cpu")
def _string_concat_kernel(*xs: Array) -> Array:
    return np.asarray(reduce(np.add, xs), object)


_string_concat.grad(no_gradient)


def string_concat(xs: Sequence[Tensor]) -> Tensor:
    """The strings of the tensors, which broadcast, one after the other."""
    return _string_concat(*xs)


@define("StringJoin", dtypes=STRING)
def _string_join(x: TensorSpec, *, axis: int, separator: str) -> TensorSpec:
    """The strings along `axis` as one, with `separator` between them."""
    if x.shape.rank is None:
        return x
    place = canonical_axis("StringJoin", axis, len(x.shape))
    return TensorSpec([n for i, n in enumerate(x.shape) if i != place], string)


@_string_join.kernel("cpu")
def _string_join_kernel(x: Array, *, axis: int, separator: str) -> Array:
    lines = np.moveaxis(x, axis, -1)
    shape = lines.shape[:-1]
    rows = lines.reshape((int(np.prod(shape)), lines.shape[-1])).tolist()
    return collect([separator.encode().join(row) for row in rows], shape)


_string_join.grad(no_gradient)


def string_join(x: Tensor, axis: int = -1, separator: str = "") -> Tensor:
    """The strings along `axis` as one, with `separator` between them."""
    return _string_join(x, axis=axis, separator=separator)


@define("StringLower", dtypes=STRING)
def string_lower(x: TensorSpec, *, unit: str = "char") -> TensorSpec:
    """The text in lower case; with unit "byte", the ASCII letters of it alone."""
    check_unit("StringLower", unit)
    return x


@string_lower.kernel("cpu")
def _string_lower_kernel(x: Array, *, unit: str) -> Array:
    return map_strings(bytes.lower, x) if unit == "byte" else map_text(str.lower, x)


string_lower.grad(no_gradient)


@define("StringUpper", dtypes=STRING)
def string_upper(x: TensorSpec, *, unit: str = "char") -> TensorSpec:
    """The text in upper case; with unit "byte", the ASCII letters of it alone."""
    check_unit("StringUpper", unit)
    return x


@string_upper.kernel("cpu")
def _string_upper_kernel(x: Array, *, unit: str) -> Array:
    return map_strings(bytes.upper, x) if unit == "byte" else map_text(str.upper, x)


string_upper.grad(no_gradient)


@define("StringStrip", dtypes=STRING)
def string_strip(x: TensorSpec) -> TensorSpec:
    """The text without the white space at its two ends."""
    return x


@string_strip.kernel("cpu")
def _string_strip_kernel(x: Array) -> Array:
    return map_text(str.strip, x)


string_strip.grad(no_gradient)


@define("StringSplit", dtypes=STRING)
def _string_split(x: TensorSpec, *, separator: str, limit: int) -> tuple[TensorSpec, TensorSpec]:
    """The pieces of each string along a new last axis, as long as the most that one has.

    The rest is filled with empty strings; the second output counts the pieces of each string. An
    empty `separator` splits at white space, of which runs count as one. With `limit` >= 0, at most
    so many cuts are made from the left.
    """
    if x.shape.rank is None:
        return x, TensorSpec(None, int32)
    return TensorSpec([*x.shape, None], string), TensorSpec(x.shape, int32)


@_string_split.kernel("cpu")
def _string_split_kernel(x: Array, *, separator: str, limit: int) -> tuple[Array, Array]:
    rows = [decode(item).split(separator or None, limit) for item in x.ravel().tolist()]
    return fill_rows([list(map(encode, row)) for row in rows], x.shape)


_string_split.grad(no_gradient)


def string_split(x: Tensor, separator: str = "", limit: int = -1) -> tuple[Tensor, Tensor]:
    """The pieces of each string.

    Args:
        x: (...), strings.
        separator: what stands between the pieces; "" for any run of white space.
        limit: at most so many cuts, from the left; -1 for all.

    Returns:
        (..., most pieces), filled up with empty strings, and (...), the number of pieces, int32.
    """
    pieces, counts = _string_split.many(x, separator=separator, limit=limit)
    return pieces, counts


@define("Substr", dtypes={"x": STRING, "begin": INTEGER, "length": INTEGER}, same_dtype=False)
def _substr(
    x: TensorSpec, begin: TensorSpec, length: TensorSpec, *, unit: str, strict: bool = False
) -> TensorSpec:
    """The part of each string from `begin` on, `length` long, as far as the string goes.

    A negative `begin` counts from the end. The inputs broadcast. With `strict`, a `begin` outside
    of its string is an error.
    """
    check_unit("Substr", unit)
    return TensorSpec(broadcast_shapes("Substr", x.shape, begin.shape, length.shape), string)


@_substr.kernel("cpu")
def _substr_kernel(x: Array, begin: Array, length: Array, *, unit: str, strict: bool) -> Array:
    def part(item: bytes, first: int, count: int) -> bytes:
        text = item if unit == "byte" else decode(item)
        if strict and not -len(text) <= first <= len(text):
            raise InvalidArgumentError(f"Substr: {first} is outside of {item!r}")
        start = max(first + len(text), 0) if first < 0 else first
        piece = text[start : start + max(count, 0)]
        return piece if isinstance(piece, bytes) else encode(piece)

    x, begin, length = np.broadcast_arrays(x, begin, length)
    lists = (a.ravel().tolist() for a in (x, begin, length))
    return collect([part(*items) for items in zip(*lists, strict=True)], x.shape)


_substr.grad(no_gradient)


def substr(x: Tensor, begin: Any, length: Any, unit: str = "byte", strict: bool = False) -> Tensor:
    """The part of each string from `begin` on, `length` long, as far as the string goes.

    Args:
        x: strings.
        begin: where the part begins, integers; negative ones count from the end.
        length: how long it is, integers. The three broadcast.
        unit: "byte" or "char", what is counted.
        strict: whether a `begin` outside of its string is an error; else the part is empty.
    """
    return _substr(x, begin, length, unit=unit, strict=strict)


@define("StringToNumber", dtypes=STRING)
def _to_number(x: TensorSpec, *, dtype: str) -> TensorSpec:
    """The number that each string writes in decimal; an error where it is none."""
    if as_dtype(dtype) not in REAL:
        raise InvalidArgumentError(f"StringToNumber: dtype must be a real type, got {dtype}")
    return TensorSpec(x.shape, as_dtype(dtype))


@_to_number.kernel("cpu")
def _to_number_kernel(x: Array, *, dtype: str) -> Array:
    wanted = as_dtype(dtype)
    read: Callable[[str], Any] = int if wanted.is_integer else float

    def number(item: bytes) -> Any:
        try:
            return read(decode(item))
        except ValueError:
            raise InvalidArgumentError(
                f"StringToNumber: {item!r} does not write a number of type {wanted}",
                remedy="filter the strings first, for example with regex_full_match",
            ) from None

    values = [number(item) for item in x.ravel().tolist()]
    try:
        return np.asarray(values, wanted.numpy).reshape(x.shape)
    except OverflowError:
        raise InvalidArgumentError(
            f"StringToNumber: a number does not fit into {wanted}", remedy="use a wider dtype"
        ) from None


_to_number.grad(no_gradient)


def to_number(x: Tensor, dtype: Any = float32) -> Tensor:
    """The number that each string writes in decimal.

    Raises:
        InvalidArgumentError: a string writes no number, or one that does not fit into `dtype`.
    """
    return _to_number(x, dtype=as_dtype(dtype))


_FORM = re.compile(r"%[-+ 0#]*[0-9]{0,3}(\.[0-9]{1,3})?[dfeg]")


@define("AsString", dtypes=DENSE)
def _as_string(x: TensorSpec, *, precision: int, form: str = "") -> TensorSpec:
    """Each number in decimal: the shortest form that reads back the same.

    With `precision` >= 0, real numbers have so many digits after the point. Bools are "true" and
    "false". `form`, as C's printf has it, says all of it, of both parts of a complex number.
    """
    if form and not _FORM.fullmatch(form):
        raise InvalidArgumentError(
            f"AsString: {form!r} is not a form for one number", remedy='such as "%8.2f"'
        )
    return TensorSpec(x.shape, string)


@_as_string.kernel("cpu")
def _as_string_kernel(x: Array, *, precision: int, form: str) -> Array:
    def write(value: Any) -> bytes:
        if isinstance(value, np.bool_):
            return b"true" if value else b"false"
        if form:
            if isinstance(value, np.complexfloating):
                return f"({form % value.real},{form % value.imag})".encode()
            return str(form % value.item()).encode()
        fixed = precision >= 0 and not isinstance(value, np.integer)
        return (f"{value:.{precision}f}" if fixed else str(value)).encode()

    return collect([write(value) for value in x.ravel()], x.shape)


_as_string.grad(no_gradient)


def as_string(x: Tensor, precision: int = -1, form: str = "") -> Tensor:
    """Each number in decimal, as a string.

    Args:
        x: numbers or bools; bools become "true" and "false".
        precision: digits after the point, for real numbers; -1 for the shortest form that reads
            back the same.
        form: as C's printf has it, such as "%8.2f", instead of the precision.
    """
    return _as_string(x, precision=precision, form=form)
