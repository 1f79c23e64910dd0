from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.normalization import (
    batch_norm,
    batch_norm_inference,
    group_norm,
    layer_norm,
    moments,
    rms_norm,
)

from ..derivatives import check_third
from ..harness import check_op

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)
HALVES = ["float16", "bfloat16"]


def normal(*shape: int) -> Array:
    return rng.normal(size=shape)


def spread(p: Array, kept: tuple[int, ...], rank: int) -> Array:
    """`p`, with the axes `kept` of x, so that it broadcasts to x."""
    shape = [1] * rank
    for axis, size in zip(kept, p.shape, strict=True):
        shape[axis] = size
    return p.reshape(shape)


def batch_reference(
    x: Array, scale: Array, offset: Array, axis: Any = -1, epsilon: float = 1e-3
) -> tuple[Array, Array, Array]:
    kept = tuple(sorted(a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)))
    axes = tuple(i for i in range(x.ndim) if i not in kept)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + epsilon)
    y = y * spread(scale, kept, x.ndim) + spread(offset, kept, x.ndim)
    return y, mean.squeeze(axes), variance.squeeze(axes)


BATCH = [
    pytest.param((6, 3), (3,), {}, id="dense"),
    pytest.param((2, 3, 4, 3), (3,), {"epsilon": 0.1}, id="images"),
    pytest.param((2, 3, 4, 5), (3,), {"axis": 1}, id="channels-first"),
    pytest.param((4, 2, 3), (2, 3), {"axis": (-1, 1)}, id="two-axes-apart"),
    pytest.param((3, 4, 2), (3, 2), {"axis": (0, 2)}, id="first-and-last"),
    pytest.param((4, 0), (0,), {}, id="no-channels"),
]


@pytest.mark.parametrize(("x", "parameters", "attrs"), BATCH)
def test_batch_norm(x: tuple[int, ...], parameters: tuple[int, ...], attrs: dict[str, Any]) -> None:
    inputs = [2 + 3 * normal(*x), normal(*parameters), normal(*parameters)]
    check_op(batch_norm, batch_reference, inputs, attrs=attrs, dtypes=["float32"])


def test_batch_norm_without_scale_and_offset() -> None:
    check_op(
        batch_norm, lambda x: batch_reference(x, np.ones(3), np.zeros(3)), [2 + 3 * normal(6, 3)]
    )


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("wide", [False, True])
def test_batch_norm_of_half_types_has_float32_statistics(dtype: str, wide: bool) -> None:
    x = convert_to_tensor(5 + normal(64, 3), dtype)
    scale, offset = (convert_to_tensor(normal(3), "float32" if wide else dtype) for _ in range(2))
    y, mean, variance = batch_norm(x, scale, offset)
    exact = batch_reference(*(t.numpy().astype("float64") for t in (x, scale, offset)))
    assert (y.dtype, mean.dtype, variance.dtype) == (dtype, "float32", "float32")
    limit = 1e-3 if dtype == "float16" else 1e-2
    np.testing.assert_allclose(y.numpy().astype("float64"), exact[0], rtol=limit, atol=limit)
    np.testing.assert_allclose(mean.numpy(), exact[1], rtol=1e-5)
    np.testing.assert_allclose(variance.numpy(), exact[2], rtol=1e-5)


def test_a_large_mean_does_not_swallow_the_variance() -> None:
    x = (1e4 + normal(20000, 2)).astype("float32")
    _, mean, variance = batch_norm(convert_to_tensor(x))
    np.testing.assert_allclose(mean.numpy(), x.astype("float64").mean(0), rtol=1e-6)
    np.testing.assert_allclose(variance.numpy(), x.astype("float64").var(0), rtol=1e-4)
    _, variance = moments(convert_to_tensor(x), 0)
    np.testing.assert_allclose(variance.numpy(), x.astype("float64").var(0), rtol=1e-4)


@pytest.mark.parametrize(("axis", "shape"), [(-1, (4, 2, 3)), (1, (4, 3, 2))])
def test_batch_norm_inference(axis: int, shape: tuple[int, ...]) -> None:
    def reference(
        x: Array, mean: Array, variance: Array, scale: Array, offset: Array, axis: int
    ) -> Any:
        kept = (axis % 3,)
        m, v, s, o = (spread(p, kept, 3) for p in (mean, variance, scale, offset))
        return (x - m) / np.sqrt(v + 1e-3) * s + o

    inputs = [normal(*shape), normal(3), 0.5 + rng.uniform(size=3), normal(3), normal(3)]
    attrs = {"axis": axis}
    check_op(batch_norm_inference, reference, inputs, attrs=attrs, dtypes=["float32", *HALVES])
    check_op(
        batch_norm_inference,
        lambda x, mean, variance, axis: reference(x, mean, variance, np.ones(3), np.zeros(3), axis),
        inputs[:3],
        attrs=attrs,
    )


def layer_reference(
    x: Array, scale: Array, offset: Array, axis: Any = -1, epsilon: float = 1e-3
) -> Array:
    axes = tuple(sorted(a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + epsilon)
    found: Array = y * spread(scale, axes, x.ndim) + spread(offset, axes, x.ndim)
    return found


LAYER = [
    pytest.param((3, 5), (5,), {}, id="dense"),
    pytest.param((2, 3, 5), (5,), {"epsilon": 0.1}, id="sequence"),
    pytest.param((2, 3, 5), (3, 5), {"axis": (1, 2)}, id="two-axes"),
    pytest.param((2, 3, 5), (3,), {"axis": 1}, id="middle"),
    pytest.param((2, 3, 5), (2, 5), {"axis": (-1, 0)}, id="apart"),
    pytest.param((0, 5), (5,), {}, id="empty-batch"),
]


@pytest.mark.parametrize(("x", "parameters", "attrs"), LAYER)
def test_layer_norm(x: tuple[int, ...], parameters: tuple[int, ...], attrs: dict[str, Any]) -> None:
    inputs = [2 + 3 * normal(*x), normal(*parameters), normal(*parameters)]
    check_op(layer_norm, layer_reference, inputs, attrs=attrs, dtypes=["float32", *HALVES])


def rms_reference(x: Array, scale: Array, axis: Any = -1, epsilon: float = 1e-6) -> Array:
    axes = tuple(sorted(a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)))
    y = x / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon)
    found: Array = y * spread(scale, axes, x.ndim)
    return found


