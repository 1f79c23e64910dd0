"""The bound on how old the weights of an asynchronous update may be, without and with threads."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.distribute import Staleness

WAIT = 30.0


def apply(clock: Staleness, ticket: int) -> int:
    with clock.applying(ticket) as stale:
        return stale


def test_updates_of_others_are_counted() -> None:
    clock = Staleness()
    slow = clock.begin()
    for _ in range(3):
        assert apply(clock, clock.begin()) == 0
    assert apply(clock, slow) == 3
    assert clock.counts == {0: 3, 3: 1}
    assert (clock.max, clock.mean) == (3, 0.75)


def test_before_the_first_update() -> None:
    assert (Staleness().max, Staleness().mean, Staleness().counts) == (0, 0.0, {})


def test_what_fails_is_no_update() -> None:
    clock = Staleness(1)
    ticket = clock.begin()
    with pytest.raises(ValueError, match="no"), clock.applying(ticket):
        raise ValueError("no")
    clock.give_up(clock.begin())
    assert clock.counts == {}
    assert apply(clock, clock.begin()) == 0


@given(st.integers(0, 4), st.lists(st.integers(0, 9), max_size=60))
def test_whatever_the_order_the_bound_is_kept_and_somebody_can_go_on(
    most: int, choices: list[int]
) -> None:
    """The state machine without threads: begin where allowed, else apply whatever is allowed."""
    clock = Staleness(most)
    under_way: list[int] = []
    for choice in choices:
        if choice % 2 and len(under_way) <= most:
            under_way.append(clock.begin())
        elif under_way:
            free = [t for t in under_way if clock._may_apply(t)]
            assert under_way[0] in free  # the oldest
            ticket = free[choice % len(free)]
            assert apply(clock, ticket) <= most
            under_way.remove(ticket)
    assert clock.max <= most


@pytest.mark.parametrize("most", [0, 1, 2, None])
def test_threads_of_different_speed(most: int | None) -> None:
    clock = Staleness(most)
    applied = [0] * 4

    def work(i: int) -> None:
        for _ in range(20):
            ticket = clock.begin()
            time.sleep(0.002 if i == 0 else 0)
            with clock.applying(ticket):
                applied[i] += 1

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(WAIT)
        assert not t.is_alive()
    assert applied == [20] * 4
    assert sum(clock.counts.values()) == 80
    assert most is None or clock.max <= most
