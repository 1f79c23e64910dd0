"""model.explain: the bytes and flops of kernels are those that one counts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops

BATCH, FEATURES, UNITS = 32, 8, 16
rng = np.random.default_rng(0)
X = rng.standard_normal((BATCH, FEATURES)).astype("float32")
Y = rng.standard_normal((BATCH, UNITS)).astype("float32")


def dense() -> laminar.Sequential:
    laminar.utils.set_random_seed(1)
    model = laminar.Sequential([layers.Input((FEATURES,)), layers.Dense(UNITS, name="only")])
    model.compile(laminar.optimizers.SGD(0.1), "mse")
    return model


def test_a_dense_layer() -> None:
    ((step, table),) = dense().explain(X)
    assert step == "call"
    (kernel,) = table.kernels
    assert [name.rpartition("/")[2] for name in kernel.operations] == ["MatMul", "Add"]
    assert all("/only/" in name for name in kernel.operations)
    assert kernel.what == "matmul; +"
    assert kernel.sizes == "[32, 8], [8, 16] -> [32, 16]"
    assert kernel.read_bytes == 4 * (BATCH * FEATURES + FEATURES * UNITS + UNITS)
    assert kernel.written_bytes == 4 * BATCH * UNITS
    assert kernel.flops == 2 * BATCH * FEATURES * UNITS + BATCH * UNITS
    assert kernel.seconds > 0
    assert table.num_bytes == kernel.read_bytes + kernel.written_bytes
    assert (table.flops, table.seconds) == (kernel.flops, kernel.seconds)
    assert f"{kernel.flops:,}" in str(table)
    assert max(len(line) for line in str(table).splitlines()[1:]) <= 80  # of a terminal
    assert f"    {kernel.what}  {kernel.sizes}" in str(table).splitlines()


def test_a_training_step() -> None:
    model = dense()
    assert str(model.explain()) == "nothing has been compiled"
    model.fit(X, Y, batch_size=BATCH, shuffle=False, verbose=0)
    before = model.get_weights()
    ((step, table),) = model.explain()
    assert step == "train"
    update = next(k for k in table.kernels if k.sizes == "[8, 32], [32, 16] -> [8, 16]")
    # The gradient of the weights, and w - rate * gradient: a factor and a difference.
    assert update.flops == 2 * BATCH * FEATURES * UNITS + 2 * FEATURES * UNITS
    assert update.read_bytes == 4 * (BATCH * FEATURES + BATCH * UNITS + FEATURES * UNITS + 1)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    untouched = dense()
    for trained in (untouched, model):
        trained.fit(X, Y, batch_size=BATCH, shuffle=False, verbose=0)
    untouched.fit(X, Y, batch_size=BATCH, shuffle=False, verbose=0)
    for old, new in zip(untouched.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_what_is_looked_up_counts_by_what_is_read() -> None:
    words, size = 1000, 16
    model = laminar.Sequential([layers.Input((4,), dtype="int32"), layers.Embedding(words, size)])
    ((_, table),) = model.explain(np.zeros((BATCH, 4), "int32"))
    read = sum(k.read_bytes for k in table.kernels)
    assert read < 4 * words * size  # not the table as a whole
    assert read >= 4 * BATCH * 4 * size


def test_kernels_in_a_loop_run_for_each_step() -> None:
    model = laminar.Sequential([layers.Input((5, FEATURES)), layers.SimpleRNN(UNITS)])
    ((_, table),) = model.explain(np.zeros((BATCH, 5, FEATURES), "float32"))
    inside = [k for k in table.kernels if k.depth]
    assert inside
    assert {k.runs for k in inside} == {5}
    recurrent = next(k for k in inside if k.sizes == "[32, 16], [16, 16] -> [32, 16]")
    assert recurrent.flops >= 2 * BATCH * UNITS * UNITS
    assert table.flops == sum(k.runs * k.flops for k in table.kernels)
    assert "(runs 5 times)" in str(table)
    (loop,) = [k for k in table.kernels if k.what == "loop 5 times"]
    assert loop.seconds > 0
    assert all(k.seconds is None for k in inside)


def test_a_loop_that_ends_by_its_data_is_not_timed() -> None:
    def halved(x: Any) -> Any:
        return ops.while_loop(lambda y: ops.sum(y) > 1, lambda y: (y * 0.5,), (x,))[0]

    model = laminar.Sequential([layers.Input((4,)), layers.Lambda(halved)])
    ((_, table),) = model.explain(np.ones((2, 4), "float32"))
    assert any(k.what == "loop until it is done" for k in table.kernels)
    assert table.seconds is None


@pytest.mark.parametrize("x", [None, X])
def test_what_is_not_compiled_has_no_kernels(x: np.ndarray | None) -> None:
    model = laminar.Sequential([layers.Input((FEATURES,)), layers.Dense(UNITS)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(X, Y, verbose=0)
    assert not model.explain(x)


def test_a_winograd_convolution_counts_the_products_that_it_does() -> None:
    """Of windows of 3 x 3: 36 products make 16 pixels, which directly take 144."""
    x = np.ones((32, 32, 32, 64), "float32")
    model = laminar.Sequential(
        [layers.Input(x.shape[1:]), layers.Conv2D(64, 3, padding="same", use_bias=False)]
    )
    model.predict_on_batch(x)
    ((_, table),) = model.explain(x)
    direct = 2 * 32 * 32 * 32 * 9 * 64 * 64
    convolution = max(table.kernels, key=lambda k: k.flops)
    is_winograd = any("winograd" in code.symbol for code in convolution.codes)
    assert convolution.flops == (direct // 4 if is_winograd else direct)
