"""TextVectorization."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import layers
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.models import Model, Sequential
from laminar.ops import convert_to_tensor
from laminar.saving import load_model, register_keras_serializable
from laminar.saving.archive import ArchiveReader

TEXTS = ["foo bar", "bar baz", "baz bada boom"]


def tokens_of(text: Any, **kwargs: Any) -> list[str]:
    """The tokens that the layer makes of a text, in the order of their indices."""
    layer = layers.TextVectorization(**kwargs)
    layer.adapt([text])
    return sorted(layer.get_vocabulary(False))


def check_everywhere(layer: Any, x: Any) -> Any:
    """Eagerly, in a trace for any batch and in a model, on lists and arrays: the same value."""
    value = layer(x).numpy()
    array = np.array(x, object)
    spec = TensorSpec((None, *array.shape[1:]), "string")
    traced = function(lambda t: layer(t), input_signature=[spec])
    np.testing.assert_array_equal(traced(convert_to_tensor(array)).numpy(), value)
    symbol = layers.Input(array.shape[1:], dtype="string")
    model = Model(symbol, layer(symbol))
    np.testing.assert_array_equal(model.predict(array, verbose=0), value)
    np.testing.assert_array_equal(layer(np.array(x)).numpy(), value)
    assert model.output.dtype == str(value.dtype)
    return value


def test_the_example_of_keras() -> None:
    layer = layers.TextVectorization(max_tokens=5000, output_sequence_length=4)
    layer.adapt(TEXTS)
    assert layer.get_vocabulary() == ["", "[UNK]", "baz", "bar", "foo", "boom", "bada"]
    value = check_everywhere(layer, [["foo qux bar"], ["qux baz"]])
    assert value.tolist() == [[4, 1, 3, 0], [1, 2, 0, 0]]
    assert layer(layers.Input((1,), dtype="string")).shape == (None, 4)
    given = layers.TextVectorization(vocabulary=["earth", "wind", "and", "fire"])
    assert given(["fire, and the Earth"]).numpy().tolist() == [[5, 4, 1, 2]]
    assert given.get_vocabulary() == ["", "[UNK]", "earth", "wind", "and", "fire"]


@pytest.mark.parametrize(("length", "width"), [(None, 3), (0, 0), (2, 2), (5, 5)])
def test_lengths(length: int | None, width: int) -> None:
    layer = layers.TextVectorization(output_sequence_length=length, vocabulary=["a", "b", "c"])
    rows = [[2, 3, 4, 0, 0], [4, 0, 0, 0, 0], [0] * 5]
    x = ["a b c", "c", ""]
    assert check_everywhere(layer, x).tolist() == [row[:width] for row in rows]
    assert layer(np.zeros(0, object)).shape == (0, length or 0)
    assert layer("b").numpy().tolist() == [3, 0, 0, 0, 0][: 1 if length is None else length]


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, ["dont", "hi", "Ä"]),
        ({"standardize": "lower"}, ["(hi)", "don't", "Ä!"]),
        ({"standardize": "strip_punctuation"}, ["Dont", "Hi", "Ä"]),
        ({"standardize": None}, ["(Hi)", "Don't", "Ä!"]),
        ({"standardize": lambda x: np.char.upper(x)}, ["(HI)", "DON'T", "Ä!"]),
        ({"standardize": None, "split": None}, [" (Hi)\tDon't\n Ä! "]),
        ({"standardize": None, "split": lambda x: [t.split("D") for t in x]}, None),
        ({"split": "character"}, [*"\t\n dhinotÄ"]),
        ({"ngrams": 2}, ["dont", "dont Ä", "hi", "hi dont", "Ä"]),
        ({"ngrams": (3,)}, ["hi dont Ä"]),
    ],
)
def test_tokens(kwargs: dict[str, Any], expected: list[str] | None) -> None:
    text = " (Hi)\tDon't\n Ä! "
    wanted = expected or [" (Hi)\t", "on't\n Ä! "]
    assert tokens_of(text, **kwargs) == sorted(wanted)


def test_all_ascii_punctuation_goes() -> None:
    text = "".join(map(chr, range(33, 127)))
    assert tokens_of(text) == ["".join(c for c in text.lower() if c.isalnum())]


MODES: list[Any] = [
    ("multi_hot", [[0, 1, 1, 1], [1, 0, 1, 0]]),
    ("count", [[0, 2, 1, 1], [2, 0, 1, 0]]),
    ("tf_idf", [[0, 20, 30, 40], [20, 0, 30, 0]]),
]


@pytest.mark.parametrize(("mode", "expected"), MODES)
@pytest.mark.parametrize("padded", [False, True])
def test_vectors(mode: str, expected: list[list[int]], padded: bool) -> None:
    options: dict[str, Any] = {"max_tokens": 6, "pad_to_max_tokens": True} if padded else {}
    layer = layers.TextVectorization(output_mode=mode, **options)
    idf = [10, 10, 30, 40] if mode == "tf_idf" else None
    vocabulary = ["[UNK]", "a", "b", "c"]
    layer.set_vocabulary(vocabulary, idf)
    value = check_everywhere(layer, [["a a b c"], ["x b y"]])
    np.testing.assert_array_equal(value, np.pad(expected, ((0, 0), (0, 2 * padded))))
    assert layer.get_vocabulary() == vocabulary
    depth = 6 if padded else 4
    assert layer(layers.Input((1,), dtype="string")).shape == (None, depth)


def test_ngrams_of_short_texts_are_not_padded() -> None:
    layer = layers.TextVectorization(ngrams=2, output_mode="count")
    layer.adapt(["a b", "c"])
    assert layer.get_vocabulary() == ["[UNK]", "c", "b", "a b", "a"]
    assert check_everywhere(layer, ["c", "a b c"]).tolist() == [[0, 1, 0, 0, 0], [1, 1, 1, 1, 1]]


def test_tokens_that_are_given() -> None:
    layer = layers.TextVectorization(split=None, ngrams=(1, 2), vocabulary=["a", "b", "a b"])
    value = check_everywhere(layer, [["A!", "b"], ["b", "a"]])
    assert value.tolist() == [[2, 3, 4], [3, 2, 1]]


@pytest.mark.parametrize("form", ["list", "column", "array", "batches"])
def test_adapt(form: str) -> None:
    source = np.random.default_rng(0)
    texts = [" ".join(source.choice([*"abcdefgh"], n)) for n in source.integers(0, 9, 3000)]
    data: Any = {
        "list": texts,
        "column": np.array(texts)[:, None],
        "array": np.array([t.encode() for t in texts], object),
        "batches": (np.array(texts[i : i + 100]) for i in range(0, 4000, 100)),
    }[form]
    layer = layers.TextVectorization(output_mode="tf_idf")
    layer.adapt(data, steps=30)
    words = " ".join(texts).split()
    ranked = sorted(set(words), key=lambda w: (words.count(w), w), reverse=True)
    assert layer.get_vocabulary() == ["[UNK]", *ranked]
    having = [sum(w in t.split() for t in texts) for w in ranked]
    idf = [math.log(1 + 3000 / (1 + n)) for n in having]
    found = layer([" ".join(ranked), "unheard"]).numpy()
    np.testing.assert_allclose(found[0, 1:], idf, rtol=1e-5)
    np.testing.assert_allclose(found[1, 0], np.mean(idf), rtol=1e-5)


def test_a_classifier_of_raw_text_learns() -> None:
    texts = np.array(["good fine day", "bad awful day", "fine", "awful bad"] * 8)
    labels = np.array([1, 0, 1, 0] * 8)
    vectors = layers.TextVectorization(output_sequence_length=4)
    vectors.adapt(texts)
    model = Sequential(
        [
            layers.Input((), dtype="string"),
            vectors,
            layers.Embedding(vectors.vocabulary_size(), 4, mask_zero=True),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    model.optimizer.learning_rate = 0.1
    history = model.fit(texts, labels, epochs=8, verbose=0).history
    assert history["accuracy"][-1] == 1


# Files


def test_config() -> None:
    layer = layers.TextVectorization(ngrams=(1, 2), output_mode="tf-idf", name="t")
    config = json.loads(json.dumps(layers.serialize(layer)))["config"]
    policy = config.pop("dtype")
    assert policy["config"] == {"name": "float32"}
    assert config == {
        "name": "t",
        "trainable": True,
        "max_tokens": None,
        "standardize": "lower_and_strip_punctuation",
        "split": "whitespace",
        "ngrams": [1, 2],
        "output_mode": "tf_idf",
        "output_sequence_length": None,
        "pad_to_max_tokens": False,
        "sparse": False,
        "ragged": False,
        "vocabulary": None,
        "idf_weights": None,
        "encoding": "utf-8",
        "vocabulary_size": None,
    }
    copy = layers.TextVectorization.from_config(layer.get_config())
    copy.adapt(TEXTS)
    assert {"bar", "bar baz"} < set(copy.get_vocabulary())


def test_saved_with_vocabulary_and_functions(tmp_path: Path) -> None:
    @register_keras_serializable("tests")
    def shout(x: Any) -> Any:
        return np.char.upper(x)

    @register_keras_serializable("tests")
    def at_commas(x: Any) -> Any:
        return [t.split(",") for t in x]

    layer = layers.TextVectorization(standardize=shout, split=at_commas, output_mode="tf_idf")
    layer.adapt(["a,b", "b,c"])
    x = layers.Input((), dtype="string")
    model = Model(x, layer(x))
    model.save(tmp_path / "m.keras")
    with ArchiveReader(tmp_path / "m.keras") as archive:
        text = archive.asset("layers/text_vectorization/vocabulary.txt")
    assert text.decode().split("\n") == ["[UNK]", "B", "C", "A"] == layer.get_vocabulary()
    again = load_model(tmp_path / "m.keras")
    data = np.array(["a,b,b", "q"], object)
    np.testing.assert_array_equal(again(data).numpy(), model(data).numpy())
    model.save_weights(tmp_path / "m.weights.h5")
    again.layers[1].set_vocabulary(["B", "C", "A"], [1.0, 1.0, 1.0])
    assert again(data).numpy().max() == 2
    again.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_array_equal(again(data).numpy(), model(data).numpy())


def test_a_config_reads_no_file() -> None:
    config = layers.TextVectorization().get_config() | {"vocabulary": "/etc/hostname"}
    with pytest.raises(InvalidArgumentError, match="not read"):
        layers.TextVectorization.from_config(config)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"standardize": "upper"},
        {"split": "line"},
        {"ngrams": "two"},
        {"ngrams": (0,)},
        {"output_mode": "hot"},
        {"output_mode": "count", "output_sequence_length": 3},
        {"output_sequence_length": 1.5},
        {"ragged": True},
        {"sparse": True, "output_mode": "count"},
    ],
)
def test_options_that_are_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        layers.TextVectorization(**kwargs)


def test_inputs_that_are_refused() -> None:
    layer = layers.TextVectorization(vocabulary=["a"])
    with pytest.raises(ShapeError, match=r"\(batch, 1\)"):
        layer([["a", "b"]])
    with pytest.raises(InvalidArgumentError, match="strings"):
        layer([1, 2])
    with pytest.raises(ShapeError, match="gave an array"):
        layers.TextVectorization(standardize=lambda x: x[:1], vocabulary=["a"])(["a", "b"])
