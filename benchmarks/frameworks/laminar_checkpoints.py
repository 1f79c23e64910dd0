"""Saving, loading and watching in laminar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import laminar
from laminar import engine
from laminar.engine.saving import BackgroundWriter

from ..cases import Case
from ..checkpoints import Blocking, Files, Hooks, Loading, Saving
from ..problems import Problem

_HOOKS = 10


class Checkpoints(Files):
    """Variables in checkpoints of objects."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.variables = [engine.Variable(array) for array in self.arrays]
        self.checkpoint = engine.Checkpoint(variables=self.variables)

    def save(self) -> None:
        self.checkpoint.write(self.folder / "saved")

    def load(self) -> Sequence[Any]:
        self.checkpoint.read(self.folder / "saved").assert_consumed()
        return self.variables


def blocking(problem: Problem) -> Case:
    files = Checkpoints(problem)
    writer = BackgroundWriter()

    @laminar.function
    def step() -> Any:
        for variable in files.variables:
            variable.assign(variable * 0.999)
        return files.variables[0][0, 0]

    return Blocking(
        lambda: files.checkpoint.write(files.folder / "saved", background=writer),
        writer.wait,
        step,
        lambda: files.variables,
    )


class Idle(engine.SessionRunHook):
    """Does nothing."""


def hooks() -> Case:
    graph = engine.Graph()
    with graph.as_default():
        total = engine.Variable(0.0, name="total", trainable=False)
        engine.get_or_create_global_step()
        step = total.assign_add(1.0)
        bare = engine.MonitoredSession()
        watched = engine.MonitoredSession(hooks=[Idle() for _ in range(_HOOKS)])
    return Hooks(lambda: bare.run(step), lambda: watched.run(step), _HOOKS)


CASES: dict[str, Callable[[Problem], Case]] = {
    "save-50m": lambda p: Saving(Checkpoints(p)),
    "save-50m-blocking": blocking,
    "load-50m": lambda p: Loading(Checkpoints(p)),
    "idle-hook": lambda _: hooks(),
}
