"""plot_model: what the description says, and what is drawn of it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from laminar import layers, utils
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    MissingFileError,
)
from laminar.models import Model, Sequential


def nested() -> Model:
    utils.clear_session()  # operations are numbered from the start
    """Two branches, one through a nested model, that are joined."""
    inner = Sequential(
        [layers.Input((4,), name="begin"), layers.Dense(3, "relu", name="end")], name="inner"
    )
    x = layers.Input((4,), name="x")
    y = layers.Add(name="sum")([inner(x), layers.Dense(3, name="direct")(x)])
    return Model(x, y * 2.0, name="whole")


def boxes(text: str) -> dict[str, str]:
    """The labels, by the names of boxes without their numbers."""
    found = re.findall(r'^\s*"(\w+?)_\d+" \[label=<(.*)>\];$', text, re.MULTILINE)
    return dict(found)


def arrows(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r'"(\w+?)_\d+" -> "(\w+?)_\d+"', text))


def test_boxes_and_arrows() -> None:
    text = utils.model_to_dot(nested()).to_string()
    assert set(boxes(text)) == {"x", "inner", "direct", "sum", "multiply"}
    assert arrows(text) == {
        ("x", "inner"),
        ("x", "direct"),
        ("inner", "sum"),
        ("direct", "sum"),
        ("sum", "multiply"),
    }
    assert text.startswith("digraph {")
    assert "rankdir=TB" in text


def test_nested_models_are_opened() -> None:
    text = str(utils.model_to_dot(nested(), expand_nested=True))
    assert {"begin", "end"} <= set(boxes(text))
    assert "inner" not in boxes(text)
    assert {("x", "begin"), ("begin", "end"), ("end", "sum")} <= arrows(text)
    assert 'label="inner"' in text


def test_what_boxes_show() -> None:
    model = nested()
    model.layers[1].trainable = False
    plain = boxes(str(utils.model_to_dot(model, show_layer_names=False)))
    assert ">Dense<" in plain["direct"]
    assert "(None" not in plain["direct"]
    label = boxes(
        str(
            utils.model_to_dot(
                model,
                show_shapes=True,
                show_dtype=True,
                show_layer_activations=True,
                show_trainable=True,
            )
        )
    )
    for part in ("<b>direct</b> (Dense)", "in: (None, 4)", "out: (None, 3)", "dtype: float32"):
        assert part in label["direct"]
    assert "activation: linear" in label["direct"]
    assert "trained" in label["direct"]
    assert "frozen" in label["inner"]


def test_names_cannot_break_out_of_their_boxes() -> None:
    model = Sequential([layers.Input((2,)), layers.Dense(1, name='a"<b>\\')])
    text = str(utils.model_to_dot(model))
    assert "a&quot;&lt;b&gt;" in text
    assert 'a\\"<b>\\\\' in text


def test_models_without_a_network_are_lists_of_their_layers() -> None:
    class Own(Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = layers.Dense(2, name="one"), layers.Dense(2, name="two")

        def call(self, x: Any) -> Any:
            return self.second(self.first(x))

    model = Own()
    with pytest.raises(InvalidArgumentError, match="not built"):
        utils.model_to_dot(model)
    model.build((None, 3))
    assert set(boxes(str(utils.model_to_dot(model)))) == {"one", "two"}


def test_the_description_needs_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    utils.plot_model(nested(), tmp_path / "model.dot")
    assert (tmp_path / "model.dot").read_text().startswith("digraph")
    with pytest.raises(FailedPreconditionError, match="`dot` of Graphviz") as caught:
        utils.plot_model(nested(), tmp_path / "model.png")
    assert "model.dot" in str(caught.value)
    assert not (tmp_path / "model.png").exists()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize(("name", "begin"), [("m.png", b"\x89PNG"), ("m.svg", b"<?xml")])
def test_pictures(tmp_path: Path, name: str, begin: bytes) -> None:
    utils.plot_model(nested(), tmp_path / name, show_shapes=True, expand_nested=True)
    assert (tmp_path / name).read_bytes().startswith(begin)
    with pytest.raises(FailedPreconditionError, match="failed"):
        utils.model_to_dot(nested()).create("no_such_format")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no folder .*none' to write 'm.svg' to"):
        utils.plot_model(nested(), tmp_path / "none" / "m.svg")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: utils.model_to_dot(3), "expected a model"),
        (lambda: utils.model_to_dot(nested(), rankdir="up"), "rankdir must be one of"),
        (lambda: utils.model_to_dot(nested(), size=3), "unknown arguments size"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()
