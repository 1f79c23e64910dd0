from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.image import resize, rgb_to_grayscale
from laminar.engine.ops.nn.resample import METHODS, resample

from ..derivatives import check_third
from ..harness import check_op

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)


def triangle(t: float) -> float:
    return max(0.0, 1 - abs(t))


def keys(t: float) -> float:
    t = abs(t)
    if t < 1:
        return 1.5 * t**3 - 2.5 * t**2 + 1
    return -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2 if t < 2 else 0.0


def lanczos(radius: int) -> Callable[[float], float]:
    def curve(t: float) -> float:
        if t == 0:
            return 1.0
        if abs(t) >= radius:
            return 0.0
        angle = np.pi * t
        return float(radius * np.sin(angle) * np.sin(angle / radius) / angle**2)

    return curve


CURVES = {
    "bilinear": triangle,
    "bicubic": keys,
    "lanczos3": lanczos(3),
    "lanczos5": lanczos(5),
}


def weights(method: str, dim: int, size: int, antialias: bool) -> Array:
    w = np.zeros((size, dim))
    ratio = dim / size
    for i in range(size):
        centre = (i + 0.5) * ratio
        if method == "nearest":
            w[i, int(np.floor(centre))] = 1
        elif method == "area":
            first, last = int(np.floor(i * ratio)), int(np.ceil(round((i + 1) * ratio, 9)))
            w[i, first:last] = 1 / (last - first)
        else:
            width = max(ratio, 1) if antialias else 1
            row = [CURVES[method]((j + 0.5 - centre) / width) for j in range(dim)]
            w[i] = np.array(row) / sum(row)
    return w


def resize_reference(
    x: Array, size: tuple[int, int], interpolation: str = "bilinear", antialias: bool = False
) -> Array:
    rows, columns = (
        weights(interpolation, dim, n, antialias)
        for dim, n in zip(x.shape[-3:-1], size, strict=True)
    )
    y: Array = np.einsum("hi,wj,...ijc->...hwc", rows, columns, x)
    return y


SIZES = [
    pytest.param((2, 4, 5, 3), (8, 10), id="double"),
    pytest.param((2, 7, 6, 2), (3, 4), id="shrink"),
    pytest.param((5, 4, 1), (3, 9), id="one-image"),
    pytest.param((1, 4, 4, 2), (4, 4), id="same-size"),
    pytest.param((1, 1, 3, 2), (3, 1), id="one-row"),
    pytest.param((0, 4, 4, 2), (2, 3), id="empty-batch"),
]
METHODS_AND_ANTIALIAS = [
    ("nearest", False),
    ("bilinear", False),
    ("bilinear", True),
    ("bicubic", False),
    ("bicubic", True),
    ("lanczos3", True),
    ("lanczos5", False),
    ("area", False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("interpolation", "antialias"), METHODS_AND_ANTIALIAS)
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_resize(
    shape: tuple[int, ...], size: tuple[int, int], interpolation: str, antialias: bool
) -> None:
    check_op(
        resize,
        resize_reference,
        [rng.normal(size=shape)],
        attrs={"size": size, "interpolation": interpolation, "antialias": antialias},
        dtypes=["float32", "bfloat16"],
    )


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos3"])
def test_resize_of_integers_rounds_and_stays_in_range(interpolation: str) -> None:
    x = rng.choice(np.array([0, 255], "uint8"), (2, 5, 6, 3))
    y = resize(convert_to_tensor(x), (9, 4), interpolation=interpolation)
    exact = resize_reference(x.astype("float64"), (9, 4), interpolation)
    assert y.dtype == "uint8"
    # A float32 sum may fall on the other side of a half.
    assert np.abs(y.numpy() - exact.clip(0, 255)).max() <= 0.5 + 1e-4


def test_the_values_of_a_known_example() -> None:
    """Half-pixel centres, as TensorFlow 2 and Keras 3 have them."""
    x = convert_to_tensor(np.array([1.0, 2.0, 3.0, 4.0]).reshape(1, 2, 2, 1))
    y = resize(x, (4, 4)).numpy()[0, :, :, 0]
    row = np.array([0, 0.25, 0.75, 1])
    np.testing.assert_allclose(y, 1 + row + 2 * row[:, None])


def test_resize_to_a_size_known_at_run_time_only() -> None:
    x, like = rng.normal(size=(2, 4, 5, 1)), rng.normal(size=(3, 7, 2))
    check_op(
        lambda x, like: resize(x, (dim_of(like, axis=1), dim_of(like, axis=0))),
        lambda x, like: resize_reference(x, (7, 3)),
        [x, like],
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_resample_along_any_axis(axis: int) -> None:
    def reference(x: Array) -> Array:
        w = weights("bilinear", x.shape[axis], 5, False)
        return np.moveaxis(np.tensordot(w, x, (1, axis)), 0, axis)

    check_op(lambda x: resample(x, axis, 5), reference, [rng.normal(size=(3, 4, 2))])


def test_grayscale() -> None:
    x = rng.uniform(size=(2, 3, 4, 3))
    check_op(
        rgb_to_grayscale,
        lambda x: (0.2989 * x[..., 0] + 0.5870 * x[..., 1] + 0.1140 * x[..., 2])[..., None],
        [x],
        dtypes=["float32"],
    )


def test_shapes_are_inferred() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, None, 6, 3])
        assert resize(x, (8, 9)).shape == (None, 8, 9, 3)
        assert rgb_to_grayscale(x).shape == (None, None, 6, 1)


ERRORS = [
    pytest.param(
        lambda x: resize(x, (2, 2), interpolation="cubic"),
        (1, 4, 4, 3),
        "resize: the interpolation must be one of nearest, bilinear, bicubic, lanczos3, lanczos5, "
        "area, got 'cubic'",
        id="interpolation",
    ),
    pytest.param(
        lambda x: resize(x, (2,)),
        (1, 4, 4, 3),
        "resize: size must be (height, width), got (2,)",
        id="size",
    ),
    pytest.param(
        lambda x: resize(x, (2, 2)),
        (4, 4),
        "resize: x must be (batch, height, width, channels) or (height, width, channels), "
        "got float32[4, 4]",
        id="axes",
    ),
    pytest.param(
        lambda x: resize(x, (2, 0)),
        (4, 4, 1),
        "Resample: axis 1 has 4 cells and is to get 0",
        id="no-cells",
    ),
    pytest.param(
        lambda x: resample(x, 0, 2, method="square"),
        (4,),
        f"Resample: the method must be one of {', '.join(METHODS)}, got 'square'",
        id="method",
    ),
    pytest.param(
        rgb_to_grayscale,
        (4, 4, 1),
        "rgb_to_grayscale: the last axis must hold red, green and blue, got float32[4, 4, 1]",
        id="no-colours",
    ),
]


@pytest.mark.parametrize(("fn", "shape", "message"), ERRORS)
def test_errors(fn: Any, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        fn(convert_to_tensor(np.zeros(shape, "float32")))
    assert caught.value.message == message


def test_fractions_of_integers_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match='the method "linear" gives fractions'):
        resample(convert_to_tensor(np.arange(4)), 0, 2)


def test_the_size_is_checked_when_it_becomes_known() -> None:
    with pytest.raises(ShapeError, match="axis 0 has 3 cells and is to get 0"):
        resample(convert_to_tensor(np.zeros(3)), 0, convert_to_tensor(np.int32(0)))


def test_third_derivatives() -> None:
    check_third(resize, resize_reference, [rng.normal(size=(1, 2, 3, 2))], {"size": (4, 2)})
