"""Readers, parsing and strings, where TensorFlow 1 has other arguments."""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.join import stack
from laminar.engine.ops.text import farmhash, string_match
from laminar.engine.ops.text import string as strings

from .adapting import v1
from .values import as_kind, static, tensor


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


@v1()
def reduce_join(
    inputs: Any, axis: Any = None, keep_dims: bool = False, separator: str = ""
) -> Tensor:
    """The strings along an axis, one after the other."""
    x = tensor(inputs)
    if axis is None:
        x, axis = engine.lookup("Reshape")(x, shape=(-1,)), 0
    joined = strings.string_join(x, static(axis), separator)
    return engine.lookup("ExpandDims")(joined, axis=(static(axis),)) if keep_dims else joined


@v1()
def as_string(input: Any, precision: int = -1) -> Tensor:
    """Numbers as strings."""
    return strings.as_string(tensor(input), precision)


@v1()
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE") -> Tensor:
    """Parts of strings."""
    kind = {"BYTE": "byte", "UTF8_CHAR": "char"}[unit]
    return strings.substr(tensor(input), pos, len, kind)


@v1()
def string_length(input: Any, unit: str = "BYTE") -> Tensor:
    """The lengths of strings."""
    kind = {"BYTE": "byte", "UTF8_CHAR": "char"}[unit]
    return strings.string_length(tensor(input), unit=kind)


@v1()
def regex_replace(
    input: Any,
    pattern: str,
    rewrite: str,
    replace_global: bool = True,
) -> Tensor:
    """Strings with what matches replaced, everywhere or once."""
    return string_match.regex_replace(tensor(input), pattern, rewrite, 0 if replace_global else 1)


@v1()
def regex_full_match(input: Any, pattern: str) -> Tensor:
    """Whether all of a string matches."""
    return string_match.regex_full_match(tensor(input), pattern)


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
