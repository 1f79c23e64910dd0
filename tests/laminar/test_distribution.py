"""laminar.distribution: Keras's names for training on several devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import distribution, layers
from laminar.engine.errors import InvalidArgumentError, UnimplementedError


@pytest.fixture(autouse=True)
def one_device_afterwards() -> Iterator[None]:
    yield
    distribution.set_distribution(None)


def trained() -> Any:
    laminar.set_random_seed(0)
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=(22, 3)), chance.normal(size=(22, 1))
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(4, "tanh"), layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=8, epochs=2, verbose=0)
    return model


def test_devices() -> None:
    assert distribution.list_devices("cpu") == ["cpu:0"]
    assert distribution.get_device_count("cpu") == 1
    distribution.initialize()
    with pytest.raises(UnimplementedError, match="not joined by their addresses"):
        distribution.initialize("10.0.0.1:1234,10.0.0.2:1234", 2, 0)
    with pytest.raises(InvalidArgumentError, match="process 0 of 2, this is process 0 of 1"):
        distribution.initialize(None, 2, 0)


def test_models_compiled_afterwards_share_their_batches() -> None:
    expected = trained().get_weights()
    shared = distribution.DataParallel(devices=["cpu:0", "cpu:1"])
    assert shared.num_model_replicas == 2
    distribution.set_distribution(shared)
    assert distribution.distribution() is shared
    model = trained()
    assert model._laminar_compiled.strategy is shared.strategy
    for found, one in zip(model.get_weights(), expected, strict=True):
        assert np.allclose(found, one, atol=1e-6)
    distribution.set_distribution(None)
    with shared.scope():
        assert distribution.distribution() is shared
    assert distribution.distribution() is None
    assert trained()._laminar_compiled.strategy is None


def test_one_device_needs_no_strategy() -> None:
    assert distribution.DataParallel().num_model_replicas == distribution.get_device_count()
    assert distribution.DataParallel(devices=["cpu:0"]).strategy is None


def test_meshes_and_layouts() -> None:
    mesh = distribution.DeviceMesh((1, 2), ["batch", "model"], ["cpu:0", "cpu:1"])
    assert mesh.devices.tolist() == [["cpu:0", "cpu:1"]]
    layouts = distribution.LayoutMap(mesh)
    layouts["d.*kernel"] = (None, "model")
    assert layouts["dense_1/kernel"].axes == (None, "model")  # type: ignore[union-attr]  # it is there
    assert layouts["dense_1/bias"] is None
    assert list(layouts) == ["d.*kernel"]
    layouts[".*1/kernel"] = (None, None)
    with pytest.raises(InvalidArgumentError, match="has 2 patterns"):
        layouts["dense_1/kernel"]
    with pytest.raises(InvalidArgumentError, match="has a layout already"):
        layouts["d.*kernel"] = ("model",)
    with pytest.raises(InvalidArgumentError, match="no axis 'x'"):
        distribution.TensorLayout(["x"], mesh)
    with pytest.raises(InvalidArgumentError, match="one axis"):
        distribution.DataParallel(mesh)
    with pytest.raises(InvalidArgumentError, match="takes 4 devices, got 1"):
        distribution.DeviceMesh((2, 2), ["a", "b"], ["cpu:0"])
    with pytest.raises(InvalidArgumentError, match="has 1 axes"):
        distribution.DeviceMesh((1,), ["a", "b"], ["cpu:0"])


def test_parallel_models_on_a_mesh_that_cuts_no_variable() -> None:
    mesh = distribution.DeviceMesh((1, 1), ["batch", "model"], ["cpu:0"])
    layouts = distribution.LayoutMap(mesh)
    layouts[".*kernel"] = (None, "model")
    parallel = distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")
    assert parallel.num_model_replicas == 1
    distribution.set_distribution(parallel)
    try:
        model = laminar.Sequential([layers.Input((3,)), layers.Dense(1)])
        model.compile("sgd", "mse")
        assert np.isfinite(model.fit(np.ones((4, 3)), np.ones(4), verbose=0).history["loss"][0])
    finally:
        distribution.set_distribution(None)
    wide = distribution.DeviceMesh((1, 2), ["batch", "model"], ["cpu:0", "cpu:1"])
    with pytest.raises(InvalidArgumentError, match="takes 2 processes, and 1 of them was started"):
        distribution.ModelParallel(layout_map=distribution.LayoutMap(wide))
    with pytest.raises(InvalidArgumentError, match="has no axis 'rows'"):
        distribution.ModelParallel(layout_map=layouts, batch_dim_name="rows")
    with pytest.raises(InvalidArgumentError, match="layout_map is missing"):
        distribution.ModelParallel()


def test_tensors_stay_whole() -> None:
    assert distribution.distribute_tensor([1.0, 2.0], (None,)).numpy().tolist() == [1, 2]
    with pytest.raises(UnimplementedError, match="cuts an axis"):
        distribution.distribute_tensor([1.0, 2.0], ("batch",))
    with pytest.raises(InvalidArgumentError, match="expected a laminar.distribution.DataParallel"):
        distribution.set_distribution("cpu")  # type: ignore[arg-type]  # the mistake that is tested
