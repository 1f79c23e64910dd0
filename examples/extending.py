"""An op, a graph pass and a device of one's own, used by a model that knows nothing of them.

    python examples/extending.py

CONTRIBUTING.md has the same as recipes with their tests, and those for layers and optimizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import laminar
from laminar import engine, layers, ops
from laminar.engine.devices import Device, MemoryStats
from laminar.engine.devices.memory import Account
from laminar.engine.graph import FLOATING, GraphTensor, Operation, OpView, Tensor, TensorSpec
from laminar.engine.ops.core.registry import define

# An op: its shape rule, its kernel over the array library of any device, its gradient.


@define("Median3", dtypes=FLOATING)
def median3(x: TensorSpec) -> TensorSpec:
    """y[i] = the median of x[i - 1], x[i], x[i + 1] along the last axis; ends are repeated."""
    return x


def neighbours(xp: Any, x: Any) -> Any:
    padded = xp.concatenate([x[..., :1], x, x[..., -1:]], axis=-1)
    return xp.stack([padded[..., :-2], padded[..., 1:-1], padded[..., 2:]])


@median3.reference
def _median3_kernel(xp: Any, x: Any) -> Any:
    return xp.sort(neighbours(xp, x), axis=0)[1]


@define("Median3Grad", dtypes=FLOATING)
def median3_grad(x: TensorSpec, dy: TensorSpec) -> TensorSpec:
    """dx of Median3: each dy goes to the element that was the median."""
    return x


@median3_grad.reference
def _median3_grad_kernel(xp: Any, x: Any, dy: Any) -> Any:
    chosen = xp.argsort(neighbours(xp, x), axis=0, stable=True)[1] - 1
    last = x.shape[-1] - 1
    places = xp.clip(xp.arange(last + 1) + chosen, 0, last).reshape(-1, last + 1)
    rows = xp.arange(len(places))[:, None]
    dx = xp.zeros((len(places), last + 1), x.dtype)
    np.add.at(dx, (rows, places), dy.reshape(places.shape))
    return dx.reshape(x.shape)


@median3.grad
def _median3_backward(op: OpView, dy: Tensor) -> Tensor:
    return median3_grad(op.inputs[0], dy)


class Median(layers.Layer):
    """Single wrong values of a signal are taken out."""

    def call(self, x: Any) -> Any:
        return median3(x)


# A pass: a rewrite of every step's graph, and why it is allowed.


def drop_negations(step: engine.StepGraph) -> None:
    """Leave out -(-x): it is x, bit for bit."""

    def shorter(op: Operation) -> Sequence[GraphTensor] | None:
        inner = op.inputs[0].op if op.inputs else op
        if op.type == inner.type == "Neg" and not op.control_inputs:
            return inner.inputs
        return None

    step.rewrite(shorter)


# A device: what holds arrays, with which library they are computed, and the copies to and fro.


class Held(np.ndarray[Any, Any]):
    """An array of the device."""


class CountingDevice(Device):
    """Computes with NumPy, and counts the bytes that are brought to it."""

    device_type = "counting"
    xp = np

    def __init__(self, index: int, limit_bytes: int | None) -> None:
        super().__init__(index, limit_bytes=limit_bytes)
        self._account = Account(self.name, limit_bytes)
        self.brought_bytes = 0

    def holds(self, value: Any) -> bool:
        return isinstance(value, Held)

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        self.brought_bytes += array.nbytes
        mine = array.copy().view(Held)
        self._account.add_owner(mine)
        return mine

    def get(self, value: Any) -> np.ndarray[Any, Any]:
        return np.array(value)

    def adopt(self, value: Any) -> Any:
        if self.holds(value):
            self._account.add_owner(value)
            return value
        return self.put(np.asarray(value)) if hasattr(value, "dtype") else value

    def memory_stats(self) -> MemoryStats:
        return self._account.stats()

    def reset_peak(self) -> None:
        self._account.reset_peak()


def register() -> list[CountingDevice]:
    """Make the pass and the device known; gives the devices that are made later."""
    made: list[CountingDevice] = []

    def new(index: int, count: int, limit_bytes: int | None) -> CountingDevice:
        made.append(CountingDevice(index, limit_bytes))
        return made[-1]

    engine.register_pass("drop_negations", drop_negations)
    engine.register_device("counting", new)
    return made


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Gives the losses, the operations of a step without two negations, and the bytes brought."""
    laminar.set_random_seed(0)
    made = register()
    try:
        rng = np.random.default_rng(0)
        truth = np.sin(np.linspace(0, 6, 32) + rng.uniform(0, 6, (256, 1))).astype("float32")
        broken = np.where(rng.random(truth.shape) < 0.05, 5, truth).astype("float32")
        model = laminar.Sequential([layers.Input((32,)), Median(), layers.Dense(32)])
        model.compile(laminar.optimizers.Adam(0.01), "mse")
        losses = model.fit(broken, truth, epochs=10, verbose=0).history["loss"]
        print(f"signals without their wrong values: loss {losses[0]:.3f} -> {losses[-1]:.3f}")

        with engine.Graph().as_default() as graph:
            x = engine.placeholder("float32", (None, 3))
            with engine.device("/device:counting:0"):
                y: Any = ops.relu(ops.negative(ops.negative(x)))
        with engine.Session(graph=graph) as session:
            metadata = engine.RunMetadata()
            options = engine.RunOptions(trace=True)
            found = session.run(y, {x: np.ones((2, 3), "float32")}, options, metadata)
            ran = sorted(node.type for device in metadata.step_stats for node in device.nodes)
        brought = sum(device.brought_bytes for device in made)
        print(f"{found.tolist()} on {y.op.device} by {', '.join(ran)}; {brought} bytes brought")
    finally:
        engine.unregister_device("counting")
        engine.unregister_pass("drop_negations")
    return {"losses": losses, "ran": ran, "brought_bytes": brought}


if __name__ == "__main__":
    main()
