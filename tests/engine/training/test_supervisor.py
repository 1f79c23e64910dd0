"""The supervisor: managed sessions, their threads, and the loop around them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine import summary, training
from laminar.engine.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)


@pytest.fixture(autouse=True)
def graph() -> Iterator[engine.Graph]:
    with engine.Graph().as_default() as made:
        yield made


def wait_for(ready: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def events(folder: Path) -> list[summary.Event]:
    found = []
    for path in sorted(folder.glob("events.*")):
        found += list(summary.read_events(path))
    return found


def test_threads_save_and_summarise(tmp_path: Path) -> None:
    summary.scalar("x", 2.5)
    w = engine.Variable(1.0, name="w")
    train = training.increment_global_step()
    supervisor = training.Supervisor(
        logdir=tmp_path, save_summaries_secs=0.05, save_model_secs=0.05
    )
    with pytest.raises(FailedPreconditionError, match="finalized"):
        engine.constant(1.0)
    with supervisor.managed_session() as session:
        assert not supervisor.should_stop()
        session.run([train, w])
        wait_for(lambda: (engine.latest_checkpoint(tmp_path) or "").endswith("-1"))
        time.sleep(0.15)
    assert supervisor.should_stop()
    found = events(tmp_path)
    tags = {v.tag for e in found if e.summary for v in e.summary.value}
    assert tags == {"x", "global_step/sec"}
    kinds = [e.session_log.status for e in found if e.session_log]
    log = summary.SessionLog
    assert kinds[0] == log.START
    assert kinds[-1] == log.STOP
    assert log.CHECKPOINT in kinds
    assert sum(e.graph_def is not None for e in found) == 1
    with supervisor.managed_session(start_standard_services=False) as session:
        assert int(session.run(supervisor.global_step)) == 1  # from the checkpoint


def test_ends_and_errors(tmp_path: Path) -> None:
    x = engine.constant(1.0)
    supervisor = training.Supervisor(logdir=tmp_path)
    with supervisor.managed_session() as session:
        session.run(x)
        raise OutOfRangeError("the input is at its end")
    with pytest.raises(ValueError, match="of the user"), supervisor.managed_session() as session:
        raise ValueError("of the user")
    assert supervisor.should_stop()
    with pytest.raises(FailedPreconditionError, match="is closed"):
        session.run(x)


def test_input_that_ends_stops_it() -> None:
    names = engine.string_input_producer(["a", "b"], num_epochs=3, shuffle=False)
    name = names.dequeue()
    supervisor = training.Supervisor()
    found = 0
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            session.run(name)
            found += 1
    assert found == 6


def test_a_summary_by_hand(tmp_path: Path) -> None:
    message = summary.scalar("x", 2.5)
    supervisor = training.Supervisor(logdir=tmp_path, summary_op=None)
    with supervisor.managed_session(start_standard_services=False) as session:
        supervisor.summary_computed(session, session.run(message), 7)
    assert [(e.step, e.summary.value[0].tag) for e in events(tmp_path) if e.summary] == [(7, "x")]
    with engine.Graph().as_default():
        without = training.Supervisor()
        with without.managed_session() as session, pytest.raises(FailedPreconditionError):
            without.summary_computed(session, b"")


def test_who_is_not_the_chief_waits_and_serves_nothing(tmp_path: Path) -> None:
    x = engine.constant(1.0)
    supervisor = training.Supervisor(is_chief=False, logdir=tmp_path, recovery_wait_secs=0.05)
    with supervisor.managed_session() as session:
        assert session.run(x) == 1
        with pytest.raises(FailedPreconditionError, match="only the chief"):
            supervisor.start_standard_services(session)
    assert list(tmp_path.iterdir()) == []


def test_the_loop_begins_anew_where_a_session_is_lost() -> None:
    supervisor = training.Supervisor()
    calls: list[Any] = []

    def step(session: Any, a: int, b: int = 0) -> None:
        calls.append((session, a, b))
        if len(calls) == 2:
            raise AbortedError("lost")
        if len(calls) == 4:
            supervisor.request_stop()

    def fail(session: Any) -> None:
        raise ValueError("bad")

    training.basic_train_loop(supervisor, step, (1,), {"b": 2})
    assert [c[1:] for c in calls] == [(1, 2)] * 4
    assert len({id(c[0]) for c in calls}) == 2
    with pytest.raises(ValueError, match="bad"):
        training.basic_train_loop(supervisor, fail)


def test_variables_of_others_are_somewhere_else() -> None:
    with engine.device("/job:ps/task:0"):
        engine.Variable(1.0, name="shared")
    training.Supervisor(is_chief=False)
    with engine.Graph().as_default():
        engine.Variable(1.0, name="own")
        with pytest.raises(InvalidArgumentError, match="own must have their device set"):
            training.Supervisor(is_chief=False)


def test_a_counter_is_known_by_its_name() -> None:
    engine.Variable(np.int64(287), name="global_step")
    supervisor = training.Supervisor()
    with supervisor.managed_session() as session:
        assert int(session.run(supervisor.global_step)) == 287
