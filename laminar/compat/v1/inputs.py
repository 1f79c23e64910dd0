"""Readers, parsing and strings, where TensorFlow 1 has other arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.io.events import Event
from laminar.engine.ops.array.join import stack
from laminar.engine.ops.text import farmhash, string_match
from laminar.engine.ops.text import string as strings

from .adapting import v1
from .summary_messages import Summary
from .values import as_kind, operands, static, symbol, tensor


class TFRecordCompressionType:
    """How record files are compressed."""

    NONE, ZLIB, GZIP = 0, 1, 2


class TFRecordOptions:
    """Of record files: how they are compressed."""

    def __init__(self, compression_type: Any = None, **more: Any) -> None:
        self.compression_type = compression_type


def compression(options: Any) -> str:
    """What laminar calls it."""
    kind = getattr(options, "compression_type", options)
    return str({None: "", 0: "", 1: "ZLIB", 2: "GZIP"}.get(kind, kind))


class TFRecordWriter(engine.RecordWriter):
    """Writes a file of records."""

    def __init__(self, path: str, options: Any = None) -> None:
        super().__init__(path, compression(options))


def tf_record_iterator(path: str, options: Any = None) -> Any:
    """The records of a file."""
    return engine.read_records(path, compression(options))


def summary_iterator(path: str) -> Iterator[Event]:
    """The events of an event file, each with a summary, which has no values in most."""
    for event in engine.summary.read_events(path):
        yield event if event.summary is not None else replace(event, summary=Summary())


class TFRecordReader(engine.RecordReader):
    """Reads the records of the files that a queue names."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(compression(options), name or "record_reader")


@v1()
def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    bytes: Any = None,
) -> Tensor:
    """Numbers of the bytes of strings."""
    given = tensor(bytes if input_bytes is None else input_bytes)
    return engine.decode_raw(given, as_kind(out_type, "uint8"), little_endian)


@v1()
def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Any = None,
) -> Any:
    """The columns of lines of text."""
    return engine.decode_csv(
        tensor(records), record_defaults, field_delim, use_quote_delim, na_value, select_cols, name
    )


@v1()
def parse_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> Any:
    """Features of Example messages, by name."""
    return engine.parse_example(serialized, features, name)


@v1()
def parse_single_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> Any:
    """Features of one Example message, by name."""
    return engine.parse_single_example(serialized, features, name)


# Strings


@v1(input="string_tensor")
def string_to_number(string_tensor: Any = None, out_type: Any = "float32") -> Tensor:
    """The numbers that strings spell."""
    return strings.to_number(tensor(string_tensor), as_kind(out_type))


@v1()
def string_join(inputs: Any, separator: str = "") -> Tensor:
    """Strings of several tensors, one after the other."""
    xs = [tensor(x, "string") for x in inputs]
    shape = next((x.shape for x in xs if x.shape.rank != 0), xs[0].shape)
    if any(x.shape.rank == 0 for x in xs) and shape.rank != 0:
        whole = next(x for x in xs if x.shape.rank != 0)
        empty = engine.lookup("ZerosLike")(whole)
        xs = [strings.string_concat([empty, x]) if x.shape.rank == 0 else x for x in xs]
    return strings.string_join(stack(xs, -1), -1, separator)


@v1(reduction_indices="axis", keepdims="keep_dims")
def reduce_join(
    inputs: Any, axis: Any = None, keep_dims: bool = False, separator: str = ""
) -> Tensor:
    """The strings along some axes, one after the other; the first of the axes counts fastest."""
    x = symbol(inputs, "string")
    rank = x.shape.rank
    if rank is None:
        raise ValueError("reduce_join: the number of axes must be known")
    over = range(rank)[::-1] if axis is None else np.ravel(static(axis)).tolist()
    if any(not -rank <= a < rank for a in over):
        raise ValueError(f"reduce_join: one of the axes {over} is none of the {rank}")
    places = [a % rank for a in over]
    if len(set(places)) != len(places):
        raise ValueError(f"reduce_join: an axis stands twice in {over}")
    for place in places:  # one stays where each was, so that the others keep theirs
        x = engine.lookup("ExpandDims")(strings.string_join(x, place, separator), axis=(place,))
    return x if keep_dims or not places else engine.lookup("Squeeze")(x, axis=tuple(places))


