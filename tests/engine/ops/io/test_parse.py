"""Examples parsed into tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    Graph,
    Session,
    TensorShape,
    VarLenFeature,
    constant,
    decode_raw,
    encode_example,
    encode_sequence_example,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
    placeholder,
)
from laminar.engine.errors import DataLossError, DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.ops.io.parse import parse_examples

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
    ([FIRST], {"x": "float32"}, InvalidArgumentError, "FixedLenFeature or a VarLen"),
    ([FIRST], {}, InvalidArgumentError, "at least one"),
]


@pytest.mark.parametrize(("serialized", "features", "kind", "text"), MISTAKES)
def test_mistakes(serialized: Any, features: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        parse_example(serialized, features)


def test_a_batch_is_no_single_example() -> None:
    with pytest.raises(InvalidArgumentError, match="one string"):
        parse_single_example([FIRST], FEATURES)


# Sequences

LONG = encode_sequence_example(
    {"id": 1, "scores": [1.0, 2.0, 3.0, 4.0]},
    {"frames": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "tags": [[b"a", b"b"], [], [b"c"]]},
)
SHORT = encode_sequence_example({"id": 2}, {"frames": [[7.0, 8.0]], "tags": [[b"d"]]})
CONTEXT: dict[str, Any] = {
    "id": FixedLenFeature((), "int64"),
    "scores": FixedLenSequenceFeature((2,), "float32", allow_missing=True, default_value=-1.0),
}
SEQUENCES: dict[str, Any] = {
    "tags": VarLenFeature("string"),
    "frames": FixedLenSequenceFeature((2,), "float32"),
    "more": FixedLenSequenceFeature((), "int64", allow_missing=True),
}


def test_rows_of_a_feature() -> None:
    rows = FixedLenSequenceFeature((2,), "float32", allow_missing=True)
    longer = encode_example({"x": [1.0, 2.0, 3.0, 4.0]})
    parsed = parse_example([longer, SECOND, encode_example({})], {"x": rows})
    assert parsed["x"].shape[2] == 2
    assert parsed["x"].numpy().tolist() == [
        [[1, 2], [3, 4]],
        [[3, 4], [0, 0]],
        [[0, 0], [0, 0]],
    ]
    words = FixedLenSequenceFeature((), "string", True, b"?")
    mixed = parse_example([FIRST, SECOND], {"tags": words, "word": FEATURES["word"]})
    assert mixed["tags"].numpy().tolist() == [[b"a", b"b"], [b"?", b"?"]]
    assert mixed["word"].numpy().tolist() == [b"hi", b"yo"]
    one = parse_single_example(longer, {"x": rows})["x"]
    assert one.numpy().tolist() == [[1, 2], [3, 4]]


def test_one_sequence() -> None:
    graph = Graph()
    with graph.as_default():
        serialized = placeholder("string", ())
        parsed = parse_single_sequence_example(serialized, CONTEXT, SEQUENCES)
    assert parsed[1]["frames"].shape == TensorShape((None, 2))
    with Session(graph=graph) as session:
        context, sequences = session.run(parsed, {serialized: LONG})
    assert context["id"] == 1
    assert context["scores"].tolist() == [[1, 2], [3, 4]]
    assert list(sequences) == list(SEQUENCES)
    assert sequences["frames"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert sequences["more"].tolist() == []
    assert sequences["tags"].indices.tolist() == [[0, 0], [0, 1], [2, 0]]
    assert sequences["tags"].values.tolist() == [b"a", b"b", b"c"]
    assert sequences["tags"].dense_shape.tolist() == [3, 2]


def test_a_batch_of_sequences() -> None:
    context, sequences, lengths = parse_sequence_example([LONG, SHORT], CONTEXT, SEQUENCES)
    assert context["id"].numpy().tolist() == [1, 2]
    assert context["scores"].numpy().tolist() == [[[1, 2], [3, 4]], [[-1, -1], [-1, -1]]]
    assert sequences["frames"].numpy().tolist() == [
        [[1, 2], [3, 4], [5, 6]],
        [[7, 8], [0, 0], [0, 0]],
    ]
    assert lengths["frames"].numpy().tolist() == [3, 1]
    assert sequences["more"].shape == (2, 0)
    assert lengths["more"].numpy().tolist() == [0, 0]
    tags = sequences["tags"]
    assert tags.indices.numpy().tolist() == [[0, 0, 0], [0, 0, 1], [0, 2, 0], [1, 0, 0]]
    assert tags.values.numpy().tolist() == [b"a", b"b", b"c", b"d"]
    assert tags.dense_shape.numpy().tolist() == [2, 3, 2]


@pytest.mark.parametrize(
    ("serialized", "features", "kind", "text"),
    [
        ([SHORT], {"no": FixedLenSequenceFeature((), "int64")}, InvalidArgumentError, "no feature"),
        (
            [LONG, LONG],
            {"frames": FixedLenSequenceFeature((3,), "float32")},
            InvalidArgumentError,
            "step 0 of 'frames' of example 0 must have 3 values",
        ),
        ([LONG], {"tags": VarLenFeature("int64")}, InvalidArgumentError, "holds string"),
        (
            [LONG],
            {"tags": FixedLenFeature((), "int64")},
            InvalidArgumentError,
            "SequenceFeature or",
        ),
        ([b"\xff"], {"x": VarLenFeature("float32")}, DataLossError, "example 0"),
        ([LONG], {"x": FixedLenSequenceFeature((None,), "int64")}, ShapeError, "must be known"),
        ([LONG], {"x": FixedLenSequenceFeature((), "float64")}, DTypeError, "float32, int64"),
        (
            [LONG],
            {"x": FixedLenSequenceFeature((), "int64", True, [1])},
            InvalidArgumentError,
            "sc",
        ),
        ([[LONG]], {"x": VarLenFeature("float32")}, ShapeError, "vector"),
        ([LONG], {}, InvalidArgumentError, "no feature is asked for"),
    ],
)
def test_mistakes_in_sequences(
    serialized: Any, features: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        parse_sequence_example(serialized, None, features)


def test_values_that_make_no_rows() -> None:
    rows = FixedLenSequenceFeature((3,), "float32")
    with pytest.raises(InvalidArgumentError, match="must have rows of 3 values"):
        parse_example([FIRST], {"x": rows})
    with pytest.raises(InvalidArgumentError, match="one string"):
        parse_single_sequence_example([LONG], {}, SEQUENCES)


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
