"""Whole training steps as native code: in place, on threads, with checks, told about."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses
from laminar.engine.compiler.plan import specializations
from laminar.engine.compiler.target import llvm
from laminar.engine.dumps import dump
from laminar.engine.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(0)
X = rng.normal(size=(96, 12, 12, 3)).astype("float32")
Y = rng.integers(0, 5, 96)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    yield
    laminar.set_threads(None)


def convnet(**options: Any) -> Any:
    laminar.set_random_seed(3)
    model = laminar.Sequential(
        [
            layers.Input((12, 12, 3)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            # The gradient of a bias there would be rounding alone, which Adam makes large.
            layers.Conv2D(24, 3, strides=2, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5),
        ]
    )
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], **options)
    return model


def train(model: Any, **options: Any) -> tuple[list[float], list[Array]]:
    history = model.fit(X, Y, batch_size=40, epochs=2, verbose=0, shuffle=False, **options)
    return history.history["loss"], model.get_weights()


def test_native_training_is_what_the_reference_kernels_do() -> None:
    losses_native, weights = train(convnet())
    losses_plain, expected = train(convnet(jit_compile=False))
    np.testing.assert_allclose(losses_native, losses_plain, rtol=1e-4)
    for a, b in zip(weights, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-4)


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for n in (1, 2, 3):
        laminar.set_threads(n)
        found.append(train(convnet()))
    for other, weights in found[1:]:
        assert other == found[0][0]
        for a, b in zip(weights, found[0][1], strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_step_is_one_cluster_that_short_batches_run_too() -> None:
    model = convnet()
    train(model)
    ((step, event),) = model.explain_compiles()
    assert (step, event.reason) == ("train", "first run")
    assert event.num_kernels >= 10
    assert "first run" in str(model.explain_compiles())


def test_batches_of_another_form_are_the_reason() -> None:
    model = laminar.Sequential([layers.Input((None, 3)), layers.GlobalMaxPooling1D()])
    model.compile("sgd", "mse")
    for length in (4, 6):
        model.evaluate(np.ones((2, length, 3), "float32"), np.ones((2, 3), "float32"), verbose=0)
    first, second = (event.reason for _, event in model.explain_compiles())
    assert first == "first run"
    assert second == "first run on batches of float32[?, ?, 3], float32[?, 3]"


def test_nothing_compiled_is_said() -> None:
    assert str(convnet().explain_compiles()) == "nothing has been compiled"
    model = convnet(jit_compile=False)
    train(model)
    assert not model.explain_compiles()


def test_weights_in_other_hands_stay_as_they_are() -> None:
    model = convnet()
    model.train_on_batch(X[:8], Y[:8])
    kernel = model.layers[0].kernel
    held = kernel.value
    before = np.array(held)
    model.train_on_batch(X[:8], Y[:8])
    np.testing.assert_array_equal(np.asarray(held), before)
    assert np.abs(kernel.numpy() - before).max() > 0


def test_a_wrong_label_stops_the_step_before_anything_changes() -> None:
    model = convnet()
    model.train_on_batch(X[:8], Y[:8])
    before = [np.array(w) for w in model.get_weights()]
    slots = [np.array(v) for v in model.optimizer.variables]
    with pytest.raises(InvalidArgumentError, match="the label 5 at"):
        model.train_on_batch(X[:8], np.array([0, 1, 5, 2, 3, 4, 0, 1]))
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    for v, b in zip(model.optimizer.variables, slots, strict=True):
        np.testing.assert_array_equal(np.array(v), b)
    model.train_on_batch(X[:8], Y[:8])  # and it goes on


def test_many_threads_predict_with_one_model() -> None:
    model = convnet()
    expected = model.predict(X, verbose=0)
    found: list[Array] = []

    def work() -> None:
        for _ in range(5):
            found.append(model.predict_on_batch(X))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 20
    for y in found:
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_set_threads_refuses_what_is_no_number_of_threads(n: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a positive number of threads"):
        laminar.set_threads(n)


def test_dumps_show_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "cache"))
    model = laminar.Sequential([layers.Input((7,)), layers.Dense(3, activation="tanh", name="top")])
    model.predict(np.ones((2, 7), "float32"), verbose=0)
    names = {path.name for path in tmp_path.iterdir()}
    stages = ("given", "graph", "clustered", "loops", "kernels", "ll", "s", "plan")
    found = [name.removesuffix(".txt").rpartition(".")[2] for name in sorted(names)]
    assert [stage for stage in dict.fromkeys(found) if stage in stages] == list(stages)
    assert any("top" in name and name.endswith(".ll") for name in names), names
    index = (tmp_path / "README.txt").read_text().splitlines()
    assert [line for line in index if line[:4].isdigit()] == sorted(names - {"README.txt", "cache"})


def test_a_dump_says_what_each_kernel_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "cache"))
    train(convnet())
    texts = {path.name: path.read_text() for path in tmp_path.glob("*.txt")}
    for name, text in texts.items():
        assert not re.search(r"\d{20}", text), name  # a symbolic size has a name
    plan = next(text for name, text in texts.items() if name.endswith(".plan.txt"))
    files = re.findall(r"^    (\d{4}_.+)$", plan, re.MULTILINE)
    assert files
    assert all((tmp_path / name).exists() for name in files), files
    assert Path(__file__).name in plan  # where the step was asked for
    assert "convolution" in plan
    kernels = next(text for name, text in texts.items() if name.endswith(".kernels.txt"))
    assert re.search(r"^v\d+: float32\[.*\] variable .*kernel, memory$", kernels, re.MULTILINE)


def test_dumps_of_a_step_show_what_runs_by_its_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "cache"))
    model = laminar.Sequential(
        [layers.Input((7,)), layers.Dense(65, activation="tanh"), layers.Dense(3, name="top")]
    )
    model.compile("sgd", "mse")
    model.fit(np.ones((32, 7), "float32"), np.ones((32, 3), "float32"), verbose=0)
    names = {path.name for path in tmp_path.iterdir()}
    # Kernels are those that run: no operation by itself, as when it is tried.
    assert not any(re.match(r"\d+_(Tanh|Add|MatMul)", name) for name in names), names
    # Products are among them, and so are gradients, by the layer that they are of.
    assert any("dense_" in name and "-microkernel" in name for name in names), names
    assert any("_top_MatMul_1" in name for name in names), names
    (loops,) = (path.read_text() for path in tmp_path.glob("*.loops.txt"))
    assert "float32[n0, 7] input" in loops


def test_a_long_name_keeps_the_layer_it_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))
    many = "+".join(f"Mul_{i}" for i in range(100))
    name = dump(f"eyes/Conv+{many}-kernel.ll", "text", "what it is")
    assert sorted(os.listdir(tmp_path)) == [name, "README.txt"]
    assert name.startswith("0001_eyes_Conv_Mul_0_")
    assert name.endswith("_Mul_99-kernel.ll")
    assert len(name) < 135


def test_a_folder_that_dumps_cannot_be_written_to_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path / "file"))
    model = laminar.Sequential([layers.Input((7,)), layers.Dense(3)])
    assert model.predict(np.ones((2, 7), "float32"), verbose=0).shape == (2, 3)
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(f"LAMINAR_DUMP: {tmp_path / 'file'} cannot be written: ")


@pytest.mark.parametrize("width", [16, 32])
def test_narrower_vectors_give_the_same_training(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if llvm.vector_bytes() < width:
        pytest.skip(f"this processor has no vectors of {width} bytes")
    expected = train(convnet())
    monkeypatch.setattr(specializations, "vector_bytes", lambda: width)
    monkeypatch.setattr(llvm, "vector_bytes", lambda: width)
    found = train(convnet())
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-4)


def test_a_gradient_that_only_its_update_reads_takes_no_memory() -> None:
    units, rows = 512, 640
    x = rng.normal(size=(24, rows)).astype("float32")

    def trained(threads: int = 1, **options: Any) -> tuple[Array, int]:
        laminar.set_threads(threads)
        laminar.set_random_seed(5)
        model = laminar.Sequential([layers.Input((rows,)), layers.Dense(units, use_bias=False)])
        model.compile(laminar.optimizers.Adam(0.01, **options), "mse")
        model.fit(x, x[:, :units], batch_size=8, epochs=2, verbose=0, shuffle=False)
        ((_, event),) = model.explain_compiles()
        return model.get_weights()[0], event.arena_bytes

    weights, num_bytes = trained()
    assert num_bytes < weights.nbytes
    np.testing.assert_array_equal(trained(3)[0], weights)
    # Its size is known before it is used.
    others, num_bytes = trained(global_clipnorm=1e6)
    assert num_bytes > weights.nbytes
    np.testing.assert_allclose(others, weights, rtol=1e-4, atol=1e-5)