@v1()
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> Tensor:
    """Numbers as strings, as C's printf writes them.

    Args:
        input: numbers, or bools, which become "true" and "false".
        precision: digits after the point, of floats; -1 for six.
        scientific: whether floats have an exponent.
        shortest: whether floats are written in the shorter of the two ways.
        width: characters at least.
        fill: what stands in front up to there: " " or "0", or "-" to have blanks behind.
    """
    x = symbol(input)
    whole = x.dtype.is_integer
    if (x.dtype.is_bool or whole) and (precision >= 0 or scientific or shortest):
        raise InvalidArgumentError(f"as_string: {x.dtype} has no digits after a point")
    if scientific and shortest:
        raise InvalidArgumentError("as_string: scientific and shortest exclude each other")
    if len(fill) > 1 or fill not in "0 +-":
        raise InvalidArgumentError(f"as_string: fill is one of ' ', '0', '+', '-', got {fill!r}")
    digits = f".{precision}" if precision >= 0 else ""
    letter = "d" if whole else "e" if scientific else "g" if shortest else "f"
    form = f"%{fill}{width if width >= 0 else ''}{digits}{letter}"
    return strings.as_string(x, form="" if x.dtype.is_bool else form)


@v1()
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE") -> Tensor:
    """Parts of strings.

    Args:
        input: strings.
        pos: where each begins; negative ones count from the end.
        len: how long each is, of the shape of `pos`.
        unit: "BYTE" or "UTF8_CHAR".

    Raises:
        InvalidArgumentError: one begins outside of its string.
    """
    begin, length = operands(pos, len)
    if not begin.shape.is_compatible_with(length.shape):
        raise ValueError(f"substr: pos is {begin.shape} and len {length.shape}, which must agree")
    return strings.substr(tensor(input), begin, length, _unit(unit), strict=True)


@v1()
def string_length(input: Any, unit: str = "BYTE") -> Tensor:
    """The lengths of strings."""
    return strings.string_length(tensor(input), unit=_unit(unit))


def _unit(unit: str) -> str:
    if unit not in _UNITS:
        raise ValueError(f"unit must be one of {', '.join(_UNITS)}, got {unit!r}")
    return _UNITS[unit]


_UNITS = {"BYTE": "byte", "UTF8_CHAR": "char"}


@v1()
def regex_replace(
    input: Any,
    pattern: Any,
    rewrite: Any,
    replace_global: bool = True,
) -> Tensor:
    """Strings with what matches replaced, everywhere or once; \\0 in `rewrite` is what matches."""
    text = re.sub(r"\\([0-9])", r"\\g<\1>", known_text(rewrite))
    return string_match.regex_replace(
        tensor(input), known_text(pattern), text, int(not replace_global)
    )


def known_text(given: Any) -> str:
    """A text that is known when the graph is built: a string, or a constant."""
    found = static(given)
    if isinstance(found, Tensor):
        raise ValueError("the text must be known when the graph is built")
    return found.decode() if isinstance(found, bytes) else str(found)


@v1()
def regex_full_match(input: Any, pattern: Any) -> Tensor:
    """Whether all of a string matches."""
    return string_match.regex_full_match(tensor(input), known_text(pattern))


@v1()
def string_to_hash_bucket_fast(input: Any, num_buckets: int) -> Tensor:
    """A number below `num_buckets` for each string."""
    return farmhash.fingerprint_bucket(farmhash.fingerprint(tensor(input)), num_buckets)


# Images


@v1()
def decode_image(contents: Any, channels: int | None = None, dtype: Any = "uint8") -> Tensor:
    """The pixels of an image file."""
    return engine.decode_image(tensor(contents), channels or 0, dtype)


@v1()
def decode_png(contents: Any, channels: int = 0, dtype: Any = "uint8") -> Tensor:
    """The pixels of a PNG file."""
    return engine.decode_png(tensor(contents), channels, dtype)


@v1()
def decode_jpeg(contents: Any, channels: int = 0) -> Tensor:
    """The pixels of a JPEG file."""
    return engine.decode_jpeg(tensor(contents), channels)


@v1()
def encode_png(image: Any, compression: int = -1) -> Tensor:
    """A PNG file of pixels."""
    return engine.encode_png(tensor(image))


@v1()
def encode_jpeg(image: Any, quality: int = 95) -> Tensor:
    """A JPEG file of pixels."""
    return engine.encode_jpeg(tensor(image), quality)


@v1()
def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
) -> Any:
    """(context, sequences, lengths) of SequenceExamples; see `laminar.engine`."""
    return engine.parse_sequence_example(
        serialized, context_features or {}, sequence_features or {}
    )


@v1()
def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
) -> Any:
    """(context, sequences) of one SequenceExample; see `laminar.engine`."""
    return engine.parse_single_sequence_example(
        serialized, context_features or {}, sequence_features or {}
    )
