from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.adaptive_pooling import adaptive_average_pool, adaptive_max_pool
from laminar.engine.ops.nn.pooling import average_pool, max_pool

from ..derivatives import check_third
from ..harness import check_op

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)


def each(value: Any, axes: int) -> tuple[int, ...]:
    return (value,) * axes if isinstance(value, int) else tuple(value)


def pool_reference(
    reduce: Any, x: Array, window: Any, strides: Any = None, padding: Any = "valid"
) -> Array:
    """Each window in turn, cut to the cells of x."""
    axes = x.ndim - 2
    window = each(window, axes)
    strides = window if strides is None else each(strides, axes)
    starts = []
    for axis, (n, k, s) in enumerate(zip(x.shape[1:-1], window, strides, strict=True)):
        before, after = 0, 0
        if padding == "same":
            total = max(0, (int(np.ceil(n / s)) - 1) * s + k - n)
            before, after = total // 2, total - total // 2
        elif padding != "valid":
            before, after = padding[axis]
        starts.append(range(-before, n + after - k + 1, s))
    y = np.zeros((x.shape[0], *map(len, starts), x.shape[-1]), x.dtype)
    for place in np.ndindex(*map(len, starts)):
        first = [r[i] for r, i in zip(starts, place, strict=True)]
        cells = [slice(max(f, 0), f + k) for f, k in zip(first, window, strict=True)]
        seen = x[(slice(None), *cells)]
        y[(slice(None), *place)] = reduce(seen, axis=tuple(range(1, axes + 1)))
    return y


def max_reference(x: Array, window: Any, **attrs: Any) -> Array:
    return pool_reference(np.max, x, window, **attrs)


def mean_reference(x: Array, window: Any, **attrs: Any) -> Array:
    return pool_reference(np.mean, x, window, **attrs)


def distinct(*shape: int) -> Array:
    """Numbers that lie well apart, so that a small step does not change which one is greatest."""
    return rng.permutation(np.arange(np.prod(shape), dtype="float64")).reshape(shape) / 8


CASES = [
    pytest.param((2, 9, 3), {"window": 2}, id="1d"),
    pytest.param((2, 9, 3), {"window": 3, "strides": 2, "padding": "same"}, id="1d-same"),
    pytest.param((2, 6, 8, 2), {"window": 2}, id="2d"),
    pytest.param((2, 7, 5, 2), {"window": 2}, id="2d-rest"),
    pytest.param((2, 7, 5, 2), {"window": (3, 2), "strides": (1, 2)}, id="2d-overlap"),
    pytest.param((2, 7, 5, 2), {"window": 3, "strides": 2, "padding": "same"}, id="2d-same"),
    pytest.param((2, 7, 5, 2), {"window": 2, "strides": 3, "padding": "same"}, id="2d-gaps"),
    pytest.param((1, 5, 4, 2), {"window": 3, "padding": ((2, 0), (1, 2))}, id="2d-pairs"),
    pytest.param((1, 3, 3, 2), {"window": 5, "strides": 1, "padding": "same"}, id="2d-large"),
    pytest.param((1, 4, 5, 3, 2), {"window": 2, "strides": 1}, id="3d"),
    pytest.param((1, 4, 5, 3, 2), {"window": 2, "padding": "same"}, id="3d-same"),
    pytest.param((0, 4, 4, 2), {"window": 2}, id="empty-batch"),
    pytest.param((2, 4, 4, 0), {"window": 2}, id="no-channels"),
]


