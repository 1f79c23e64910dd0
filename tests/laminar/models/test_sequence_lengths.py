"""Batches whose other sizes change too: sequences of any length run one graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.compiler.native import cluster_kernel
from laminar.engine.compiler.target import code_cache, compile_pool
from laminar.engine.errors import ShapeError

LENGTHS = [10, 7, 12, 5, 40, 1, 12, 23]
needs_native = pytest.mark.skipif(
    not cluster_kernel.is_offered(), reason="there is no native code here"
)


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """How many codes were made, each time that some were looked for: as in a fresh process."""
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    monkeypatch.setattr(code_cache, "_addresses", {})
    monkeypatch.setattr(code_cache, "_symbols", set())
    monkeypatch.setattr(code_cache, "_contents", {})
    found, compile_all = list[int](), compile_pool.compile_all

    def counted(keys: Sequence[str], make: Any) -> None:
        found.append(len(keys))
        compile_all(keys, make)

    monkeypatch.setattr(compile_pool, "compile_all", counted)
    return found


def masked() -> Any:
    first = [layers.Input((None,), dtype="int32"), layers.Embedding(30, 12, mask_zero=True)]
    return laminar.Sequential([*first, layers.LSTM(20), layers.Dense(4)])


def labelled() -> Any:
    """A label for each step, and layers both ways."""
    first = [layers.Input((None,), dtype="int32"), layers.Embedding(30, 12, mask_zero=True)]
    both = layers.Bidirectional(layers.GRU(9, return_sequences=True))
    return laminar.Sequential([*first, both, layers.Dropout(0.0), layers.Dense(4)])


def transformer() -> Any:
    given = layers.Input((None,), dtype="int32")
    x = layers.Embedding(30, 12)(given)
    y = layers.LayerNormalization()(x)
    x = layers.Add()([x, layers.MultiHeadAttention(2, 6)(y, y, use_causal_mask=True)])
    x = layers.Add()([x, layers.Dense(12)(layers.Dense(24, activation="gelu")(x))])
    return laminar.Model(given, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))


class Undeclared(laminar.Model):
    """A model that says nothing of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = layers.Embedding(30, 12)
        self.layer = layers.SimpleRNN(10)
        self.top = layers.Dense(4)

    def call(self, x: Any) -> Any:
        return self.top(self.layer(self.embedding(x)))


MODELS = [masked, labelled, transformer, Undeclared]


def made(build: Callable[[], Any], **how: Any) -> Any:
    laminar.utils.set_random_seed(4)
    model = build()
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(laminar.optimizers.SGD(0.1), loss, **how)
    return model


