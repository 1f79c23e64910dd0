"""bfloat16 convolutions by pairs, on all that multiplies them, against float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar.engine.compiler.kernels import (
    Buffer,
    Convolution,
    Epilogue,
    Launch,
    PairUnit,
    Target,
    plan_conv_forward,
    plan_conv_input_gradient,
)
from laminar.engine.graph import float32

from ....sampling import examples
from .convolutions import expected, numbers, same
from .epilogues import check_epilogue, check_epilogue_scratch
from .pair_convolutions import VECTOR_BYTES, cases
from .pair_products import UNITS
from .running import MOST_THREADS, results

pytestmark = pytest.mark.skipif(not UNITS, reason="the processor multiplies no bfloat16")
KINDS = ("forward", "input-gradient", "filter-gradient")
EACH_UNIT = pytest.mark.parametrize("unit", UNITS)


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    small = st.integers(1, 3)

    def each(values: st.SearchStrategy[Any]) -> tuple[Any, ...]:
        return tuple(draw(values) for _ in range(rank))

    return Convolution(
        draw(st.integers(0, 2)),
        each(st.integers(1, 11)),
        draw(st.sampled_from([2, 4, 8, 12, 16, 34])) * groups,
        draw(st.sampled_from([3, 4, 8, 16, 20, 40])) * groups,
        each(small),
        each(small),
        each(st.sampled_from([1, 1, 2])),
        each(st.tuples(st.integers(0, 3), st.integers(0, 2))),
        groups,
    )


def check(conv: Convolution, unit: PairUnit) -> set[str]:
    """Compare all that are made of pairs; gives which these are."""
    exact = dict(zip(KINDS, expected(conv, *numbers(conv, ml_dtypes.bfloat16)), strict=True))
    found = cases(conv, unit, MOST_THREADS)
    for name, (arrays, result, launches) in found.items():
        wanted = exact[name]
        num_terms = wanted.size and arrays[0].size + arrays[1].size
        # The products are exact in float32, their sums are not.
        tolerance = np.finfo(np.float32).eps * 4 * (num_terms**0.5 * 4 + 16)
        made = results(launches, *arrays, result)
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=tolerance, err_msg=name)
    return set(found)


@settings(examples(120), derandomize=True)
@given(convolutions(), st.sampled_from(UNITS or [PairUnit.MATRIX]))
def test_convolutions_of_any_size(conv: Convolution, unit: PairUnit) -> None:
    check(conv, unit)


@EACH_UNIT
@pytest.mark.parametrize(
    "conv",
    [
        pytest.param(same(2, (32, 32), 16, 16, 3), id="16-channels"),
        pytest.param(same(2, (16, 16), 32, 32, 3), id="32-channels"),
        pytest.param(same(2, (8, 8), 64, 64, 3), id="64-channels"),
        pytest.param(same(2, (26, 26), 32, 64, 3, padding=(0, 0)), id="without-padding"),
        pytest.param(same(2, (32, 32), 16, 32, 3, 2, padding=(1, 1)), id="strides"),
        pytest.param(same(2, (32, 32), 16, 32, 1, 2, padding=(0, 0)), id="pointwise-strides"),
        pytest.param(same(2, (6, 6), 12, 20, 1, padding=(0, 0)), id="pointwise"),
        pytest.param(same(1, (7, 32), 8, 40, 3, 2, 2), id="dilated-strides"),
        pytest.param(same(1, (10, 80), 16, 48, 3, 1, 1, 2), id="groups-long-rows"),
        pytest.param(same(2, (4, 8), 8, 300, 3), id="many-filters"),
        pytest.param(same(1, (3000,), 24, 24, 9), id="long-signal"),
        pytest.param(same(1, (6, 5, 16), 16, 8, 3, 2), id="volume"),
    ],
)
def test_convolutions(conv: Convolution, unit: PairUnit) -> None:
    assert check(conv, unit) == set(KINDS)


@EACH_UNIT
@pytest.mark.parametrize("channels", [3, 7])
def test_pixels_of_an_odd_number_of_channels(channels: int, unit: PairUnit) -> None:
    """Pairs are of pixels there, as for the first layer of a network."""
    assert check(same(2, (8, 8), channels, 16, 3), unit) >= {"filter-gradient"}


@EACH_UNIT
@pytest.mark.parametrize("channels", [1, 2, 3, 7])
def test_what_is_left_to_float32(channels: int, unit: PairUnit) -> None:
    """Channels that are no pairs, or so few; rows of dy of an odd length."""
    assert not cases(same(1, (5, 7), channels, channels, 3), unit, 1)


@EACH_UNIT
@pytest.mark.parametrize("size", [(5, 8), (6, 10)])
@pytest.mark.parametrize("what", [np.nan, np.inf])
def test_what_is_no_number_stays_in_its_windows(
    size: tuple[int, int], what: float, unit: PairUnit
) -> None:
    """Rows and pixels that are made together do not touch each other."""
    conv = same(1, size, 8, 8, 3, padding=(0, 0))
    for name, (arrays, result, launches) in cases(conv, unit, MOST_THREADS).items():
        for at in np.ndindex(*arrays[0].shape[1:-1]):
            first = arrays[0].copy()
            first[(0, *at, 3)] = what
            given = {
                "forward": (first, arrays[1], result),
                "input-gradient": (numbers(conv, first.dtype)[0], arrays[1], first),
                "filter-gradient": (first, numbers(conv, first.dtype)[1], arrays[1]),
            }[name]
            with np.errstate(invalid="ignore"):
                wanted = dict(zip(KINDS, expected(conv, *given), strict=True))[name]
            found = results(launches, first, arrays[1], result)
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted), err_msg=name)


@EACH_UNIT
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_the_epilogue_sees_each_element_once_be_the_result_stored_or_not(
    groups: int, threads: int, unit: PairUnit
) -> None:
    conv = same(3, (9, 10), 16, 40, 3, groups=groups)
    x, filters, dy = numbers(conv, ml_dtypes.bfloat16)
    y, dx, _ = expected(conv, x, filters, dy)
    places = Buffer(0), Buffer(1), Buffer(2), conv, float32, Target(VECTOR_BYTES, MOST_THREADS)
    for plan, operands, wanted in (
        (plan_conv_forward, [x, filters], y),
        (plan_conv_input_gradient, [dy, filters], dx),
    ):

        def with_epilogue(epilogue: Epilogue, plan: Any = plan) -> list[Launch]:
            found: list[Launch] = plan(*places, unit=unit, epilogue=epilogue)
            return found

        check_epilogue(with_epilogue, operands, wanted, VECTOR_BYTES, threads)
        check_epilogue_scratch(with_epilogue, operands, wanted, VECTOR_BYTES, threads)


@EACH_UNIT
def test_no_images(unit: PairUnit) -> None:
    """A sum of nothing is zero."""
    conv = replace(same(1, (8, 8), 16, 16, 3), images=0)
    assert check(conv, unit) == set(KINDS)
