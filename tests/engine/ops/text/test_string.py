"""Ops on byte strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.compare import equal, not_equal
from laminar.engine.ops.text.string import (
    as_string,
    string_concat,
    string_join,
    string_length,
    string_lower,
    string_split,
    string_strip,
    string_upper,
    substr,
    to_number,
)
from laminar.engine.ops.text.string_match import (
    decode_raw,
    encode_raw,
    regex_full_match,
    regex_replace,
    to_hash_bucket,
)

from ..harness import check_op

WORDS = ["Ab c", "", "  \tÄß€ ", "x\x00y", "日本"]


def strings(values: Any) -> Any:
    return convert_to_tensor(values).numpy()


def bytes_of(values: Any) -> Any:
    """An object array of bytes, as the reference of a result."""
    array = np.array(values, object)
    flat = [v if isinstance(v, bytes) else v.encode() for v in array.ravel().tolist()]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(array.shape)


CASES: list[Any] = [
    pytest.param(string_length, WORDS, np.array([4, 0, 11, 3, 6], np.int32), id="length"),
    pytest.param(
        lambda x: string_length(x, unit="char"), WORDS, np.array([4, 0, 7, 3, 2]), id="characters"
    ),
    pytest.param(string_lower, WORDS, ["ab c", "", "  \täß€ ", "x\x00y", "日本"], id="lower"),
    pytest.param(string_upper, WORDS, ["AB C", "", "  \tÄSS€ ", "X\x00Y", "日本"], id="upper"),
    pytest.param(string_strip, WORDS, ["Ab c", "", "Äß€", "x\x00y", "日本"], id="strip"),
    pytest.param(string_lower, "ABC", "abc", id="scalar"),
    pytest.param(string_lower, np.zeros((0, 2), "S1"), np.zeros((0, 2), "S1"), id="empty"),
    pytest.param(string_join, [["a", "b"], ["", "d"]], ["ab", "d"], id="join"),
    pytest.param(
        lambda x: string_join(x, 0, "-"), [["a", "b"], ["", "d"]], ["a-", "b-d"], id="join-first"
    ),
    pytest.param(string_join, np.zeros((2, 0), "S1"), ["", ""], id="join-nothing"),
    pytest.param(
        lambda x: substr(x, 1, 2),
        WORDS,
        [b"b ", b"", b" \t", b"\x00y", b"\x97\xa5"],
        id="bytes",
    ),
    pytest.param(
        lambda x: substr(x, -2, 1, "char"), WORDS, [" ", "", "€", "\x00", "日"], id="from-the-end"
    ),
    pytest.param(lambda x: substr(x, -9, 99), ["abc"], ["abc"], id="beyond"),
    pytest.param(
        lambda x: substr(x, constant([0, 1]), constant([[1], [2]])),
        ["abc"],
        [["a", "b"], ["ab", "bc"]],
        id="substr-broadcast",
    ),
    pytest.param(
        lambda x: regex_full_match(x, "[a-c ]*"),
        ["abc", "ab1", ""],
        np.array([1, 0, 1], bool),
        id="match",
    ),
    pytest.param(
        lambda x: regex_replace(x, r"(\w)b", r"<\1>"),
        ["ab ab", "Äb", ""],
        ["<a> <a>", "<Ä>", ""],
        id="replace",
    ),
    pytest.param(lambda x: regex_replace(x, "a", "", 1), ["aab"], ["ab"], id="replace-one"),
    pytest.param(
        to_number, ["1.5", " -2e3 ", "inf"], np.array([1.5, -2000, np.inf], np.float32), id="number"
    ),
    pytest.param(
        lambda x: to_number(x, "int64"),
        ["-7", "9007199254740993"],
        np.array([-7, 9007199254740993]),
        id="whole-number",
    ),
    pytest.param(
        decode_raw, [b"\x00\xff", b"ab"], np.array([[0, 255], [97, 98]], np.uint8), id="raw"
    ),
    pytest.param(
        lambda x: decode_raw(x, "int16"),
        [b"\x01\x02"],
        np.array([[0x0201]], np.int16),
        id="raw-little",
    ),
    pytest.param(
        lambda x: decode_raw(x, "int16", False),
        [b"\x01\x02"],
        np.array([[0x0102]], np.int16),
        id="raw-big",
    ),
    pytest.param(decode_raw, np.zeros(0, "S1"), np.zeros((0, 0), np.uint8), id="raw-empty"),
]


@pytest.mark.parametrize(("fn", "values", "expected"), CASES)
def test_op(fn: Callable[[Tensor], Tensor], values: Any, expected: Any) -> None:
    is_text = np.asarray(expected).dtype.kind in "US"
    reference = bytes_of(expected) if is_text else np.asarray(expected)
    check_op(fn, lambda x: reference, [strings(values)], grad=False)


def test_zero_bytes_survive() -> None:
    assert convert_to_tensor([b"\x00\xff\x00"]).numpy().tolist() == [b"\x00\xff\x00"]
    assert string_concat([convert_to_tensor([["a\x00"]])]).numpy().tolist() == [[b"a\x00"]]


def test_bytes_that_are_no_text_pass_through() -> None:
    x = convert_to_tensor([b"\xff\xfeA"])
    assert string_lower(x).numpy().tolist() == [b"\xff\xfea"]
    assert regex_replace(x, "A", "b").numpy().tolist() == [b"\xff\xfeb"]


def test_concat_broadcasts() -> None:
    check_op(
        lambda *xs: string_concat(xs),
        lambda *xs: bytes_of([["a-x", "a-y"], ["b-x", "b-y"]]),
        [strings([["a"], ["b"]]), strings("-"), strings(["x", "y"])],
        grad=False,
    )
    assert string_concat([convert_to_tensor("a")]).numpy().item() == b"a"
    assert string_concat([convert_to_tensor("a"), convert_to_tensor("b")]).numpy().item() == b"ab"
    with pytest.raises(InvalidArgumentError, match="at least one tensor"):
        string_concat([])


def test_equal() -> None:
    x, y = strings([["a"], ["bc"]]), strings(["a", "bc"])
    check_op(equal, lambda x, y: np.eye(2, dtype=bool), [x, y], grad=False)
    check_op(not_equal, lambda x, y: ~np.eye(2, dtype=bool), [x, y], grad=False)


SPLITS: list[Any] = [
    pytest.param(
        ["a b  c", "", "d"],
        "",
        -1,
        [["a", "b", "c"], [""] * 3, ["d", "", ""]],
        [3, 0, 1],
        id="space",
    ),
    pytest.param(["a,,b", "c"], ",", -1, [["a", "", "b"], ["c", "", ""]], [3, 1], id="comma"),
    pytest.param(["a,b,c"], ",", 1, [["a", "b,c"]], [2], id="limit"),
    pytest.param("a b", "", -1, ["a", "b"], 2, id="scalar"),
    pytest.param(np.zeros(0, "S1"), "", -1, np.zeros((0, 0), "S1"), np.zeros(0, int), id="empty"),
]


@pytest.mark.parametrize(("values", "separator", "limit", "pieces", "counts"), SPLITS)
def test_split(values: Any, separator: str, limit: int, pieces: Any, counts: Any) -> None:
    check_op(
        lambda x: string_split(x, separator, limit),
        lambda x: (bytes_of(pieces), np.asarray(counts, np.int32)),
        [strings(values)],
        grad=False,
    )


WRITTEN: list[Any] = [
    pytest.param(np.array([0.1, -2.0, np.nan], np.float32), -1, ["0.1", "-2.0", "nan"], id="float"),
    pytest.param(np.array([0.125, 10.0]), 2, ["0.12", "10.00"], id="fixed"),
    pytest.param(np.array([[1], [-3]], np.int8), 2, [["1"], ["-3"]], id="int"),
    pytest.param(np.array([True, False]), -1, ["true", "false"], id="bool"),
    pytest.param(np.array(1 + 2j, np.complex64), -1, "(1+2j)", id="complex"),
    pytest.param(np.zeros((0, 2)), -1, np.zeros((0, 2), "S1"), id="empty"),
]


@pytest.mark.parametrize(("values", "precision", "expected"), WRITTEN)
def test_as_string(values: Any, precision: int, expected: Any) -> None:
    check_op(lambda x: as_string(x, precision), lambda x: bytes_of(expected), [values], grad=False)


def test_numbers_survive_the_way_there_and_back() -> None:
    x = np.random.default_rng(0).normal(size=100).astype(np.float32)
    np.testing.assert_array_equal(to_number(as_string(constant(x))).numpy(), x)


def fnv1a(item: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in item:
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    return h


def test_hash_bucket() -> None:
    # Test vectors of RFC 9923, appendix C.
    assert fnv1a(b"") == 0xCBF29CE484222325
    assert fnv1a(b"a") == 0xAF63DC4C8601EC8C
    assert fnv1a(b"foobar") == 0x85944171F73967E8
    words = strings([["foobar", "a", ""], ["日本", "x" * 1000, "ab"]])
    for buckets in (1, 7, 1 << 40):
        check_op(
            lambda x, n=buckets: to_hash_bucket(x, n),
            lambda x, n=buckets: np.array([[fnv1a(w) % n for w in row] for row in x]),
            [words],
            grad=False,
        )
    assert to_hash_bucket(convert_to_tensor(np.zeros(0, "S1")), 5).shape == (0,)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "bfloat16", "complex64", "bool"])
@pytest.mark.parametrize("little_endian", [True, False])
def test_raw_bytes_there_and_back(dtype: str, little_endian: bool) -> None:
    x = constant(np.arange(12).reshape(2, 2, 3) % 2, dtype)
    y = encode_raw(x, little_endian)
    assert y.shape == (2, 2)
    z = decode_raw(y, dtype, little_endian)
    assert z.dtype == dtype
    np.testing.assert_array_equal(z.numpy(), x.numpy())


def test_encode_raw() -> None:
    check_op(
        lambda x: encode_raw(x, False),
        lambda x: bytes_of([b"\x00\x01", b"\x01\x00"]),
        [np.array([[1], [256]], np.int16)],
        grad=False,
    )


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("string", [None, 3])
        assert string_join(x).shape == TensorShape([None])
        assert string_split(x)[0].shape == TensorShape([None, 3, None])
        assert decode_raw(x).shape == TensorShape([None, 3, None])
        assert substr(x, 0, 1).shape == TensorShape([None, 3])
        unknown = placeholder("string", None)
        assert string_join(unknown).shape.rank is None
        assert string_split(unknown)[0].shape.rank is None
        assert encode_raw(placeholder("int8", None)).shape.rank is None


ERRORS: list[Any] = [
    pytest.param(
        lambda x: string_length(x, unit="word"), InvalidArgumentError, "got 'word'", id="unit"
    ),
    pytest.param(
        to_number,
        InvalidArgumentError,
        "b'ab' does not write a number of type float32",
        id="number",
    ),
    pytest.param(
        lambda x: to_number(convert_to_tensor("300"), "uint8"),
        InvalidArgumentError,
        "does not fit into uint8",
        id="overflow",
    ),
    pytest.param(
        lambda x: to_number(x, "bool"), InvalidArgumentError, "dtype must be a real", id="dtype"
    ),
    pytest.param(
        lambda x: regex_full_match(x, "("), InvalidArgumentError, r"'\(' is not a pattern", id="re"
    ),
    pytest.param(
        lambda x: to_hash_bucket(x, 0), InvalidArgumentError, "at least 1, got 0", id="buckets"
    ),
    pytest.param(lambda x: decode_raw(x, "int32"), ShapeError, "strings of 2, 3 bytes", id="raw"),
    pytest.param(
        lambda x: decode_raw(x, "string"), InvalidArgumentError, "must be a numeric", id="raw-type"
    ),
    pytest.param(lambda x: encode_raw(constant(1)), ShapeError, "at least one axis", id="encode"),
    pytest.param(lambda x: string_join(x, 1), ShapeError, "axis 1 does not exist", id="join"),
    pytest.param(lambda x: string_lower(constant(1)), DTypeError, "StringLower: x", id="type"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(convert_to_tensor(["ab", "abc"]))
