"""StringLookup, IntegerLookup."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import layers
from laminar.engine.errors import (
    DataLossError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    MissingFileError,
    ShapeError,
)
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.models import Model, Sequential
from laminar.ops import convert_to_tensor
from laminar.saving import load_model
from laminar.saving.archive import ArchiveReader

from .harness import check_config

WORDS = ["a", "b", "c", "d"]
X = [["a", "c", "d", "d"], ["d", "z", "b", "z"]]
UNKNOWN = [["a", "c", "d"], ["m", "z", "b"]]

# The examples of the documentation of Keras's layers.
CASES: list[Any] = [
    ({}, X, [[1, 3, 4, 4], [4, 0, 2, 0]]),
    ({"output_mode": "one_hot"}, ["a", "b", "z"], np.eye(5)[[1, 2, 0]]),
    ({"output_mode": "one_hot"}, [["a"], ["z"]], np.eye(5)[[1, 0]]),
    ({"output_mode": "multi_hot"}, X, [[0, 1, 0, 1, 1], [1, 0, 1, 0, 1]]),
    ({"output_mode": "binary"}, X, [[0, 1, 0, 1, 1], [1, 0, 1, 0, 1]]),
    ({"output_mode": "count"}, X, [[0, 1, 0, 1, 2], [2, 0, 1, 0, 1]]),
    (
        {"output_mode": "tf_idf", "idf_weights": [0.25, 0.75, 0.6, 0.4]},
        X,
        [[0, 0.25, 0, 0.6, 0.8], [1, 0, 0.75, 0, 0.4]],
    ),
    ({"output_mode": "count", "mask_token": "d"}, X, None),
    ({"mask_token": ""}, [["", "a"], ["b", "z"]], [[0, 2], [3, 1]]),
    ({"mask_token": "", "output_mode": "count"}, [["", "a"], ["b", "z"]], None),
    ({"num_oov_indices": 0}, [["a", "d"]], [[0, 3]]),
    ({"output_mode": "count", "max_tokens": 7, "pad_to_max_tokens": True}, X, None),
]
EXPECTED = {  # of the cases with None
    7: [[0, 1, 0, 1], [2, 0, 1, 0]],
    9: [[0, 1, 0, 0, 0], [1, 0, 1, 0, 0]],
    11: [[0, 1, 0, 1, 2, 0, 0], [2, 0, 1, 0, 1, 0, 0]],
}


@pytest.mark.parametrize("kind", ["strings", "integers"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_lookup(case: int, kind: str) -> None:
    kwargs, x, expected = CASES[case]
    expected = EXPECTED[case] if expected is None else expected
    vocabulary = WORDS[:3] if kwargs.get("mask_token") == "d" else WORDS
    if kind == "integers":
        x = np.vectorize(lambda t: ord(t) if t else 0)(np.array(x))
        vocabulary = [ord(t) for t in vocabulary]  # type: ignore[misc]  # of the other layer
        mask = kwargs.get("mask_token")
        kwargs = {**kwargs, "mask_token": None if mask is None else ord(mask) if mask else 0}
        layer: Any = layers.IntegerLookup(vocabulary=vocabulary, **kwargs)
    else:
        layer = layers.StringLookup(vocabulary=vocabulary, **kwargs)
    value = layer(x).numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    weighted = kwargs.get("output_mode") == "tf_idf"
    assert value.dtype == (np.float32 if weighted else np.int64)
    check_config(type(layer), layer, x, value)

    array = np.array(x, object if kind == "strings" else np.int64)
    dtype = "string" if kind == "strings" else "int64"
    symbol = layer(layers.Input(array.shape[1:], dtype=dtype))
    assert tuple(symbol.shape) == (None, *value.shape[1:])
    assert symbol.dtype == str(value.dtype)
    assert layer.compute_output_shape((None, *array.shape[1:])) == tuple(symbol.shape)
    spec = TensorSpec((None, *array.shape[1:]), dtype)
    traced = function(lambda t: layer(t), input_signature=[spec])
    np.testing.assert_array_equal(traced(convert_to_tensor(array)).numpy(), value)
    assert layer(array[:0]).shape == (0, *value.shape[1:])


def test_scalars() -> None:
    layer = layers.StringLookup(vocabulary=WORDS)
    assert layer("b").numpy() == 2
    hot = layers.StringLookup(vocabulary=WORDS, output_mode="one_hot")("b")
    assert hot.numpy().tolist() == [[0, 0, 1, 0, 0]]


def test_invert() -> None:
    layer = layers.StringLookup(vocabulary=WORDS, invert=True, mask_token="")
    value = layer([[2, 5, 0], [1, 9, -3]])
    assert value.numpy().tolist() == [[b"a", b"d", b""], [b"[UNK]"] * 3]
    numbers = layers.IntegerLookup(vocabulary=[12, 36], invert=True)
    assert numbers([1, 2, 0, 7]).numpy().tolist() == [12, 36, -1, -1]
    x = layers.Input((3,), dtype="int64")
    assert Model(x, layer(x)).predict(np.array([[2, 1, 0]]), verbose=0).tolist() == [
        [b"a", b"[UNK]", b""]
    ]
    assert layer.compute_output_shape((None, 3)) == (None, 3)


def test_several_indices_for_the_unknown() -> None:
    layer = layers.StringLookup(vocabulary=WORDS, num_oov_indices=3, mask_token="")
    found = layer([*"wxyz", "a", ""]).numpy()
    bins = layers.Hashing(3)([*"wxyz"]).numpy()
    assert found.tolist() == [*(bins + 1), 4, 0]
    salted = layers.StringLookup(vocabulary=WORDS, num_oov_indices=3, salt=[133, 137])
    assert salted([*"ABCDE"]).numpy().tolist() == [1, 2, 1, 0, 2]
    numbers = layers.IntegerLookup(vocabulary=[5], num_oov_indices=3)
    assert numbers([7, -1, 5]).numpy().tolist() == [1, 2, 3]
    hashed = layers.IntegerLookup(vocabulary=[5], num_oov_indices=3, oov_method="farmhash")
    assert hashed([7, 5]).numpy().tolist() == [int(layers.Hashing(3)([7]).numpy()[0]), 3]


def test_no_index_for_the_unknown() -> None:
    layer = layers.StringLookup(vocabulary=WORDS, num_oov_indices=0)
    traced = function(lambda x: layer(x), input_signature=[TensorSpec((None,), "string")])
    assert traced(convert_to_tensor(["a"])).numpy().tolist() == [0]
    for call in (layer, traced):
        with pytest.raises(InvalidArgumentError, match="not in the vocabulary"):
            call(convert_to_tensor(["a", "nobody"]))


# Learning

DATA = [["a", "c", "d"], ["d", "z", "b"]]


def test_adapt() -> None:
    layer = layers.StringLookup()
    layer.adapt(DATA)
    assert layer.get_vocabulary() == ["[UNK]", "d", "z", "c", "b", "a"]
    assert layer.get_vocabulary(include_special_tokens=False) == ["d", "z", "c", "b", "a"]
    assert layer.vocabulary_size() == 6
    layer.adapt(["q"])
    assert layer.get_vocabulary() == ["[UNK]", "q"]
    numbers = layers.IntegerLookup(max_tokens=3, mask_token=0)
    numbers.adapt(iter([np.array([0, 0, 7, 9]), np.array([[9], [-1]]), np.array([8] * 9)]), steps=2)
    assert numbers.get_vocabulary() == [0, -1, 9]


def test_tokens_in_order_of_frequency() -> None:
    source = np.random.default_rng(0)
    data = source.zipf(1.5, size=5000) % 300
    layer = layers.IntegerLookup(max_tokens=100)
    layer.adapt(data)
    values, counts = np.unique(data, return_counts=True)
    ranked = values[np.lexsort((values, counts))[::-1]]
    assert layer.get_vocabulary() == [-1, *ranked[:99]]
    indices = layer(values).numpy()
    expected = {v: i + 1 for i, v in enumerate(ranked[:99].tolist())}
    assert indices.tolist() == [expected.get(v, 0) for v in values.tolist()]


@pytest.mark.parametrize("padded", [False, True])
def test_tf_idf_is_learned(padded: bool) -> None:
    options: dict[str, Any] = {"max_tokens": 8, "pad_to_max_tokens": True} if padded else {}
    layer = layers.StringLookup(output_mode="tf_idf", **options)
    layer.adapt(np.array([["a", "a"], ["a", "b"], ["c", "c"]], object))
    assert layer.get_vocabulary() == ["[UNK]", "a", "c", "b"]
    idf = [math.log(1 + 3 / (1 + n)) for n in (2, 1, 1)]
    value = layer([["a", "a", "b", "?"]]).numpy()
    expected = [[sum(idf) / 3, 2 * idf[0], 0, idf[2], *[0] * (4 if padded else 0)]]
    np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_a_model_made_before_the_vocabulary() -> None:
    layer = layers.StringLookup(output_mode="count", max_tokens=4, pad_to_max_tokens=True)
    model = Sequential([layers.Input((2,), dtype="string"), layer, layers.Dense(1)])
    layer.adapt(["x", "y"])
    assert model.predict(np.array([["x", "q"]]), verbose=0).shape == (1, 1)
    with pytest.raises(FailedPreconditionError, match="no vocabulary"):
        layers.StringLookup(output_mode="count")(layers.Input((2,), dtype="string"))


# The vocabulary


def test_vocabulary_with_special_tokens() -> None:
    layer = layers.StringLookup(mask_token="")
    layer.set_vocabulary(np.array(["", "[UNK]", "a"]))
    assert layer.get_vocabulary() == ["", "[UNK]", "a"]
    weighted = layers.StringLookup(output_mode="tf_idf")
    weighted.set_vocabulary(["[UNK]", *WORDS], [0.9, 0.25, 0.75, 0.6, 0.4])
    np.testing.assert_allclose(
        weighted(X).numpy(), [[0, 0.25, 0, 0.6, 0.8], [1.8, 0, 0.75, 0, 0.4]], rtol=1e-6
    )


@pytest.mark.parametrize(("text", "tokens"), [("a\nb b\nä\n", ["a", "b b", "ä"]), ("x\r\ny", "xy")])
def test_vocabulary_in_a_file(tmp_path: Path, text: str, tokens: Any) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())
    layer = layers.StringLookup(vocabulary=str(path))
    assert layer.get_vocabulary(False) == list(tokens)
    assert layer.get_config()["vocabulary"] is None
    with pytest.raises(MissingFileError):
        layers.StringLookup(vocabulary=str(tmp_path / "no.txt"))
    with pytest.raises(InvalidArgumentError, match="no whole number"):
        layers.IntegerLookup(vocabulary=str(path))
    path.write_text("3\n-4\n")
    assert layers.IntegerLookup(vocabulary=str(path))([-4, 3]).numpy().tolist() == [2, 1]


@pytest.mark.parametrize(
    ("kwargs", "vocabulary", "error", "match"),
    [
        ({}, [], InvalidArgumentError, "empty"),
        ({}, ["a", "b", "a"], InvalidArgumentError, "more than once"),
        ({"mask_token": "b"}, ["a", "b"], InvalidArgumentError, "mask_token"),
        ({"invert": True}, ["a", "[UNK]"], InvalidArgumentError, "oov_token"),
        ({"max_tokens": 2}, ["a", "b"], InvalidArgumentError, "max_tokens"),
        ({"output_mode": "tf_idf"}, ["a"], InvalidArgumentError, "idf_weights"),
    ],
)
def test_vocabularies_that_are_refused(
    kwargs: Any, vocabulary: Any, error: type[Exception], match: str
) -> None:
    layer = layers.StringLookup(**kwargs)
    before = layer.get_vocabulary()
    with pytest.raises(error, match=match):
        layer.set_vocabulary(vocabulary)
    assert layer.get_vocabulary() == before


def test_the_length_of_vectors_is_kept() -> None:
    layer = layers.StringLookup(vocabulary=WORDS, output_mode="count")
    with pytest.raises(FailedPreconditionError, match="length of the output"):
        layer.set_vocabulary(["a"])
    assert layer.get_vocabulary(False) == WORDS
    with pytest.raises(InvalidArgumentError, match="cannot learn"):
        layer.adapt(["a"])
    with pytest.raises(ShapeError, match="one for each token"):
        layers.StringLookup(vocabulary=WORDS, output_mode="tf_idf", idf_weights=[1.0])


@pytest.mark.parametrize(
    "kwargs",
    [
        {"max_tokens": 1},
        {"num_oov_indices": -1},
        {"pad_to_max_tokens": True},
        {"output_mode": "hot"},
        {"sparse": True, "output_mode": "count"},
        {"invert": True, "output_mode": "count"},
        {"invert": True, "oov_token": None},
        {"idf_weights": [1.0]},
        {"vocabulary": ["a"], "output_mode": "tf_idf"},
        {"salt": "s"},
    ],
)
def test_options_that_are_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        layers.StringLookup(**kwargs)


def test_options_of_integers_that_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="salt"):
        layers.IntegerLookup(salt=1)
    with pytest.raises(DTypeError, match="int64"):
        layers.IntegerLookup(vocabulary_dtype="int32")


# Files


def test_configs() -> None:
    config = json.loads(json.dumps(layers.serialize(layers.StringLookup(vocabulary=("a",)))))
    assert config["build_config"] == {}
    assert list(config["config"]["vocabulary"]) == ["a"]
    keys = {"invert", "max_tokens", "num_oov_indices", "oov_token", "mask_token", "output_mode"}
    keys |= {"sparse", "pad_to_max_tokens", "idf_weights", "vocabulary", "vocabulary_size"}
    keys |= {"oov_method", "salt", "encoding", "name", "trainable", "dtype"}
    assert set(config["config"]) == keys
    numbers = layers.serialize(layers.IntegerLookup(vocabulary=np.array([1])))["config"]
    assert set(numbers) == keys - {"encoding"} | {"vocabulary_dtype"}
    assert numbers["vocabulary"] == [1]


def test_a_config_reads_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    config = layers.serialize(layers.StringLookup())
    config["config"]["vocabulary"] = str(tmp_path / "secret.txt")
    with pytest.raises(InvalidArgumentError, match="not read"):
        layers.deserialize(config)


def model_of(*stack: layers.Layer, dtype: str = "string") -> Model:
    x = layers.Input((3,), dtype=dtype)
    y: Any = x
    for layer in stack:
        y = layer(y)
    return Model(x, y)


@pytest.mark.parametrize("mode", ["int", "count", "tf_idf"])
def test_vocabularies_are_saved(tmp_path: Path, mode: str) -> None:
    words = np.array([["b", "ä", "?"], ["x y", "b", ""]], object)
    layer = layers.StringLookup(
        output_mode=mode,
        mask_token="",
        max_tokens=7 if mode != "int" else None,
        pad_to_max_tokens=mode == "tf_idf",
    )
    layer.adapt(words[:, :2])
    model = model_of(layer)
    model.save(tmp_path / "m.keras")
    with ArchiveReader(tmp_path / "m.keras") as archive:
        text = archive.asset("layers/string_lookup/vocabulary.txt").decode()
    assert text.split("\n") == layer.get_vocabulary()
    again = load_model(tmp_path / "m.keras")
    assert again.layers[1].get_vocabulary() == layer.get_vocabulary()
    np.testing.assert_array_equal(again(words).numpy(), model(words).numpy())


def test_integers_are_saved(tmp_path: Path) -> None:
    layer = layers.IntegerLookup(mask_token=0)
    layer.adapt([5, -7, 5, 2**40])
    model = model_of(layer, dtype="int64")
    model.save(tmp_path / "m.keras")
    assert load_model(tmp_path / "m.keras").layers[1].get_vocabulary() == layer.get_vocabulary()


def test_odd_tokens_are_saved(tmp_path: Path) -> None:
    """An empty last token, and bytes that are no text, come back; a line break cannot."""
    layer = layers.StringLookup()
    layer.adapt(np.array([b"\xff\x85", b"\xff\x85", b""], object))
    model_of(layer).save(tmp_path / "m.keras")
    again = load_model(tmp_path / "m.keras").layers[1]
    assert again.get_vocabulary() == layer.get_vocabulary()
    assert again(np.array([b"\xff\x85", b""], object)).numpy().tolist() == [1, 2]
    layer.adapt(["a\nb"])
    with pytest.raises(InvalidArgumentError, match="line break"):
        model_of(layer).save(tmp_path / "n.keras")
    assert not (tmp_path / "n.keras").exists()


def test_a_given_vocabulary_is_in_the_config(tmp_path: Path) -> None:
    model_of(layers.StringLookup(vocabulary=WORDS)).save(tmp_path / "m.keras")
    with ArchiveReader(tmp_path / "m.keras") as archive:
        assert not archive.assets
    assert load_model(tmp_path / "m.keras").layers[1].get_vocabulary(False) == WORDS


@pytest.mark.parametrize("damage", ["missing", "repeated", "no number"])
def test_damaged_vocabularies(tmp_path: Path, damage: str) -> None:
    layer = layers.IntegerLookup()
    layer.adapt([1, 2])
    model_of(layer, dtype="int64").save(tmp_path / "m.keras")
    with (
        zipfile.ZipFile(tmp_path / "m.keras") as source,
        zipfile.ZipFile(tmp_path / "d.keras", "w") as target,
    ):
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename.startswith("assets/"):
                if damage == "missing":
                    continue
                data = b"-1\n4\n4" if damage == "repeated" else b"-1\nfour"
            target.writestr(entry, data)
    error = InvalidArgumentError if damage == "repeated" else DataLossError
    with pytest.raises(error):
        load_model(tmp_path / "d.keras")
