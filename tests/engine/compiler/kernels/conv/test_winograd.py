"""Winograd's convolution: what it takes on, and how exact it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from laminar.engine.compiler.kernels import (
    Buffer,
    Convolution,
    Launch,
    PairUnit,
    Target,
    plan_conv_filter_gradient,
    plan_conv_forward,
    plan_conv_input_gradient,
)
from laminar.engine.compiler.kernels.conv import winograd
from laminar.engine.compiler.kernels.conv.winograd import beats_pairs, is_winograd
from laminar.engine.compiler.target import host
from laminar.engine.graph import float32, float64

from ..convolutions import expected, numbers, same
from ..epilogues import check_epilogue
from ..running import MOST_THREADS, VECTOR_BYTES, results

CASES = {
    "whole-tiles": same(4, (16, 16), 32, 32, 3),
    "parts-of-tiles": same(3, (17, 14), 16, 48, 3),
    "one-row-of-tiles": same(9, (3, 30), 32, 16, 3),
    "no-padding": same(3, (15, 19), 48, 32, 3, padding=(0, 0)),
    "padding-beyond-the-window": same(2, (13, 15), 16, 32, 3, padding=(4, 3)),
    "small-images": same(70, (4, 4), 64, 64, 3),
    "wide": same(1, (9, 230), 16, 16, 3),
    "many-channels": same(6, (16, 16), 128, 96, 3),
}
# Rounding, as part of the largest sum of the absolute values of products. Sums of few products, at
# borders, have the rounding of the tile that they are in.
BOUND = 10 * 2.0**-24


@pytest.mark.slow
@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
@pytest.mark.parametrize("name", CASES)
def test_the_error_is_bounded(name: str, vector_bytes: int) -> None:
    conv, target = CASES[name], Target(vector_bytes, MOST_THREADS)
    assert is_winograd(conv, float32, target)
    x, filters, dy = numbers(conv, np.float32)
    wanted = expected(conv, x, filters, dy)
    scales = expected(conv, abs(x), abs(filters), abs(dy))
    plans: list[Callable[..., list[Launch]]] = [
        plan_conv_forward,
        plan_conv_input_gradient,
        plan_conv_filter_gradient,
    ]
    operands = (x, filters), (dy, filters), (x, dy)
    for plan, arrays, exact, sums in zip(plans, operands, wanted, scales, strict=True):
        launches = plan(Buffer(0), Buffer(1), Buffer(2), conv, float32, target)
        found = results(launches, *arrays, np.full(exact.shape, np.nan, np.float32))
        assert abs(found - exact).max() <= BOUND * sums.max(), plan


def test_an_image_gives_the_same_bits_among_others() -> None:
    conv = CASES["parts-of-tiles"]
    target = Target(VECTOR_BYTES[-1], MOST_THREADS)
    x, filters, dy = numbers(conv, np.float32)
    found = []
    for images in (conv.images, 1):
        some = replace(conv, images=images)
        assert is_winograd(some, float32, target)
        launches = plan_conv_forward(Buffer(0), Buffer(1), Buffer(2), some, float32, target)
        found.append(results(launches, x[:images], filters, np.zeros_like(dy[:images])))
    np.testing.assert_array_equal(found[0][:1], found[1])


@pytest.mark.parametrize("is_gradient", [False, True])
@pytest.mark.parametrize("name", ["whole-tiles", "parts-of-tiles", "no-padding"])
def test_the_epilogue_sees_each_element_once(name: str, is_gradient: bool) -> None:
    conv = CASES[name]
    x, filters, dy = numbers(conv, np.float32)
    y, dx, _ = expected(conv, x, filters, dy)
    plan = plan_conv_input_gradient if is_gradient else plan_conv_forward
    operand, wanted = (dy, dx) if is_gradient else (x, y)
    target = Target(VECTOR_BYTES[-1], MOST_THREADS)
    places = Buffer(0), Buffer(1), Buffer(2)
    check_epilogue(
        lambda epilogue: plan(*places, conv, float32, target, epilogue=epilogue),
        [operand, filters],
        wanted,
        target.vector_bytes,
        3,
    )


@pytest.mark.parametrize(
    "conv",
    [
        same(8, (16, 16), 17, 16, 3),
        same(8, (16, 16), 16, 3, 3),
        same(8, (16, 16), 16, 16, 5),
        same(8, (16, 16), 16, 16, 3, 2),
        same(8, (16, 16), 16, 16, 3, 1, 2),
        same(8, (16, 16), 32, 32, 3, groups=2),
        same(8, (256,), 16, 16, 3),
        same(2, (8, 8, 8), 16, 16, 3),
        same(1, (4, 4), 64, 64, 3),  # too few tiles for the transform of its filters
        same(8, (16, 16), 512, 512, 3),  # the transform of its filters is too large
        same(0, (16, 16), 16, 16, 3),
    ],
)
def test_what_is_left_to_sums_of_products(conv: Convolution) -> None:
    assert not is_winograd(conv, float32, Target(VECTOR_BYTES[-1], 1))


def test_doubles_are_left_to_sums_of_products() -> None:
    assert not is_winograd(CASES["whole-tiles"], float64, Target(VECTOR_BYTES[-1], 1))


def test_pairs_of_bfloat16_are_multiplied_unless_this_is_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As was measured where vectors have 64 bytes and the L2 cache 1 MiB."""
    monkeypatch.setattr(winograd, "vector_bytes", lambda: 64)
    monkeypatch.setattr(host, "l2_cache", lambda: 1 << 20)
    sizes = [(32, 16), (16, 32), (8, 64)]
    convs = [same(32, (size, size), channels, channels, 3) for size, channels in sizes]
    assert [beats_pairs(conv, PairUnit.VECTORS) for conv in convs] == [False, True, True]
    assert not any(beats_pairs(conv, PairUnit.MATRIX) for conv in convs)
