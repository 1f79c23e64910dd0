"""Texts cut into tokens, found in tables, hashed with a key, given to Python functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.array.search import find_sorted
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.host import host_function
from laminar.engine.ops.text.siphash import to_hash_bucket_strong
from laminar.engine.ops.text.string import string_lower, string_upper
from laminar.engine.ops.text.tokens import string_characters, string_ngrams

from ..harness import check_op


def texts(values: Any) -> Any:
    return convert_to_tensor(values).numpy()


def test_characters() -> None:
    pieces = texts([["a", "ñ", "日"], ["x", "", ""], ["", "", ""]])
    check_op(
        string_characters,
        lambda x: (pieces, np.array([3, 1, 0], np.int32)),
        [texts(["añ日", "x", ""])],
        grad=False,
    )
    assert string_characters(convert_to_tensor(b"\xffa"))[0].numpy().tolist() == [b"\xff", b"a"]


@pytest.mark.parametrize(
    ("widths", "expected", "counts"),
    [
        ((2,), [["a_b", "b_c"], ["", ""]], [2, 0]),
        ((1, 3), [["a", "b", "c", "a_b_c"], ["d", "", "", ""]], [4, 1]),
        ((4,), np.zeros((2, 0), "S1"), [0, 0]),
    ],
)
def test_ngrams(widths: tuple[int, ...], expected: Any, counts: list[int]) -> None:
    check_op(
        lambda x, n: string_ngrams(x, n, widths, "_"),
        lambda x, n: (texts(expected), np.array(counts, np.int32)),
        [texts([["a", "b", "c"], ["d", "", ""]]), np.array([3, 1], np.int32)],
        grad=False,
    )


def test_ngrams_of_no_words() -> None:
    none = convert_to_tensor(np.zeros((2, 0), "S1"))
    grams, counts = string_ngrams(none, convert_to_tensor([0, 0]), [1])
    assert grams.shape == (2, 0)
    assert counts.numpy().tolist() == [0, 0]


def test_ngrams_refuse() -> None:
    x, n = convert_to_tensor([["a"]]), convert_to_tensor([1])
    with pytest.raises(InvalidArgumentError, match="widths"):
        string_ngrams(x, n, [0])
    with pytest.raises(ShapeError, match="rows of words"):
        string_ngrams(convert_to_tensor("a"), convert_to_tensor(1), [1])


@pytest.mark.parametrize(
    ("sequence", "values", "expected"),
    [
        (np.array([1, 5, 5, 9]), np.array([[5, 0], [9, 99]]), [[1, -1], [3, -1]]),
        (np.array([0.5, 2.0]), np.array(2.0), 1),
        (texts(["", "B", "a", "ä"]), texts(["ä", "b", "", "a"]), [3, -1, 0, 2]),
        (texts(np.zeros(0, "S1")), texts(["a"]), [-1]),
    ],
)
def test_find_sorted(sequence: Any, values: Any, expected: Any) -> None:
    check_op(find_sorted, lambda s, v: np.array(expected, np.int64), [sequence, values], grad=False)


def test_find_sorted_wants_a_vector() -> None:
    with pytest.raises(ShapeError, match="vector"):
        find_sorted(convert_to_tensor([[1]]), convert_to_tensor(1))


# Of Aumasson and Bernstein, appendix A: the key 00 01 ... 0f, the message 00 01 ... 0e.
SIP_KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
SIP_HASH = 0xA129CA6149BE45E5


def test_siphash() -> None:
    message = bytes(range(15))
    buckets = [2**31 - 1, 1000, 1]
    for n in buckets:
        check_op(
            lambda x, n=n: to_hash_bucket_strong(x, n, SIP_KEY),
            lambda x, n=n: np.array([SIP_HASH % n]),
            [texts([message])],
            grad=False,
        )


def siphash(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 of one string, in Python's numbers."""
    mask = 2**64 - 1
    v = [
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    ]

    def turn(x: int, n: int) -> int:
        return (x << n | x >> (64 - n)) & mask

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & mask
            v[2] = (v[2] + v[3]) & mask
            v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
            v[0] = turn(v[0], 32)
            v[2] = (v[2] + v[1]) & mask
            v[0] = (v[0] + v[3]) & mask
            v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
            v[2] = turn(v[2], 32)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_siphash_of_all_lengths() -> None:
    source = np.random.default_rng(0)
    items = [source.bytes(n) for n in [*range(40), 255, 256, 300]]
    source.shuffle(items)
    found = to_hash_bucket_strong(convert_to_tensor(items), 2**31, SIP_KEY).numpy()
    assert found.tolist() == [siphash(item, SIP_KEY) % 2**31 for item in items]
    assert siphash(bytes(range(15)), SIP_KEY) == SIP_HASH


def test_siphash_refuses_no_buckets() -> None:
    with pytest.raises(InvalidArgumentError, match="num_buckets"):
        to_hash_bucket_strong(convert_to_tensor(["a"]), 0, SIP_KEY)


@pytest.mark.parametrize(("fn", "expected"), [(string_lower, "aÄz"), (string_upper, "AÄZ")])
def test_case_of_ascii_alone(fn: Any, expected: str) -> None:
    x = convert_to_tensor("AÄz")
    assert fn(x, unit="byte").numpy().item().decode() == expected
    with pytest.raises(InvalidArgumentError, match="unit"):
        fn(x, unit="word")


def test_host_function() -> None:
    specs = [TensorSpec((None,), "float32"), TensorSpec((), "int64")]

    def both(x: Any) -> tuple[Any, Any]:
        return x * 2, x.size

    @function(input_signature=[TensorSpec((None,), "float32")])
    def traced(x: Any) -> Any:
        return host_function(both, [x], specs)

    for call in (traced, lambda x: host_function(both, [convert_to_tensor(x)], specs)):
        doubled, size = call(np.array([1, 2, 3], np.float32))
        assert doubled.numpy().tolist() == [2, 4, 6]
        assert size.numpy() == 3


def test_host_function_is_held_to_its_specs() -> None:
    with pytest.raises(ShapeError, match=r"expected \[2\]"):
        host_function(lambda x: [x], [convert_to_tensor([1])], [TensorSpec((2,), "int32")])
