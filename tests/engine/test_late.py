"""Modules that are loaded when something of them is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from laminar import engine
from laminar.engine import checkpoint, state

PROGRAM = """
import sys
from laminar import engine, ops
ops.ones((2,))
rooms = ("saving", "training", "summary", "state.queues", "state.readers", "state.batching")
rooms = (*rooms, "checkpoint.reader")
before = [r for r in rooms if f"laminar.engine.{r}" in sys.modules]
assert not before, before
engine.FIFOQueue, engine.Saver, engine.MonitoredSession, engine.summary.scalar
after = [r for r in rooms if f"laminar.engine.{r}" not in sys.modules]
assert after == ["state.readers", "state.batching"], after
"""


def test_what_a_program_does_without_is_not_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("package", "some"),
    [
        (engine, {"FIFOQueue", "get_variable", "TensorArray"}),
        (state, {"FIFOQueue", "get_variable", "TensorArray"}),
        (checkpoint, {"CheckpointReader", "load_variable", "write_checkpoint"}),
    ],
)
def test_all_names_are_there(package: object, some: set[str]) -> None:
    names = [name for name in dir(package) if not name.startswith("_")]
    assert some <= set(names)
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        package.Nothing  # type: ignore[attr-defined]  # noqa: B018  # what is not there
