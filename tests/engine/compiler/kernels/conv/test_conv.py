from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar.engine.compiler.kernels import (
    Buffer,
    Convolution,
    Epilogue,
    Launch,
    Target,
    plan_conv_filter_gradient,
    plan_conv_forward,
    plan_conv_input_gradient,
)
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import DType, float32, float64

from .....sampling import examples
from ..convolutions import expected, numbers, same
from ..epilogues import check_epilogue, check_epilogue_scratch
from ..running import MOST_THREADS, VECTOR_BYTES, Prepared, aligned, results

PLANS: dict[str, Callable[..., list[Launch]]] = {
    "forward": plan_conv_forward,
    "input-gradient": plan_conv_input_gradient,
    "filter-gradient": plan_conv_filter_gradient,
}


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    small = st.integers(1, 3)

    def each(values: st.SearchStrategy[Any]) -> tuple[Any, ...]:
        return tuple(draw(values) for _ in range(rank))

    channels = draw(st.sampled_from([1, 2, 5, 16, 17])) * groups
    filters = channels
    if draw(st.booleans()):
        filters = draw(st.sampled_from([1, 3, 16, 20, 40])) * groups
    elif draw(st.booleans()):
        groups = channels
    return Convolution(
        draw(st.integers(0, 2)),
        each(st.integers(1, 9)),
        channels,
        filters,
        each(small),
        each(small),
        each(st.sampled_from([1, 1, 2])),
        each(st.tuples(st.integers(0, 3), st.integers(0, 2))),
        groups,
    )


def check(conv: Convolution, dtype: DType, vector_bytes: int) -> None:
    x, filters, dy = numbers(conv, dtype.numpy)
    y, dx, df = expected(conv, x, filters, dy)
    target = Target(vector_bytes, MOST_THREADS)
    operands = {
        "forward": ([x, filters], y),
        "input-gradient": ([dy, filters], dx),
        "filter-gradient": ([x, dy], df),
    }
    for name, (arrays, wanted) in operands.items():
        launches = PLANS[name](Buffer(0), Buffer(1), Buffer(2), conv, dtype, target)
        garbage = np.full(wanted.shape, 7, dtype.numpy)
        found = results(launches, *arrays, garbage)
        num_terms = wanted.size and arrays[0].size + arrays[1].size
        tolerance = np.finfo(dtype.numpy).eps * 4 * (num_terms**0.5 * 4 + 16)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=tolerance, err_msg=name)


@pytest.mark.slow
@settings(examples(80), derandomize=True)
@given(convolutions(), st.sampled_from([float32, float64]), st.sampled_from(VECTOR_BYTES))
def test_convolutions_of_any_size(conv: Convolution, dtype: DType, vector_bytes: int) -> None:
    check(conv, dtype, vector_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
@pytest.mark.parametrize(
    "conv",
    [
        pytest.param(same(3, (28, 28), 1, 32, 3, padding=(0, 0)), id="one-channel"),
        pytest.param(same(2, (28, 28), 1, 32, 5), id="one-channel-padded"),
        pytest.param(same(40, (28, 28), 1, 16, 5), id="one-channel-many-images"),
        pytest.param(same(2, (9, 37), 3, 20, 3), id="3-channels"),
        pytest.param(same(2, (11, 40), 3, 16, 5, 2), id="3-channels-strides"),
        pytest.param(same(1, (5, 6, 19), 4, 16, 3, padding=(2, 0)), id="4-channels-volume"),
        pytest.param(same(2, (7, 33), 8, 40, 3, 2, 2), id="8-channels-dilated"),
        pytest.param(same(2, (32, 32), 16, 16, 3), id="16-channels"),
        pytest.param(same(2, (32, 32), 16, 32, 3, 2, padding=(0, 1)), id="strides"),
        pytest.param(same(1, (8, 8), 64, 64, 3), id="64-channels"),
        pytest.param(same(1, (56, 56), 64, 8, 3), id="input_tiles"),
        pytest.param(same(2, (4, 4), 8, 300, 3), id="copied-filters"),
        pytest.param(same(1, (40, 40), 3, 24, 7, 2, padding=(3, 3)), id="7x7"),
        pytest.param(same(1, (4000,), 24, 20, 9), id="long-signal"),
        pytest.param(same(2, (6, 5, 7), 4, 9, 3, 2), id="volume"),
        pytest.param(same(2, (6, 6), 12, 20, 1, padding=(0, 0)), id="pointwise"),
        pytest.param(same(2, (7, 7), 12, 20, 1, 2, padding=(0, 0)), id="pointwise-strides"),
        pytest.param(same(2, (5, 5), 4, 4, 2, 3, padding=(0, 0)), id="strides-beyond-the-window"),
        pytest.param(same(2, (9, 9), 40, 40, 3, 1, 2, 40), id="depthwise-dilated"),
        pytest.param(same(2, (9, 9), 40, 40, 3, 2, 1, 40), id="depthwise-strides"),
        pytest.param(same(1, (30,), 20, 20, 17, 1, 1, 20), id="depthwise-long-window"),
        pytest.param(same(3, (70, 5), 32, 32, 3, 1, 1, 32), id="depthwise-many-rows"),
        pytest.param(same(2, (8, 12), 32, 32, 2, 2, 1, 32, (3, 4)), id="depthwise-wide-border"),
        pytest.param(same(2, (2, 2), 32, 32, 3, 1, 1, 32), id="depthwise-all-border"),
        pytest.param(same(2, (7, 10), 48, 48, 3, 1, 1, 48), id="depthwise-odd-rows"),
        pytest.param(same(3, (1, 9), 20, 20, 3, 1, 1, 20), id="depthwise-a-row"),
        pytest.param(same(2, (9, 1), 20, 20, 3, 2, 1, 20), id="depthwise-a-column"),
        pytest.param(same(2, (23, 5), 16, 16, 3, 2, 1, 16), id="depthwise-many-odd-rows"),
        pytest.param(
            Convolution(2, (11, 9), 24, 24, (9, 1), (1, 2), (1, 1), ((4, 4), (0, 0)), 24),
            id="depthwise-high-window",
        ),
        pytest.param(
            Convolution(2, (11, 14), 24, 24, (2, 4), (3, 1), (1, 1), ((1, 0), (2, 1)), 24),
            id="depthwise-rows-left-out",
        ),
        pytest.param(same(1, (6, 6), 8, 24, 3, 1, 1, 8), id="depthwise-multiplier"),
        pytest.param(same(0, (6, 6), 8, 24, 3), id="no-images"),
        pytest.param(same(1, (2, 2), 8, 24, 3, padding=(0, 0)), id="no-output"),
        pytest.param(same(1, (2, 2), 1, 24, 3, padding=(0, 0)), id="one-channel-no-output"),
    ],
)
def test_convolutions(conv: Convolution, vector_bytes: int) -> None:
    check(conv, float32, vector_bytes)


@pytest.mark.parametrize("what", [np.nan, np.inf])
@pytest.mark.parametrize("size", [(5, 7), (6, 8)])
def test_what_is_no_number_stays_in_its_windows(size: tuple[int, int], what: float) -> None:
    """Rows and pixels that are made together do not touch each other."""
    conv = same(1, size, 20, 20, 3, 1, 1, 20)
    for at in np.ndindex(size):
        x, filters, dy = numbers(conv, np.float32)
        x[0, *at, 3] = dy[0, *at, 17] = what
        with np.errstate(invalid="ignore"):
            y, dx, df = expected(conv, x, filters, dy)
        operands = {
            "forward": ([x, filters], y),
            "input-gradient": ([dy, filters], dx),
            "filter-gradient": ([x, dy], df),
        }
        for name, (arrays, wanted) in operands.items():
            target = Target(VECTOR_BYTES[-1], MOST_THREADS)
            launches = PLANS[name](Buffer(0), Buffer(1), Buffer(2), conv, float32, target)
            found = aligned(wanted.shape)
            Prepared(launches, [*arrays, found]).run()
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted), err_msg=name)


