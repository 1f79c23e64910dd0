"""The step of asynchronous training: gradients on a device, then updates, one at a time."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.distribute.asynchronous import AsyncStep
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import Function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph.context import device
from laminar.tree import flatten

from .compiled import Compiled
from .data import unpack_x_y_sample_weight
from .step import Step


def async_step(model: Any, compiled: Compiled, *, has_own_step: bool) -> AsyncStep:
    """A step of training on one of the devices of the model's strategy, whichever is free.

    Raises:
        InvalidArgumentError: the model runs eagerly, or has a `train_step` of its own, which does
            not say where the gradients end and the update begins.
    """
    if has_own_step or model.run_eagerly:
        what = "a train_step of its own" if has_own_step else "run_eagerly"
        raise InvalidArgumentError(
            f"{model.who}: asynchronous training does not go with {what}",
            remedy='use DataParallel(mode="sync"), or leave it to fit() to compute gradients',
        )
    strategy = compiled.strategy
    native = model.jit_compile is not False
    computes = [
        Step(_gradients_on(model, name), eager=False, native=native, machine=strategy.machine)
        for name in strategy.devices
    ]

    def prepare(batch: Any) -> None:
        for step in computes:
            step.trace(batch)  # here: a trace leaves its losses with the layers for a while

    return AsyncStep(computes, Function(_update(model, compiled)), strategy.staleness, prepare)


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
        compiled.loss_tracker.update_state(loss, sample_weight=ops.shape(flatten(x)[0])[0])
        results: dict[str, Any] = model.compute_metrics(x, y, y_pred, sample_weight)
        return results

    return update
