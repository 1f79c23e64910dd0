"""Model.summary: the table as one sees it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops, utils
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.utils.summary import format_bytes


def text(model: Any, **options: Any) -> str:
    parts: list[str] = []
    model.summary(print_fn=parts.append, **options)
    (found,) = parts
    return found


def cells(model: Any, **options: Any) -> list[tuple[str, ...]]:
    """The rows of the table, without the header."""
    rows = [line for line in text(model, **options).splitlines() if line.startswith("│")]
    return [tuple(cell.strip() for cell in row.strip("│").split("│")) for row in rows]


def cnn() -> laminar.Sequential:
    return laminar.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(32, 3, name="conv"),
            layers.MaxPooling2D(name="pool"),
            layers.Flatten(name="flat"),
            layers.Dense(10, name="head"),
        ],
        name="cnn",
    )


def test_a_sequential_model() -> None:
    assert text(cnn()) == (
        """\
Model: "cnn"
┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━┓
┃ Layer (type)        ┃ Output Shape       ┃ Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━┩
│ conv (Conv2D)       │ (None, 26, 26, 32) │     320 │
│ pool (MaxPooling2D) │ (None, 13, 13, 32) │       0 │
│ flat (Flatten)      │ (None, 5408)       │       0 │
│ head (Dense)        │ (None, 10)         │  54,090 │
└─────────────────────┴────────────────────┴─────────┘
 Total params: 54,410 (212.54 KB)
 Trainable params: 54,410 (212.54 KB)
 Non-trainable params: 0 (0.00 B)"""
    )


def branches() -> laminar.Model:
    a, b = layers.Input((16,), name="text"), layers.Input((4,), name="numbers")
    joined = layers.Concatenate(name="joined")(
        [layers.Dense(32, name="embed")(a), layers.Dense(8, name="side", trainable=False)(b)]
    )
    score = layers.Dense(1, name="score")(ops.relu(joined))
    return laminar.Model([a, b], [score, joined], name="branches")


def test_branches_and_ops() -> None:
    laminar.utils.clear_session()
    assert cells(branches(), show_trainable=True) == [
        ("text (InputLayer)", "(None, 16)", "0", "-", "-"),
        ("numbers (InputLayer)", "(None, 4)", "0", "-", "-"),
        ("embed (Dense)", "(None, 32)", "544", "text", "yes"),
        ("side (Dense)", "(None, 8)", "40", "numbers", "no"),
        ("joined (Concatenate)", "(None, 40)", "0", "embed, side", "-"),
        ("relu (Relu)", "(None, 40)", "0", "joined", "-"),
        ("score (Dense)", "(None, 1)", "41", "relu", "yes"),
    ]
    assert " Trainable params: 585 (2.29 KB)\n Non-trainable params: 40 (160.00 B)" in text(
        branches()
    )


def test_a_chain_needs_no_connections() -> None:
    x = layers.Input((4,), name="x")
    model = laminar.Model(x, layers.Dense(2, name="y")(x))
    assert cells(model) == [("x (InputLayer)", "(None, 4)", "0"), ("y (Dense)", "(None, 2)", "10")]


def test_a_tensor_used_twice_is_no_chain() -> None:
    x = layers.Input((4,), name="x")
    model = laminar.Model(x, layers.Add(name="twice")([x, x]))
    assert cells(model)[1] == ("twice (Add)", "(None, 4)", "0", "x, x")


def test_shared_layers_name_their_calls() -> None:
    a, b = layers.Input((4,), name="a"), layers.Input((5, 4), name="b")
    tower = layers.Dense(3, name="tower")
    model = laminar.Model([a, b], [tower(a), layers.ReLU(name="after")(tower(b))])
    assert cells(model) == [
        ("a (InputLayer)", "(None, 4)", "0", "-"),
        ("b (InputLayer)", "(None, 5, 4)", "0", "-"),
        ("tower (Dense)", "(None, 3)", "15", "a, b"),
        ("", "(None, 5, 3)", "", ""),
        ("after (ReLU)", "(None, 5, 3)", "0", "tower[1][0]"),
    ]


def nested() -> laminar.Model:
    inner = laminar.Sequential([layers.Input((8,)), layers.Dense(4, name="in")], name="tower")
    x = layers.Input((8,), name="x")
    return laminar.Model(x, layers.Dense(2, name="out")(inner(x)), name="nested")


def test_nested_models() -> None:
    assert cells(nested()) == [
        ("x (InputLayer)", "(None, 8)", "0"),
        ("tower (Sequential)", "(None, 4)", "36"),
        ("out (Dense)", "(None, 2)", "10"),
    ]
    assert [row[0] for row in cells(nested(), expand_nested=True)] == [
        "x (InputLayer)",
        "tower (Sequential)",
        "└ in (Dense)",
        "out (Dense)",
    ]


class Block(layers.Layer):
    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.first = layers.Dense(units, name="first")
        self.drop = layers.Dropout(0.5, name="drop")

    def call(self, x: Any) -> Any:
        return self.drop(self.first(x))


class Subclassed(laminar.Model):
    def __init__(self) -> None:
        super().__init__(name="subclassed")
        self.blocks = [Block(8, name="a"), Block(16, name="b")]
        self.head = layers.Dense(2, name="head")

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        x = inputs
        for block in self.blocks:
            x = block(x)
        return self.head(x)


SUBCLASSED = [
    ("a (Block)", "(None, 8)", "40"),
    ("└ first (Dense)", "(None, 8)", "40"),
    ("└ drop (Dropout)", "(None, 8)", "0"),
    ("b (Block)", "(None, 16)", "144"),
    ("└ first (Dense)", "(None, 16)", "144"),
    ("└ drop (Dropout)", "(None, 16)", "0"),
    ("head (Dense)", "(None, 2)", "34"),
]


def by_call(model: Any) -> None:
    model(np.zeros((5, 4), "float32"))


def by_fit(model: Any) -> None:
    model.compile("sgd", "mse")
    model.fit(np.zeros((5, 4), "float32"), np.zeros((5, 2), "float32"), verbose=0)


@pytest.mark.parametrize("make", [by_call, by_fit, lambda m: m.build((None, 4))])
def test_a_subclassed_model_has_shapes_once_it_is_built(make: Any) -> None:
    model = Subclassed()
    make(model)
    assert cells(model, expand_nested=True) == SUBCLASSED
    assert cells(model) == [row for row in SUBCLASSED if not row[0].startswith("└")]
    assert "Not all layers" not in text(model)


class Picky(layers.Layer):
    """Takes no symbolic inputs."""

    def call(self, x: Any) -> Any:
        return ops.add(x, float(np.asarray(x).sum()))


class Pair(layers.Layer):
    def build(self, a_shape: Any, b_shape: Any) -> None:  # type: ignore[override]  # as Keras has it
        self.kernel = self.add_weight((a_shape[-1], b_shape[-1]))

    def call(self, a: Any, b: Any) -> Any:
        return ops.matmul(a, self.kernel), b


class Odd(laminar.Model):
    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair(name="pair")
        self.picky = Picky(name="picky")

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        return self.picky(self.pair(inputs, b=inputs[:, :2])[0])


def test_several_inputs_and_what_cannot_be_inferred() -> None:
    model = Odd()
    model(np.ones((5, 4), "float32"))
    assert cells(model) == [
        ("pair (Pair)", "[(None, 2), (None, 2)]", "8"),
        ("picky (Picky)", "?", "0"),
    ]


@pytest.mark.parametrize(
    "model", [Subclassed, lambda: laminar.Sequential([layers.Dense(2, name="head")])]
)
def test_a_model_that_is_not_built(model: Any) -> None:
    made = model()
    assert cells(made)[-1] == ("head (Dense)", "?", "not built")
    assert text(made).endswith(
        " Not all layers are built: call the model on data, or build(input_shape)."
    )


def test_the_optimizer_counts_for_itself() -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(1)])
    model.compile("adam", "mse")
    assert "Optimizer" not in text(model)
    model.fit(np.ones((2, 4), "float32"), np.ones((2, 1), "float32"), verbose=0)
    assert " Total params: 5 (20.00 B)\n" in text(model)
    assert re.search(r" Optimizer params: 12 \(\d+\.00 B\)$", text(model))


RANGES = [
    (("pool", "flat"), ["pool", "flat"]),
    (("flat", "pool"), ["pool", "flat"]),
    (("p.*", "head"), ["pool", "flat", "head"]),
    ((".*", ".*"), ["conv", "pool", "flat", "head"]),
]


@pytest.mark.parametrize(("names", "shown"), RANGES)
def test_a_range_of_layers(names: Any, shown: list[str]) -> None:
    assert [row[0].split(" ")[0] for row in cells(cnn(), layer_range=names)] == shown


def test_a_range_takes_what_is_inside() -> None:
    found = cells(nested(), expand_nested=True, layer_range=("x", "tower"))
    assert [row[0] for row in found] == ["x (InputLayer)", "tower (Sequential)", "└ in (Dense)"]


def test_bad_ranges() -> None:
    with pytest.raises(InvalidArgumentError, match="two names of layers"):
        cnn().summary(layer_range=("conv",))
    with pytest.raises(NotFoundError, match="'dense', which is no layer .*\n.*\n.*conv, pool"):
        cnn().summary(layer_range=("conv", "dense"))


def test_names_are_not_broken_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "a_rather_long_name_" * 5
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(1, name=name)])
    model.summary()
    assert f" {name} (Dense) " in capsys.readouterr().out
    model.summary(line_length=60)
    assert max(map(len, capsys.readouterr().out.splitlines())) == 60


def test_markup_in_names_is_text() -> None:
    model = laminar.Sequential([layers.Dense(1, name="[bold]")], name="[red]")
    assert 'Model: "[red]"' in text(model)
    assert cells(model)[0][0] == "[bold] (Dense)"


def test_to_the_log(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    utils.disable_interactive_logging()
    try:
        with caplog.at_level("INFO", "laminar"):
            cnn().summary()
    finally:
        utils.enable_interactive_logging()
    assert capsys.readouterr().out == ""
    assert "Total params: 54,410" in caplog.text


def test_counts_agree_with_keras() -> None:
    keras = pytest.importorskip("keras")

    def totals(room: Any) -> list[str]:
        model = room.Sequential(
            [
                room.layers.Input((40,)),
                room.layers.Dense(300),
                room.layers.BatchNormalization(),
            ]
        )
        return re.findall(r"params: .*", text(model))

    assert totals(laminar) == totals(keras)


SIZES = [
    (0, "0.00 B"),
    (1023, "1023.00 B"),
    (1024, "1.00 KB"),
    (1024**3, "1.00 GB"),
    (1024**5, "1024.00 TB"),
]


@pytest.mark.parametrize(("size", "expected"), SIZES)
def test_bytes(size: int, expected: str) -> None:
    assert format_bytes(size) == expected
