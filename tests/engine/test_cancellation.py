"""Cancellation: callbacks run once, and managers nest."""

from __future__ import annotations

from typing import Any

from laminar.engine.cancellation import CancellationManager
from laminar.engine.errors import CancelledError, DeadlineExceededError


def test_callbacks_run_once() -> None:
    manager, seen = CancellationManager(), list[Any]()
    token = manager.register(seen.append)
    assert token is not None
    assert manager.error is None
    assert manager.cancel(DeadlineExceededError("late"))
    assert not manager.cancel()
    (error,) = seen
    assert error is manager.error
    assert isinstance(error, DeadlineExceededError)


def test_a_forgotten_callback_does_not_run() -> None:
    manager, seen = CancellationManager(), list[Any]()
    token = manager.register(seen.append)
    assert manager.deregister(token)
    assert not manager.deregister(token)
    manager.cancel()
    assert seen == []
    assert isinstance(manager.error, CancelledError)


def test_after_cancelling_nothing_is_registered() -> None:
    manager, seen = CancellationManager(), list[Any]()
    manager.cancel()
    assert manager.register(seen.append) is None
    assert not manager.deregister(None)
    assert seen == []


def test_a_parent_cancels_its_children_but_not_the_other_way() -> None:
    parent = CancellationManager()
    children = [CancellationManager(parent) for _ in range(2)]
    children[0].cancel(CancelledError("one"))
    assert parent.error is None
    assert children[1].error is None
    closed = CancellationManager(parent)
    closed.close()
    parent.cancel(CancelledError("all"))
    assert str(children[0].error).startswith("one")
    assert children[1].error is parent.error
    assert closed.error is None
    assert CancellationManager(parent).error is parent.error


def test_a_callback_may_use_the_manager() -> None:
    manager, seen = CancellationManager(), list[Any]()

    def callback(error: Any) -> None:
        seen.append((manager.register(seen.append), manager.deregister(0)))

    manager.register(callback)
    manager.cancel()
    assert seen == [(None, False)]
