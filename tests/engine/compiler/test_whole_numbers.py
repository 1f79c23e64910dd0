"""Whole numbers and bools in native code: products of matrices, and images as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, ops
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.ops.linalg.matmul import matmul

rng = np.random.default_rng(6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((5, 7), (7, 90)), ((2, 3, 40, 33), (33, 20)), ((4, 1, 6, 8), (3, 8, 1)), ((1, 1), (1, 1))],
)
@pytest.mark.parametrize("turned", [False, True])
def test_products_wrap_around(
    dtype: str, left: tuple[int, ...], right: tuple[int, ...], turned: bool
) -> None:
    limits = np.iinfo(dtype)
    a, b = (
        rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        for shape in (left, right)
    )
    given = [ops.convert_to_tensor(np.swapaxes(v, -1, -2) if turned else v) for v in (a, b)]

    @laminar.function
    def run(x: Any, y: Any) -> Any:
        product = matmul(x, y, transpose_a=turned, transpose_b=turned)
        return product * product + product  # three operations are worth a compilation

    found = run(*given).numpy()
    (body,) = run.concrete(*given).clusters
    assert isinstance(body.native, NativeCluster)
    assert body.native.events
    assert found.dtype == np.dtype(dtype)
    with np.errstate(over="ignore"):
        product = a @ b
        np.testing.assert_array_equal(found, product * product + product)


def test_images_and_masks_of_bytes_are_part_of_the_step() -> None:
    laminar.set_random_seed(2)
    pixels, weights = layers.Input((6, 6, 3), dtype="uint8"), layers.Input((6, 6, 1), dtype="bool")
    x = layers.Rescaling(1 / 127.5, offset=-1)(pixels)
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    x = ops.where(weights, x, 0.0)
    outputs = layers.Dense(3)(layers.GlobalMaxPooling2D()(x))
    model = laminar.Model([pixels, weights], outputs)
    model.compile("sgd", losses.SparseCategoricalCrossentropy(from_logits=True))
    given = [rng.integers(0, 256, (32, 6, 6, 3), np.uint8), rng.random((32, 6, 6, 1)) < 0.5]
    y = rng.integers(0, 3, 32).astype(np.uint8)
    history = model.fit(given, y, batch_size=16, epochs=3, verbose=0)
    ((step, _),) = model.explain_compiles()
    assert step == "train"
    assert history.history["loss"][-1] < history.history["loss"][0]
