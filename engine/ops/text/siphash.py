"""SipHash-2-4: a hash of strings that a key of two numbers makes a different one. On the host."""

from __future__ import annotations

import numpy as np

from ...graph import STRING, Array, Tensor, TensorSpec
from ..core.registry import define, no_gradient
from .string_match import bucket_spec

_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


@define("StringToHashBucketStrong", dtypes=STRING)
def _to_hash_bucket_strong(x: TensorSpec, *, num_buckets: int, key: tuple[int, int]) -> TensorSpec:
    """h mod num_buckets, int64, of the SipHash-2-4 h of the bytes of each string under `key`.

    The four words of state begin as the two halves of the key xor constants. Each 8 bytes m of the
    string, little-endian, are taken in by v3 ^= m, two rounds, v0 ^= m; the last ones are filled
    up with zeros, and their last byte is the length. Then v2 ^= 255, four rounds, and h is the xor
    of the state.
    """
    return bucket_spec("StringToHashBucketStrong", x, num_buckets)


@_to_hash_bucket_strong.kernel("cpu")
def _to_hash_bucket_strong_kernel(x: Array, *, num_buckets: int, key: tuple[int, int]) -> Array:
    """One step per 8 bytes, for all strings that are long enough."""
    items = x.ravel().tolist()
    sizes = np.asarray([len(item) // 8 + 1 for item in items], np.int64)
    order = np.argsort(-sizes, kind="stable")  # the longest first
    padded = (items[i] + bytes(7 - len(items[i]) % 8) + bytes([len(items[i]) % 256]) for i in order)
    words = np.frombuffer(b"".join(padded), "<u8").astype(np.uint64)
    sizes = sizes[order]
    starts = np.cumsum(sizes) - sizes
    halves = [k % 2**64 for k in key]
    state = np.empty((4, len(items)), np.uint64)
    for i, constant in enumerate(_START):
        state[i] = np.uint64(halves[i % 2] ^ constant)
    for place in range(int(sizes.max(initial=0))):
        count = int(np.searchsorted(-sizes, -place))  # strings with a word at `place`
        message = words[starts[:count] + place]
        live = state[:, :count]
        live[3] ^= message
        _rounds(live, 2)
        live[0] ^= message
    state[2] ^= np.uint64(255)
    _rounds(state, 4)
    out = np.empty(len(items), np.int64)
    out[order] = (np.bitwise_xor.reduce(state, 0) % np.uint64(num_buckets)).astype(np.int64)
    return out.reshape(x.shape)


def _rounds(v: Array, count: int) -> None:
    """SipRounds, in place, on the state (4, strings)."""
    for _ in range(count):
        for a, b, turn in ((0, 1, 13), (2, 3, 16)):
            v[a] += v[b]
            v[b] = _rotated(v[b], turn) ^ v[a]
        v[0] = _rotated(v[0], 32)
        for a, b, turn in ((2, 1, 17), (0, 3, 21)):
            v[a] += v[b]
            v[b] = _rotated(v[b], turn) ^ v[a]
        v[2] = _rotated(v[2], 32)


def _rotated(word: Array, bits: int) -> Array:
    return word << np.uint64(bits) | word >> np.uint64(64 - bits)


_to_hash_bucket_strong.grad(no_gradient)


def to_hash_bucket_strong(x: Tensor, num_buckets: int, key: tuple[int, int]) -> Tensor:
    """A bucket for each string that others cannot foresee without the key; int64.

    The SipHash-2-4 of the bytes under `key`, modulo `num_buckets`.

    Args:
        x: strings.
        num_buckets: how many buckets there are.
        key: two whole numbers, taken modulo 2**64.

    Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012, section 2.
    """
    return _to_hash_bucket_strong(x, num_buckets=num_buckets, key=key)
