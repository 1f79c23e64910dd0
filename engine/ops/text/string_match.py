"""Strings compared with patterns, hashed, and read as raw bytes. On the host alone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    DENSE,
    STRING,
    Array,
    Tensor,
    TensorSpec,
    as_dtype,
    bool_,
    int64,
    string,
    uint8,
)
from ..core.registry import define, no_gradient
from .string import collect, decode, encode, map_strings


def _compile(who: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as cause:
        raise InvalidArgumentError(f"{who}: {pattern!r} is not a pattern: {cause}") from cause


@define("RegexFullMatch", dtypes=STRING)
def _full_match(x: TensorSpec, *, pattern: str) -> TensorSpec:
    """Whether the whole of each text matches `pattern`, in the syntax of Python's re."""
    _compile("RegexFullMatch", pattern)
    return TensorSpec(x.shape, bool_)


@_full_match.kernel("cpu")
def _full_match_kernel(x: Array, *, pattern: str) -> Array:
    match = _compile("RegexFullMatch", pattern).fullmatch
    return map_strings(lambda item: match(decode(item)) is not None, x, np.bool_)


_full_match.grad(no_gradient)


def regex_full_match(x: Tensor, pattern: str) -> Tensor:
    """Whether the whole of each text matches `pattern`, in the syntax of Python's re.

    Raises:
        InvalidArgumentError: `pattern` is malformed.
    """
    return _full_match(x, pattern=pattern)


@define("RegexReplace", dtypes=STRING)
def _replace(x: TensorSpec, *, pattern: str, rewrite: str, count: int) -> TensorSpec:
    """Each text with the matches of `pattern` replaced by `rewrite`, where \\1 is a group.

    At most the first `count` of them; 0 means all.
    """
    _compile("RegexReplace", pattern)
    return x


@_replace.kernel("cpu")
def _replace_kernel(x: Array, *, pattern: str, rewrite: str, count: int) -> Array:
    replace = _compile("RegexReplace", pattern).sub
    return map_strings(lambda item: encode(replace(rewrite, decode(item), count)), x)


_replace.grad(no_gradient)


def regex_replace(x: Tensor, pattern: str, rewrite: str, count: int = 0) -> Tensor:
    """Each text with the matches of `pattern` replaced.

    Args:
        x: strings.
        pattern: in the syntax of Python's re.
        rewrite: what stands in place of a match; \\1 is its first group.
        count: at most so many matches, from the left; 0 for all.

    Raises:
        InvalidArgumentError: `pattern` is malformed.
    """
    return _replace(x, pattern=pattern, rewrite=rewrite, count=count)


_FNV_BASIS, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def bucket_spec(who: str, x: TensorSpec, num_buckets: int) -> TensorSpec:
    """What gives the number of a bucket for each element."""
    if num_buckets < 1:
        raise InvalidArgumentError(f"{who}: num_buckets must be at least 1, got {num_buckets}")
    return TensorSpec(x.shape, int64)


@define("StringToHashBucket", dtypes=STRING)
def _to_hash_bucket(x: TensorSpec, *, num_buckets: int) -> TensorSpec:
    """h mod num_buckets, int64, of the 64-bit FNV-1a hash h of the bytes of each string.

    h = 0xcbf29ce484222325; for each byte b: h = ((h xor b) * 0x100000001b3) mod 2^64.
    """
    return bucket_spec("StringToHashBucket", x, num_buckets)


@_to_hash_bucket.kernel("cpu")
def _to_hash_bucket_kernel(x: Array, *, num_buckets: int) -> Array:
    """One step per byte position, for all strings that are long enough."""
    items = x.ravel().tolist()
    lengths = np.asarray([len(item) for item in items], np.int64)
    order = np.argsort(-lengths, kind="stable")  # the longest first
    data = np.frombuffer(b"".join(items[i] for i in order), np.uint8).astype(np.uint64)
    lengths = lengths[order]
    starts = np.cumsum(lengths) - lengths
    h = np.full(len(items), _FNV_BASIS, np.uint64)
    prime = np.uint64(_FNV_PRIME)
    for place in range(int(lengths.max(initial=0))):
        count = int(np.searchsorted(-lengths, -place))  # strings with a byte at `place`
        h[:count] = (h[:count] ^ data[starts[:count] + place]) * prime
    out = np.empty(len(items), np.int64)
    out[order] = (h % np.uint64(num_buckets)).astype(np.int64)
    return out.reshape(x.shape)


