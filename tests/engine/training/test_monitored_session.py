"""Monitored sessions: in which order things happen, what is recovered, what ends how."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine import training
from laminar.engine.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
)


@pytest.fixture(autouse=True)
def graph() -> Iterator[engine.Graph]:
    before = threading.active_count()
    with engine.Graph().as_default() as made:
        yield made
    assert threading.active_count() <= before, "a thread is left"


class Order(training.SessionRunHook):
    """Notes what is called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self) -> None:
        assert not engine.get_default_graph().finalized
        self.calls.append("begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        assert session.graph.finalized
        self.calls.append("after_create_session")

    def before_run(self, run_context: training.SessionRunContext) -> None:
        self.calls.append("before_run")

    def after_run(self, run_context: Any, run_values: training.SessionRunValues) -> None:
        assert run_values.results is None
        self.calls.append("after_run")

    def end(self, session: Any) -> None:
        self.calls.append("end")


AROUND = ["begin", "after_create_session", "before_run", "after_run"]


def test_the_order_of_calls(graph: engine.Graph) -> None:
    w = engine.Variable(1.0, name="w")
    order = Order()
    with training.MonitoredSession(hooks=[order]) as session:
        assert not session.should_stop()
        assert session.run(w) == 1
        with pytest.raises(FailedPreconditionError, match="finalized"):
            engine.constant(1.0)
    assert order.calls == [*AROUND, "end"]
    assert session.should_stop()
    with pytest.raises(FailedPreconditionError, match="is closed"):
        session.run(w)
    engine.constant(2.0)  # the graph can be built on again


@pytest.mark.parametrize("error", [OutOfRangeError("over"), StopIteration()])
def test_the_end_of_the_input_is_a_normal_end(error: Exception) -> None:
    order = Order()
    x = engine.constant(1.0)
    with training.MonitoredSession(hooks=[order]) as session:
        session.run(x)
        raise error
    assert order.calls == [*AROUND, "end"]


def test_another_error_is_raised_and_not_an_end() -> None:
    order = Order()
    x = engine.constant(1.0)
    session = training.MonitoredSession(hooks=[order])
    session.run(x)
    with pytest.raises(ValueError, match="of the user"), session:
        raise ValueError("of the user")
    assert order.calls == AROUND


class Wanting(training.SessionRunHook):
    """Fetches and feeds besides."""

    def __init__(self, fetches: Any, feeds: Any = None, *, stop: bool = False) -> None:
        self.args = training.SessionRunArgs(fetches, feeds)
        self.stop = stop
        self.results: list[Any] = []

    def before_run(self, run_context: training.SessionRunContext) -> training.SessionRunArgs:
        return self.args

    def after_run(self, run_context: Any, run_values: training.SessionRunValues) -> None:
        self.results.append(run_values.results)
        if self.stop:
            run_context.request_stop()


def test_what_hooks_fetch_and_feed() -> None:
    x = engine.placeholder("float32", [], name="x")
    y = engine.placeholder("float32", [], name="y")
    first = Wanting({"sum": x + y})
    second = Wanting(None, {y: 10.0}, stop=True)
    third = Wanting([x, "y:0"])
    product = x * y
    with training.MonitoredSession(hooks=[first, second, third]) as session:
        assert session.run({"product": product}, {x: 2.0}) == {"product": 20}
        assert session.should_stop()
    assert first.results == [{"sum": 12}]
    assert second.results == [None]
    assert third.results == [[2, 10]]


def test_one_tensor_is_fed_once() -> None:
    x = engine.placeholder("float32", [], name="x")
    hooks = [Wanting(None, {x: 1.0}), Wanting(None, {x: 2.0})]
    with (
        pytest.raises(InvalidArgumentError, match="two hooks feed x:0"),
        training.MonitoredSession(hooks=hooks) as session,
    ):
        session.run(x)
    with (
        pytest.raises(InvalidArgumentError, match="a hook feeds x:0, which is fed already"),
        training.MonitoredSession(hooks=hooks[:1]) as session,
    ):
        session.run(x, {x: 3.0})


class Failing:
    """A session that is lost at some of its runs."""

    def __init__(self, session: Any, errors: list[Exception | None]) -> None:
        self.session, self.errors = session, errors
        self.graph = session.graph

    def run(self, *args: Any, **kwargs: Any) -> Any:
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return self.session.run(*args, **kwargs)

    def close(self) -> None:
        self.session.close()


class Creator:
    """Makes sessions that fail: `errors` are those of all runs."""

    def __init__(self, creator: Any, errors: list[Exception | None]) -> None:
        self.creator, self.errors = creator, errors
        self.made = 0

    def create_session(self) -> Any:
        self.made += 1
        return Failing(self.creator.create_session(), self.errors)


@pytest.mark.parametrize("error", [AbortedError("lost"), UnavailableError("away")])
def test_a_lost_session_is_made_again_from_the_checkpoint(tmp_path: Path, error: Exception) -> None:
    counter = training.get_or_create_global_step()
    train = training.increment_global_step()
    w = engine.Variable(5.0, name="w")
    grow = w.assign_add(1.0)
    scaffold = training.Scaffold()
    order = Order()
    saver = training.CheckpointSaverHook(tmp_path, save_steps=1, scaffold=scaffold)
    creator = Creator(training.ChiefSessionCreator(scaffold, checkpoint_dir=str(tmp_path)), [])
    with training.MonitoredSession(creator, hooks=[saver, order]) as session:
        session.run([train, grow])
        creator.errors.append(error)
        step, value = session.run([train, grow])
        assert (int(step), float(value)) == (2, 7.0)
    assert creator.made == 2
    assert order.calls.count("after_create_session") == 2
    assert counter.name.startswith("global_step")


def test_an_error_of_the_user_is_not_tried_again() -> None:
    x = engine.constant(1.0)
    creator = Creator(training.ChiefSessionCreator(), [ValueError("bad")])
    with (
        pytest.raises(ValueError, match="bad"),
        training.MonitoredSession(creator) as session,
    ):
        session.run(x)
    assert creator.made == 1


def test_a_singular_session_is_not_made_again() -> None:
    x = engine.constant(1.0)
    session = training.SingularMonitoredSession()
    assert session.raw_session().run(x) == 1
    session.close()
    with pytest.raises(FailedPreconditionError, match="is closed"):
        session.close()


def test_queue_runners_run_and_their_errors_are_told() -> None:
    queue = engine.FIFOQueue(2, ["float32"], [[]])
    enqueue = queue.enqueue([engine.constant(1.0)])
    engine.add_queue_runner(engine.QueueRunner(queue, [enqueue]))
    x = queue.dequeue()
    with training.MonitoredSession() as session:
        assert [float(session.run(x)) for _ in range(5)] == [1.0] * 5


def test_the_error_of_a_thread_comes_before_its_consequence() -> None:
    queue = engine.FIFOQueue(2, ["float32"], [[]])
    index = engine.placeholder("int32", [], name="never_fed")
    engine.add_queue_runner(
        engine.QueueRunner(queue, [queue.enqueue([ops.cast(index, "float32")])])
    )
    x = queue.dequeue()
    with (
        pytest.raises(InvalidArgumentError, match="never_fed"),
        training.MonitoredSession() as session,
    ):
        session.run(x)


def test_input_that_ends_stops_the_training() -> None:
    names = engine.string_input_producer(["a", "b"], num_epochs=2, shuffle=False)
    name = names.dequeue()
    found = []
    with training.MonitoredSession() as session:
        while not session.should_stop():
            found.append(session.run(name))
    assert [bytes(np.asarray(n).item()) for n in found] == [b"a", b"b"] * 2


def test_parts_of_a_step() -> None:
    x = engine.constant(3.0)
    wanting = Wanting(None)

    def step_fn(step_context: training.StepContext) -> Any:
        without = step_context.session.run(x)
        assert not wanting.results
        found = step_context.run_with_hooks(x)
        assert wanting.results == [None]
        return float(without + found)

    def stop_fn(step_context: training.StepContext) -> None:
        step_context.request_stop()

    with training.MonitoredSession(hooks=[wanting]) as session:
        assert session.run_step_fn(step_fn) == 6
        with pytest.raises(InvalidArgumentError, match="expected a function of step_context"):
            session.run_step_fn(lambda other: None)
        session.run_step_fn(stop_fn)
        raise AssertionError("StopIteration ends the block")


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    losses = []
    for end in (3, 5):
        with engine.Graph().as_default():
            training.get_or_create_global_step()
            w = engine.Variable(0.0, name="w")
            with engine.control_dependencies([w.assign_add(1.0)]):
                train = training.increment_global_step()
            hooks = [training.StopAtStepHook(last_step=end)]
            with training.MonitoredTrainingSession(
                checkpoint_dir=tmp_path, hooks=hooks, save_checkpoint_steps=2
            ) as session:
                while not session.should_stop():
                    losses.append(int(session.run(train)))
    assert losses == [1, 2, 3, 4, 5]
    state = engine.get_checkpoint_state(tmp_path)
    assert state is not None
    steps = [int(p.rsplit("-", 1)[1]) for p in state.all_model_checkpoint_paths]
    assert steps[-1] == 5
    assert steps == sorted(steps)


def test_who_is_not_the_chief_saves_nothing(tmp_path: Path) -> None:
    x = engine.constant(2.0)
    order = Order()
    with training.MonitoredTrainingSession(
        is_chief=False, checkpoint_dir=tmp_path, hooks=[order], chief_only_hooks=[Order()]
    ) as session:
        assert session.run(x) == 2
    assert order.calls == [*AROUND, "end"]
    assert list(tmp_path.iterdir()) == []


def test_a_worker_waits_for_the_chief_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    engine.Variable(1.0, name="w")
    creator = training.WorkerSessionCreator(max_wait_secs=0.2)
    monkeypatch.setattr("laminar.engine.training.session_creators._RECOVERY_WAIT_SECS", 0.05)
    with pytest.raises(DeadlineExceededError, match="not ready after 0.2 seconds: .*w"):
        training.MonitoredSession(creator)
