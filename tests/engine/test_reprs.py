"""What objects say of themselves where a program prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from laminar import engine as eng
from laminar import export


def test_graphs_and_what_is_built_in_them() -> None:
    with eng.Graph().as_default() as graph:
        assert repr(graph) == "<Graph of 0 operations>"
        queue = eng.FIFOQueue(2, ["int32"], [[]], name="names")
        runner = eng.QueueRunner(queue, [queue.enqueue([1])] * 2)
        assert repr(runner) == "<QueueRunner of <FIFOQueue 'names'>, 2 threads>"
    graph.finalize()
    assert repr(graph) == f"<Graph of {len(graph.operations)} operations, finalized>"


def test_functions_with_one_graph() -> None:
    def scale(x: eng.Tensor, by: eng.Tensor) -> eng.Tensor:
        product: eng.Tensor = x * by
        return product

    specs = [eng.TensorSpec([None, 2]), eng.TensorSpec([])]
    found = eng.function(scale).concrete(*specs)
    inside = "scale(x: float32[?, 2], by: float32[]) -> (float32[?, 2])"
    assert repr(found) == f"<ConcreteFunction {inside}>"
    assert repr(eng.wrap_function(scale, specs)) == f"<WrappedFunction {inside}>"
    assert repr(found.graph) == "<FuncGraph 'scale' of 3 operations>"


def test_coordinators() -> None:
    coordinator = eng.Coordinator()
    assert repr(coordinator) == "<Coordinator of 0 threads, runs>"
    coordinator.request_stop(ValueError("no data"))
    assert repr(coordinator) == "<Coordinator of 0 threads, stops, after ValueError('no data')>"
    with pytest.raises(ValueError, match="no data"):
        coordinator.join()


def test_what_is_saved_and_loaded(tmp_path: Path) -> None:
    w = eng.Variable(2.0)
    assert repr(eng.Checkpoint(w=w, parts=[w])) == "<Checkpoint of w, parts>"
    archive = export.ExportArchive()
    archive.add_endpoint("serve", lambda x: x * w, [eng.TensorSpec([3])])
    archive.write_out(tmp_path / "m.laminar", verbose=False)
    loaded = export.load(tmp_path / "m.laminar")
    assert repr(loaded) == "<Exported with serve>"
    assert repr(loaded.serve) == f"<Endpoint serve of {[eng.TensorSpec([3])]}>"
