"""`tf.strings`: characters of texts as numbers or as texts, and runs of words, in ragged rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import engine
from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, int64
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.text import unicode
from laminar.engine.ops.text.tokens import string_characters

from .adapting import v1
from .ragged_tensors import symbols
from .values import symbol

_Parts = tuple[Any, list[Any]]


def _in_rows(input: Any, cut: Callable[[Tensor], _Parts]) -> list[Any]:
    """What `cut` makes of a vector of texts, (splits, parts), with one more, ragged axis."""
    x = symbols(input)
    if isinstance(x, engine.RaggedTensor):
        return [x.with_flat_values(found) for found in _in_rows(x.flat_values, cut)]
    if x.shape.rank is None:
        raise ShapeError("the number of axes of the texts must be known")
    if x.shape.rank == 0:
        return cut(reshape(x, [1]))[1]
    if x.shape.rank > 1:
        rows = engine.RaggedTensor.from_tensor(x, ragged_rank=x.shape.rank - 1)
        return [rows.with_flat_values(found) for found in _in_rows(rows.flat_values, cut)]
    splits, parts = cut(x)
    return [engine.RaggedTensor.from_row_splits(p, splits, validate=False) for p in parts]


def _decoded(
    input: Any, encoding: str, errors: str, replacement_char: int, replaces_control: bool
) -> list[Any]:
    def cut(x: Tensor) -> _Parts:
        splits, numbers, places = unicode.unicode_decode.many(
            x,
            input_encoding=encoding,
            errors=errors,
            replacement_char=replacement_char,
            replace_control_characters=replaces_control,
        )
        return splits, [numbers, places]

    return _in_rows(input, cut)


@v1()
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The numbers of the characters of each text, int32, in ragged rows.

    Args:
        input: texts.
        input_encoding: "UTF-8", "UTF-16-BE", ...
        errors: what becomes of bytes that are no character: "strict", "replace" or "ignore".
        replacement_char: the number that takes their place.
        replace_control_characters: whether control characters count as such bytes.
        name: accepted.
    """
    given = (input_encoding, errors, replacement_char, replace_control_characters)
    return _decoded(input, *given)[0]


@v1()
def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """As `unicode_decode`, and the place of the first byte of each character, int64."""
    given = (input_encoding, errors, replacement_char, replace_control_characters)
    numbers, places = _decoded(input, *given)
    return numbers, places


@v1()
def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    name: str | None = None,
) -> Any:
    """The characters of each text, as texts in the same encoding, in ragged rows."""
    return unicode_split_with_offsets(input, input_encoding, errors, replacement_char)[0]


@v1()
def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    name: str | None = None,
) -> Any:
    """As `unicode_split`, and the place of the first byte of each character, int64."""
    numbers, places = _decoded(input, input_encoding, errors, replacement_char, False)
    flat = numbers.flat_values if isinstance(numbers, engine.RaggedTensor) else numbers
    ends = engine.ragged_numbers(engine.lookup("Size")(flat)[None] + 1, dtype=int64).flat_values
    characters = unicode.unicode_encode(
        flat, ends, output_encoding=input_encoding, errors="replace"
    )
    if isinstance(numbers, engine.RaggedTensor):
        return numbers.with_flat_values(characters), places
    return characters, places


@v1()
def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    name: str | None = None,
) -> Any:
    """The texts of rows of numbers of characters: what `unicode_decode` gave.

    Args:
        input: (..., characters), a tensor or ragged.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: what becomes of numbers of no character: "strict", "replace" or "ignore".
        replacement_char: the number that takes their place.
        name: accepted.
    """
    x = symbols(input)
    options: Any = {
        "output_encoding": output_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
    }
    if not isinstance(x, engine.RaggedTensor):
        if not x.shape.rank:
            raise ShapeError("unicode_encode: the last axis is that of characters; there is none")
        if x.shape.rank == 1:
            whole = engine.RaggedTensor.from_row_lengths(x, _size(x), validate=False)
            return unicode.unicode_encode(x, whole.row_splits, **options)[0]
        x = engine.RaggedTensor.from_tensor(x, ragged_rank=x.shape.rank - 1)
        found = unicode_encode(x, output_encoding, errors, replacement_char)
        return found.to_tensor("") if isinstance(found, engine.RaggedTensor) else found
    if x.ragged_rank > 1:
        return x.with_values(unicode_encode(x.values, output_encoding, errors, replacement_char))
    return unicode.unicode_encode(x.flat_values, x.row_splits, **options)


@v1()
def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of each string, in ragged rows."""

    def cut(x: Tensor) -> _Parts:
        pieces, counts = string_characters(x, "byte")
        rows = engine.RaggedTensor.from_tensor(pieces, lengths=counts)
        return rows.row_splits, [rows.flat_values]

    return _in_rows(input, cut)[0]


@v1()
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """For each row of words all runs of so many words, joined.

    Args:
        data: (..., words), a tensor or ragged.
        ngram_width: how many, or several such numbers, whose runs come in turn.
        separator: stands between the words of a run.
        pad_values: what stands in front of and behind the words: a text, or two.
        padding_width: how often at most; never more than a run needs.
        preserve_short_sequences: whether a row without a run gives all of its words as one.
        name: accepted.
    """
    if padding_width is not None and pad_values is None:
        raise ValueError("ngrams: pad_values must be given where padding_width is")
    if padding_width is not None and padding_width < 0:
        raise ValueError(f"ngrams: padding_width is at least 0, got {padding_width}")
    pads = ("", "") if pad_values is None else pad_values
    left, right = (pads, pads) if isinstance(pads, str | bytes) else pads
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    x = symbols(data)
    if isinstance(x, engine.RaggedTensor):
        inner = x.values
        if isinstance(inner, engine.RaggedTensor):
            rest = (separator, pad_values, padding_width, preserve_short_sequences)
            return x.with_values(ngrams(inner, ngram_width, *rest))
        rows, is_dense = x, False
    elif x.shape.rank == 1:
        rows = engine.RaggedTensor.from_row_lengths(x, _size(x))
        is_dense = True
    elif not x.shape.rank:
        raise ShapeError("ngrams: the words have no axis")
    else:
        rows = engine.RaggedTensor.from_tensor(x, ragged_rank=x.shape.rank - 1)
        rest = (separator, pad_values, padding_width, preserve_short_sequences)
        return ngrams(rows, ngram_width, *rest).to_tensor("")
    splits, runs = unicode.row_ngrams.many(
        rows.flat_values,
        rows.row_splits,
        widths=tuple(widths),
        separator=separator,
        left=_text(left),
        right=_text(right),
        padding=0 if pad_values is None else -1 if padding_width is None else padding_width,
        keeps_short=preserve_short_sequences,
    )
    if is_dense:
        return runs
    return engine.RaggedTensor.from_row_splits(runs, splits, validate=False)


def _text(x: Any) -> str:
    return x.decode() if isinstance(x, bytes) else str(x)


def _size(x: Tensor) -> Tensor:
    """The size of a vector, as a vector."""
    count = engine.lookup("Cast")(engine.lookup("Size")(symbol(x)), dtype="int64")
    return reshape(count, [1])
