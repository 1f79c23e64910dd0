"""Whole training steps as CUDA programs, run on the host, against the CPU's native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.cuda_program import Buffer, Launch, Table
from laminar.engine.errors import InvalidArgumentError

from .shim import needs_compiler, on_shim

pytestmark = needs_compiler
rng = np.random.default_rng(0)


def perceptron() -> Any:
    model = laminar.Sequential(
        [
            layers.Input((20,)),
            layers.Dense(17, activation="relu"),
            layers.Dropout(0.3, seed=1),
            layers.BatchNormalization(),
            layers.Dense(5),
        ]
    )
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(laminar.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    return model


def convnet() -> Any:
    model = laminar.Sequential(
        [
            layers.Input((9, 9, 2)),
            layers.Conv2D(6, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(4, 3, strides=2),
            layers.DepthwiseConv2D(1),
            layers.Flatten(),
            layers.Dense(5),
        ]
    )
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(laminar.optimizers.SGD(0.05, momentum=0.9), loss)
    return model


def transformer() -> Any:
    tokens = layers.Input((6,), dtype="int32")
    x = layers.Embedding(11, 8)(tokens)
    y = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(2, 4, use_bias=False)(y, y, use_causal_mask=True)
    y = layers.LayerNormalization()(x)
    x = x + layers.Dense(8)(layers.Dense(16, activation="gelu")(y))
    model = laminar.Model(tokens, layers.Dense(5)(ops.mean(x, axis=1)))
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(laminar.optimizers.AdamW(0.01), loss)
    return model


def batches(shape: tuple[int, ...], high: int | None = None) -> tuple[Any, Any]:
    if high is not None:
        return rng.integers(0, high, (12, *shape)).astype(np.int32), rng.integers(0, 5, 12)
    return rng.normal(size=(12, *shape)).astype(np.float32), rng.integers(0, 5, 12)


def trained(make: Callable[[], Any], x: Any, y: Any) -> tuple[list[float], list[Any]]:
    laminar.utils.set_random_seed(3)
    model = make()
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], model.get_weights()


@pytest.mark.parametrize(
    ("make", "shape", "high"),
    [(perceptron, (20,), None), (convnet, (9, 9, 2), None), (transformer, (6,), 11)],
    ids=["perceptron", "convnet", "transformer"],
)
def test_a_model_trains_as_on_the_cpu(
    make: Callable[[], Any], shape: tuple[int, ...], high: int | None
) -> None:
    x, y = batches(shape, high)
    losses, weights = trained(make, x, y)
    with on_shim() as device:
        found, others = trained(make, x, y)
    assert device.runs == 4  # each step is one program
    assert len(device.programs) == 2  # one for each size of a batch
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    for one, other in zip(weights, others, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-4, atol=2e-5)


def test_updates_of_one_form_are_one_launch() -> None:
    model = laminar.Sequential([layers.Input((20,)), *(layers.Dense(8 * n) for n in (2, 3, 4))])
    model.compile("adam", "mse")
    with on_shim() as device:
        model.fit(np.ones((8, 20), "f"), np.ones((8, 32), "f"), verbose=0)
    (program,) = device.programs
    *_, last = program.launches
    assert isinstance(last, Launch)
    table, count = last.arguments
    assert isinstance(table, Table)
    assert count == 3  # those of biases are made where their gradients are
    words = [x for x in table.words if isinstance(x, Buffer) and x.base == "variable"]
    assert len({x.number for x in words} & program.written) == 9  # kernels, and two moments of each


def test_a_check_that_fails_changes_no_variable() -> None:
    model = perceptron()
    x, y = batches((20,))
    with on_shim() as device:
        model.fit(x, y, batch_size=12, verbose=0)
        before = model.get_weights()
        y[5] = 77  # there is no such class
        with pytest.raises(InvalidArgumentError, match="77"):
            model.fit(x, y, batch_size=12, verbose=0)
    assert device.runs == 2
    assert device.programs[0].failed is not None
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_where_there_is_no_cuda_kernel_the_reference_runs() -> None:
    def fn(x: Any) -> Any:
        return laminar.ops.while_loop(lambda x: ops.sum(x) < 100, lambda x: (x * 2,), (x,))

    with on_shim() as device:
        (found,) = laminar.function(fn)(np.ones((3,), "f"))
    np.testing.assert_array_equal(found, [64, 64, 64])
    assert device.runs == 0


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_run_as_launches_of_their_iterations(reverse: bool) -> None:
    x = rng.normal(size=(2, 5, 4)).astype(np.float32)
    layer = layers.LSTM(3, go_backwards=reverse)
    expected = layer(x).numpy()
    with on_shim() as device:
        found = laminar.function(layer)(x)
        assert device.runs == 1
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
