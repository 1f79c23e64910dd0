"""In a plain graph, the outputs of a layer need what the layer updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import engine, layers, ops
from laminar.layers.masking import get_mask, set_mask


class Counter(layers.Layer):
    """Counts its calls in a variable; passes its input on."""

    def build(self, input_shape: Any) -> None:
        self.count = self.add_weight((), "zeros", "int32", trainable=False)

    def call(self, x: Any) -> Any:
        self.count.assign_add(1)
        return x


class Twice(layers.Layer):
    """A layer that makes another one in its first call, and calls it twice."""

    counter: Counter | None = None

    def call(self, x: Any) -> Any:
        if self.counter is None:
            self.counter = Counter()
        return self.counter(x), self.counter(x + 1.0)


def test_a_run_updates_once() -> None:
    with engine.Graph().as_default() as graph:
        x = engine.placeholder("float32", [None])
        layer = Counter()
        y = layer(x)
        init = engine.global_variables_initializer()
    with engine.Session(graph=graph) as session:
        session.run(init)
        for run in range(1, 4):
            assert session.run(y, {x: [5.0]}).tolist() == [5.0]
            assert session.run(layer.count) == run


def test_inner_layers_and_each_output() -> None:
    with engine.Graph().as_default() as graph:
        x = engine.placeholder("float32", [None])
        layer = Twice()
        first, second = layer(x)
        init = engine.global_variables_initializer()
    assert layer.counter is not None
    with engine.Session(graph=graph) as session:
        session.run(init)
        assert session.run(second, {x: [5.0]}).tolist() == [6.0]
        assert session.run(layer.counter.count) == 2  # both calls, whichever output is asked for
        session.run([first, second], {x: [5.0]})
        assert session.run(layer.counter.count) == 4


def test_without_updates_outputs_stay_as_they_are() -> None:
    with engine.Graph().as_default() as graph:
        x = engine.placeholder("float32", [None, 2])
        y = layers.Dense(3)(x)
        z = layers.BatchNormalization()(y, training=False)
    assert not any(op.type == "Identity" for op in graph.operations)
    assert not y.op.control_inputs
    assert not z.op.control_inputs


def test_the_mask_stays() -> None:
    with engine.Graph().as_default():
        x = engine.placeholder("float32", [None, 4, 2])
        set_mask(x, ops.ones((1, 4), "bool"))
        y = layers.BatchNormalization()(x, training=True)
        assert get_mask(y) is get_mask(x)


def test_gradients_pass() -> None:
    with engine.Graph().as_default() as graph:
        x = engine.placeholder("float32", [None])
        layer = Counter()
        (dx,) = engine.gradients(layer(x) * x, [x])
        init = engine.global_variables_initializer()
    with engine.Session(graph=graph) as session:
        session.run(init)
        np.testing.assert_array_equal(session.run(dx, {x: [1.0, 2.0]}), [2.0, 4.0])
