"""Folders that cannot be made: laminar's own error, whoever wanted to write there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import laminar
from laminar import engine, export, layers, models, saving
from laminar.engine.closing import open_regular
from laminar.engine.errors import DataLossError, PermissionDeniedError, ResourceExhaustedError
from laminar.engine.training import MonitoredTrainingSession
from laminar.utils import load_img


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


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """Wherever a file is read whose name a user, or another file, gives."""
    for name in ("pipe", "c.index", "checkpoint", "events.out.tfevents.1"):
        os.mkfifo(tmp_path / name)
    readers: list[Callable[[], Any]] = [
        lambda: engine.import_meta_graph(tmp_path / "pipe"),
        lambda: list(engine.read_records(tmp_path / "pipe")),
        lambda: list(engine.summary.read_events(tmp_path / "events.out.tfevents.1")),
        lambda: engine.load_checkpoint(tmp_path / "c"),
        lambda: engine.latest_checkpoint(tmp_path),
        lambda: load_img(tmp_path / "pipe"),
    ]
    for read in readers:
        with pytest.raises(DataLossError, match="pipe"):
            read()
    with pytest.raises(DataLossError, match="pipe"):
        open_regular(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
def test_records_for_a_full_disk() -> None:
    writer = engine.RecordWriter("/dev/full")
    with pytest.raises(ResourceExhaustedError, match="No space left"):
        writer.write(bytes(1 << 22))
    with pytest.raises(ResourceExhaustedError, match="No space left"):
        writer.close()
    writer.close()


def test_paths_may_begin_with_file(tmp_path: Path) -> None:
    """As in TensorFlow, in whatever reads or writes files."""
    place = f"file://{tmp_path}"
    v = engine.Variable(1.0)
    checkpoint = engine.Checkpoint(v=v)
    path = checkpoint.save(f"{place}/new/c")
    assert path == f"{tmp_path}/new/c-1" == engine.latest_checkpoint(f"{place}/new")
    v.assign(5.0)
    checkpoint.restore(f"{place}/new/c-1")
    assert float(v) == 1.0
    with engine.Graph().as_default(), engine.Session() as session:
        w = engine.Variable(2.0, name="w")
        session.run(w.initializer)
        saver = engine.Saver([w])
        saver.restore(session, saver.save(session, f"{place}/m"))
    assert engine.load_variable(f"{place}/m", "w") == 2.0
    with engine.RecordWriter(f"{place}/r.records") as writer:
        writer.write(b"one")
    assert list(engine.read_records(f"{place}/r.records")) == [b"one"]
    assert bytes(engine.read_file(f"{place}/r.records").numpy()[()])[-7:-4] == b"one"
    found = engine.matching_files(f"{place}/*.records").numpy().tolist()
    assert found == [f"{tmp_path}/r.records".encode()]
    engine.summary.FileWriter(f"{place}/logs").close()
    model = models.Sequential([layers.Input((2,)), layers.Dense(1)])
    model.save(f"{place}/m.keras")
    model.export(f"{place}/m.laminar", verbose=False)
    export.load(f"{place}/m.laminar")
    saving.load_model(f"{place}/m.keras")
    assert {"m.keras", "m.laminar", "logs", "new"} <= {p.name for p in tmp_path.iterdir()}
    assert not Path("file:").exists()