@pytest.mark.parametrize(("shape", "attrs"), CASES)
def test_max_pool(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    dtypes = ["float32", "float16", "bfloat16", "int32", "int8"]
    check_op(max_pool, max_reference, [distinct(*shape)], attrs=attrs, dtypes=dtypes)


@pytest.mark.parametrize(("shape", "attrs"), CASES)
def test_average_pool(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    dtypes = ["float32", "float16", "bfloat16"]
    x = rng.normal(size=shape)
    check_op(average_pool, mean_reference, [x], attrs=attrs, dtypes=dtypes)


def test_max_pool_of_negative_numbers_ignores_the_padding() -> None:
    x = convert_to_tensor(np.full((1, 3, 3, 1), -2.0))
    assert np.all(max_pool(x, 3, strides=1, padding="same").numpy() == -2)
    unsigned = convert_to_tensor(np.zeros((1, 3, 3, 1), "uint8"))
    assert np.all(max_pool(unsigned, 3, strides=1, padding="same").numpy() == 0)


def test_nan_reaches_the_maximum() -> None:
    x = convert_to_tensor(np.array([1.0, np.nan, 3.0, 4.0]).reshape(1, 4, 1))
    np.testing.assert_array_equal(max_pool(x, 2).numpy().ravel(), [np.nan, 4])


@pytest.mark.parametrize("pool", [max_pool, adaptive_max_pool])
def test_the_gradient_goes_to_the_first_of_equal_maxima(pool: Any) -> None:
    values = [[0, 7, 1, 1], [7, 7, 1, 1]]
    x = convert_to_tensor(np.array(values, "float64").reshape(1, 2, 4, 1))
    with GradientTape() as tape:
        tape.watch(x)
        y = pool(x, 2 if pool is max_pool else (1, 2))
    dx = tape.gradient(y, x)
    assert dx.numpy().reshape(2, 4).tolist() == [[0, 1, 1, 0], [0, 0, 0, 0]]


ADAPTIVE = [
    pytest.param((2, 8, 3), 4, id="1d-even"),
    pytest.param((2, 7, 3), 3, id="1d-uneven"),
    pytest.param((2, 3, 2), 5, id="1d-more"),
    pytest.param((2, 7, 5, 2), (3, 2), id="2d"),
    pytest.param((2, 6, 5, 2), 1, id="2d-one"),
    pytest.param((1, 4, 5, 3, 2), (2, 3, 2), id="3d"),
    pytest.param((0, 4, 4, 2), 2, id="empty-batch"),
]


def adaptive_reference(reduce: Any, x: Array, size: Any) -> Array:
    axes = x.ndim - 2
    sizes = each(size, axes)
    y = np.zeros((x.shape[0], *sizes, x.shape[-1]), x.dtype)
    for place in np.ndindex(*sizes):
        cells = [
            slice(int(np.floor(i * d / n)), int(np.ceil((i + 1) * d / n)))
            for i, d, n in zip(place, x.shape[1:-1], sizes, strict=True)
        ]
        seen = x[(slice(None), *cells)]
        y[(slice(None), *place)] = reduce(seen, axis=tuple(range(1, axes + 1)))
    return y


@pytest.mark.parametrize(("shape", "size"), ADAPTIVE)
def test_adaptive_max_pool(shape: tuple[int, ...], size: Any) -> None:
    check_op(
        adaptive_max_pool,
        lambda x, size: adaptive_reference(np.max, x, size),
        [distinct(*shape)],
        attrs={"size": size},
        dtypes=["float32", "bfloat16", "int32"],
    )


@pytest.mark.parametrize(("shape", "size"), ADAPTIVE)
def test_adaptive_average_pool(shape: tuple[int, ...], size: Any) -> None:
    check_op(
        adaptive_average_pool,
        lambda x, size: adaptive_reference(np.mean, x, size),
        [rng.normal(size=shape)],
        attrs={"size": size},
        dtypes=["float32", "float16", "bfloat16"],
    )


def test_shapes_are_inferred() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 9, 9, 3])
        assert max_pool(x, 2).shape == (None, 4, 4, 3)
        assert average_pool(x, 2, padding="same").shape == (None, 5, 5, 3)
        assert adaptive_max_pool(x, (2, 3)).shape == (None, 2, 3, 3)
        assert adaptive_average_pool(x, 4).shape == (None, 4, 4, 3)
        assert max_pool(placeholder("float32"), (2, 2)).shape == (None, None, None, None)


ERRORS = [
    pytest.param(
        max_pool,
        (1, 4, 4, 1),
        (5,),
        {},
        "MaxPool: the window covers 5 cells along spatial axis 0, but the input has 4 there "
        "(4 with padding 'valid')",
        id="window-too-large",
    ),
    pytest.param(
        max_pool,
        (1, 4, 4, 1),
        (2,),
        {"padding": ((2, 0), (0, 0))},
        "MaxPool: each padding must be at least 0 and less than the window (2, 2), "
        "got ((2, 0), (0, 0))",
        id="window-in-the-padding",
    ),
    pytest.param(
        average_pool,
        (1, 4, 4, 1),
        ((2, 2, 2),),
        {},
        "AvgPool: x must have 5 axes, got float32[1, 4, 4, 1]",
        id="axes",
    ),
    pytest.param(
        average_pool,
        (4, 4),
        (2,),
        {},
        "AvgPool: x must be (batch, *spatial, channels) with one to three spatial axes, "
        "got float32[4, 4] and a window 2",
        id="too-few-axes",
    ),
    pytest.param(
        average_pool,
        (1, 4, 4, 1),
        (0,),
        {},
        "AvgPool: the window must be one whole number >= 1, or 2 of them (one per spatial axis), "
        "got 0",
        id="window",
    ),
    pytest.param(
        adaptive_max_pool,
        (1, 0, 1),
        (2,),
        {},
        "AdaptiveMaxPool: axis 1 of float32[1, 0, 1] is empty: it has no maximum",
        id="empty",
    ),
    pytest.param(
        adaptive_average_pool,
        (4, 1),
        (2,),
        {},
        "AdaptiveAveragePool: x must be (batch, *spatial, channels) with one to three spatial "
        "axes, got float32[4, 1]",
        id="adaptive-axes",
    ),
]


@pytest.mark.parametrize(("fn", "shape", "args", "attrs", "message"), ERRORS)
def test_errors(fn: Any, shape: Any, args: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        fn(convert_to_tensor(np.zeros(shape, "float32")), *args, **attrs)
    assert caught.value.message == message


def test_a_window_for_an_unknown_rank_must_say_how_many_axes() -> None:
    with Graph().as_default(), pytest.raises(ShapeError, match="the number of axes of x"):
        max_pool(placeholder("float32"), 2)


@pytest.mark.parametrize(
    ("fn", "reference", "attrs"),
    [
        (max_pool, max_reference, {"window": 2, "strides": 1, "padding": "same"}),
        (average_pool, mean_reference, {"window": 2, "strides": 1, "padding": "same"}),
        (adaptive_max_pool, lambda x, size: adaptive_reference(np.max, x, size), {"size": 2}),
    ],
)
def test_third_derivatives(fn: Any, reference: Any, attrs: dict[str, Any]) -> None:
    check_third(fn, reference, [distinct(1, 3, 4, 2) / 8], attrs)
