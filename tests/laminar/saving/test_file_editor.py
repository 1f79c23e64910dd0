"""Looking at the weights of a file, and changing them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]  # it ships no types
import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
)
from laminar.saving import KerasFileEditor


def chain(*names: str) -> laminar.Model:
    x = first = layers.Input((2,))
    for name in names:
        x = layers.Dense(3, name=name)(x)
    return laminar.Model(first, x)


def test_weights_of_one_model_for_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = chain("a", "b"), chain("a", "new", "b")
    source.save(tmp_path / "m.keras")
    editor = KerasFileEditor(tmp_path / "m.keras")
    assert editor.config is not None
    assert editor.compare(source)["status"] == "success"
    editor.summary()
    assert "layers/dense_1  0       (3, 3)  float32" in capsys.readouterr().out
    # A dense layer has the number of its place: what was the second one is the third one now.
    assert editor.compare(target) == {"status": "error", "error_count": 1, "match_count": 4}
    editor.rename_object("layers/dense_1", "dense_2")
    editor.add_object("layers/dense_3", {"0": np.eye(3)})
    editor.rename_object("dense_3", "dense_1")
    assert editor.compare(target)["error_count"] == 1
    editor.add_weights("dense_1", {"1": np.zeros(3)})
    assert editor.compare(target) == {"status": "success", "error_count": 0, "match_count": 6}
    editor.save(tmp_path / "changed.weights.h5")
    target.load_weights(tmp_path / "changed.weights.h5")
    x = np.array([[1.0, 2.0]], "float32")
    np.testing.assert_allclose(target(x), source(x), rtol=1e-6)


def test_taking_things_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = chain("a")
    model.save_weights(tmp_path / "m.weights.h5")
    editor = KerasFileEditor(tmp_path / "m.weights.h5")
    assert editor.config is editor.metadata is None
    np.testing.assert_array_equal(
        editor.weights_dict["layers"]["dense"]["0"], model.layers[1].get_weights()[0]
    )
    editor.delete_weight("dense", "1")
    assert editor.compare(model) == {"status": "error", "error_count": 1, "match_count": 1}
    editor.add_weights("dense", {"1": np.zeros(7)})
    editor.compare(model)
    assert "layers/dense/1: shape (7,) in the file, shape (3,) in the model" in (
        capsys.readouterr().out
    )
    editor.delete_object("layers/dense")
    assert editor.compare(model)["error_count"] == 1


def test_mistakes(tmp_path: Path) -> None:
    chain("a", "b").save_weights(tmp_path / "m.weights.h5")
    editor = KerasFileEditor(tmp_path / "m.weights.h5")
    with pytest.raises(NotFoundError, match="0 objects are named 'c'"):
        editor.delete_object("c")
    with pytest.raises(NotFoundError, match="no object 'layers/c'"):
        editor.delete_object("layers/c")
    editor.add_object("others/dense", {"0": np.ones(1)})
    with pytest.raises(NotFoundError, match="2 objects are named 'dense'"):
        editor.rename_object("dense", "c")
    with pytest.raises(AlreadyExistsError, match="'dense_1' is there already"):
        editor.rename_object("layers/dense", "dense_1")
    with pytest.raises(AlreadyExistsError, match="'0' is there already"):
        editor.add_weights("dense_1", {"0": np.ones(1)})
    with pytest.raises(NotFoundError, match="no weight '9'"):
        editor.delete_weight("dense_1", "9")
    with pytest.raises(InvalidArgumentError, match="not a path"):
        editor.rename_object("dense_1", "a/b")
    for name in ("m.h5", "m.npz"):
        with pytest.raises(InvalidArgumentError, match=r"must end in .keras or .weights.h5"):
            KerasFileEditor(tmp_path / name)
    with pytest.raises(InvalidArgumentError, match=r"must end in .weights.h5"):
        editor.save(tmp_path / "m.keras")


@pytest.mark.parametrize("link", [h5py.ExternalLink("m.weights.h5", "/layers"), h5py.SoftLink("/")])
def test_files_that_refer_elsewhere(tmp_path: Path, link: Any) -> None:
    with h5py.File(tmp_path / "bad.weights.h5", "w") as file:
        file["layers"] = link
    with pytest.raises(DataLossError):
        KerasFileEditor(tmp_path / "bad.weights.h5")
