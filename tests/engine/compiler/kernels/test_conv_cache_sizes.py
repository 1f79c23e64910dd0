"""Convolutions on processors whose L2 cache has another size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from laminar.engine.compiler.ir.launch import is_block
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
from laminar.engine.compiler.target import host
from laminar.engine.graph import bfloat16, float32

from .convolutions import expected, numbers, same
from .pair_convolutions import cases
from .pair_products import UNITS
from .running import MOST_THREADS, VECTOR_BYTES, results

PLANS: tuple[Callable[..., list[Launch]], ...] = (
    plan_conv_forward,
    plan_conv_input_gradient,
    plan_conv_filter_gradient,
)
KINDS = "forward", "input-gradient", "filter-gradient"
TARGET = Target(VECTOR_BYTES[-1], MOST_THREADS)
CASES = {
    "input_tiles": same(2, (60, 50), 24, 20, 3, 2),
    "blocks-of-a-row": same(1, (3000,), 70, 20, 5),
    "parts": same(5, (12, 12), 40, 72, 3, 1, 2),
    "winograd": same(5, (16, 16), 64, 64, 3),
    "winograd-of-large-filters": same(6, (16, 16), 128, 96, 3),
    "few-channels": same(40, (24, 24), 1, 32, 3),
}
SIZES = [512 << 10, 1 << 20, 4 << 20]


def plans(conv: Convolution) -> list[list[Launch]]:
    return [p(Buffer(0), Buffer(1), Buffer(2), conv, float32, TARGET) for p in PLANS]


def check(conv: Convolution) -> None:
    x, filters, dy = numbers(conv, np.float32)
    exact = expected(conv, x, filters, dy)
    scales = expected(conv, abs(x), abs(filters), abs(dy))
    operands = (x, filters), (dy, filters), (x, dy)
    rows = zip(plans(conv), operands, exact, scales, strict=True)
    for launches, arrays, wanted, sums in rows:
        found = results(launches, *arrays, np.full(wanted.shape, np.nan, np.float32))
        assert abs(found - wanted).max() <= 16 * 2.0**-24 * sums.max()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_convolutions(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "l2_cache", lambda: size)
    check(CASES[name])


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("size", SIZES)
def test_convolutions_of_pairs(size: int, unit: PairUnit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "l2_cache", lambda: size)
    conv = same(2, (60, 32), 32, 48, 3)
    exact = dict(zip(KINDS, expected(conv, *numbers(conv, bfloat16.numpy)), strict=True))
    for name, (arrays, result, launches) in cases(conv, unit, MOST_THREADS).items():
        np.testing.assert_allclose(
            results(launches, *arrays, result), exact[name], rtol=1e-4, atol=1e-2, err_msg=name
        )


@pytest.mark.parametrize("name", CASES)
def test_the_size_of_the_cache_decides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is worked on at a time is as large as the cache lets it be."""
    found = []
    for size in SIZES:
        monkeypatch.setattr(host, "l2_cache", lambda size=size: size)
        found.append(
            [w for ls in plans(CASES[name]) for x in ls for w in x.words if not is_block(w)]
        )
    assert found[0] != found[-1]
