"""A dry run of `fit`: one batch through everything, a report, and all as it was before."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from laminar.callbacks.display import format_bytes, format_seconds, format_values, say
from laminar.engine.text_table import aligned
from laminar.tree import flatten_with_path

from .data import Epochs, ran_out, unpack_x_y_sample_weight
from .logs import read_logs
from .profile import profile_model
from .step import close_step
from .training_state import Snapshot, random_state, set_random_state


def dry_run(model: Any, passes: Epochs, validation: Epochs | None) -> dict[str, Any]:
    """Train on one batch and validate on one, report, and set everything back.

    Returns:
        The values of the batches, as they would be logged.
    """
    batch = _first(passes, "fit: dry_run")
    begin = time.perf_counter()
    model._laminar_prepare(batch, training=True)
    step = model.make_train_function()
    step.trace(batch)
    before, numbers = Snapshot(model), random_state()
    weights = {w.path: w.numpy() for w in model.trainable_weights}
    try:
        model.reset_metrics()
        logs = read_logs(step(batch))
        first = time.perf_counter() - begin
        updated = _updated(model, weights)
        begin = time.perf_counter()
        read_logs(step(batch))
        again = format_seconds(time.perf_counter() - begin)
        lines = ["fit: a dry run: one batch", *_batch_lines(batch)]
        lines += _layer_lines(model, batch)
        lines.append(
            f"training: the first step, with tracing and compiling, took {format_seconds(first)}, "
            f"the second {again}{format_values(logs)}"
        )
        lines += updated
        if validation is not None:
            found = _validated(model, validation)
            lines.append(f"validation: one batch{format_values(found)}")
            logs |= {f"val_{name}": value for name, value in found.items()}
        lines.append(_memory_line(model))
    finally:
        close_step(step)
        before.restore()
        set_random_state(numbers)
    lines.append("weights, optimizer, metrics and random generators are as they were before")
    say("\n".join(lines))
    return logs


def _first(passes: Epochs, who: str) -> Any:
    with passes:
        batch = passes.peek()
    if batch is None:
        raise ran_out(who, 0, 1)
    return batch


def _batch_lines(batch: Any) -> list[str]:
    lines = []
    for name, part in zip(
        ("x", "y", "sample_weight"), unpack_x_y_sample_weight(batch), strict=True
    ):
        for path, leaf in flatten_with_path(part):
            if leaf is not None:
                keys = "".join(f"[{key!r}]" for key in path)
                array = np.asarray(leaf)
                lines.append(f"  {name}{keys}: {array.dtype}{list(array.shape)}{_span(array)}")
    return lines


def _span(array: Any) -> str:
    if array.dtype.kind not in "biuf" or not array.size:
        return ""
    return f", {array.min():.6g} to {array.max():.6g}, mean {array.mean(dtype='float64'):.6g}"


def _layer_lines(model: Any, batch: Any) -> list[str]:
    x, _, _ = unpack_x_y_sample_weight(batch)
    return [f"  {line}" for line in str(profile_model(model, x)).splitlines()]


def _updated(model: Any, before: dict[str, Any]) -> list[str]:
    """How the step has changed the weights."""
    changes = {
        w.path: np.abs(w.numpy().astype("float64") - before[w.path].astype("float64")).max(
            initial=0
        )
        for w in model.trainable_weights
    }
    still = [path for path, change in changes.items() if change == 0]
    lines = [
        f"update: {len(changes) - len(still)} of {len(changes)} trainable weights have changed"
    ]
    rows = [(f"  {path}", f"by at most {change:.3g}") for path, change in changes.items() if change]
    lines += aligned(rows) if rows else []
    if still:
        lines.append(f"  without a change: {', '.join(still)}")
    return lines


def _validated(model: Any, validation: Epochs) -> dict[str, Any]:
    batch = _first(validation, "fit: dry_run: validation")
    model._laminar_prepare(batch, training=False)
    model.reset_metrics()
    return read_logs(model.make_test_function()(batch))


def _memory_line(model: Any) -> str:
    weights = sum(w.numpy().nbytes for w in model.weights)
    slots = sum(v.numpy().nbytes for v in model.optimizer.variables)
    return f"memory: weights {format_bytes(weights)}, optimizer {format_bytes(slots)}"
