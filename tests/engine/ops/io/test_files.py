"""Files read and found; rows shuffled anew each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laminar.engine import Graph, Session, constant, matching_files, read_file
from laminar.engine.errors import MissingFileError, ShapeError
from laminar.engine.ops.io.files import shuffle_rows


def test_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_bytes(name.encode())
    found = matching_files([str(tmp_path / "*.txt"), str(tmp_path / "c.*")]).numpy().tolist()
    assert [Path(f.decode()).name for f in found] == ["a.txt", "b.txt", "c.bin"]
    assert matching_files(str(tmp_path / "x*")).shape == (0,)
    assert read_file(found[0]).numpy() == b"a.txt"
    with pytest.raises(MissingFileError):
        read_file(str(tmp_path / "none"))
    with pytest.raises(ShapeError):
        read_file([b"a", b"b"])


def orders(seed: int | None) -> list[list[int]]:
    graph = Graph()
    with graph.as_default():
        y = shuffle_rows(constant(np.arange(20)), seed, "", "s")
    with Session(graph=graph) as session:
        return [session.run(y).tolist() for _ in range(3)]


def test_rows_come_in_another_order_each_time() -> None:
    first = orders(5)
    assert all(sorted(order) == list(range(20)) for order in first)
    assert len({tuple(order) for order in first}) == 3
    assert first == orders(5)
    assert first != orders(6)
    assert orders(None) != orders(None)
    with pytest.raises(ShapeError, match="no rows"):
        shuffle_rows(constant(1), 0, "", "s")
