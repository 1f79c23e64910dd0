"""What the program that leads does with what workers found: the loss and the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from laminar import ops
from laminar.layers.masking import set_mask
from laminar.tree import flatten, map_structure

from .batches import as_tensor
from .compiled import Compiled
from .data import unpack_x_y_sample_weight
from .outputs import batch_size
from .server_graph import WorkerGraph
from .step import Step


class Reporter:
    """Updates the loss and the metrics of a model.

    Args:
        model: whose they are.
        compiled: what it was compiled with.
        made: the graph of the workers: all are alike.
        native: whether to run native code where there is some.
    """

    def __init__(self, model: Any, compiled: Compiled, made: WorkerGraph, *, native: bool) -> None:
        self._model, self._compiled, self._made = model, compiled, made
        self._step = Step(self._update, eager=False, native=native)

    def __call__(self, batch: Any, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values to report after a batch, of which workers have found so much."""
        single = [np.atleast_1d(found["loss"]), *(np.reshape(r, 1) for r in found["reports"])]
        arrays = (single, found["outputs"], found["masks"])
        loss, outputs, masks = map_structure(lambda a: as_tensor(np.asarray(a)), arrays)
        results: Mapping[str, Any] = self._step((loss, batch, outputs, masks))
        return results

    def _update(self, given: Any) -> dict[str, Any]:
        (loss, *reports), batch, outputs, masks = given
        x, y, sample_weight = unpack_x_y_sample_weight(batch)
        tracker = self._compiled.loss_tracker
        loss = loss if self._made.is_by_example else ops.mean(loss)
        tracker.update_state(loss, sample_weight=batch_size(x))
        left = iter(masks)
        for output, has_mask in zip(flatten(outputs), self._made.masked, strict=False):
            if has_mask:
                set_mask(output, next(left))
        layers = self._model._laminar_flatten_layers()
        try:
            for (i, name), value in zip(self._made.reporters, reports, strict=True):
                layers[i]._laminar_reports.append((name, ops.mean(value)))
            results: dict[str, Any] = self._model.compute_metrics(x, y, outputs, sample_weight)
            return results
        finally:
            self._model._clear_losses()  # symbols of the trace
