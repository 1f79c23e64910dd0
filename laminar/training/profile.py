"""Profile: where the time and the memory of a model go, layer by layer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from laminar.callbacks.display import format_bytes, format_seconds
from laminar.engine.graph import EagerTensor, Tensor
from laminar.engine.source import layer_path
from laminar.engine.text_table import aligned
from laminar.tree import flatten, pack_sequence_as

from .step import Step

_SECONDS = 0.02  # a layer is run again until so much time was measured
_RUNS = (3, 200)


@dataclass(frozen=True)
class LayerProfile:
    """One call of a layer.

    Attributes:
        path: the layers it stands in, and its name.
        kind: its class.
        output: the shapes of its outputs.
        params: the numbers in its weights.
        seconds: of a call, compiled by itself.
        weight_bytes: of its weights.
        output_bytes: of its outputs.

    Examples:
        >>> model = laminar.Sequential([layers.Input((8,)), layers.Dense(1, name="score")])
        >>> profile = model.profile(np.ones((4, 8)))
        >>> profile.layers[0].params, profile.layers[0].output_bytes
        (9, 16)
    """

    path: str
    kind: str
    output: str
    params: int
    seconds: float
    weight_bytes: int
    output_bytes: int


@dataclass(frozen=True, repr=False)
class Profile:
    """What `model.profile` found; shown, also by a prompt or a notebook, it is a table.

    Attributes:
        layers: each call of a layer that has no layers inside, in order.
        seconds: of a call of the whole model, compiled as one: layers that run together may take
            less than by themselves.
        batch_size: of the inputs.

    Examples:
        >>> model = laminar.Sequential([layers.Input((8,)), layers.Dense(1, name="score")])
        >>> [layer.path for layer in model.profile(np.ones((4, 8))).layers]
        ['score']
    """

    layers: list[LayerProfile]
    seconds: float
    batch_size: int

    def __repr__(self) -> str:
        rows = [("layer", "output", "params", "time", "share", "weights", "outputs")]
        total = sum(row.seconds for row in self.layers) or 1.0
        rows += [
            (
                f"{row.path} ({row.kind})",
                row.output,
                f"{row.params:,}",
                format_seconds(row.seconds),
                f"{100 * row.seconds / total:.0f} %",
                format_bytes(row.weight_bytes),
                format_bytes(row.output_bytes),
            )
            for row in self.layers
        ]
        lines = aligned(rows, left=2)
        lines.append(
            f"the model as one: {format_seconds(self.seconds)} for {self.batch_size} examples, "
            f"{self.batch_size / self.seconds:,.0f} examples/s; "
            f"weights {format_bytes(sum(row.weight_bytes for row in self._once))}, outputs of all "
            f"layers {format_bytes(sum(row.output_bytes for row in self.layers))}"
        )
        return "\n".join(lines)

    @property
    def _once(self) -> list[LayerProfile]:
        """The layers, a shared one once."""
        return list({row.path: row for row in self.layers}.values())


@dataclass(frozen=True)
class _Call:
    layer: Any
    path: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any


def profile_model(model: Any, x: Any, *, training: bool = False) -> Profile:
    """Run the model on one batch, and each of its layers by itself on what it gets there.

    Args:
        model: it may be unbuilt.
        x: one batch of inputs, tensors.
        training: how the layers are called.
    """
    model(x, training=training)  # the weights are made here, not in a measurement
    with _recording(model) as calls:
        model(x, training=training)
    native = model.jit_compile is not False
    rows = [_measured(call, native) for call in calls]
    whole = Step(lambda batch: model(batch, training=training), eager=False, native=native)
    first = next(leaf for leaf in flatten(x) if leaf is not None)
    return Profile(rows, _seconds_of(lambda: whole(x)), int(first.shape[0]))


@contextmanager
def _recording(model: Any) -> Iterator[list[_Call]]:
    """A list that gets the calls of all layers that have no layers inside."""
    calls: list[_Call] = []
    leaves = [layer for layer in model._laminar_flatten_layers() if not layer._laminar_sublayers]
    leaves = [layer for layer in leaves if layer is not model]

    def watch(layer: Any) -> None:
        call = layer.call

        def recorded(*args: Any, **kwargs: Any) -> Any:
            outputs = call(*args, **kwargs)
            calls.append(_Call(layer, layer_path(), args, kwargs, outputs))
            return outputs

        vars(layer)["call"] = recorded  # past the tracking of attributes

    for layer in leaves:
        watch(layer)
    try:
        yield calls
    finally:
        for layer in leaves:
            del vars(layer)["call"]


def _measured(call: _Call, native: bool) -> LayerProfile:
    structure = [list(call.args), call.kwargs]
    leaves = flatten(structure)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]

    def run(batch: list[Any]) -> Any:
        given = iter(batch)
        args, kwargs = pack_sequence_as(
            structure, [next(given) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        )
        return call.layer.call(*args, **kwargs)

    step = Step(run, eager=False, native=native)
    outputs = [np.asarray(y) for y in flatten(call.outputs) if isinstance(y, EagerTensor)]
    shapes = ", ".join(f"({', '.join(map(str, y.shape))})" for y in outputs)
    weights = call.layer.weights
    return LayerProfile(
        path=call.path.partition("/")[2] or call.path,
        kind=type(call.layer).__name__,
        output=shapes,
        params=sum(w.size for w in weights),
        seconds=_seconds_of(lambda: step(tensors)),
        weight_bytes=sum(w.numpy().nbytes for w in weights),
        output_bytes=sum(y.nbytes for y in outputs),
    )


def _seconds_of(run: Callable[[], Any]) -> float:
    """The median time of a call, without the first, which traces and compiles."""
    run()
    times: list[float] = []
    least, most = _RUNS
    while len(times) < least or (sum(times) < _SECONDS and len(times) < most):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)
