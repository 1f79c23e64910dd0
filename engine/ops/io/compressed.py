"""Strings that are compressed, and Examples that are written as JSON. On the host alone."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

import numpy as np

from ...errors import DataLossError, InvalidArgumentError, ResourceExhaustedError
from ...graph import STRING, Array, TensorSpec
from ...io.example import encode_example
from ..core.registry import define, no_gradient
from ..text.string import map_strings

_WINDOW = {"ZLIB": 15, "GZIP": 31}  # 16 more: the header of gzip
# A short string may ask for much memory; this many bytes are read at most.
MAX_BYTES = 1 << 30


@define("DecodeCompressed", dtypes=STRING)
def decode_compressed(x: TensorSpec, *, compression_type: str = "") -> TensorSpec:
    """Each string without its compression: "ZLIB", "GZIP", or none."""
    if compression_type not in ("", *_WINDOW):
        raise InvalidArgumentError(
            f"DecodeCompressed: expected 'ZLIB', 'GZIP' or '', got {compression_type!r}"
        )
    return x


@decode_compressed.kernel("cpu")
def _decode_compressed_kernel(x: Array, *, compression_type: str) -> Array:
    def expand(item: bytes) -> bytes:
        reader = zlib.decompressobj(_WINDOW[compression_type])
        try:
            found = reader.decompress(item, MAX_BYTES)
        except zlib.error as cause:
            raise DataLossError(
                f"DecodeCompressed: {len(item)} bytes are no {compression_type} data: {cause}"
            ) from cause
        if reader.unconsumed_tail:
            raise ResourceExhaustedError(f"DecodeCompressed: at most {MAX_BYTES} bytes are read")
        if not reader.eof:
            raise DataLossError("DecodeCompressed: the data end too early")
        return found

    return map_strings(expand, x) if compression_type else x


decode_compressed.grad(no_gradient)


def _values(feature: Any) -> Any:
    """The values of a feature, which has one list of one kind."""
    if not isinstance(feature, dict) or len(feature) > 1:
        raise ValueError(f"{feature!r} is no feature")
    for key, given in feature.items():
        values = given.get("value", [])
        if key in ("int64List", "int64_list"):
            return np.array([int(v) for v in values], np.int64)
        if key in ("floatList", "float_list"):
            return np.array([float(v) for v in values], np.float32)
        if key in ("bytesList", "bytes_list"):
            return [base64.b64decode(v, validate=True) for v in values]
        raise ValueError(f"{key!r} is no kind of list")
    return np.array([], np.float32)


@define("DecodeJsonExample", dtypes=STRING)
def decode_json_example(x: TensorSpec) -> TensorSpec:
    """Each Example that is written as JSON as the bytes of the message.

    Source: "ProtoJSON format" of Protocol Buffers: names in lowerCamelCase, int64 as strings or
    numbers, bytes in base64.
    """
    return x


@decode_json_example.kernel("cpu")
def _decode_json_example_kernel(x: Array) -> Array:
    def read(item: bytes) -> bytes:
        try:
            features = json.loads(item).get("features", {}).get("feature", {})
            return encode_example({key: _values(feature) for key, feature in features.items()})
        except (ValueError, TypeError, AttributeError, binascii.Error) as cause:
            raise InvalidArgumentError(
                f"DecodeJsonExample: {item[:60]!r} is not the JSON of an Example: {cause}"
            ) from cause

    return map_strings(read, x)


decode_json_example.grad(no_gradient)
