"""Ops that are slow or fail, the steps of tests in threads, the plans of parts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine as eng
from laminar.engine.errors import OutOfRangeError
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core import basic
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math import arithmetic
from laminar.engine.runtime import PartitionedPlan, Plan, SessionConfig

# In a graph they give symbols, which have an operation.
add: Any = arithmetic.add
multiply: Any = arithmetic.multiply
identity: Any = basic.identity
TWO = SessionConfig(device_count={"cpu": 2})
THREE = SessionConfig(device_count={"cpu": 3})
WAIT = 60.0  # seconds after which a test has failed
events: list[tuple[str, str, float, int]] = []


@define("TestSlow", dtypes=FLOATING)
def slow(x: TensorSpec, *, label: str, seconds: float) -> TensorSpec:
    """x + 1, after a while."""
    return x


@slow.reference
def _slow(xp: Any, x: Any, *, label: str, seconds: float) -> Any:
    thread = threading.get_ident()
    events.append(("start", label, time.monotonic(), thread))
    time.sleep(seconds)
    events.append(("end", label, time.monotonic(), thread))
    return x + 1


@define("TestBroken", dtypes=FLOATING)
def broken(x: TensorSpec, *, error: str) -> TensorSpec:
    """Raises, when x is not 0."""
    return x


@broken.reference
def _broken(xp: Any, x: Any, *, error: str) -> Any:
    if float(np.sum(x)):
        raise {"value": ValueError("bad value"), "range": OutOfRangeError("the end")}[error]
    return x


def in_thread(fn: Callable[[], Any]) -> Any:
    """What `fn` gives, in a thread that is not waited for longer than WAIT."""
    box: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            box.append(fn())
        except BaseException as error:  # it is raised below
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(WAIT)
    assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]
    return box[0]


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Call `work(i)` in a thread each; the first error is raised."""
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            work(i)
        except BaseException as error:  # it is raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]


def plan_of(session: eng.Session) -> Plan | PartitionedPlan:
    """What the session runs for the one signature that it has run."""
    (signature,) = vars(session._engine)["_signatures"].values()
    plan: Plan | PartitionedPlan = signature.plan
    return plan


def parts_of(session: eng.Session) -> PartitionedPlan:
    """The same, which is on several devices."""
    plan = plan_of(session)
    assert isinstance(plan, PartitionedPlan)
    return plan
