"""ModelCheckpoint: what is saved, when, and under which name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.callbacks import ModelCheckpoint
from laminar.engine.errors import InvalidArgumentError, NotFoundError

from .conftest import FakeModel, Run, Screen


def losses(*values: float) -> list[dict[str, Any]]:
    return [{"loss": v, "val_loss": v + 0.5} for v in values]


NAMES = [
    ("m.keras", {}, ["m.keras"] * 3),
    ("{epoch:02d}.keras", {}, ["01.keras", "02.keras", "03.keras"]),
    ("e{epoch}-{val_loss:.2f}.keras", {}, ["e1-3.50.keras", "e2-1.50.keras", "e3-2.50.keras"]),
    ("{epoch}.keras", {"save_best_only": True}, ["1.keras", "2.keras"]),
    ("{epoch}.keras", {"save_best_only": True, "mode": "max"}, ["1.keras"]),
    (
        "{epoch}.keras",
        {"save_best_only": True, "initial_value_threshold": 2.0},
        ["2.keras"],
    ),
    ("{epoch}.weights.h5", {"save_weights_only": True}, [f"{i}.weights.h5" for i in (1, 2, 3)]),
]


@pytest.mark.parametrize(("name", "options", "saved"), NAMES)
def test_saves(
    run: Run, tmp_path: Path, name: str, options: dict[str, Any], saved: list[str]
) -> None:
    model = run(ModelCheckpoint(tmp_path / name, **options), losses(3, 1, 2))
    assert model.saved == [str(tmp_path / n) for n in saved]


FREQUENCIES = [
    # 5 batches in each of 2 epochs
    ("{epoch}-{batch}", 2, ["1-2", "1-4", "2-1", "2-3", "2-5"]),
    ("{epoch}-{batch}", 5, ["1-5", "2-5"]),
    ("{epoch}-{batch}", 7, ["2-2"]),
    ("{epoch}-{batch}", 11, []),
]


@pytest.mark.parametrize(("name", "frequency", "saved"), FREQUENCIES)
def test_saves_after_batches(
    run: Run, tmp_path: Path, name: str, frequency: int, saved: list[str]
) -> None:
    checkpoint = ModelCheckpoint(tmp_path / f"{name}.keras", save_freq=frequency)
    model = run(checkpoint, losses(3, 1), batches=5)
    assert [Path(p).stem for p in model.saved] == saved


def test_batches_told_together(tmp_path: Path) -> None:
    checkpoint = ModelCheckpoint(tmp_path / "{epoch}-{batch}.keras", save_freq=4)
    model = FakeModel()
    checkpoint.set_model(model)
    for epoch in (0, 1):
        checkpoint.on_epoch_begin(epoch)
        for batch in (2, 5, 8):  # three at a time
            checkpoint.on_train_batch_end(batch, {"loss": 1.0})
    assert [Path(p).stem for p in model.saved] == ["1-6", "2-3", "2-9"]


def test_best_after_batches(run: Run, tmp_path: Path) -> None:
    checkpoint = ModelCheckpoint(
        tmp_path / "{epoch}-{batch}.keras", "loss", save_best_only=True, save_freq=1
    )
    model = run(checkpoint, losses(3, 4, 2), batches=2)
    assert [Path(p).stem for p in model.saved] == ["1-1", "3-1"]


def test_the_best_stays_from_one_fit_to_the_next(run: Run, tmp_path: Path) -> None:
    checkpoint = ModelCheckpoint(tmp_path / "{epoch}.keras", save_best_only=True)
    run(checkpoint, losses(1))
    assert run(checkpoint, losses(2, 0)).saved[1:] == [str(tmp_path / "2.keras")]


def test_agrees_with_keras(run: Run, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    rng = np.random.default_rng(0)
    for _ in range(40):
        options: dict[str, Any] = {
            "filepath": str(tmp_path / "{epoch}-{loss:.1f}.keras"),
            "monitor": "loss",
            "mode": str(rng.choice(["min", "max"])),
            "save_best_only": bool(rng.integers(2)),
            "initial_value_threshold": [None, 2.0][rng.integers(2)],
        }
        epochs = [{"loss": float(v)} for v in rng.integers(0, 5, 8)]
        theirs = keras.callbacks.ModelCheckpoint(**options)
        model = FakeModel()
        theirs.set_model(model)
        for epoch, logs in enumerate(epochs):
            theirs.on_epoch_begin(epoch)
            theirs.on_epoch_end(epoch, logs)
        assert run(ModelCheckpoint(**options), epochs).saved == model.saved, options


def test_messages(run: Run, tmp_path: Path, log_file: Screen) -> None:
    path = tmp_path / "m.keras"
    run(ModelCheckpoint(path, save_best_only=True, verbose=1), losses(1, 2, 0.25))
    run(ModelCheckpoint(path, verbose=1), losses(1))
    assert log_file.lines == [
        f"Epoch 1: val_loss improved from None to 1.50000, saving model to {path}",
        f"Epoch 1: finished saving model to {path}",
        "Epoch 2: val_loss did not improve from 1.50000",
        f"Epoch 3: val_loss improved from 1.50000 to 0.75000, saving model to {path}",
        f"Epoch 3: finished saving model to {path}",
        f"Epoch 1: saving model to {path}",
        f"Epoch 1: finished saving model to {path}",
    ]


def test_a_value_that_is_no_number_saves_each_model(run: Run, tmp_path: Path) -> None:
    checkpoint = ModelCheckpoint(tmp_path / "m.keras", "acc", save_best_only=True)
    with pytest.warns(UserWarning, match="'acc' is not one number"):
        model = run(checkpoint, [{"acc": np.array([1.0, 2.0])}])
    assert len(model.saved) == 1


def test_a_missing_value_saves_each_model(run: Run, tmp_path: Path) -> None:
    checkpoint = ModelCheckpoint(tmp_path / "m.keras", save_best_only=True)
    with pytest.warns(UserWarning, match="available are loss"):
        model = run(checkpoint, [{"loss": 1.0}, {"loss": 2.0}])
    assert len(model.saved) == 2


BAD = [
    ({"filepath": "m"}, "must end in .keras, got 'm'\n.*\n.*name it 'model.keras'"),
    ({"filepath": "m.h5"}, "must end in .keras"),
    ({"filepath": "m.weights.h5"}, "try: pass save_weights_only=True"),
    ({"filepath": "m.keras", "save_weights_only": True}, "must end in .weights.h5"),
    ({"filepath": "m.keras", "save_freq": "batch"}, "save_freq must be 'epoch' or a number"),
    ({"filepath": "m.keras", "save_freq": 0}, "save_freq must be a whole number of at least 1"),
    ({"filepath": "m.keras", "mode": "auto "}, "mode must be"),
    ({"filepath": "m.keras", "initial_value_threshold": "1"}, "must be a number"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ModelCheckpoint(**options)


BAD_NAMES = [
    ("{val_acc}.keras", NotFoundError, "names 'val_acc', which is not among the values epoch, "),
    ("{batch}.keras", NotFoundError, "names 'batch'"),
    ("{epoch:.x}.keras", InvalidArgumentError, "cannot be filled in"),
    ("{}.keras", InvalidArgumentError, "cannot be filled in"),
    ("{loss.x}.keras", InvalidArgumentError, "cannot be filled in"),
]


@pytest.mark.parametrize(("name", "error", "message"), BAD_NAMES)
def test_names_that_cannot_be_filled_in(
    run: Run, name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(ModelCheckpoint(name), losses(1))


def test_a_folder_is_no_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.keras").mkdir()
    with pytest.raises(InvalidArgumentError, match="is a folder"):
        run(ModelCheckpoint(tmp_path / "m.keras"), losses(1))


@pytest.mark.parametrize("weights_only", [False, True])
def test_the_best_model_can_be_loaded(tmp_path: Path, weights_only: bool) -> None:
    x = np.linspace(-1, 1, 16, dtype="float32")[:, None]
    model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    path = tmp_path / "deep" / ("best.weights.h5" if weights_only else "best.keras")
    checkpoint = ModelCheckpoint(path, "loss", save_best_only=True, save_weights_only=weights_only)
    model.fit(x, 3 * x, epochs=3, callbacks=checkpoint, verbose=0)
    saved = model.predict(x, verbose=0)
    if weights_only:
        model.set_weights([np.zeros_like(w) for w in model.get_weights()])
        model.load_weights(path)
        loaded = model
    else:
        loaded = laminar.models.load_model(path)
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), saved)