@pytest.mark.parametrize(("x", "parameters", "attrs"), LAYER)
def test_rms_norm(x: tuple[int, ...], parameters: tuple[int, ...], attrs: dict[str, Any]) -> None:
    inputs = [1 + normal(*x), normal(*parameters)]
    check_op(rms_norm, rms_reference, inputs, attrs=attrs, dtypes=["float32", *HALVES])


def group_reference(
    x: Array, scale: Array, offset: Array, groups: int, epsilon: float = 1e-3
) -> Array:
    y = np.zeros_like(x)
    width = x.shape[-1] // groups
    for example in range(len(x)):
        for g in range(groups):
            part = x[example, ..., g * width : (g + 1) * width]
            y[example, ..., g * width : (g + 1) * width] = (part - part.mean()) / np.sqrt(
                part.var() + epsilon
            )
    return y * scale + offset


GROUP = [
    pytest.param((2, 3, 4, 6), {"groups": 3}, id="images"),
    pytest.param((2, 3, 4, 6), {"groups": 6}, id="instance"),
    pytest.param((2, 3, 6), {"groups": 1, "epsilon": 0.1}, id="one-group"),
    pytest.param((3, 6), {"groups": 2}, id="dense"),
    pytest.param((0, 3, 4), {"groups": 2}, id="empty-batch"),
]


@pytest.mark.parametrize(("shape", "attrs"), GROUP)
def test_group_norm(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    inputs = [2 + 3 * normal(*shape), normal(shape[-1]), normal(shape[-1])]

    def fn(x: Any, scale: Any, offset: Any, groups: int, epsilon: float = 1e-3) -> Any:
        return group_norm(x, groups, scale, offset, epsilon=epsilon)

    check_op(fn, group_reference, inputs, attrs=attrs, dtypes=["float32", *HALVES])


MOMENTS = [
    pytest.param((4, 3), 0, False, id="rows"),
    pytest.param((4, 3), -1, True, id="keepdims"),
    pytest.param((2, 3, 4), (0, 2), False, id="two-axes"),
]


@pytest.mark.parametrize(("shape", "axis", "keepdims"), MOMENTS)
def test_moments(shape: tuple[int, ...], axis: Any, keepdims: bool) -> None:
    check_op(
        lambda x: moments(x, axis, keepdims=keepdims),
        lambda x: (x.mean(axis, keepdims=keepdims), x.var(axis, keepdims=keepdims)),
        [1 + normal(*shape)],
        dtypes=["float32", *HALVES],
    )


def test_shapes_are_inferred() -> None:
    with Graph().as_default():
        x = placeholder("bfloat16", [None, None, 6])
        y, mean, variance = batch_norm(x)
        assert y.shape == (None, None, 6)
        assert mean.shape == variance.shape == (6,)
        assert group_norm(x, 3).shape == (None, None, 6)
        assert layer_norm(x).dtype == rms_norm(x).dtype == "bfloat16"


ERRORS = [
    pytest.param(
        lambda x, p: batch_norm(x, p, p),
        (4, 3),
        (4,),
        "Normalize: the shapes [4, 3] and [4] do not broadcast (axis -1: 3 against 4)",
        id="batch-scale",
    ),
    pytest.param(
        lambda x, p: layer_norm(x, p, p),
        (4, 3),
        (4, 3),
        "layer_norm: scale must have one axis for each of the axes (1,) of x, got float32[4, 3]",
        id="layer-scale",
    ),
    pytest.param(
        lambda x, p: rms_norm(x, p, axis=2),
        (4, 3),
        (3,),
        "rms_norm: axis 2 does not exist, the tensor has 2 axes",
        id="axis",
    ),
    pytest.param(
        lambda x, p: group_norm(x, 2, p, p),
        (4, 3),
        (3,),
        "group_norm: the channels of x float32[4, 3] cannot be divided into 2 groups",
        id="groups",
    ),
]


@pytest.mark.parametrize(("fn", "x", "parameter", "message"), ERRORS)
def test_errors(fn: Any, x: tuple[int, ...], parameter: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        fn(*(convert_to_tensor(np.zeros(shape, "float32")) for shape in (x, parameter)))
    assert caught.value.message == message


def test_scale_of_another_type_is_refused() -> None:
    x, scale = convert_to_tensor(np.zeros((4, 3), "float32")), convert_to_tensor(np.zeros(3))
    with pytest.raises(DTypeError) as caught:
        layer_norm(x, scale)
    assert caught.value.message == (
        "Normalize: scale must be float32 for x float32[4, 3], got float64[3]"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fn", "reference", "parameters"),
    [
        pytest.param(
            lambda *inputs: math.prod(batch_norm(*inputs)),
            lambda *inputs: math.prod(batch_reference(*inputs)),
            2,
            id="batch",
        ),
        pytest.param(layer_norm, layer_reference, 2, id="layer"),
        pytest.param(rms_norm, rms_reference, 1, id="rms"),
    ],
)
def test_third_derivatives(fn: Any, reference: Any, parameters: int) -> None:
    check_third(fn, reference, [normal(4, 3), *(normal(3) for _ in range(parameters))])
