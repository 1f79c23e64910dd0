"""Characters of texts as numbers, and texts of numbers. On the host alone.

The characters of all texts stand one behind the other; splits say where those of each text end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, STRING, Array, TensorSpec, int32, int64, string
from ..core.registry import define, no_gradient
from .encodings import check_encoding, codec_of
from .string import collect

_REPLACEMENT = 0xFFFD
_OUTPUT = ("UTF-8", "UTF-16-BE", "UTF-32-BE")


def _pieces(item: bytes, codec: str) -> Iterator[tuple[int, int]]:
    """(number, first byte) of each character; the number is -1 for bytes that are none."""
    begin = 0
    while begin < len(item):
        rest = item[begin:]
        try:
            text, end, bad = rest.decode(codec), len(rest), False
        except UnicodeDecodeError as error:
            text, end, bad = rest[: error.start].decode(codec), error.end, True
        place = begin
        for character in text:
            yield ord(character), place
            place += len(character.encode(codec))
        if bad:
            yield -1, place
        begin += end


@define("UnicodeDecode", dtypes=STRING)
def unicode_decode(
    x: TensorSpec,
    *,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The characters of a vector of texts: (splits int64, numbers int32, first bytes int64).

    `errors` says what becomes of bytes that are no character: "strict" is an error, "replace" puts
    the number `replacement_char` there, "ignore" leaves them out. It holds for control characters
    (0 to 31), too, where `replace_control_characters` says so.
    """
    check_encoding("UnicodeDecode", input_encoding, errors, replacement_char)
    if x.shape.rank not in (1, None):
        raise ShapeError(f"UnicodeDecode: expected a vector of texts, got {x}")
    count = None if x.shape.rank is None or x.shape[0] is None else x.shape[0] + 1
    return TensorSpec([count], int64), TensorSpec([None], int32), TensorSpec([None], int64)


@unicode_decode.kernel("cpu")
def _unicode_decode_kernel(
    x: Array,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> tuple[Array, Array, Array]:
    splits, numbers, places = [0], [], []
    for item in x.tolist():
        codec, mark = codec_of(item, input_encoding)
        for number, place in _pieces(item[mark:], codec):
            if number < 0 and errors == "strict":
                raise InvalidArgumentError(
                    f"UnicodeDecode: {item!r} is no text in {input_encoding}",
                    remedy="errors='replace' or 'ignore' take it",
                )
            if number < 0 or (replace_control_characters and number < 32):
                if errors == "ignore":
                    continue
                number = replacement_char
            numbers.append(number)
            places.append(place + mark)
        splits.append(len(numbers))
    return np.array(splits, np.int64), np.array(numbers, np.int32), np.array(places, np.int64)


unicode_decode.grad(no_gradient)


@define("UnicodeEncode", dtypes={"numbers": {int32}, "splits": INTEGER}, same_dtype=False)
def unicode_encode(
    numbers: TensorSpec,
    splits: TensorSpec,
    *,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
) -> TensorSpec:
    """For each row of numbers of characters the text of them.

    `errors` says what becomes of numbers of no character: "strict" is an error, "replace" puts the
    character `replacement_char` there, "ignore" leaves them out.
    """
    if output_encoding not in _OUTPUT:
        raise InvalidArgumentError(
            f"UnicodeEncode: output_encoding must be one of {', '.join(_OUTPUT)}, "
            f"got {output_encoding!r}"
        )
    check_encoding("UnicodeEncode", output_encoding, errors, replacement_char)
    if splits.shape.rank not in (1, None):
        raise ShapeError(f"UnicodeEncode: splits are a vector, got {splits}")
    known = splits.shape.rank is not None and splits.shape[0]
    return TensorSpec([known - 1 if known else None], string)


@unicode_encode.kernel("cpu")
def _unicode_encode_kernel(
    numbers: Array, splits: Array, *, output_encoding: str, errors: str, replacement_char: int
) -> Array:
    def character(number: int) -> str:
        if 0 <= number <= 0x10FFFF and not 0xD800 <= number < 0xE000:
            return chr(number)
        if errors == "strict":
            raise InvalidArgumentError(f"UnicodeEncode: {number} is not the number of a character")
        return chr(replacement_char) if errors == "replace" else ""

    text = [character(number) for number in numbers.tolist()]
    ends = splits.tolist()
    rows = ["".join(text[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return collect([row.encode(output_encoding) for row in rows], (len(rows),))


unicode_encode.grad(no_gradient)


@define("RowNGrams", dtypes={"words": STRING, "splits": INTEGER}, same_dtype=False)
def row_ngrams(
    words: TensorSpec,
    splits: TensorSpec,
    *,
    widths: tuple[int, ...],
    separator: str,
    left: str = "",
    right: str = "",
    padding: int = 0,
    keeps_short: bool = False,
) -> tuple[TensorSpec, TensorSpec]:
    """For each row of words all runs of `widths` words, joined: (splits, runs).

    In front of a row stand `left`, and behind it `right`, up to `padding` times, but never more
    often than a run of the width needs: width - 1 (-1 for that often). With `keeps_short`, a row
    without a run gives all of its words as one.
    """
    if not widths or min(widths) < 1:
        raise InvalidArgumentError(f"RowNGrams: widths must be at least 1, got {widths}")
    if padding < -1:
        raise InvalidArgumentError(f"RowNGrams: padding must be at least -1, got {padding}")
    if words.shape.rank not in (1, None) or splits.shape.rank not in (1, None):
        raise ShapeError(f"RowNGrams: expected vectors, got {words} and {splits}")
    return splits, TensorSpec([None], string)


@row_ngrams.kernel("cpu")
def _row_ngrams_kernel(
    words: Array,
    splits: Array,
    *,
    widths: tuple[int, ...],
    separator: str,
    left: str,
    right: str,
    padding: int,
    keeps_short: bool,
) -> tuple[Array, Array]:
    items, ends = words.tolist(), splits.tolist()
    before, behind, joiner = left.encode(), right.encode(), separator.encode()
    found, sizes = [], [0]

    def padded(row: list[bytes], width: int) -> list[bytes]:
        times = width - 1 if padding < 0 else min(padding, width - 1)
        return [before] * times + row + [behind] * times

    for begin, end in zip(ends[:-1], ends[1:], strict=True):
        row = items[begin:end]
        runs = []
        for width in widths:
            line = padded(row, width)
            runs += [joiner.join(line[i : i + width]) for i in range(len(line) - width + 1)]
        if keeps_short and not runs and row:
            times = max(padding, 0)
            runs.append(joiner.join([before] * times + row + [behind] * times))
        found += runs
        sizes.append(len(found))
    return np.array(sizes, splits.dtype), collect(found, (len(found),))


row_ngrams.grad(no_gradient)
