"""Timelines of several processes in one file: ranks, workers of a data set, tasks of a cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, layers, ops
from laminar.engine import errors
from laminar.profiler import annotate, trace
from laminar.profiler.joining import joined

from ...distribute.cluster.local_cluster import local_cluster
from .test_trace import check_format, events, spans


def rows(found: list[dict[str, Any]]) -> dict[str, int]:
    """The processes by their names."""
    return {e["args"]["name"]: e["pid"] for e in found if e["name"] == "process_name"}


def as_rank(monkeypatch: pytest.MonkeyPatch, rank: int, size: int, run: str) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(rank))
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", str(size))
    monkeypatch.setenv("PMIX_NAMESPACE", run)


def test_the_last_of_several_ranks_joins_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = set()
    for rank in (1, 0, 2):
        as_rank(monkeypatch, rank, 3, "a run")
        with trace(tmp_path, show=False) as traced, annotate(f"work of {rank}"):
            pass
        assert traced.report is not None
        paths.add(traced.report.path)
        parts = list(tmp_path.glob("*.rank-*.json"))
        for part in parts:
            check_format(json.loads(part.read_text())["traceEvents"])
    (path,) = paths
    assert parts == []
    assert list(tmp_path.glob("*.json")) == [path]
    found = json.loads(path.read_text())["traceEvents"]
    check_format(found)
    names = rows(found)
    assert [name.partition(" (")[0] for name in sorted(names)] == ["rank 0", "rank 1", "rank 2"]
    work = {e["name"]: e for e in spans(found, "python")}
    begun = [work[f"work of {rank}"]["ts"] for rank in (1, 0, 2)]
    assert begun == sorted(begun)  # one clock
    assert len({e["pid"] for e in work.values()}) == 3
    profiles = tmp_path / "plugins" / "profile" / path.stem
    assert len(list(profiles.glob("*.xplane.pb"))) == 3
    for rank in (0, 1):  # the next trace has another file; one that died leaves no joined one
        as_rank(monkeypatch, rank, 3, "a run")
        with trace(tmp_path, show=False):
            pass
    assert len(list(tmp_path.glob("*.json"))) == 3
    as_rank(monkeypatch, 2, 3, "a run")
    next(tmp_path.glob("*.rank-0.json")).write_text("[1, 2")
    with pytest.raises(errors.DataLossError, match="rank-0"), trace(tmp_path, show=False):
        pass
    assert not list(tmp_path.glob("*.joining"))


def test_clocks_of_machines_are_put_in_one_time() -> None:
    """One machine's clock counts from when it started; the wall's says how far they are apart."""

    def part(rank: int, machine: str, start_ns: int, wall_ns: int, ts: float) -> dict[str, Any]:
        event = {"ph": "X", "name": f"of {rank}", "pid": 1, "tid": 1, "ts": ts, "dur": 1.0}
        clock = {"machine": machine, "start_ns": start_ns, "wall_ns": wall_ns}
        return {"traceEvents": [event], "laminar": {"name": f"rank {rank}", "clock": clock}}

    parts = [
        part(0, "a", 5_000_000, 900_000_000, 10.0),
        part(1, "a", 5_002_000, 999_999_999, 10.0),  # its wall clock was set meanwhile
        part(2, "b", 77, 900_000_000 - 3_000, 10.0),
    ]
    times = {e["name"]: e["ts"] for e in joined(parts) if e["ph"] == "X"}
    assert times == {"of 0": 13.0, "of 1": 15.0, "of 2": 10.0}


class Batches(laminar.utils.PyDataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return np.full((2, 4), index, "float32"), np.full((2, 1), os.getpid(), "float32")


def test_worker_processes_of_data_have_rows(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    with trace(tmp_path, show=False) as traced:
        data = Batches(workers=1, use_multiprocessing=True)
        model.fit(data, verbose=0, shuffle=False)
    found = events(traced.report)
    workers = {pid: name for name, pid in rows(found).items() if name.startswith("input worker")}
    made = [e for e in spans(found, "data") if e["name"].startswith("make batch")]
    assert {e["pid"] for e in made} == set(workers)
    assert [e["name"] for e in made] == [f"make batch {i}" for i in range(4)]
    assert {str(e["tid"]) for e in made} == {name.split()[-1] for name in workers.values()}
    steps = [e for e in spans(found, "python") if e["name"].startswith("step ")]
    assert len(steps) == 4
    assert all(e["ts"] + e["dur"] <= s["ts"] for e, s in zip(made, steps, strict=True))


def test_tasks_of_a_cluster_have_rows(tmp_path: Path) -> None:
    with local_cluster({"worker": 2}) as cluster, engine.Graph().as_default():
        x = engine.placeholder("float32", [None, 3])
        with engine.device("/job:worker/task:1"):
            a = ops.exp(x)
        with engine.device("/job:worker/task:0"):
            b = ops.sum(a * 2.0)
        with engine.Session(cluster.target()) as session:
            value = session.run(b, {x: np.ones((2, 3), "float32")})
            with trace(tmp_path, show=False) as traced, annotate("the call"):
                assert session.run(b, {x: np.ones((2, 3), "float32")}) == pytest.approx(value)
    found = events(traced.report)
    names = rows(found)
    for task in (0, 1):
        assert any(name.startswith(f"/job:worker/task:{task}/") for name in names)
    (call,) = [e for e in spans(found, "python") if e["name"] == "the call"]
    ran = spans(found, "op") + spans(found, "transfer")
    assert {"Exp", "Sum"} <= {e["args"]["op"] for e in ran}
    assert all(call["ts"] <= e["ts"] <= call["ts"] + call["dur"] for e in ran)
    sent = {e["id"]: e for e in found if e["ph"] == "s"}
    came = {e["id"]: e for e in found if e["ph"] == "f"}
    assert len(sent) >= 1
    for number, send in sent.items():
        assert send["pid"] != came[number]["pid"]
        assert send["ts"] <= came[number]["ts"]  # none is there before it was sent
