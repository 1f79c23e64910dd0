"""Strings of TensorFlow 1: what they give, as its documentation and its tests have it."""

from __future__ import annotations

from typing import Any

import pytest

import laminar.compat.v1 as tf
from laminar import errors

AB = [["a", "b"], ["c", "d"]]

CASES: list[Any] = [
    pytest.param(lambda: tf.reduce_join(AB, 0), [b"ac", b"bd"], id="join rows"),
    pytest.param(lambda: tf.reduce_join(AB, [0, 1]), b"acbd", id="join rows, then columns"),
    pytest.param(lambda: tf.reduce_join(AB, [1, 0], separator="."), b"a.b.c.d", id="the other way"),
    pytest.param(lambda: tf.reduce_join(AB), b"abcd", id="join all"),
    pytest.param(lambda: tf.reduce_join(AB, [], separator="."), [[b"a", b"b"], [b"c", b"d"]]),
    pytest.param(lambda: tf.reduce_join(AB, -1, keep_dims=True), [[b"ab"], [b"cd"]]),
    pytest.param(lambda: tf.as_string([3.1415926, 2.72]), [b"3.141593", b"2.720000"]),
    pytest.param(lambda: tf.as_string([3.1415926], precision=2), [b"3.14"], id="digits"),
    pytest.param(lambda: tf.as_string([1234.5], scientific=True), [b"1.234500e+03"]),
    pytest.param(lambda: tf.as_string([0.5, 2.0], shortest=True), [b"0.5", b"2"], id="shortest"),
    pytest.param(lambda: tf.as_string([7, -12], width=4, fill="0"), [b"0007", b"-012"]),
    pytest.param(lambda: tf.as_string([1 + 2j], precision=1), [b"(1.0,2.0)"], id="complex"),
    pytest.param(lambda: tf.as_string([True]), [b"true"], id="bool"),
    pytest.param(lambda: tf.substr(["hello", "world"], [1, -3], [2, 2]), [b"el", b"rl"]),
    pytest.param(lambda: tf.regex_replace(["abac"], "a(.)", r"<\0\1>"), [b"<abb><acc>"]),
    pytest.param(lambda: tf.regex_replace(["aa"], tf.constant("a"), "b", False), [b"ba"]),
    pytest.param(lambda: tf.string_split(["é"], "").values, [b"\xc3", b"\xa9"], id="bytes"),
    pytest.param(lambda: tf.strings.format("<{}>", [tf.constant([1, 2])]), b"<[1 2]>"),
    pytest.param(lambda: tf.decode_base64(tf.encode_base64(["ab"])), [b"ab"], id="base64"),
    pytest.param(
        lambda: tf.strings.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, "-"),
        [b"a-c", b"b"],
    ),
    pytest.param(lambda: tf.strings.unicode_transcode(["é"], "UTF-8", "UTF-16-BE"), [b"\x00\xe9"]),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_values(make: Any, expected: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(make())
    assert (found if isinstance(found, bytes) else found.tolist()) == expected


WRONG: list[Any] = [
    pytest.param(lambda: tf.reduce_join(AB, 2), "none of the 2", id="no such axis"),
    pytest.param(lambda: tf.reduce_join(AB, [0, -2]), "stands twice", id="an axis twice"),
    pytest.param(lambda: tf.as_string([1], precision=2), "no digits", id="digits of integers"),
    pytest.param(lambda: tf.as_string([1.0], fill="x"), "fill is one of", id="fill"),
    pytest.param(lambda: tf.substr(["a"], [0], [1, 2]), "must agree", id="shapes of parts"),
    pytest.param(lambda: tf.substr(["a"], [0], [1], unit="WORD"), "unit must be", id="unit"),
    pytest.param(
        lambda: tf.regex_replace(["a"], tf.placeholder(tf.string, []), "b"), "must be known"
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()


def test_a_part_outside_of_its_string() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        part = tf.substr(["hello", "a"], [3, 3], [1, 1])
        with pytest.raises(errors.InvalidArgumentError, match="3 is outside of b'a'"):
            session.run(part)
