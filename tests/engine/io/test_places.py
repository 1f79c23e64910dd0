"""Folders that cannot be made: laminar's own error, whoever wanted to write there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import laminar
from laminar import engine
from laminar.engine.errors import PermissionDeniedError
from laminar.engine.training import MonitoredTrainingSession


def monitored(folder: Path) -> None:
    with engine.Graph().as_default():
        engine.create_global_step()
        MonitoredTrainingSession(checkpoint_dir=folder)


def saved(folder: Path) -> None:
    with engine.Graph().as_default():
        engine.Checkpoint(v=engine.Variable([1.0], name="v")).write(folder / "saved")


def drawn(folder: Path) -> None:
    model = laminar.Sequential([laminar.layers.Input((1,)), laminar.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit([[1.0]], [[1.0]], callbacks=[laminar.callbacks.TensorBoard(folder)], verbose=0)


@pytest.mark.parametrize("write", [engine.summary.FileWriter, monitored, saved, drawn])
def test_a_file_is_where_the_folder_should_be(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(PermissionDeniedError, match=f"{tmp_path}/taken") as caught:
        write(tmp_path / "taken" / "logs")
    assert "choose a place" in str(caught.value)
    assert (tmp_path / "taken").read_text() == "mine"
