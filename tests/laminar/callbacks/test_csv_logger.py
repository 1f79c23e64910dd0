"""CSVLogger: the table, row by row."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.callbacks import CSVLogger
from laminar.engine.errors import InvalidArgumentError

from .conftest import FakeModel, Run


def rows(path: Path, separator: str = ",") -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter=separator))


def test_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run" / "log.csv"
    run(CSVLogger(path), [{"loss": 0.5, "acc": 1.0, "val_loss": 2.0}, {"loss": 0.25, "acc": 1.0}])
    assert rows(path) == [
        ["epoch", "acc", "loss", "val_loss"],
        ["0", "1.0", "0.5", "2.0"],
        ["1", "1.0", "0.25", "NA"],
    ]


def test_columns_for_a_validation_that_comes_later(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    run(CSVLogger(path, separator="\t"), [{"loss": 1}, {"loss": 2, "val_loss": 3}])
    assert rows(path, "\t") == [["epoch", "loss", "val_loss"], ["0", "1", "NA"], ["1", "2", "3"]]


def test_replaces_or_appends(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    run(CSVLogger(path), [{"loss": 1, "val_loss": 1}])
    run(CSVLogger(path), [{"loss": 2, "val_loss": 2}])
    run(CSVLogger(path, append=True), [{"loss": 3, "val_loss": 3}])
    assert [r[1] for r in rows(path)] == ["loss", "2", "3"]


def test_appending_keeps_to_the_header(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    run(CSVLogger(path), [{"loss": 1, "val_loss": 1}])
    with pytest.warns(UserWarning, match=r"log.csv has no columns for acc"):
        run(CSVLogger(path, append=True), [{"acc": 9, "val_loss": 3, "loss": 2}])
    assert rows(path)[2] == ["0", "2", "3"]


def test_appending_to_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    run(CSVLogger(path, append=True), [{"loss": 1}])
    assert rows(path) == [["epoch", "loss", "val_loss"], ["0", "1", "NA"]]


def test_agrees_with_keras(run: Run, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    epochs: list[dict[str, Any]] = [
        {"loss": 0.1, "acc": np.float32(0.5), "per_class": np.array([0.5, 1.0]), "name": "a,b"},
        {"loss": 1e-9, "val_loss": 3.5},
    ]
    for options in ({}, {"append": True}, {"separator": ";"}):
        names = [tmp_path / "ours.csv", tmp_path / "theirs.csv"]
        run(CSVLogger(names[0], **options), epochs)
        theirs = keras.callbacks.CSVLogger(str(names[1]), **options)
        theirs.set_model(FakeModel())
        theirs.on_train_begin()
        for epoch, logs in enumerate(epochs):
            theirs.on_epoch_end(epoch, logs)
        theirs.on_train_end()
        assert names[0].read_bytes() == names[1].read_bytes()


def test_each_epoch_is_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    logger = CSVLogger(path)
    logger.on_train_begin()
    logger.on_epoch_end(0, {"loss": 1})
    assert len(rows(path)) == 2
    logger.on_train_end()


@pytest.mark.parametrize("separator", ["", "ab", None])
def test_bad_separator(separator: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="separator must be one character"):
        CSVLogger("log.csv", separator=separator)


def test_in_fit(tmp_path: Path) -> None:
    x = np.ones((4, 2), "float32")
    model = laminar.Sequential([layers.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    path = tmp_path / "log.csv"
    history = model.fit(
        x, x[:, :1], epochs=2, validation_data=(x, x[:, :1]), callbacks=CSVLogger(path), verbose=0
    )
    header, *values = rows(path)
    assert header == ["epoch", *sorted(history.history)]
    for name, column in zip(header[1:], list(zip(*values, strict=True))[1:], strict=True):
        assert [float(v) for v in column] == history.history[name]
