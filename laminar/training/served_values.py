"""The variables of a model as servers keep them, and as this process has them.

State of `ServedValues`: `_held[i]` is the array that variable i had when both had the same, None
where that is not known. Native code writes into arrays that nobody else holds, so a variable that
still has that array has not changed.
"""

from __future__ import annotations

import itertools
from typing import Any

from laminar.distribute.parameter_server import ParameterServer
from laminar.engine.state import Variable
from laminar.random.seeds import global_seed_generator

from .server_graph import ModelParts, WorkerGraph

_numbers = itertools.count()


class ServedValues:
    """What the servers keep of a model.

    Args:
        model: it is built, and so is its optimizer.
        strategy: the servers and workers.

    Attributes:
        parts: what the graphs of workers are built from.
    """

    def __init__(self, model: Any, strategy: ParameterServer) -> None:
        self.strategy = strategy
        self.parts = _parts(model, f"{model.name}_{next(_numbers)}")
        self._variables = [*self.parts.weights, *self.parts.slots]
        self._held: list[Any] = [None] * len(self._variables)
        trained = {id(v) for v in model.trainable_weights} | {id(v) for v in self.parts.slots}
        self._trained = [i for i, v in enumerate(self._variables) if id(v) in trained]
        self._scalars = [i for i in self._trained if self._variables[i].shape.rank == 0]

    def is_of(self, model: Any, *, training: bool) -> bool:
        """Whether the model's variables, or what a test uses of them, are still these."""
        now = _parts(model, self.parts.name)
        pairs = [(self.parts.weights, now.weights), (self.parts.state, now.state)]
        if training:
            pairs += [(self.parts.slots, now.slots)]
            trained = {id(v) for v in (*model.trainable_weights, *now.slots)}
            if trained != {id(self._variables[i]) for i in self._trained}:
                return False
        return all([id(v) for v in a] == [id(v) for v in b] for a, b in pairs)

    def forget(self) -> None:
        """The servers may have lost what they had."""
        self._held = [None] * len(self._variables)

    def changed(self, made: WorkerGraph, *, scalars: bool = False) -> list[int]:
        """The variables of a graph, by number, that are not here what they are on the servers.

        Args:
            made: the graph.
            scalars: whether single numbers of the optimizer alone are looked at.
        """
        looked_at = self._scalars if scalars else range(len(made.pushes))
        return [i for i in looked_at if _array(self._variables[i]) is not self._held[i]]

    def push(self, worker: Any, numbers: list[int]) -> None:
        """Give variables on the servers the values that they have here."""
        made: WorkerGraph = worker.made
        arrays = {i: _array(self._variables[i]) for i in numbers}
        feeds = {made.pushes[i][0]: array for i, array in arrays.items()}
        worker.run([made.pushes[i][1] for i in numbers], feeds)
        for i, array in arrays.items():
            self._held[i] = array

    def pull(self, worker: Any) -> None:
        """Give what is trained the values here that it has on the servers."""
        made: WorkerGraph = worker.made
        found = worker.run([made.values[i] for i in self._trained])
        for i, value in zip(self._trained, found, strict=True):
            self._variables[i].assign(value)
            self._held[i] = _array(self._variables[i])


def _array(variable: Variable) -> Any:
    return variable.store.value_or_none()


def _parts(model: Any, name: str) -> ModelParts:
    layers = model._laminar_flatten_layers()
    generators = [global_seed_generator(), *(s for part in layers for s in part._laminar_own_seeds)]
    seeds = list({id(s.state): s.state for s in generators}.values())
    metrics = [v for metric in model.metrics for v in metric.variables]
    state = list({id(v): v for v in metrics}.values())
    others = {id(v) for v in (*seeds, *state)}
    weights = [v for v in model.variables if id(v) not in others]
    compiled = model._laminar_require_compiled("fit")
    slots = [] if model.optimizer is None else list(model.optimizer.variables)
    asked = bool(compiled.metrics.metrics) or _has_own_metrics(model)
    return ModelParts(model, name, weights, slots, state, seeds, asked)


def _has_own_metrics(model: Any) -> bool:
    """Whether the model's class says what metrics are made of."""
    made = type(model).compute_metrics
    return not made.__module__.startswith("laminar.training")