def batches(build: Any, lengths: Sequence[int], *, weighted: bool = False) -> Iterator[Any]:
    """A batch of each length; the last examples end before it."""
    draw = np.random.default_rng(0)
    for i, length in enumerate(lengths):
        size = (8, 8, 3, 8)[i % 4]
        x = draw.integers(1, 30, (size, length)).astype(np.int32)
        x[1:, length // 2 + 1 :] = 0
        y = draw.integers(0, 4, x.shape if build is labelled else size)
        weights = (draw.uniform(size=y.shape).astype(np.float32),) if weighted else ()
        yield x, y, *weights


def graphs(step: Any) -> set[Any]:
    return set(step._concrete.values())


def check_equal(found: Any, expected: Any) -> None:
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@needs_native
@pytest.mark.parametrize("build", MODELS)
def test_nothing_is_compiled_after_the_second_length(build: Any, compiles: list[int]) -> None:
    model = made(build)
    told = []

    def given() -> Iterator[Any]:
        for batch in batches(build, LENGTHS):
            yield batch
            told.append(sum(compiles))

    model.fit(given(), verbose=0)
    assert 0 < told[1] == told[-1]
    assert len(graphs(model._laminar_compiled.steps["train"])) == 2
    ((_, first), (_, second)) = model.explain_compiles()
    assert first.reason == "first run"
    assert second.reason.startswith("first run on batches of int32[?, ?]")


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("build", MODELS)
def test_steps_are_those_of_models_that_know_one_length(build: Any, weighted: bool) -> None:
    """Of models that run on the reference kernels: nothing is compiled for each length."""
    model = made(build, metrics=["accuracy"])
    for batch in batches(build, LENGTHS, weighted=weighted):
        fresh = made(build, metrics=["accuracy"], jit_compile=False)
        if model.built:
            fresh.predict_on_batch(batch[0])  # which makes its weights
            fresh.set_weights(model.get_weights())
        check_equal(model.train_on_batch(*batch), fresh.train_on_batch(*batch))
        check_equal(model.get_weights(), fresh.get_weights())
        check_equal(model.test_on_batch(*batch), fresh.test_on_batch(*batch))
        check_equal(model.predict_on_batch(batch[0]), fresh.predict_on_batch(batch[0]))
    steps = (*model._laminar_compiled.steps.values(), model._laminar_predict_step)
    assert [len(graphs(step)) for step in steps] == [2, 2, 2]


def test_one_length_has_one_graph_in_which_it_is_known() -> None:
    model = made(masked)
    for batch in batches(masked, [6] * 4):
        model.train_on_batch(*batch)
    (graph,) = graphs(model._laminar_compiled.steps["train"])
    assert tuple(graph.inputs[0].shape) == (None, 6)


def test_evaluate_and_predict_run_any_length_too() -> None:
    model = made(masked)
    data = list(batches(masked, LENGTHS))
    found = model.predict(iter([(x,) for x, _ in data]), verbose=0)
    model.evaluate(iter(data), verbose=0)
    check_equal(found, np.concatenate([model(x) for x, _ in data]))
    assert (
        len(graphs(model._laminar_predict_step))
        == len(graphs(model._laminar_compiled.steps["test"]))
        == 2
    )


def test_devices_share_batches_of_any_length() -> None:
    data = [tuple(part[:2] for part in batch) for batch in batches(masked, LENGTHS)]
    shared, alone = made(masked), made(masked)
    shared.fit(iter(data), verbose=0, devices=["cpu:0", "cpu:1"])
    alone.fit(iter(data), verbose=0)
    check_equal(shared.get_weights(), alone.get_weights())


def halved() -> Any:
    """A model that asks for the length as a number."""

    class Halves(layers.Layer):
        def call(self, x: Any) -> Any:
            return x[:, : x.shape[1] // 2]

    first = [layers.Embedding(30, 12), Halves(), layers.GlobalMaxPooling1D()]
    return laminar.Sequential([*first, layers.Dense(4)])


@needs_native
@pytest.mark.parametrize("kind", ["needs the number", "convolutional"])
def test_what_unknown_sizes_do_not_suit_has_a_graph_for_each(kind: str) -> None:
    def convolutional() -> Any:
        first = [layers.Embedding(30, 12), layers.Conv1D(8, 3, padding="causal")]
        return laminar.Sequential([*first, layers.GlobalMaxPooling1D(), layers.Dense(4)])

    build = halved if kind == "needs the number" else convolutional
    model = made(build)
    lengths = [10, 7, 12, 7, 6]
    for batch in batches(build, lengths):
        fresh = made(build)
        fresh.predict_on_batch(batch[0])
        if model.built:
            fresh.set_weights(model.get_weights())
        check_equal([model.train_on_batch(*batch)], [fresh.train_on_batch(*batch)])
    assert len(graphs(model._laminar_compiled.steps["train"])) == len(set(lengths))


def test_what_fits_no_size_is_told_as_before() -> None:
    model = made(lambda: laminar.Sequential([layers.Input((None, 5)), layers.LSTM(4)]))
    x, y = np.ones((2, 3, 5), np.float32), np.zeros(2, np.int64)
    model.train_on_batch(x, y)
    model.train_on_batch(np.ones((2, 4, 5), np.float32), y)
    with pytest.raises(ShapeError):
        model.train_on_batch(np.ones((2, 4, 6), np.float32), y)
    model.train_on_batch(np.ones((2, 9, 5), np.float32), y)
    assert len(graphs(model._laminar_compiled.steps["train"])) == 2


@needs_native
def test_a_loop_over_another_length_compiles_what_it_needs() -> None:
    model = made(transformer)
    for length in (9, 17, 30):
        ((x, y),) = batches(transformer, [length])
        model.fit(x, y, batch_size=4, verbose=0)
    (body,) = list(model._laminar_compiled.steps["train"]._concrete.values())[-1].clusters
    assert not body.native._of_loaded_code
    assert {key[0][1] for key, _ in body.native._plans} == {17, 30}
