"""How sessions come to be ready: initialised, restored or waited for; scaffolds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laminar import engine
from laminar.engine import training
from laminar.engine.errors import DeadlineExceededError, FailedPreconditionError
from laminar.engine.state import GraphKeys


@pytest.fixture(autouse=True)
def graph() -> Iterator[engine.Graph]:
    with engine.Graph().as_default() as made:
        yield made


def saved(folder: Path, value: float) -> None:
    """Save a variable `w` of that value."""
    with engine.Graph().as_default():
        w = engine.Variable(value, name="w")
        with engine.Session() as session:
            session.run(w.initializer)
            engine.Saver([w]).save(session, folder / "model.ckpt", global_step=1)


def test_a_checkpoint_takes_the_place_of_the_initialisation(tmp_path: Path) -> None:
    saved(tmp_path, 7.0)
    w = engine.Variable(1.0, name="w")
    local = engine.Variable(
        w * 2,
        name="local",
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES],
    )
    told: list[str] = []
    manager = training.SessionManager(
        local_init_op=engine.local_variables_initializer(),
        ready_op=engine.report_uninitialized_variables(),
        ready_for_local_init_op=engine.report_uninitialized_variables([w]),
    )
    saver = engine.Saver([w])
    init = engine.variables_initializer([w])
    for folder, wanted in ((str(tmp_path), 7.0), (str(tmp_path / "none"), 1.0)):
        with manager.prepare_session(
            init_op=init,
            saver=saver,
            checkpoint_dir=folder,
            init_fn=lambda session: told.append("init_fn"),
        ) as session:
            assert [float(x) for x in session.run([w, local])] == [wanted, 2 * wanted]
    assert told == ["init_fn"]
    with manager.prepare_session(
        saver=saver, checkpoint_filename_with_path=str(tmp_path / "model.ckpt-1")
    ) as session:
        assert float(session.run(w)) == 7


def test_what_is_forgotten_is_named() -> None:
    engine.Variable(1.0, name="kept")
    with engine.name_scope("scope"):
        engine.Variable(2.0, name="forgotten")
    first = engine.global_variables()[:1]
    manager = training.SessionManager(ready_op=engine.report_uninitialized_variables())
    with pytest.raises(FailedPreconditionError, match="not initialized: scope/forgotten"):
        manager.prepare_session(init_op=engine.variables_initializer(first))
    with pytest.raises(FailedPreconditionError, match="there is no checkpoint, no init_op"):
        manager.prepare_session()


def test_local_variables_wait_for_what_they_need() -> None:
    w = engine.Variable(1.0, name="w")
    manager = training.SessionManager(
        local_init_op=engine.no_op(),
        ready_for_local_init_op=engine.report_uninitialized_variables([w]),
    )
    with pytest.raises(FailedPreconditionError, match="ready for the local init.*: w"):
        manager.prepare_session(init_op=engine.no_op())
    with pytest.raises(FailedPreconditionError, match="without a local_init_op"):
        training.SessionManager(ready_for_local_init_op=engine.report_uninitialized_variables([w]))


def test_recovering_says_whether_it_is_ready(tmp_path: Path) -> None:
    saved(tmp_path, 3.0)
    w = engine.Variable(1.0, name="w")
    manager = training.SessionManager(ready_op=engine.report_uninitialized_variables())
    saver = engine.Saver([w])
    session, is_ready = manager.recover_session(saver=saver, checkpoint_dir=str(tmp_path))
    with session:
        assert is_ready
        assert float(session.run(w)) == 3
    session, is_ready = manager.recover_session(saver=saver, checkpoint_dir=str(tmp_path / "none"))
    session.close()
    assert not is_ready


def test_a_worker_begins_when_the_chief_is_ready() -> None:
    with engine.container("shared_by_a_chief_and_a_worker"):
        shared = engine.Variable(5.0, name="shared")
    init = shared.initializer
    manager = training.SessionManager(
        ready_op=engine.report_uninitialized_variables([shared]), recovery_wait_secs=0.05
    )
    found: list[Any] = []

    def work() -> None:
        with manager.wait_for_session(max_wait_secs=20) as session:
            found.append(float(session.run(shared)))

    thread = threading.Thread(target=work)
    try:
        with pytest.raises(DeadlineExceededError, match="not ready after 0.1 seconds: .*shared"):
            manager.wait_for_session(max_wait_secs=0.1)
        thread.start()
        with engine.Session() as chief:
            chief.run(init)
            thread.join(20)
        assert found == [5.0]
    finally:
        engine.Session.reset("", ["shared_by_a_chief_and_a_worker"])


def test_a_scaffold_makes_what_is_missing_and_freezes_the_graph(graph: engine.Graph) -> None:
    w = engine.Variable(1.0, name="w")
    given = engine.no_op()
    scaffold = training.Scaffold(local_init_op=given)
    scaffold.finalize()
    scaffold.finalize()
    assert graph.finalized
    assert scaffold.local_init_op is given
    assert scaffold.summary_op is None
    assert graph.get_collection(GraphKeys.INIT_OP) == [scaffold.init_op]
    assert graph.get_collection(GraphKeys.SAVERS) == [scaffold.saver]
    with engine.Session() as session:
        assert list(session.run(scaffold.ready_op)) == [b"w"]
        session.run(scaffold.init_op)
        assert list(session.run(scaffold.ready_op)) == []
        assert session.run(w) == 1


def test_a_scaffold_takes_what_is_listed(graph: engine.Graph) -> None:
    engine.Variable(1.0, name="w")
    listed = engine.no_op()
    graph.add_to_collection(GraphKeys.LOCAL_INIT_OP, listed)
    seen: list[Any] = []
    first = training.Scaffold(init_fn=lambda scaffold, session: seen.append(scaffold))
    other = training.Scaffold(copy_from_scaffold=first).finalize()
    assert other.local_init_op is listed
    assert other.init_fn is not None
    with engine.Session() as session:
        other.init_fn(session)
    assert seen == [other]


def test_two_of_a_kind_are_no_default(graph: engine.Graph) -> None:
    for _ in range(2):
        graph.add_to_collection(GraphKeys.READY_OP, engine.no_op())
    with pytest.raises(FailedPreconditionError, match="'ready_op' has 2 items, it must have one"):
        training.Scaffold().finalize()
