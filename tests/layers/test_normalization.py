"""Batch, layer, group, RMS, unit and spectral normalization."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec

from .harness import check_agreement, check_layer, random_inputs

wrong: Any = layers  # for arguments of the wrong type

BATCH: list[Any] = [
    ({}, (4, 5)),
    ({"axis": 1}, (4, 5, 6)),
    ({"axis": -2, "momentum": 0.5}, (4, 5, 6, 3)),
    ({"scale": False}, (4, 5, 6, 3)),
    ({"center": False, "epsilon": 0.1}, (4, 5, 6, 3)),
]


@pytest.mark.parametrize(("kwargs", "shape"), BATCH)
def test_batch_normalization(kwargs: dict[str, Any], shape: tuple[int, ...]) -> None:
    size = (shape[kwargs.get("axis", -1)],)
    names = ["gamma", "beta", "moving_mean", "moving_variance"]
    if not kwargs.get("scale", True):
        names.remove("gamma")
    if not kwargs.get("center", True):
        names.remove("beta")
    check_layer(
        layers.BatchNormalization,
        kwargs,
        shape,
        expected_output_shape=shape,
        expected_weights=dict.fromkeys(names, size),
    )
    check_agreement("BatchNormalization", kwargs, shape, training=False)
    check_agreement("BatchNormalization", kwargs, shape, training=True)


def test_batch_normalization_with_a_mask() -> None:
    mask = np.arange(20).reshape(4, 5) % 3 > 0
    check_agreement("BatchNormalization", {}, (4, 5, 6), training=True, mask=mask)
    x = random_inputs((4, 5, 6))
    layer = layers.BatchNormalization(momentum=0.0)
    layer(x, training=True, mask=mask)
    np.testing.assert_allclose(layer.moving_mean.numpy(), x[mask].mean(0), atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.numpy(), x[mask].var(0), atol=1e-6)
    with pytest.raises(ShapeError, match="must have one axis less"):
        layer(x, training=True, mask=mask[:, :, None])


def test_moving_statistics_follow_the_batches_in_a_trace() -> None:
    layer = layers.BatchNormalization(momentum=0.9)
    layer.build((None, 3))

    def step(x: Any) -> Any:
        return layer(x, training=True)

    traced = function(step, input_signature=[TensorSpec((None, 3), "float32")])
    mean, variance = np.zeros(3), np.ones(3)
    source = np.random.default_rng(3)
    for size in (4, 7, 5):
        x = source.normal(2, 3, size=(size, 3)).astype(np.float32)
        y = traced(x).numpy()
        np.testing.assert_allclose(y.mean(0), 0, atol=1e-5)
        mean = 0.9 * mean + 0.1 * x.mean(0)
        variance = 0.9 * variance + 0.1 * x.var(0)
        np.testing.assert_allclose(layer.moving_mean.numpy(), mean, rtol=1e-5)
        np.testing.assert_allclose(layer.moving_variance.numpy(), variance, rtol=1e-5)
    assert traced.trace_count == 1


def test_frozen_batch_normalization_is_in_inference_mode() -> None:
    layer = layers.BatchNormalization()
    x = random_inputs((6, 3))
    expected = layer(x).numpy()
    layer.trainable = False
    np.testing.assert_array_equal(layer(x, training=True).numpy(), expected)
    np.testing.assert_array_equal(layer.moving_mean.numpy(), 0)
    assert layer.trainable_weights == []
    assert len(layer.non_trainable_weights) == 4


def test_statistics_of_half_types_are_float32() -> None:
    layer = layers.BatchNormalization(dtype="mixed_float16", momentum=0.0)
    x = random_inputs((64, 3)) + np.float32(100)
    y = layer(x, training=True)
    assert y.dtype == "float16"
    rounded = x.astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(layer.moving_mean.numpy(), rounded.mean(0), rtol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.numpy(), rounded.var(0), rtol=1e-4)


def test_batch_normalization_takes_integers() -> None:
    x = np.arange(6).reshape(3, 2)
    np.testing.assert_allclose(
        layers.BatchNormalization()(x, training=True).numpy(),
        layers.BatchNormalization()(x.astype(np.float32), training=True).numpy(),
    )


def test_gradient_goes_through_the_statistics() -> None:
    layer = layers.BatchNormalization(epsilon=1e-6)
    x = ops.convert_to_tensor(random_inputs((5, 3)))
    with GradientTape() as tape:
        tape.watch(x)
        total = ops.sum(layer(x, training=True))
    np.testing.assert_allclose(tape.gradient(total, x).numpy(), 0, atol=1e-5)


LAYER: list[Any] = [
    ({}, (4, 5), (5,)),
    ({"axis": 1}, (2, 3, 4), (3,)),
    ({"axis": (1, 2)}, (2, 3, 4), (3, 4)),
    ({"axis": [-1, -2], "center": False, "epsilon": 0.1}, (2, 3, 4), (3, 4)),
    ({"scale": False, "center": False}, (2, 3, 4), None),
]


@pytest.mark.parametrize(("kwargs", "shape", "size"), LAYER)
def test_layer_normalization(
    kwargs: dict[str, Any], shape: tuple[int, ...], size: tuple[int, ...] | None
) -> None:
    names = [n for n, k in (("gamma", "scale"), ("beta", "center")) if kwargs.get(k, True)]
    layer: Any = check_layer(
        layers.LayerNormalization,
        kwargs,
        shape,
        expected_output_shape=shape,
        expected_weights=dict.fromkeys(names, size or ()),
    )
    x = random_inputs(shape).astype(np.float64)
    axis = tuple(layer.axis) if isinstance(layer.axis, list) else layer.axis
    expected = (x - x.mean(axis, keepdims=True)) / np.sqrt(
        x.var(axis, keepdims=True) + layer.epsilon
    )
    np.testing.assert_allclose(layer(x.astype(np.float32)).numpy(), expected, atol=1e-5)


def test_layer_normalization_agrees_with_keras() -> None:
    axes = ({"axis": (1, 2)}, {"axis": (-1, 1)}, {"axis": [2, 1]}, {"axis": [2], "center": False})
    for kwargs in axes:
        check_agreement("LayerNormalization", kwargs, (2, 3, 4))


def test_an_axis_that_is_written_as_a_number_may_be_read_as_a_list() -> None:
    config = layers.LayerNormalization(axis=-1).get_config()
    copy = layers.LayerNormalization.from_config({**config, "axis": [-1]})
    x = random_inputs((2, 4))
    np.testing.assert_array_equal(copy(x).numpy(), layers.LayerNormalization()(x).numpy())


GROUP: list[Any] = [
    ({"groups": 2}, (2, 3, 4, 8)),
    ({"groups": 4, "axis": 1}, (2, 8, 3, 4)),
    ({"groups": 4, "axis": -2}, (2, 3, 8, 4)),
    ({"groups": 2, "scale": False}, (2, 8)),
    ({"groups": 8, "center": False}, (2, 3, 8)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kwargs", "shape"), GROUP)
def test_group_normalization(kwargs: dict[str, Any], shape: tuple[int, ...]) -> None:
    check_layer(layers.GroupNormalization, kwargs, shape, expected_output_shape=shape)
    check_agreement("GroupNormalization", kwargs, shape)


def test_minus_1_is_a_group_for_each_channel() -> None:
    x = random_inputs((2, 5, 6))
    y = layers.GroupNormalization(-1)(x).numpy()
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(y, expected, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1, [1, 2]])
def test_unit_and_rms_normalization(axis: Any) -> None:
    shape = (2, 3, 4)
    x = random_inputs(shape)
    over = tuple(axis) if isinstance(axis, list) else axis
    size = tuple(shape[a] for a in (axis if isinstance(axis, list) else [axis]))
    unit = check_layer(layers.UnitNormalization, {"axis": axis}, shape)
    length = np.sqrt((x**2).sum(over, keepdims=True))
    np.testing.assert_allclose(unit(x).numpy(), x / length, rtol=1e-5)
    rms = check_layer(
        layers.RMSNormalization, {"axis": axis}, shape, expected_weights={"scale": size}
    )
    mean = np.sqrt((x**2).mean(over, keepdims=True) + 1e-6)
    np.testing.assert_allclose(rms(x).numpy(), x / mean, rtol=1e-5)
    check_agreement("UnitNormalization", {"axis": axis}, shape)
    if isinstance(axis, list):  # Keras 3.15 fails for 1, and writes a list for -1
        check_agreement("RMSNormalization", {"axis": axis}, shape)


def test_spectral_normalization_brings_the_largest_singular_value_to_1() -> None:
    x = random_inputs((3, 6))
    layer: Any = layers.SpectralNormalization(layers.Dense(4), power_iterations=30)
    layer(x)
    before = layer.layer.kernel.numpy()
    assert [(v.name, v.trainable) for v in layer.weights] == [
        ("kernel", True),
        ("vector_u", False),
        ("bias", True),
    ]
    np.testing.assert_array_equal(layer(x, training=False).numpy(), x @ before)
    y = layer(x, training=True).numpy()
    after = layer.layer.kernel.numpy()
    np.testing.assert_allclose(np.linalg.svd(after)[1][0], 1, rtol=1e-4)
    np.testing.assert_allclose(after * np.linalg.svd(before)[1][0], before, rtol=1e-3)
    np.testing.assert_allclose(y, x @ after, rtol=1e-4, atol=1e-5)


def test_spectral_normalization_of_other_layers() -> None:
    image = random_inputs((2, 5, 5, 2))
    convolution: Any = layers.SpectralNormalization(layers.Conv2D(3, 2), power_iterations=20)
    convolution(image, training=True)
    matrix = convolution.layer.kernel.numpy().reshape(-1, 3)
    np.testing.assert_allclose(np.linalg.svd(matrix)[1][0], 1, rtol=1e-3)
    embedding: Any = layers.SpectralNormalization(layers.Embedding(5, 3), power_iterations=20)
    embedding(np.array([[1, 2]]), training=True)
    np.testing.assert_allclose(
        np.linalg.svd(embedding.layer.embeddings.numpy())[1][0], 1, rtol=1e-3
    )
    half = layers.SpectralNormalization(layers.Dense(3), dtype="mixed_float16")
    assert half(random_inputs((2, 4))).dtype == "float16"  # that of its inputs
    check_layer(
        lambda **kwargs: layers.SpectralNormalization(layers.Dense(3), **kwargs),
        {},
        (2, 4),
        expected_weights={"kernel": (4, 3), "vector_u": (1, 3), "bias": (3,)},
        trains=False,  # a training step sets the kernel itself
        mixed=False,  # the policy of the layer inside is its own
    )


def test_spectral_normalization_leaves_a_kernel_of_zeros() -> None:
    layer: Any = layers.SpectralNormalization(layers.Dense(3, kernel_initializer="zeros"))
    layer.build((None, 4))
    u = layer.vector_u.numpy()
    assert layer(random_inputs((2, 4)), training=True).numpy().tolist() == [[0, 0, 0]] * 2
    np.testing.assert_array_equal(layer.kernel.numpy(), 0)
    np.testing.assert_array_equal(layer.vector_u.numpy(), u)


REFUSED: list[Any] = [
    (lambda: wrong.BatchNormalization(renorm=True, renorm_clipping={"max": 1}), "has limits of"),
    (
        lambda: wrong.BatchNormalization(renorm=True, renorm_clipping={"rmin": 2, "rmax": 1}),
        "rmax at least rmin",
    ),
    (lambda: wrong.BatchNormalization(renorm=True, renorm_clipping={"dmax": -1}), "dmax at least"),
    (lambda: wrong.BatchNormalization(axis=[1]), "axis must be a whole number"),
    (lambda: wrong.GroupNormalization(0), "groups must be a whole number"),
    (lambda: wrong.GroupNormalization(3).build((None, 8)), "8 channels .* into 3 groups"),
    (lambda: wrong.SpectralNormalization(layers.Dense(2), 0), "power_iterations must be"),
    (lambda: wrong.SpectralNormalization(3), "expected a layer, got 3"),
    (
        lambda: wrong.SpectralNormalization(layers.Flatten()).build((None, 3)),
        "has neither a kernel nor embeddings",
    ),
    (lambda: wrong.BatchNormalization().build((None, None)), "sizes the weights"),
    (lambda: wrong.BatchNormalization(axis=3).build((None, 2)), "axis 3 .* does not exist"),
    (lambda: wrong.LayerNormalization(axis=3).build((None, 2)), "axis 3 .* does not exist"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises((InvalidArgumentError, ShapeError), match=message):
        make()


@pytest.mark.parametrize("axis", [{"axis": -1}, "last", [0.5]])
@pytest.mark.parametrize(
    "make", [wrong.LayerNormalization, wrong.UnitNormalization, wrong.RMSNormalization]
)
def test_axes_of_other_types(make: Any, axis: Any) -> None:
    with pytest.raises(TypeError, match="axis must be a whole number, or several"):
        make(axis)


RENORM: list[Any] = [
    {},
    {"renorm_clipping": {"rmax": 1.5, "rmin": 0.7, "dmax": 0.3}, "renorm_momentum": 0.5},
    {"scale": False},
    {"center": False, "moving_variance_initializer": "zeros"},
    {"axis": 1},
]


@pytest.mark.parametrize("kwargs", RENORM)
def test_batch_renormalization_agrees_with_keras(kwargs: Any) -> None:
    kwargs = {"renorm": True, "epsilon": 0.1, **kwargs}
    for training in (True, False):
        check_agreement("BatchNormalization", kwargs, (4, 5, 6), training=training)


def test_batch_renormalization() -> None:
    size = 3
    names = ["gamma", "beta", "moving_mean", "moving_variance"]
    names += ["moving_stddev", "renorm_mean", "renorm_stddev"]
    check_layer(
        layers.BatchNormalization,
        {"renorm": True},
        (4, size),
        expected_weights=dict.fromkeys(names, (size,)),
    )
    layer = layers.BatchNormalization(renorm=True, moving_variance_initializer="random_normal")
    x = random_inputs((4, size))
    mask = np.array([True, False, True, True])
    layer(x, training=True, mask=mask)
    np.testing.assert_allclose(layer.renorm_mean, 0.01 * x[mask].mean(0), rtol=1e-4)


def test_rms_scaling_of_older_files() -> None:
    for kwargs, shape in (({"axis": [-1]}, (4, 5)), ({"axis": [1, 2], "scale": False}, (2, 3, 4))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Keras warns of the name
            check_agreement("LayerNormalization", {"rms_scaling": True, **kwargs}, shape)
    with pytest.warns(UserWarning, match="use RMSNormalization"):
        half = layers.LayerNormalization(rms_scaling=True, dtype="float16")
    assert not layers.LayerNormalization(rms_scaling=False).rms_scaling
    found = half(np.arange(5, dtype="float32")[None])
    np.testing.assert_allclose(found, [[0.0, 0.70693, 1.41386, 2.12079, 2.82772]], rtol=1e-3)


@pytest.mark.parametrize(
    "layer",
    [
        layers.LayerNormalization(dtype="mixed_float16"),
        layers.GroupNormalization(2, dtype="mixed_float16"),
    ],
)
def test_numbers_greater_than_those_of_float16(layer: Any) -> None:
    x = 70000 + 1000 * random_inputs((2, 4, 8))
    y = layer(x)
    assert y.dtype == "float16"
    assert np.isfinite(y.numpy()).all()
    np.testing.assert_allclose(y.numpy().astype("float32").std(), 1, rtol=0.02)


@pytest.mark.parametrize(
    "layer",
    [layers.LayerNormalization(), layers.GroupNormalization(groups=1)],
    ids=lambda x: x.name,
)
def test_float64_goes_in_and_the_compute_dtype_comes_out(layer: layers.Layer) -> None:
    y = layer(np.array([[1.0, 2.0, 3.0]]))
    assert y.dtype == "float32"
    np.testing.assert_allclose(y, np.array([[-1, 0, 1]]) / np.sqrt(2 / 3 + 1e-3), rtol=1e-6)
