"""Containers of resources."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from laminar.engine.runtime.resources import SHARED, ResourceManager, SessionResources


def test_a_resource_is_made_once() -> None:
    manager = ResourceManager()
    first = manager.get("", "queue", object)
    assert manager.get("", "queue", object) is first
    assert manager.get("", "other", object) is not first
    assert manager.get("box", "queue", object) is not first


def test_an_error_of_the_maker_leaves_nothing() -> None:
    manager = ResourceManager()
    with pytest.raises(ZeroDivisionError):
        manager.get("", "x", lambda: 1 / 0)
    assert manager.get("", "x", lambda: "made") == "made"


def test_reset() -> None:
    manager = ResourceManager()
    first = {name: manager.get(name, "x", object) for name in ("", "a", "b")}
    manager.reset(["a", "missing"])
    assert manager.get("a", "x", object) is not first["a"]
    assert manager.get("b", "x", object) is first["b"]
    manager.reset()
    assert manager.get("b", "x", object) is not first["b"]
    assert manager.get("", "x", object) is not first[""]


def test_threads_get_one_resource() -> None:
    manager = ResourceManager()
    barrier = threading.Barrier(8)
    found: list[Any] = []

    def work() -> None:
        barrier.wait()
        found.append(manager.get("", "x", object))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_a_session_sees_its_own_and_the_shared_ones() -> None:
    one, two = SessionResources(), SessionResources()
    own = one.get("", "x", object)
    assert two.get("", "x", object) is not own
    shared = one.get("TestShared", "x", object)
    assert two.get("TestShared", "x", object) is shared
    one.clear()
    assert one.get("", "x", object) is not own
    assert one.get("TestShared", "x", object) is shared
    SHARED.reset(["TestShared"])
    assert two.get("TestShared", "x", object) is not shared
    SHARED.reset(["TestShared"])
