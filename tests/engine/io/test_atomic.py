"""Files are there whole or not at all, and nothing of a save that failed or was killed stays."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import DataLossError, PermissionDeniedError, ResourceExhaustedError
from laminar.engine.io.atomic import atomic_write
from laminar.saving import load_model


def model() -> laminar.Sequential:
    return laminar.Sequential([layers.Input((100,)), layers.Dense(100)])


@contextmanager
def small_files() -> Iterator[None]:
    """No file can have more than 8 kB: the system's own error, in the middle of writing.

    Nor those that Python keeps of modules, which it would cut without a word.
    """
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    keeps_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = keeps_none
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(
    ("name", "save"),
    [
        ("m.keras", lambda m, path: m.save(path)),
        ("m.h5", lambda m, path: m.save(path)),
        ("m.weights.h5", lambda m, path: m.save_weights(path)),
        ("m.weights.json", lambda m, path: m.save_weights(path, max_shard_size=1.0)),
        ("m.export", lambda m, path: m.export(path, verbose=False)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*legacy")
def test_a_full_disk(tmp_path: Path, name: str, save: Callable[[Any, Path], None]) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    with small_files(), pytest.raises(ResourceExhaustedError, match=f"{tmp_path}.*File too large"):
        save(model(), path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, ResourceExhaustedError),
        (errno.EDQUOT, ResourceExhaustedError),
        (errno.EIO, PermissionDeniedError),
    ],
)
def test_errors_of_the_system_are_ours(tmp_path: Path, number: int, kind: type[Exception]) -> None:
    path = tmp_path / "file"
    message = f"{path} cannot be written: {os.strerror(number)}"
    with pytest.raises(kind, match=message), atomic_write(path):
        raise OSError(number, os.strerror(number))
    assert not list(tmp_path.iterdir())


KILLED = """
import os, signal, sys
from laminar.engine.io.atomic import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_save_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    others = {".m.keras.tmp", ".m.keras.0123456789abcdef.tmp.txt", ".n.keras.0123456789abcdef.tmp"}
    for name in others:
        (tmp_path / name).write_bytes(b"of the user")
    killed = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = {file.name for file in tmp_path.iterdir()} - others
    with atomic_write(tmp_path / "another") as file:
        file.write(b"of another path")
    assert (tmp_path / left).read_bytes() == b"half"
    with atomic_write(path) as outer:  # two at once do not remove each other's
        outer.write(b"outer")
        with atomic_write(path) as inner:
            inner.write(b"inner")
        assert path.read_bytes() == b"inner"
    assert path.read_bytes() == b"outer"
    assert {file.name for file in tmp_path.iterdir()} == others | {"m.keras", "another"}


def test_pipes_and_folders_are_no_models(tmp_path: Path) -> None:
    for name in ("m.keras", "m.weights.h5", "m.weights.json"):
        path = tmp_path / name
        os.mkfifo(path)
        with pytest.raises(DataLossError, match=f"{path}: expected a regular file, it is a pipe"):
            model().load_weights(path)
        folder = tmp_path / f"folder.{name}"
        folder.mkdir()
        with pytest.raises(DataLossError, match=f"{folder}: it cannot be read: Is a directory"):
            model().load_weights(folder)
    with pytest.raises(DataLossError, match="expected a regular file, it is a pipe"):
        load_model(tmp_path / "m.keras")
    (tmp_path / "m.keras").unlink()
    made = model()
    made.save(tmp_path / "m.keras")
    x = np.ones((1, 100), "float32")
    again = load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again(x).numpy(), made(x).numpy())
