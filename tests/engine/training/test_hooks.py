"""The hooks that come along: when they act, and what they write."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine import summary, training
from laminar.engine.errors import DTypeError, FailedPreconditionError, InvalidArgumentError


@pytest.fixture(autouse=True)
def graph() -> Iterator[engine.Graph]:
    with engine.Graph().as_default() as made:
        yield made
    summary.FileWriterCache.clear()


def train() -> Any:
    return training.increment_global_step()


def run(train_op: Any, hooks: list[training.SessionRunHook], most: int = 1000) -> int:
    """How often it ran until a hook said stop."""
    runs = 0
    with training.MonitoredSession(hooks=hooks) as session:
        while not session.should_stop() and runs < most:
            session.run(train_op)
            runs += 1
    return runs


def events(folder: Path) -> list[summary.Event]:
    found = []
    for path in sorted(folder.glob("events.*")):
        found += list(summary.read_events(path))
    return found


def test_the_timer() -> None:
    with pytest.raises(InvalidArgumentError, match="exactly one of every_secs and every_steps"):
        training.SecondOrStepTimer()
    with pytest.raises(InvalidArgumentError, match="exactly one"):
        training.SecondOrStepTimer(every_secs=1.0, every_steps=1)
    timer = training.SecondOrStepTimer(every_steps=3)
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    assert [timer.should_trigger_for_step(n) for n in (1, 2, 3, 4)] == [False, False, False, True]
    seconds, steps = timer.update_last_triggered_step(6)
    assert seconds is not None
    assert steps == 5
    assert timer.last_triggered_step() == 6
    timer = training.SecondOrStepTimer(every_secs=0.05)
    timer.update_last_triggered_step(1)
    assert not timer.should_trigger_for_step(2)
    time.sleep(0.06)
    assert timer.should_trigger_for_step(2)
    assert not timer.should_trigger_for_step(1)
    assert not training.NeverTriggerTimer().should_trigger_for_step(1)


@pytest.mark.parametrize(("options", "runs"), [({"num_steps": 4}, 4), ({"last_step": 6}, 6)])
def test_stopping_at_a_step(options: dict[str, int], runs: int) -> None:
    op = train()
    assert run(op, [training.StopAtStepHook(**options)]) == runs
    with pytest.raises(InvalidArgumentError, match="exactly one of num_steps and last_step"):
        training.StopAtStepHook(num_steps=1, last_step=1)


def test_a_graph_without_a_counter_is_told() -> None:
    with pytest.raises(FailedPreconditionError, match="the graph has no global step"):
        training.MonitoredSession(hooks=[training.StopAtStepHook(last_step=1)])


def test_steps_in_a_second(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    op = train()
    hook = training.StepCounterHook(every_n_steps=4, output_dir=tmp_path)
    with caplog.at_level(logging.INFO, "laminar"):
        run(op, [hook, training.StopAtStepHook(last_step=10)])
    summary.FileWriterCache.clear()
    told = [(e.step, v.tag) for e in events(tmp_path) if e.summary for v in e.summary.value]
    assert told == [(5, "global_step/sec"), (9, "global_step/sec")]
    assert sum("global_step/sec" in r.getMessage() for r in caplog.records) == 2


def test_a_counter_that_stays_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    training.get_or_create_global_step()
    with caplog.at_level(logging.WARNING, "laminar"):
        run(engine.no_op(), [training.StepCounterHook(every_n_steps=1)], most=4)
    assert caplog.text.count("the global step stays at 0") == 1


def test_waiting_for_a_step() -> None:
    counter = training.get_or_create_global_step()
    with engine.Session() as session:
        session.run(counter.initializer)
        hook = training.GlobalStepWaiterHook(wait_until_step=0)
        hook.begin()
        context = training.SessionRunContext(training.SessionRunArgs(), session)
        assert hook.before_run(context) is None
        hook = training.GlobalStepWaiterHook(wait_until_step=3)
        hook.begin()
        values = iter([0, 1, 5])

        class Fake:
            def run(self, fetches: Any) -> int:
                return next(values)

        context = training.SessionRunContext(training.SessionRunArgs(), Fake())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "sleep", lambda seconds: None)
            assert hook.before_run(context) is None
            assert hook.before_run(context) is None
        assert list(values) == []


def test_logged_values(caplog: pytest.LogCaptureFixture) -> None:
    x = engine.constant(4.5, name="x")
    hook = training.LoggingTensorHook({"value": x}, every_n_iter=3, at_end=True)
    with caplog.at_level(logging.INFO, "laminar"):
        run(x, [hook], most=7)
    told = [r.getMessage() for r in caplog.records if r.getMessage().startswith("value = 4.5")]
    assert len(told) == 4  # runs 1, 4 and 7, and the end
    assert "sec)" not in told[0]
    assert "sec)" in told[1]
    caplog.clear()
    hook = training.LoggingTensorHook(["x:0"], every_n_secs=100, formatter=lambda v: f"got {v}")
    with caplog.at_level(logging.INFO, "laminar"):
        run(x, [hook], most=3)
    assert [r.getMessage() for r in caplog.records if "got" in r.getMessage()] == [
        f"got { {'x:0': np.float32(4.5)} }"
    ]
    for runs, seconds in ((None, None), (1, 1.0), (0, None)):
        with pytest.raises(InvalidArgumentError, match="every_n_iter"):
            training.LoggingTensorHook([x], runs, seconds)


def test_a_loss_that_is_nan() -> None:
    x = engine.placeholder("float32", [], name="x")
    session = training.MonitoredSession(hooks=[training.NanTensorHook(x)])
    session.run(x, {x: 1.0})
    with pytest.raises(training.NanLossDuringTrainingError, match="has diverged"):
        session.run(x, {x: np.nan})
    session.close()
    hook = training.NanTensorHook(x, fail_on_nan_loss=False)
    with training.MonitoredSession(hooks=[hook]) as session:
        session.run(x, {x: 1.0})
        assert not session.should_stop()
        session.run(x, {x: np.nan})
        assert session.should_stop()


def test_the_end_and_feeds() -> None:
    x = engine.placeholder("float32", [], name="x")
    last = training.FinalOpsHook({"double": x * 2}, {x: 21.0})
    numbers = iter([1.0, 2.0])
    feed = training.FeedFnHook(lambda: {x: next(numbers)})
    y = x + 1
    with training.MonitoredSession(hooks=[last, feed]) as session:
        assert [float(session.run(y)) for _ in range(2)] == [2, 3]
    assert last.final_ops_values == {"double": 42}


class Listener(training.CheckpointSaverListener):
    def __init__(self, last: int) -> None:
        self.calls: list[Any] = []
        self.last = last

    def begin(self) -> None:
        self.calls.append("begin")

    def before_save(self, session: Any, global_step_value: int) -> None:
        self.calls.append(("before", global_step_value))

    def after_save(self, session: Any, global_step_value: int) -> bool:
        self.calls.append(("after", global_step_value))
        return global_step_value >= self.last

    def end(self, session: Any, global_step_value: int) -> None:
        self.calls.append(("end", global_step_value))


def test_checkpoints_every_so_many_steps(tmp_path: Path) -> None:
    op = train()
    listener = Listener(last=10)
    hook = training.CheckpointSaverHook(
        tmp_path, save_steps=4, saver=engine.Saver(), listeners=[listener]
    )
    assert run(op, [hook]) == 12
    steps = [0, 4, 8, 12]
    pairs = [(what, step) for step in steps for what in ("before", "after")]
    assert listener.calls == ["begin", *pairs, ("end", 12)]
    state = engine.get_checkpoint_state(tmp_path)
    assert state is not None
    assert [Path(p).name for p in state.all_model_checkpoint_paths] == [
        f"model.ckpt-{step}" for step in steps
    ]
    summary.FileWriterCache.clear()
    found = events(tmp_path)
    assert [e.step for e in found if e.session_log] == steps
    assert any(e.graph_def for e in found)


def test_what_saves_must_be_known(tmp_path: Path) -> None:
    op = train()
    scaffold = training.Scaffold()
    with pytest.raises(InvalidArgumentError, match="a saver or a scaffold, not both"):
        training.CheckpointSaverHook(
            tmp_path, save_steps=1, saver=engine.Saver(), scaffold=scaffold
        )
    for _ in range(2):
        engine.get_default_graph().add_to_collection("savers", engine.Saver())
    hook = training.CheckpointSaverHook(tmp_path, save_steps=1)
    given = training.Scaffold(saver=engine.Saver())
    with pytest.raises(FailedPreconditionError, match="lists 2 savers"):
        training.MonitoredSession(training.ChiefSessionCreator(given), hooks=[hook])
    del op


def test_summaries_every_so_many_steps(tmp_path: Path) -> None:
    counter = training.get_or_create_global_step()
    summary.scalar("count", ops.cast(counter, "float32"))
    op = train()
    scaffold = training.Scaffold()
    hooks = [
        training.SummarySaverHook(save_steps=4, output_dir=tmp_path, scaffold=scaffold),
        training.StopAtStepHook(last_step=10),
    ]
    creator = training.ChiefSessionCreator(scaffold)
    with training.MonitoredSession(creator, hooks=hooks) as session:
        while not session.should_stop():
            session.run(op)
    found = events(tmp_path)
    assert [e.step for e in found if e.session_log] == [1]
    assert [e.step for e in found if e.summary] == [1, 5, 9]
    with pytest.raises(InvalidArgumentError, match="exactly one of scaffold and summary_op"):
        training.SummarySaverHook(save_steps=1)


def test_traces(tmp_path: Path) -> None:
    op = train()
    with engine.control_dependencies([op]):
        y = ops.exp(engine.constant(1.0), name="power")
    hook = training.ProfilerHook(save_steps=2, output_dir=tmp_path, show_memory=True)
    run(y, [hook], most=6)
    summary.FileWriterCache.clear()
    files = sorted(p.name for p in tmp_path.glob("timeline-*.json"))
    assert files == [f"timeline-{step}.json" for step in (2, 4, 6)]
    trace = json.loads((tmp_path / files[0]).read_text())["traceEvents"]
    named = {e["args"]["name"]: e for e in trace if e["ph"] == "X"}
    assert "power" in named
    assert named["power"]["dur"] > 0
    assert sum(e.tagged_run_metadata is not None for e in events(tmp_path)) == 3


def test_a_hook_that_does_nothing_changes_no_fetch() -> None:
    """What it costs is two calls of Python and no other run of the graph's plan."""
    x = engine.constant(1.0)
    calls: list[Any] = []

    class Raw:
        graph = engine.get_default_graph()

        def run(self, *args: Any) -> Any:
            calls.append(args)
            return 1.0

    hooked = training.HookedSession(Raw(), [training.SessionRunHook()])
    hooked.run(x, {x: 2.0})
    ((fetches, feeds, options, _),) = calls
    assert fetches is x
    assert feeds == {x: 2.0}
    assert options is None


def test_steps_are_counted_whole() -> None:
    with pytest.raises(DTypeError, match=r"increment must be a whole number, got 1\.5"):
        training.increment_global_step(1.5)  # type: ignore[arg-type]  # no int
