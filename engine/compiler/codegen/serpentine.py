"""Which end of its memory a kernel begins at.

What is larger than a cache has been driven out of it from the front when its end is reached. So a
kernel begins at the end where the one before it has stopped: with what is still there. Each thread
keeps its share, in either direction.
"""

from __future__ import annotations

from collections.abc import Callable

from . import driver
from .control import loop, repeat, when
from .function import IRFunction, Value

# The direction of a kernel by that of the one before it. What multiplies matrices, sums parts or
# belongs to a loop always goes forward. Before the first kernel comes the last run.
NEXT = {
    driver.FORWARD: driver.BACKWARD,
    driver.BACKWARD: driver.FORWARD,
    driver.THERE: driver.BACK,
    driver.BACK: driver.THERE,
}


def serpentine_loop(
    fn: IRFunction,
    back: Value | None,
    start: Value,
    stop: Value,
    step: int,
    body: Callable[[Value], None],
) -> None:
    """Run `body(i)` for i = start, start + step, ... below `stop`; where `back`, from the last on.

    `stop - start` is a multiple of `step`. Without `back` there is one direction only.
    """
    if back is None:
        loop(fn, start, stop, step, body)
        return
    first = fn.select(back, stop - step, start)
    end = fn.select(back, start - step, stop)
    by = fn.select(back, fn.number(-step), fn.number(step))

    def again(i: Value) -> tuple[Value, Value]:
        body(i)
        following = i + by
        return following, following != end

    when(fn, start < stop, lambda: repeat(fn, first, again))