_to_hash_bucket.grad(no_gradient)


def to_hash_bucket(x: Tensor, num_buckets: int) -> Tensor:
    """A bucket for each string, the same in every run and on every machine.

    The 64-bit FNV-1a hash of the bytes, modulo `num_buckets`; int64.

    Source: Fowler, Noll, Vo and Eastlake, "The FNV Non-Cryptographic Hash Algorithm", RFC 9923,
        section 2.
    """
    return _to_hash_bucket(x, num_buckets=num_buckets)


@define("DecodeRaw", dtypes=STRING)
def _decode_raw(x: TensorSpec, *, dtype: str, little_endian: bool) -> TensorSpec:
    """The bytes of each string as numbers of `dtype`, along a new last axis."""
    if as_dtype(dtype) not in DENSE:
        raise InvalidArgumentError(f"DecodeRaw: dtype must be a numeric type, got {dtype}")
    return TensorSpec(None if x.shape.rank is None else [*x.shape, None], as_dtype(dtype))


@_decode_raw.kernel("cpu")
def _decode_raw_kernel(x: Array, *, dtype: str, little_endian: bool) -> Array:
    wanted = as_dtype(dtype)
    items = x.ravel().tolist()
    sizes = {len(item) for item in items}
    if len(sizes) > 1 or any(n % wanted.size for n in sizes):
        raise ShapeError(
            f"DecodeRaw: strings of {', '.join(map(str, sorted(sizes)))} bytes do not make rows of "
            f"{wanted}, which has {wanted.size}",
            remedy="give strings of one length, a multiple of the size of the type",
        )
    stored = wanted.numpy.newbyteorder("<" if little_endian else ">")
    values = np.frombuffer(b"".join(items), stored)
    width = sizes.pop() // wanted.size if sizes else 0
    return values.astype(wanted.numpy).reshape((*x.shape, width))


_decode_raw.grad(no_gradient)


def decode_raw(
    x: Tensor, dtype: Any = uint8, little_endian: bool = True, name: str | None = None
) -> Tensor:
    """The bytes of each string as numbers.

    Args:
        x: (...), strings of one length.
        dtype: the type of the numbers.
        little_endian: the order of the bytes of a number.

    Returns:
        (..., bytes / size of the type).

    Raises:
        ShapeError: the strings differ in length, or it is no multiple of the size of the type.

    Examples:
        >>> engine.decode_raw(engine.constant([b"ab"]))
        Tensor([[97, 98]], shape=(1, 2), dtype=uint8)
    """
    return _decode_raw(x, name=name, dtype=as_dtype(dtype), little_endian=little_endian)


@define("EncodeRaw", dtypes=DENSE)
def _encode_raw(x: TensorSpec, *, little_endian: bool) -> TensorSpec:
    """The bytes of the numbers along the last axis, as one string."""
    if x.shape.rank is None:
        return TensorSpec(None, string)
    if not x.shape:
        raise ShapeError(f"EncodeRaw: expected at least one axis, got {x}")
    return TensorSpec(x.shape[:-1], string)


@_encode_raw.kernel("cpu")
def _encode_raw_kernel(x: Array, *, little_endian: bool) -> Array:
    rows = np.ascontiguousarray(x, x.dtype.newbyteorder("<" if little_endian else ">"))
    shape = x.shape[:-1]
    flat = rows.reshape((int(np.prod(shape)), x.shape[-1]))
    return collect([row.tobytes() for row in flat], shape)


_encode_raw.grad(no_gradient)


def encode_raw(x: Tensor, little_endian: bool = True, name: str | None = None) -> Tensor:
    """The bytes of the numbers along the last axis, as one string: the inverse of `decode_raw`.

    Raises:
        ShapeError: `x` is a scalar.
    """
    return _encode_raw(x, name=name, little_endian=little_endian)
