"""Transports: one table says how values get from device to device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import AlreadyExistsError, InternalError, NotFoundError

TWO = eng.SessionConfig(device_count={"cpu": 2})
Sent = list[tuple[str, str, tuple[int, ...]]]


@pytest.fixture
def sent() -> Iterator[Sent]:
    """What has gone by a transport between CPUs, which doubles it."""
    found: Sent = []

    def doubling(value: Any, source: eng.Device, target: eng.Device) -> Any:
        found.append((source.name[-5:], target.name[-5:], value.shape))
        return target.put(2 * value)

    eng.register_transport("CPU", "cpu", doubling)
    yield found
    eng.unregister_transport("cpu", "cpu")


def there_and_back() -> tuple[Any, Any]:
    with eng.device("cpu:0"):
        x = eng.placeholder("float32", [None], name="x")
        a = ops.exp(x)
    with eng.device("cpu:1"):
        b = a + 1.0
    with eng.device("cpu:0"):
        return x, b * a


def test_it_takes_what_crosses_and_nothing_else(sent: Sent) -> None:
    data = np.array([0.0, 1.0, 2.0], np.float32)
    with eng.Graph().as_default(), eng.Session(config=TWO) as session:
        x, y = there_and_back()
        found = session.run(y, {x: data})
        e = np.exp(data.astype("float64"))
        np.testing.assert_allclose(found, 2 * (2 * e + 1) * e, rtol=1e-6)
    assert sent == [("cpu:0", "cpu:1", (3,)), ("cpu:1", "cpu:0", (3,))]


def test_without_it_values_go_as_before() -> None:
    with eng.Graph().as_default(), eng.Session(config=TWO) as session:
        x, y = there_and_back()
        found = session.run(y, {x: np.zeros(2, np.float32)})
    np.testing.assert_array_equal(found, [2.0, 2.0])


def test_one_that_fails_ends_the_step_alone() -> None:
    def broken(value: Any, source: eng.Device, target: eng.Device) -> Any:
        raise OSError("the cable is out")

    with eng.Graph().as_default(), eng.Session(config=TWO) as session:
        x, y = there_and_back()
        feeds = {x: np.zeros(2, np.float32)}
        eng.register_transport("cpu", "cpu", broken)
        try:
            with pytest.raises(InternalError, match="the cable is out"):
                session.run(y, feeds)
        finally:
            eng.unregister_transport("cpu", "cpu")
        np.testing.assert_array_equal(session.run(y, feeds), [2.0, 2.0])


def test_there_is_one_for_two_types(sent: Sent) -> None:
    with pytest.raises(AlreadyExistsError, match="from 'cpu' to 'cpu'"):
        eng.register_transport("cpu", "cpu", lambda value, source, target: value)
    with pytest.raises(NotFoundError, match="from 'cpu' to 'gpu'"):
        eng.unregister_transport("cpu", "gpu")
    with pytest.raises(TypeError, match="got 3"):
        eng.register_transport("cpu", "gpu", 3)  # type: ignore[arg-type]  # it is wrong
