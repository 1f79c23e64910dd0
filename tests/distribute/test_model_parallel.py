"""Models whose variables are in pieces on several processes train as those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.distribute.mpi_runs import found_by, needs_mpi, run

pytestmark = needs_mpi

# By mesh, the cases of layout_workers.py that it trains.
MESHES = {
    (1, 2): ["dense", "clipped", "heads", "across", "images"],
    (2, 2): ["along_rows"],
}


@pytest.fixture(scope="module", params=list(MESHES), ids=str)
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What each process has found."""
    folder = tmp_path_factory.mktemp("layouts")
    rows, columns = request.param
    names = MESHES[request.param]
    code, text = run(
        rows * columns, "layout_workers.py", str(folder), str(rows), str(columns), *names
    )
    assert code == 0, text
    every = found_by(folder)
    assert len(every) == rows * columns
    return every


def test_training_is_that_of_one_process(found: list[dict[str, Any]]) -> None:
    """Logs, weights, slots, predictions, files: to rounding; and the same bits in all processes."""
    one = {k: v for each in found for k, v in each.items() if "/one/" in k}
    assert one
    for name, expected in one.items():
        for each in found:
            both = each[name.replace("/one/", "/all/")]
            np.testing.assert_allclose(both, expected, rtol=2e-4, atol=2e-5, err_msg=name)
            np.testing.assert_array_equal(both, found[0][name.replace("/one/", "/all/")])
    if "dense/all/zeros" in found[0]:
        np.testing.assert_allclose(found[0]["dense/all/zeros"], 0.25)


def test_each_process_keeps_its_pieces(found: list[dict[str, Any]]) -> None:
    """Of what the map names, and of the slots; whole values are gone after a step."""
    for name in {k.partition("/")[0] for k in found[0] if k.endswith("/kept")}:
        for each in found:
            sizes = each[f"{name}/sizes"]
            ways = sizes[:, 1] // sizes[:, 0]
            assert (ways * sizes[:, 0] == sizes[:, 1]).all()
            assert set(ways) == ({4} if name == "along_rows" else {2})
    if "dense/kept" in found[0]:
        kept = " ".join(found[0]["dense/kept"])
        for part in ("columns/kernel", "columns/bias", "rows/kernel", "scale/gamma"):
            assert kept.count(part) == 1
            assert kept.count(part.replace("/", "_")) == 2  # Adam's
        assert "scores" not in kept


def test_processes_are_devices(found: list[dict[str, Any]]) -> None:
    expected = [f"cpu:{i}" for i in range(len(found))]
    assert all(each["devices"].tolist() == expected for each in found)


def test_a_mesh_of_other_processes(tmp_path: Path) -> None:
    """Each process says it, and none hangs."""
    code, text = run(2, "layout_workers.py", str(tmp_path), "2", "2")
    assert code != 0
    assert "expected process None of 4, this is process" in text
