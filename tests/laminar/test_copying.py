"""copy.copy, copy.deepcopy and pickle of layers, models, optimizers, losses and metrics."""

from __future__ import annotations

import copy
import pickle
import pickletools
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, metrics, optimizers
from laminar.engine.errors import DataLossError, NotFoundError
from laminar.registration import custom_object_scope

X = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
Y = np.linspace(0, 1, 8, dtype="float32").reshape(4, 2)


class Twice(layers.Layer):
    """A layer of one's own, with a layer inside."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dense = layers.Dense(2)

    def build(self, input_shape: Any) -> None:
        self.dense.build(input_shape)

    def call(self, x: Any) -> Any:
        return 2 * self.dense(x)


def trained() -> laminar.Model:
    x = laminar.Input((3,), name="x")
    hidden = layers.Dense(4, activation="tanh")
    y = layers.Dense(2)(hidden(hidden(x)[:, :3]))
    model = laminar.Model(x, y)
    model.compile(optimizers.Adam(0.1), "mse", metrics=["mae"])
    model.optimizer.exclude_from_weight_decay(var_list=[model.weights[1]])
    model.fit(X, Y, epochs=2, verbose=0)
    return model


def check_trains_on(ours: laminar.Model, theirs: laminar.Model) -> None:
    """Both give the same, before and after the same training, and share nothing."""
    np.testing.assert_array_equal(theirs(X), ours(X))
    assert theirs.optimizer.iterations.numpy() == ours.optimizer.iterations.numpy() == 2
    before = [w.copy() for w in ours.get_weights()]
    found = theirs.fit(X, Y, epochs=2, verbose=0, shuffle=False).history
    for old, now in zip(before, ours.get_weights(), strict=True):
        np.testing.assert_array_equal(old, now)
    expected = ours.fit(X, Y, epochs=2, verbose=0, shuffle=False).history
    assert list(found) == list(expected) == ["loss", "mae"]
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-6)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_models(again: Any) -> None:
    laminar.set_random_seed(0)
    model = trained()
    check_trains_on(model, again(model))


def test_deep_copies_keep_what_was_shared() -> None:
    model = trained()
    pair: Any = copy.deepcopy({"model": model, "first": model.layers[1]})
    assert pair["first"] is pair["model"].layers[1]
    layer = copy.deepcopy(model.layers[1])
    assert layer.inbound_nodes == []
    assert layer.weights[0] is not model.layers[1].weights[0]
    np.testing.assert_array_equal(layer(X), model.layers[1](X))
    shallow = copy.copy(layer)
    assert shallow.weights[0] is layer.weights[0]


def test_long_chains() -> None:
    x = y = laminar.Input((3,))
    for _ in range(300):
        y = layers.Activation("tanh")(y)
    copied = copy.deepcopy(laminar.Model(x, y))
    assert len(copied.layers) == 301


def test_layers() -> None:
    layer = layers.LSTM(3, dropout=0.5, seed=3)
    layer.build((None, 5, 2))
    found = pickle.loads(pickle.dumps(layer))
    for a, b in zip(layer.get_weights(), found.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert found.get_config() == layer.get_config()
    half = layers.Dense(2, dtype="bfloat16")
    half.build((None, 3))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(half)).kernel, half.kernel)
    assert pickle.loads(pickle.dumps(layers.Dense(4))).units == 4


def test_classes_of_ones_own() -> None:
    layer = Twice()
    layer(X)
    np.testing.assert_array_equal(copy.deepcopy(layer)(X), layer(X))
    data = pickle.dumps(layer)
    with pytest.raises(NotFoundError, match="Twice"):
        pickle.loads(data)
    with custom_object_scope({"Twice": Twice}):
        np.testing.assert_array_equal(pickle.loads(data)(X), layer(X))


def test_a_pickle_names_nothing_but_what_reads_it() -> None:
    layer = Twice()
    layer(X)
    names = {
        argument
        for opcode, argument, _ in pickletools.genops(pickle.dumps([layer, trained()], protocol=2))
        if opcode.name == "GLOBAL"
    }
    assert names <= {
        "laminar.copying unpickled",
        "laminar.saving.pickled unarchived",
        "_codecs encode",  # of bytes
    }


def test_optimizers() -> None:
    v = laminar.Variable([1.0, 2.0])
    optimizer = optimizers.SGD(0.5, momentum=0.9)
    optimizer.apply([np.ones(2, "float32")], [v])
    both: Any = copy.deepcopy([optimizer, v])
    both[0].apply([np.ones(2, "float32")], [both[1]])
    optimizer.apply([np.ones(2, "float32")], [v])
    np.testing.assert_array_equal(both[1], v)
    found = pickle.loads(pickle.dumps(optimizer))
    assert found.get_config() == optimizer.get_config()
    assert found.iterations.numpy() == 2


def test_losses_and_metrics() -> None:
    metric = metrics.AUC(num_thresholds=5)
    metric.update_state([0, 1, 1], [0.1, 0.7, 0.3])
    for found in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert found.result() == metric.result()
        found.reset_state()
    assert metric.result() == 1.0
    loss = losses.Huber(delta=2.0)
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert again(Y, 2 * Y) == loss(Y, 2 * Y)


def test_values_that_do_not_belong_to_the_object() -> None:
    layer = layers.Dense(2)
    layer.build((None, 3))
    function, (config, values) = layer.__reduce__()
    with pytest.raises(DataLossError, match="holds 1 values, the object has 2"):
        function(config, values[:1])
