"""Texts cut into characters, and into runs of words. On the host alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, STRING, Array, Tensor, TensorShape, TensorSpec, int32, string
from ..core.registry import define, no_gradient
from .string import check_unit, decode, encode, fill_rows


def _rows_spec(shape: TensorShape) -> tuple[TensorSpec, TensorSpec]:
    """Rows of unknown length for each element of `shape`, and their lengths."""
    longer = None if shape.rank is None else [*shape, None]
    return TensorSpec(longer, string), TensorSpec(shape, int32)


@define("StringCharacters", dtypes=STRING)
def _string_characters(x: TensorSpec, *, unit: str = "char") -> tuple[TensorSpec, TensorSpec]:
    """The characters of each text along a new last axis, filled up with empty strings.

    The second output counts them. A byte that is no text counts as a character; with unit "byte",
    each byte does.
    """
    check_unit("StringCharacters", unit)
    return _rows_spec(x.shape)


@_string_characters.kernel("cpu")
def _string_characters_kernel(x: Array, *, unit: str) -> tuple[Array, Array]:
    def parts(item: bytes) -> list[bytes]:
        if unit == "byte":
            return [item[i : i + 1] for i in range(len(item))]
        return list(map(encode, decode(item)))

    return fill_rows([parts(item) for item in x.ravel().tolist()], x.shape)


_string_characters.grad(no_gradient)


def string_characters(x: Tensor, unit: str = "char") -> tuple[Tensor, Tensor]:
    """The characters of each text, or with unit "byte" its bytes.

    Returns:
        (..., most characters), filled up with empty strings, and (...), their number, int32.
    """
    characters, counts = _string_characters.many(x, unit=unit)
    return characters, counts


@define("StringNGrams", dtypes={"x": STRING, "counts": INTEGER}, same_dtype=False)
def _string_ngrams(
    x: TensorSpec, counts: TensorSpec, *, widths: tuple[int, ...], separator: str
) -> tuple[TensorSpec, TensorSpec]:
    """For each row of words, all runs of `widths` words, each joined by `separator`.

    Runs of the first width come first. The words of a row are its first `counts` elements. The
    results are filled up with empty strings; the second output counts them.
    """
    if not widths or min(widths) < 1:
        raise InvalidArgumentError(f"StringNGrams: widths must be at least 1, got {widths}")
    if x.shape.rank == 0:
        raise ShapeError(f"StringNGrams: expected rows of words, got {x}")
    return _rows_spec(counts.shape)


@_string_ngrams.kernel("cpu")
def _string_ngrams_kernel(
    x: Array, counts: Array, *, widths: tuple[int, ...], separator: str
) -> tuple[Array, Array]:
    joiner = separator.encode()
    rows = x.reshape(-1, x.shape[-1]) if x.size else np.empty((counts.size, 0), object)
    found = []
    for row, count in zip(rows.tolist(), counts.ravel().tolist(), strict=True):
        found.append(
            [
                joiner.join(row[first : first + width])
                for width in widths
                for first in range(count - width + 1)
            ]
        )
    return fill_rows(found, counts.shape)


_string_ngrams.grad(no_gradient)


def string_ngrams(
    x: Tensor, counts: Tensor, widths: Sequence[int], separator: str = " "
) -> tuple[Tensor, Tensor]:
    """For each row of words, all runs of so many words.

    Args:
        x: (..., words), strings.
        counts: (...), how many words each row has.
        widths: the lengths of the runs; the results come in this order.
        separator: stands between the words of a run.

    Returns:
        (..., most runs), filled up with empty strings, and (...), their number, int32.
    """
    grams, found = _string_ngrams.many(x, counts, widths=tuple(widths), separator=separator)
    return grams, found
