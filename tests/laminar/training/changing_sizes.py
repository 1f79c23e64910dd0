"""Trains models on batches of sizes that nobody knows beforehand, each in a process of its own.

`python -m tests.laminar.training.changing_sizes FOLDER MODEL-SIZE ...` (the size of the first
batch) prints a line of JSON: what became of each. Their processes are made from one that has loaded
laminar, before it has compiled anything, and each has an empty cache in the folder.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers
from laminar.engine.compiler.target import compile_pool

SIZES = [1, 2, 3, 5, 7, 17, 31, 33, 64, 100]
SOME_SIZES = [1, 3, 7, 33]


def dense() -> Any:
    first = [layers.Input((70,)), layers.Dense(90, activation="relu")]
    return laminar.Sequential([*first, layers.Dense(48, activation="tanh"), layers.Dense(10)])


def convolutional() -> Any:
    first = [layers.Input((12, 12, 3)), layers.Conv2D(8, 3, activation="relu")]
    second = [layers.DepthwiseConv2D(3, padding="same"), layers.Conv2D(24, 1)]
    last = [layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(10)]
    return laminar.Sequential([*first, *second, *last])


def residual() -> Any:
    given = layers.Input((8, 8, 3))
    x = layers.Conv2D(16, 3, padding="same", use_bias=False)(given)
    for stride in (1, 2):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        y = layers.Conv2D(16, 3, padding="same", strides=stride)(y)
        if stride > 1:
            x = layers.Conv2D(16, 1, strides=stride)(x)
        x = layers.Add()([x, y])
    return laminar.Model(given, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def transformed() -> Any:
    """Many images are Winograd's, few are not."""
    first = [layers.Input((4, 4, 32)), layers.Conv2D(32, 3, padding="same", activation="relu")]
    second = [layers.Conv2D(32, 3, padding="same"), layers.GlobalAveragePooling2D()]
    return laminar.Sequential([*first, *second, layers.Dense(10)])


def recurrent() -> Any:
    return laminar.Sequential([layers.Input((5, 9)), layers.LSTM(40), layers.Dense(10)])


def attentive() -> Any:
    given = layers.Input((8, 24))
    y = layers.LayerNormalization()(given)
    x = layers.Add()([given, layers.MultiHeadAttention(2, 12)(y, y, use_causal_mask=True)])
    x = layers.Dense(24)(layers.Dense(48, activation="gelu")(x))
    return laminar.Model(given, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


MODELS = {
    f.__name__: f for f in (dense, convolutional, residual, transformed, recurrent, attentive)
}


def made(build: Callable[[], Any], **how: Any) -> Any:
    laminar.utils.set_random_seed(4)
    model = build()
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=laminar.optimizers.SGD(0.05), loss=loss, **how)
    return model


def batches(model: Any, sizes: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    draw = np.random.default_rng(0)
    shape = model.input_shape[1:]
    for size in sizes:
        x = draw.normal(size=(size, *shape)).astype(np.float32)
        yield x, draw.integers(0, 10, size).astype(np.int32)


def after_a_step(model: Any, weights: Any, batch: Any) -> Any:
    """The weights after a step from some weights."""
    model.set_weights(weights)
    model.train_on_batch(*batch)
    return model.get_weights()


def check(name: str, first_size: int) -> None:
    """No batch but the first waits for a compile, and results are those of other programs."""
    build, sizes = MODELS[name], [first_size, *SIZES]
    compiles: list[int] = []
    compile_all = compile_pool.compile_all

    def counted(keys: Sequence[str], make: Any) -> None:
        compiles.append(len(keys))
        compile_all(keys, make)

    compile_pool.compile_all = counted
    model, first = made(build), made(build).get_weights()

    def given() -> Iterator[Any]:
        for i, batch in enumerate(batches(model, sizes)):
            assert i < 2 or not sum(compiles[-1:]), f"code for a batch of {sizes[i - 1]}"
            yield batch
            compiles.append(0)

    model.fit(given(), verbose=0)
    assert sum(compiles) > 0, "the first step needs code"
    told = [event.reason for _, event in model.explain_compiles()]
    assert told == ["first run"], model.explain_compiles()
    for size in SOME_SIZES:
        batch = next(batches(model, [size]))
        found = after_a_step(model, first, batch)
        for x, y in zip(found, after_a_step(made(build), first, batch), strict=True):
            np.testing.assert_array_equal(x, y)
        plain = after_a_step(made(build, jit_compile=False), first, batch)
        for x, y in zip(found, plain, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def in_a_process(case: str, folder: Path) -> str:
    """What becomes of a case: "nothing is compiled", or an error."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.environ["LAMINAR_CACHE"] = str(folder / case)
        told = "nothing is compiled"
        try:
            name, size = case.split("-")
            check(name, int(size))
        except BaseException:
            told = traceback.format_exc()
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        found = file.read()
    os.waitpid(child, 0)
    return found


def main(folder: str, *cases: str) -> None:
    made(dense)  # loads what all need
    print(json.dumps({case: in_a_process(case, Path(folder)) for case in cases}))


if __name__ == "__main__":
    main(*sys.argv[1:])
