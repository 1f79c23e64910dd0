"""What a model keeps of `compile`: the arguments, and what has been made of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from laminar import metrics

from .compiled_loss import CompiledLoss
from .compiled_metrics import CompiledMetrics


class Compiled:
    """The losses and metrics of a model, and its traced steps.

    Args:
        config: the arguments of `compile`.
        output_names: the names of the model's outputs, as far as they are known.

    Attributes:
        loss: None when there is none but what layers add.
        loss_tracker: the mean of the loss.
        steps: the step functions made so far, by kind.
        strategy: which devices share the work, None for no sharing.
        trained: what the train step was traced for: how often the optimizer's groups had changed,
            and the ids of the variables.
        changes: the `trainable_changes()`, and those of the groups, when `trained` was found.
    """

    def __init__(self, config: dict[str, Any], output_names: Sequence[str]) -> None:
        self.config = config
        self.loss = (
            None
            if config["loss"] is None
            else CompiledLoss(config["loss"], config["loss_weights"], output_names)
        )
        self.metrics = CompiledMetrics(config["metrics"], config["weighted_metrics"], output_names)
        self.loss_tracker = metrics.Mean(name="loss")
        self.steps: dict[str, Any] = {}
        self.strategy: Any = None
        self.trained: tuple[int, ...] = ()
        self.changes: Any = None
        self._reported: dict[tuple[int, str], metrics.Mean] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        """For a copy of the model: nothing has been traced, or told apart by id, for that."""
        new = copy.copy(self)
        memo[id(self)] = new
        new.config = copy.deepcopy(self.config, memo)
        new.loss = copy.deepcopy(self.loss, memo)
        new.metrics = copy.deepcopy(self.metrics, memo)
        new.loss_tracker = copy.deepcopy(self.loss_tracker, memo)
        new.steps, new.trained, new.changes, new._reported = {}, (), None, {}
        return new

    @property
    def trackers(self) -> list[metrics.Mean]:
        """The means of the loss, and of those of the outputs when there are several."""
        return [self.loss_tracker, *(self.loss.trackers if self.loss is not None else ())]

    @property
    def own_metrics(self) -> list[Any]:
        """All metrics but those that layers hold."""
        return [*self.trackers, *self.metrics.metrics, *self.reported]

    @property
    def reported(self) -> list[metrics.Mean]:
        """The means of what layers report with `add_metric`."""
        return list(self._reported.values())

    def tracker_for(self, layer: Any, name: str) -> metrics.Mean | None:
        """The mean of what `layer` reports as `name`; None if a metric that it holds does that."""
        found = self._reported.get((id(layer), name))
        if found is None:
            if any(metric.name == name for metric in layer._laminar_own_metrics):
                return None
            taken = {metric.name for metric in self.reported} | set(self.metrics.by_key)
            count, free = 1, name
            while free in taken:
                free, count = f"{name}_{count}", count + 1
            found = self._reported[id(layer), name] = metrics.Mean(name=free)
        return found
