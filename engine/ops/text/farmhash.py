"""Fingerprints of strings, which never change: FarmHash's 64 bits. On the host.

Sources: Pike and Alakuijala, "Introducing FarmHash", 2014, github.com/google/farmhash,
    Fingerprint64; Appleby, "MurmurHash2", 2008, MurmurHash64A, which joins two.
"""

from __future__ import annotations

import numpy as np

from ...graph import STRING, Array, Tensor, TensorSpec, broadcast_shapes, int64
from ..core.registry import define, no_gradient
from .string_match import bucket_spec

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MURMUR = 0xC6A4A7935BD1E995
_SEED = 81


def _word(text: bytes, place: int, size: int = 8) -> int:
    return int.from_bytes(text[place : place + size], "little")


def _rotated(x: int, bits: int) -> int:
    """To the right."""
    x &= _MASK
    return x >> bits | x << (64 - bits) & _MASK


def _mixed(x: int) -> int:
    x &= _MASK
    return x ^ x >> 47


def _joined(u: int, v: int, factor: int) -> int:
    a = _mixed(((u ^ v) & _MASK) * factor)
    return _mixed(((v & _MASK) ^ a) * factor) * factor & _MASK


def _short(text: bytes) -> int:
    """Of at most 16 bytes."""
    size = len(text)
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _word(text, 0) + _K2, _word(text, size - 8)
        c = _rotated(b, 37) * factor + a
        return _joined(c, (_rotated(a, 25) + b) * factor, factor)
    if size >= 4:
        return _joined(size + (_word(text, 0, 4) << 3), _word(text, size - 4, 4), factor)
    if size:
        y = text[0] + (text[size >> 1] << 8)
        z = size + (text[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _medium(text: bytes) -> int:
    """Of 17 to 64 bytes."""
    size = len(text)
    factor = _K2 + size * 2
    first = _K1 if size <= 32 else _K2
    a, b = _word(text, 0) * first, _word(text, 8)
    c, d = _word(text, size - 8) * factor, _word(text, size - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = a + _rotated(b + _K2, 18) + c
    if size <= 32:
        return _joined(y, z, factor)
    z = _joined(y, z, factor)
    e, f = _word(text, 16) * factor, _word(text, 24)
    g, h = (y + _word(text, size - 32)) * factor, (z + _word(text, size - 24)) * factor
    last = _rotated(e + f, 43) + _rotated(g, 30) + h
    return _joined(last, e + _rotated(f + a, 18) + g, factor)


def _weak(text: bytes, place: int, a: int, b: int) -> tuple[int, int]:
    """Of 32 bytes, with two seeds."""
    w, x, y, z = (_word(text, place + 8 * i) for i in range(4))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    b += _rotated(a, 44)
    return (a + z) & _MASK, (b + c) & _MASK


def _turn(
    text: bytes,
    place: int,
    state: tuple[int, int, int],
    v: tuple[int, int],
    w: tuple[int, int],
    factor: int,
    times: int,
) -> tuple[tuple[int, int, int], tuple[int, int], tuple[int, int]]:
    """The state after 64 more bytes."""
    x, y, z = state
    x = _rotated(x + y + v[0] + _word(text, place + 8), 37) * factor
    y = _rotated(y + v[1] + _word(text, place + 48), 42) * factor
    x ^= w[1] * times
    y += v[0] * times + _word(text, place + 40)
    z = _rotated(z + w[0], 33) * factor
    v = _weak(text, place, v[1] * factor, x + w[0])
    w = _weak(text, place + 32, z + w[1], y + _word(text, place + 16))
    return (z & _MASK, y & _MASK, x & _MASK), v, w


def fingerprint_of(text: bytes) -> int:
    """Fingerprint64 of bytes, from 0 to 2**64 - 1."""
    size = len(text)
    if size <= 16:
        return _short(text)
    if size <= 64:
        return _medium(text)
    y = _SEED * _K1 + 113
    state = (_SEED * _K2 + _word(text, 0) & _MASK, y & _MASK, _mixed(y * _K2 + 113) * _K2 & _MASK)
    v = w = (0, 0)
    for place in range(0, (size - 1) // 64 * 64, 64):
        state, v, w = _turn(text, place, state, v, w, _K1, 1)
    factor = _K1 + ((state[2] & 255) << 1)
    w = (w[0] + (size - 1 & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    (x, y, z), v, w = _turn(text, size - 64, state, v, w, factor, 9)
    # The last two have changed places, as after each turn.
    first = _joined(v[0], w[0], factor) + _mixed(y) * _K0 + z
    return _joined(first, _joined(v[1], w[1], factor) + x, factor)


@define("StringFingerprint", dtypes=STRING)
def _fingerprint(x: TensorSpec) -> TensorSpec:
    """FarmHash's Fingerprint64 of the bytes of each string; its 64 bits as an int64."""
    return TensorSpec(x.shape, int64)


@_fingerprint.kernel("cpu")
def _fingerprint_kernel(x: Array) -> Array:
    items = x.ravel().tolist()
    known = {item: fingerprint_of(item) for item in set(items)}
    found = np.array([known[item] for item in items], np.uint64)
    return found.view(np.int64).reshape(x.shape)


@define("FingerprintCat", dtypes=frozenset({int64}))
def _fingerprint_cat(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """One fingerprint of two, by the steps of MurmurHash64A: with s(x) = x xor (x >> 47) and m its
    factor, s(s(m (a xor m xor m s(m b))) m).
    """
    return TensorSpec(broadcast_shapes("FingerprintCat", a.shape, b.shape), int64)


@_fingerprint_cat.kernel("cpu")
def _fingerprint_cat_kernel(a: Array, b: Array) -> Array:
    one, other = (np.atleast_1d(np.ascontiguousarray(v)).view(np.uint64) for v in (a, b))
    factor, shift = np.uint64(_MURMUR), np.uint64(47)
    other = other * factor
    found = (one ^ factor ^ (other ^ other >> shift) * factor) * factor
    found = (found ^ found >> shift) * factor
    found = found ^ found >> shift
    return found.view(np.int64).reshape(np.broadcast_shapes(a.shape, b.shape))


@define("FingerprintBucket", dtypes=frozenset({int64}))
def _fingerprint_bucket(x: TensorSpec, *, num_buckets: int) -> TensorSpec:
    """x mod num_buckets, with x taken as a number without a sign; int64."""
    return bucket_spec("FingerprintBucket", x, num_buckets)


@_fingerprint_bucket.kernel("cpu")
def _fingerprint_bucket_kernel(x: Array, *, num_buckets: int) -> Array:
    bits = np.atleast_1d(np.ascontiguousarray(x)).view(np.uint64)
    return (bits % np.uint64(num_buckets)).astype(np.int64).reshape(x.shape)


for _op in (_fingerprint, _fingerprint_cat, _fingerprint_bucket):
    _op.grad(no_gradient)


def fingerprint(x: Tensor) -> Tensor:
    """64 bits for each string, the same in every run and on every machine; int64."""
    return _fingerprint(x)


def fingerprint_cat(a: Tensor, b: Tensor) -> Tensor:
    """64 bits for each pair of int64; int64."""
    return _fingerprint_cat(a, b)


def fingerprint_bucket(x: Tensor, num_buckets: int) -> Tensor:
    """A bucket for each fingerprint; int64.

    Args:
        x: int64, taken without sign.
        num_buckets: how many buckets there are.
    """
    return _fingerprint_bucket(x, num_buckets=num_buckets)
