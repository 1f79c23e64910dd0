"""Examples parsed into tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    FixedLenFeature,
    Graph,
    Session,
    VarLenFeature,
    constant,
    decode_raw,
    encode_example,
    parse_example,
    parse_single_example,
    placeholder,
)
from laminar.engine.errors import DataLossError, DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.ops.parse import parse_examples

FIRST = encode_example({"x": [1.0, 2.0], "label": 3, "word": b"hi", "tags": [b"a", b"b"]})
SECOND = encode_example({"x": [3.0, 4.0], "word": b"yo", "tags": []})
FEATURES: dict[str, Any] = {
    "label": FixedLenFeature((), "int64", -1),
    "tags": VarLenFeature("string"),
    "x": FixedLenFeature((2, 1), "float32"),
    "word": FixedLenFeature((), "string"),
}


def test_a_batch() -> None:
    parsed = parse_example([FIRST, SECOND], FEATURES)
    assert list(parsed) == list(FEATURES)
    assert parsed["label"].numpy().tolist() == [3, -1]
    assert parsed["x"].numpy().tolist() == [[[1], [2]], [[3], [4]]]
    assert parsed["word"].numpy().tolist() == [b"hi", b"yo"]
    tags = parsed["tags"]
    assert tags.indices.numpy().tolist() == [[0, 0], [0, 1]]
    assert tags.values.numpy().tolist() == [b"a", b"b"]
    assert tags.dense_shape.numpy().tolist() == [2, 2]


def test_one_example_in_a_session() -> None:
    graph = Graph()
    with graph.as_default():
        serialized = placeholder("string", ())
        parsed = parse_single_example(serialized, FEATURES)
    assert parsed["x"].shape == (2, 1)
    with Session(graph=graph) as session:
        found = session.run(parsed, {serialized: FIRST})
    assert found["label"] == 3
    assert found["x"].tolist() == [[1], [2]]
    assert found["tags"].indices.tolist() == [[0], [1]]
    assert found["tags"].dense_shape.tolist() == [2]


def test_bytes_of_an_image_are_scaled() -> None:
    """Image bytes 0 ... 255 become -0.5 ... 0.5."""
    data = encode_example({"image": bytes(range(256))})
    image = parse_single_example(data, {"image": FixedLenFeature((), "string")})["image"]
    scaled = decode_raw(image, "uint8").numpy() / 255 - 0.5
    np.testing.assert_allclose(scaled, np.linspace(-0.5, 0.5, 256))


def test_an_empty_batch() -> None:
    parsed = parse_example(np.zeros(0, object), FEATURES)
    assert parsed["x"].shape == (0, 2, 1)
    assert parsed["tags"].indices.shape == (0, 2)


MISTAKES: list[tuple[Any, Any, type[Exception], str]] = [
    ([SECOND], {"label": FixedLenFeature((), "int64")}, InvalidArgumentError, "no feature 'label'"),
    ([FIRST], {"x": FixedLenFeature((3,), "float32")}, InvalidArgumentError, "must have 3 values"),
    ([FIRST], {"x": FixedLenFeature((2,), "int64")}, InvalidArgumentError, "holds float32"),
    ([FIRST], {"tags": VarLenFeature("float32")}, InvalidArgumentError, "holds string"),
    ([b"\xff"], {"x": VarLenFeature("float32")}, DataLossError, "example 0"),
    ([FIRST], {"x": FixedLenFeature((None,), "float32")}, ShapeError, "must be known"),
    ([FIRST], {"x": FixedLenFeature((2,), "float64")}, DTypeError, "float32, int64 or string"),
    ([FIRST], {"x": FixedLenFeature((2,), "float32", [1.0])}, InvalidArgumentError, "default"),
    ([[FIRST]], {"x": VarLenFeature("float32")}, ShapeError, "vector"),
    ([FIRST], {"x": "float32"}, InvalidArgumentError, "FixedLenFeature or a VarLenFeature"),
    ([FIRST], {}, InvalidArgumentError, "at least one"),
]


@pytest.mark.parametrize(("serialized", "features", "kind", "text"), MISTAKES)
def test_mistakes(serialized: Any, features: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        parse_example(serialized, features)


def test_a_batch_is_no_single_example() -> None:
    with pytest.raises(InvalidArgumentError, match="one string"):
        parse_single_example([FIRST], FEATURES)


def test_attributes_must_agree() -> None:
    good: dict[str, Any] = {
        "dense_keys": (),
        "dense_dtypes": (),
        "dense_shapes": (),
        "defaulted": (),
        "sparse_keys": ("a",),
        "sparse_dtypes": ("int64",),
    }
    cases: list[tuple[dict[str, Any], str]] = [
        ({"defaulted": (True,)}, "dense"),
        ({"sparse_dtypes": ()}, "sparse"),
        ({"sparse_keys": (), "sparse_dtypes": ()}, "no feature"),
        ({"sparse_keys": ("a", "a"), "sparse_dtypes": ("int64", "int64")}, "twice"),
    ]
    for changes, text in cases:
        with pytest.raises(InvalidArgumentError, match=text):
            parse_examples.many(constant(FIRST), **{**good, **changes})