@pytest.mark.parametrize(
    "conv",
    [
        same(2, (9, 8), 5, 40, 3),
        same(1, (1500,), 70, 20, 5),
        same(2, (6, 6), 8, 20, 3, groups=4),
        same(2, (6, 6), 8, 20, 1, padding=(0, 0)),
        same(2, (6, 6), 40, 40, 3, 2, groups=40),
    ],
)
@pytest.mark.parametrize("is_gradient", [False, True])
def test_the_epilogue_sees_each_element_once(conv: Convolution, is_gradient: bool) -> None:
    x, filters, dy = numbers(conv, np.float32)
    y, dx, _ = expected(conv, x, filters, dy)
    plan = plan_conv_input_gradient if is_gradient else plan_conv_forward
    operand, wanted = (dy, dx) if is_gradient else (x, y)
    target = Target(VECTOR_BYTES[-1], MOST_THREADS)
    places = Buffer(0), Buffer(1), Buffer(2)

    def planned(epilogue: Epilogue) -> list[Launch]:
        return plan(*places, conv, float32, target, epilogue=epilogue)

    if is_gradient and max(conv.strides) > 1:
        with pytest.raises(InvalidArgumentError, match="strides of 1"):
            check_epilogue(planned, [operand, filters], wanted, target.vector_bytes, 3)
    else:
        check_epilogue(planned, [operand, filters], wanted, target.vector_bytes, 3)


@pytest.mark.parametrize(
    "conv",
    [
        same(2, (9, 8), 5, 40, 3),
        same(1, (1500,), 70, 20, 5),
        same(3, (6, 6), 8, 20, 3, groups=4),
        same(2, (3, 4, 5), 3, 3, 2),
    ],
)
@pytest.mark.parametrize("is_gradient", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_result_that_only_the_epilogue_reads_is_not_stored(
    conv: Convolution, is_gradient: bool, threads: int
) -> None:
    x, filters, dy = numbers(conv, np.float32)
    y, dx, _ = expected(conv, x, filters, dy)
    plan = plan_conv_input_gradient if is_gradient else plan_conv_forward
    operand, wanted = (dy, dx) if is_gradient else (x, y)
    target = Target(VECTOR_BYTES[-1], MOST_THREADS)
    check_epilogue_scratch(
        lambda epilogue: plan(
            *(Buffer(0), Buffer(1), Buffer(2), conv, float32, target), epilogue=epilogue
        ),
        [operand, filters],
        wanted,
        VECTOR_BYTES[-1],
        threads,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": (3,)}, "one to three axes"),
        ({"strides": (0, 1)}, "at least 1"),
        ({"padding": ((-1, 0), (0, 0))}, "not negative"),
        ({"groups": 3}, "3 groups divide neither"),
    ],
)
def test_what_is_no_convolution(change: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {
        "images": 1,
        "size": (4, 4),
        "channels": 4,
        "filters": 4,
        "window": (3, 3),
        "strides": (1, 1),
        "dilation": (1, 1),
        "padding": ((0, 0), (0, 0)),
    }
    with pytest.raises(InvalidArgumentError, match=message):
        Convolution(**(fields | change))
