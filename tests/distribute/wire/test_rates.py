from __future__ import annotations

import pytest

from laminar.distribute.wire import Channels, RateLimit
from laminar.engine.errors import InvalidArgumentError, ResourceExhaustedError
from tests.distribute.wire.harness import SECONDS, served


def test_rates() -> None:
    now = 0.0
    limit = RateLimit(3, 6.0, "sessions", clock=lambda: now)
    for _ in range(3):
        limit.check("a")
    with pytest.raises(ResourceExhaustedError, match="a: more than 3 of sessions in 6 s"):
        limit.check("a")
    limit.check("b")
    now = 2.0  # one has come back
    limit.check("a")
    with pytest.raises(ResourceExhaustedError):
        limit.check("a")
    now = 100.0
    for _ in range(3):
        limit.check("a")
    with pytest.raises(ResourceExhaustedError):
        limit.check("a")
    with pytest.raises(InvalidArgumentError, match="above 0"):
        RateLimit(0, 1.0, "sessions")


def test_who_calls_once_is_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laminar.distribute.wire.rates._MOST_BUCKETS", 10)
    now = 0.0
    limit = RateLimit(1, 1.0, "sessions", clock=lambda: now)
    for i in range(100):
        now += 0.5
        limit.check(str(i))
    assert len(limit._buckets) <= 11


def test_methods_of_a_server_are_limited() -> None:
    methods = {"a.B/Open": lambda request, call: b"", "a.B/Use": lambda request, call: b""}
    with (
        served(methods, rates={"a.B/Open": RateLimit(2, 60.0, "sessions")}) as server,
        Channels() as channels,
    ):
        for _ in range(2):
            channels.unary(server.address, "a.B/Open", b"", SECONDS)
        with pytest.raises(ResourceExhaustedError, match="loopback: more than 2 of sessions"):
            channels.unary(server.address, "a.B/Open", b"", SECONDS)
        for _ in range(5):
            channels.unary(server.address, "a.B/Use", b"", SECONDS)
