from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laminar import engine
from laminar.engine.errors import InvalidArgumentError, MissingFileError


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for i in range(5):
        with engine.RecordWriter(tmp_path / f"part.{i}") as writer:
            for j in range(7):
                writer.write(f"{i}-{j}".encode())
    return str(tmp_path / "part.*")


ALL = {f"{i}-{j}".encode() for i in range(5) for j in range(7)}


def run(make: Any, steps: int) -> list[Any]:
    with engine.Graph().as_default(), engine.Session() as session:
        op = make().get_yield_op()
        return [session.run(op) for _ in range(steps)]


@pytest.mark.parametrize("buffer_size", [1, 10, 1000])
def test_each_record_comes_once_in_an_epoch(pattern: str, buffer_size: int) -> None:
    def make() -> engine.RecordInput:
        return engine.RecordInput(pattern, 5, buffer_size, shift_ratio=0.4, seed=3)

    found = [r for batch in run(make, 14) for r in batch.tolist()]
    epochs = [found[:35], found[35:]]
    assert [set(e) for e in epochs] == [ALL, ALL]
    assert epochs[0] != epochs[1]
    assert found == [r for batch in run(make, 14) for r in batch.tolist()]


def test_lists_of_scalars(pattern: str) -> None:
    (batch,) = run(lambda: engine.RecordInput(pattern, 3, 10, batches=2), 1)
    assert [len(part) for part in batch] == [3, 3]
    assert len({r for part in batch for r in part} & ALL) == 6


def test_compressed(tmp_path: Path) -> None:
    for kind, number in (("ZLIB", 1), ("GZIP", 2)):
        with engine.RecordWriter(tmp_path / kind, kind) as writer:
            writer.write(kind.encode())
        for given in (kind, number):
            path = str(tmp_path / kind)
            (batch,) = run(lambda g=given, p=path: engine.RecordInput(p, compression_type=g), 1)
            assert batch.tolist() == [kind.encode()]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="no file matches"):
        run(lambda: engine.RecordInput(str(tmp_path / "none.*")), 1)
    with engine.RecordWriter(tmp_path / "empty"):
        pass
    with pytest.raises(InvalidArgumentError, match="no record in 1 files"):
        run(lambda: engine.RecordInput(str(tmp_path / "empty")), 1)
    for options in ({"batch_size": 0}, {"buffer_size": 0}, {"shift_ratio": 2.0}):
        with pytest.raises(InvalidArgumentError):
            run(lambda o=options: engine.RecordInput("x", **o), 1)
    with pytest.raises(InvalidArgumentError, match="no graph"):
        engine.RecordInput("x")
