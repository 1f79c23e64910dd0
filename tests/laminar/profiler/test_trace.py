"""Traces: what they hold, that they tell the truth, and that they change nothing."""

from __future__ import annotations

import gc
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, layers, ops
from laminar.engine import errors
from laminar.engine.ops.core.checks import check_numerics
from laminar.engine.timeline import Recording
from laminar.profiler import TraceReport, annotate, trace
from laminar.profiler.roofline import Roofline, roofline

rng = np.random.default_rng(0)
X = rng.normal(size=(256, 64)).astype("float32")
Y = rng.normal(size=(256, 8)).astype("float32")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    yield
    gc.collect()
    assert Recording.active is None


def network() -> Any:
    laminar.set_random_seed(0)
    model = laminar.Sequential(
        [layers.Input((64,)), layers.Dense(96, activation="relu", name="hidden"), layers.Dense(8)],
        name="net",
    )
    model.compile("adam", "mse")
    return model


def events(report: TraceReport | None) -> list[dict[str, Any]]:
    assert report is not None
    found = json.loads(report.path.read_text())["traceEvents"]
    check_format(found)
    return list(found)


def check_format(found: list[dict[str, Any]]) -> None:
    """What Perfetto and chrome://tracing ask of events: tracks have names, durations nest."""
    named = {(e["name"], e["pid"], e.get("tid")) for e in found if e["ph"] == "M"}
    tracks: dict[Any, list[dict[str, Any]]] = {}
    for event in found:
        assert event["ph"] in "MXsf"
        assert isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert event["args"].get("name") or event["name"] == "process_sort_index"
            continue
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        assert ("process_name", event["pid"], None) in named
        assert ("thread_name", event["pid"], event["tid"]) in named
        if event["ph"] == "X":
            assert event["dur"] >= 0
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for track in tracks.values():
        open_until: list[float] = []
        for event in sorted(track, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"] + 0.5:  # of a microsecond
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 0.5, event
            open_until.append(end)
    flows: dict[Any, list[str]] = {}
    for event in found:
        if event["ph"] in "sf":
            flows.setdefault(event["id"], []).append(event["ph"])
    assert all(sorted(phases) == ["f", "s"] for phases in flows.values())


def spans(found: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [e for e in found if e["ph"] == "X" and e["cat"] == category]


def inside(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    return bool(
        outer["ts"] - 1 <= inner["ts"]
        and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1
    )


def test_steps_of_fit_with_kernels_by_thread(tmp_path: Path) -> None:
    model = network()
    model.fit(X, Y, batch_size=64, verbose=0)  # what is compiled is not traced
    traced = trace(tmp_path, show=False)
    model.fit(X, Y, batch_size=64, epochs=3, verbose=0, callbacks=[traced])
    found = events(traced.report)
    steps = [e for e in spans(found, "python") if e["name"].startswith("step ")]
    assert [e["name"] for e in steps] == ["step 0", "step 1", "step 2", "step 3"] * 3
    runs, kernels = spans(found, "plan"), spans(found, "kernel")
    assert len(runs) == 12
    assert all(any(inside(run, step) for step in steps) for run in runs)
    assert all(any(inside(kernel, run) for run in runs) for kernel in kernels)
    products = [k for k in kernels if "net/hidden/MatMul" in k["args"]["operations"].split(", ")]
    own = {k["tid"] for k in products} - {k["tid"] for k in runs}
    names = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert all(names[tid].startswith("native-") for tid in own)
    assert sum(k["tid"] == threading.get_ident() for k in products) == 12
    # Bias and activation are a part of it: a little more than the product alone.
    assert 1 <= products[0]["args"]["flops"] / (2 * 64 * 64 * 96) < 1.2
    sizes = 4 * (64 * 64 + 64 * 96 + 64 * 96)
    assert products[0]["args"]["bytes"] == pytest.approx(sizes, rel=0.1)
    assert Path(products[0]["args"]["line"].rpartition(":")[0]).name == "test_trace.py"
    assert "MainThread" in names.values()


def test_the_totals_are_those_of_the_wall(tmp_path: Path) -> None:
    model = network()
    model.fit(X, Y, batch_size=64, verbose=0)
    traced = trace(tmp_path, show=False)
    model.fit(X, Y, batch_size=64, epochs=20, verbose=0, callbacks=[traced])
    report = traced.report
    assert report is not None
    assert report.accounted > 0.9
    found = events(report)
    assert len(spans(found, "plan")) == 80
    (thread,) = {e["tid"] for e in spans(found, "epoch")}
    top = [e for e in spans(found, "epoch") if e["tid"] == thread]
    around = ("before the epoch", "after the epochs")
    top += [e for e in spans(found, "python") if e["name"] in around]
    assert sum(e["dur"] for e in top) == pytest.approx(1e6 * report.seconds, rel=0.1)
    steps = [e for e in spans(found, "python") if e["name"].startswith("step ")]
    assert all(any(inside(step, epoch) for epoch in top) for step in steps)
    assert sum(k.seconds for k in report.kernels) <= report.categories["plan"]
    assert report.categories["plan"] <= report.seconds
    shares = [k.share for k in report.kernels]
    assert shares == sorted(shares, reverse=True)
    for kernel in report.kernels:
        assert kernel.runs == 80
        assert 0 <= kernel.of_roofline <= 1
        assert kernel.busy_seconds > 0
    text = repr(report)
    assert "net/hidden/MatMul" in text
    assert "accounted for" in text
    assert text.count("\n") == min(10, len(report.kernels)) + 1


def test_results_are_the_same_bits(tmp_path: Path) -> None:
    plain, traced = network(), network()
    plain.fit(X, Y, batch_size=64, epochs=2, verbose=0, shuffle=False)
    with trace(tmp_path, show=False):
        traced.fit(X, Y, batch_size=64, epochs=2, verbose=0, shuffle=False)
    for a, b in zip(plain.get_weights(), traced.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_block_with_names_and_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = network()

    def slow() -> Any:
        for i in range(0, 256, 64):
            threading.Event().wait(0.002)
            yield X[i : i + 64], Y[i : i + 64]

    with annotate("before"), trace(tmp_path) as traced, annotate("my part", rows=3):
        model.fit(slow(), steps_per_epoch=4, verbose=0)
    found = events(traced.report)
    (mine,) = [e for e in spans(found, "python") if e["name"] == "my part"]
    assert mine["args"] == {"rows": 3}
    made = [e for e in spans(found, "data") if e["name"] == "make a batch"]
    assert len(made) >= 4
    assert all(e["dur"] >= 1900 for e in made[:4])
    assert [e["name"] for e in spans(found, "python")].count("step 3") == 1
    assert not [e for e in found if e["name"] == "before"]
    assert "the most expensive kernels" in capsys.readouterr().out
    with trace(tmp_path, show=False) as again:
        pass
    assert again.report is not None
    assert again.report.path.name == "trace-2.json"
    assert (tmp_path / "trace-1.json").exists()


def test_transfers_between_devices(tmp_path: Path) -> None:
    engine.set_device_count({"cpu": 2})
    try:
        with engine.Graph().as_default():
            x = engine.placeholder("float32", [None, 4])
            with engine.device("/device:cpu:0"):
                a = ops.exp(
                    x,
                )
            with engine.device("/device:cpu:1"):
                b = ops.tanh(a)
            with engine.device("/device:cpu:0"):
                c = a + b
            with engine.Session() as session:
                value = session.run(c, {x: X[:, :4]})
                with trace(tmp_path, show=False) as traced:
                    np.testing.assert_array_equal(session.run(c, {x: X[:, :4]}), value)
    finally:
        engine.set_device_count({"cpu": 1})
    found = events(traced.report)
    devices = {e["args"]["name"]: e["pid"] for e in found if e["name"] == "process_name"}
    assert len([name for name in devices if "cpu:" in name]) == 2
    moves = spans(found, "transfer")
    assert {e["args"]["op"] for e in moves} == {"Send", "Recv"}
    starts = {e["id"]: e for e in found if e["ph"] == "s"}
    ends = {e["id"]: e for e in found if e["ph"] == "f"}
    assert len(starts) == 2
    assert starts.keys() == ends.keys()
    for number, start in starts.items():
        assert start["pid"] != ends[number]["pid"]
        assert start["ts"] <= ends[number]["ts"]  # none is there before it was sent


def test_some_steps_of_a_session(tmp_path: Path) -> None:
    with engine.Graph().as_default():
        w = engine.Variable(np.ones((4, 4), "float32"), name="w")
        engine.get_or_create_global_step()
        step = w.assign(ops.matmul(w, w) * 0.5)
        traced = trace(tmp_path, steps=(2, 5), show=False)
        with engine.MonitoredSession(hooks=[traced]) as session:
            for _ in range(8):
                session.run(step)
    names = [e["name"] for e in spans(events(traced.report), "python")]
    assert [n for n in names if n.startswith("run ")] == ["run 2", "run 3", "run 4"]
    assert [path.name for path in tmp_path.glob("*.json")] == ["trace-1.json"]


def test_some_steps_of_fit(tmp_path: Path) -> None:
    traced = trace(tmp_path, steps=(3, 6), show=False)
    network().fit(X, Y, batch_size=64, epochs=3, verbose=0, callbacks=[traced])
    found = events(traced.report)
    names = [e["name"] for e in spans(found, "python") if e["name"].startswith("step")]
    assert names == ["step 3", "step 0", "step 1"]
    assert len(spans(found, "plan")) == 3


class BrokenError(Exception):
    pass


def test_errors_end_it_and_what_was_recorded_is_written(tmp_path: Path) -> None:
    class Fails(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise BrokenError

    traced = trace(tmp_path, show=False)
    with pytest.raises(BrokenError):
        network().fit(X, Y, verbose=0, callbacks=[traced, Fails()])
    assert Recording.active is None
    assert spans(events(traced.report), "plan")
    with pytest.raises(BrokenError), trace(tmp_path, show=False) as block:
        raise BrokenError
    assert events(block.report)
    with trace(tmp_path, show=False), pytest.raises(errors.FailedPreconditionError):
        trace(tmp_path).start()
    with pytest.raises(errors.InvalidArgumentError, match="steps"):
        trace(tmp_path, steps=(3, 3))
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(errors.LaminarError), trace(file / "folder"):
        pass
    dropped = trace(tmp_path, show=False)
    dropped.start()
    del dropped  # a session that failed drops its hooks
    gc.collect()
    assert Recording.active is None


def test_failing_kernels_are_told_of_as_without_a_trace(tmp_path: Path) -> None:
    @laminar.function
    def check(x: Any) -> Any:
        return ops.sum(check_numerics(x, "no number"))

    good, bad = np.ones(100, "float32"), np.full(100, np.nan, "float32")
    assert float(check(good)) == 100
    with trace(tmp_path, show=False):
        assert float(check(good)) == 100
        with pytest.raises(errors.InvalidArgumentError, match="no number"):
            check(bad)
        assert float(check(good)) == 100
    assert float(check(good)) == 100


def test_a_step_of_a_session_by_the_name_of_the_engine(tmp_path: Path) -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        y = engine.constant([1.0, 2.0]) * 3.0
        session.run(y)
        with engine.trace(tmp_path, show=False) as recorded:
            assert isinstance(recorded, laminar.profiler.trace)
            assert session.run(y).tolist() == [3.0, 6.0]
    (file,) = tmp_path.glob("*.json")
    events = json.loads(file.read_text())["traceEvents"]
    assert {"op", "plan"} & {event.get("cat") for event in events}


def test_a_kernel_that_is_started_in_parts_is_one(tmp_path: Path) -> None:
    """A product of one row is made in parts of its sum, which a second start adds."""
    model = laminar.Sequential([layers.Input((784,)), layers.Dense(512, activation="relu")])
    x = np.ones((1, 784), "float32")
    for _ in range(3):
        model.predict_on_batch(x)
    with trace(tmp_path, show=False) as traced:
        for _ in range(10):
            model.predict_on_batch(x)
    assert traced.report is not None
    (kernel,) = traced.report.kernels
    assert kernel.runs == 10
    assert kernel.flops == pytest.approx(2 * 784 * 512, rel=0.01)


def test_a_loop_has_the_work_of_what_it_runs(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((20, 8)), layers.LSTM(32, name="lstm")])
    x = np.ones((16, 20, 8), "float32")
    for _ in range(3):
        model.predict_on_batch(x)
    with trace(tmp_path, show=False) as traced:
        model.predict_on_batch(x)
    assert traced.report is not None
    loops = [k for k in traced.report.kernels if k.what.startswith("loop 20 times")]
    assert sum(k.flops for k in loops) >= 20 * 2 * 16 * 32 * 4 * 32
    assert all(k.num_bytes for k in loops)


def test_a_roofline_has_caches() -> None:
    machine = Roofline(1e9, ((1 << 16, 4e9), (1 << 27, 1e9)))
    assert machine.num_bytes == 1e9
    assert machine.seconds(0, 1 << 16) == (1 << 16) / 4e9
    assert machine.seconds(0, (1 << 16) + 1) == ((1 << 16) + 1) / 1e9
    assert machine.seconds(5e9, 1 << 30) == 5.0
    measured = roofline()
    sizes, rates = zip(*measured.rates, strict=True)
    assert list(sizes) == sorted(sizes)
    assert list(rates) == sorted(rates, reverse=True)
    assert measured.flops > 0


@pytest.mark.exhaustive
def test_a_trace_costs_little(tmp_path: Path) -> None:
    """3 % of a step of half a millisecond; the least of interleaved runs of both."""
    x = rng.normal(size=(128 * 50, 784)).astype("float32")
    model = laminar.Sequential([layers.Input((784,)), layers.Dense(256, "relu"), layers.Dense(8)])
    model.compile("sgd", "mse")

    def seconds() -> float:
        start = time.perf_counter()
        model.fit(x, x[:, :8], batch_size=128, verbose=0, shuffle=False)
        return time.perf_counter() - start

    seconds()
    plain, traced = [], []
    for _ in range(15):
        plain.append(seconds())
        with trace(tmp_path, show=False):
            seconds()  # what is made for the first run of a trace is not of the step
            traced.append(seconds())
    assert min(traced) < 1.03 * min(plain)
