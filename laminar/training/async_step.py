"""The step of asynchronous training: gradients on a device, then updates, one at a time."""

from __future__ import annotations

from typing import Any

from laminar.distribute.asynchronous import AsyncStep
from laminar.engine.devices import device
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import Function
from laminar.engine.gradients import GradientTape
from laminar.naming import who

from .compiled import Compiled
from .data import unpack_x_y_sample_weight
from .outputs import batch_size
from .step import Step


class AsyncTrainStep(AsyncStep):
    """A step of training on one of the devices of a strategy, whichever is free.

    Args:
        model: what is trained.
        compiled: what it was compiled with.
        serial: the same step without concurrency, for what looks at one step at a time.

    Raises:
        InvalidArgumentError: the model runs eagerly, or has a `train_step` of its own, which does
            not say where the gradients end and the update begins.
    """

    def __init__(self, model: Any, compiled: Compiled, serial: Step, *, has_own_step: bool) -> None:
        if has_own_step or model.run_eagerly:
            what = "a train_step of its own" if has_own_step else "run_eagerly"
            raise InvalidArgumentError(
                f"{who(model)}: asynchronous training does not go with {what}",
                remedy='use DataParallel(mode="sync"), or leave it to fit() to compute gradients',
            )
        strategy = compiled.strategy
        native = model.jit_compile is not False
        self._serial = serial
        self._steps = [
            Step(_gradients_on(model, name), eager=False, native=native, strategy=strategy)
            for name in strategy.devices
        ]
        update = Function(_update(model, compiled))
        super().__init__(self._steps, update, strategy.staleness, self.trace)

    @property
    def compiles(self) -> list[Any]:
        """As those of a `Step`: what was compiled for all devices."""
        return [event for step in (*self._steps, self._serial) for event in step.compiles]

    def trace(self, batch: Any) -> None:
        """Make the graphs for batches of this form. In the thread of whoever has the batch: a trace
        leaves its losses with the layers for a while."""
        for step in self._steps:
            step.trace(batch)

    def traced(self) -> Step:
        """The step on one batch after the other, traced."""
        return self._serial.traced()


def _gradients_on(model: Any, name: str) -> Any:
    """What a device computes from a batch."""

    def compute(data: Any) -> Any:
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        try:
            with device(name):
                with GradientTape() as tape:
                    y_pred = model(x, training=True)
                    loss = model.compute_loss(x, y, y_pred, sample_weight)
                    scaled = model.optimizer.scale_loss(loss)
                variables = model.trainable_weights
                gradients = tape.gradient(scaled, variables) if variables else []
            return gradients, loss, x, y, y_pred, sample_weight
        finally:
            model._clear_losses()  # symbols of the trace

    return compute


def _update(model: Any, compiled: Compiled) -> Any:
    """What is done with it: the weights, the loss, and the metrics are updated."""

    def update(found: Any) -> dict[str, Any]:
        gradients, loss, x, y, y_pred, sample_weight = found
        variables = model.trainable_weights
        if variables:
            model.optimizer.apply(gradients, variables)
        compiled.loss_tracker.update_state(loss, sample_weight=batch_size(x))
        results: dict[str, Any] = model.compute_metrics(x, y, y_pred, sample_weight)
        return results

    return update
