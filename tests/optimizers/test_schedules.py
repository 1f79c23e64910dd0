"""Schedules against Keras 3 (reference.npz), and against their formulas in NumPy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import function
from laminar.optimizers import schedules

ABOUT = json.loads(str(np.load(Path(__file__).with_name("reference.npz"))["about"]))
CASES = [pytest.param(*case, id=f"{case[0]}-{i}") for i, case in enumerate(ABOUT["schedules"])]


@pytest.mark.parametrize(("kind", "arguments", "expected", "config"), CASES)
def test_matches_keras(
    kind: str, arguments: dict[str, Any], expected: list[float], config: dict[str, Any]
) -> None:
    schedule = getattr(schedules, kind)(**arguments)
    found = [float(schedule(step)) for step in ABOUT["schedule_steps"]]
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-8)
    traced = function(schedule, jit_compile=False)
    assert [float(traced(np.int32(s))) for s in ABOUT["schedule_steps"]] == found
    assert schedule(3).dtype == "float32"
    assert schedule.get_config() == config


@pytest.mark.parametrize(("kind", "arguments", "expected", "config"), CASES)
def test_round_trip(
    kind: str, arguments: dict[str, Any], expected: list[float], config: dict[str, Any]
) -> None:
    schedule = getattr(schedules, kind)(**arguments)
    data = schedules.serialize(schedule)
    assert data == {
        "module": "keras.optimizers.schedules",
        "class_name": kind,
        "config": config,
        "registered_name": None,
    }
    again = schedules.deserialize(json.loads(json.dumps(data)))
    assert type(again) is type(schedule)
    assert float(again(7)) == float(schedule(7))
    assert schedules.get(schedule) is schedule
    assert schedules.get(data).get_config() == config


def restarts(t: float) -> float:
    length, start = 4.0, 0.0
    while t >= start + length:
        start, length = start + length, length * 2
    return 0.1 * (1 + math.cos(math.pi * (t - start) / length)) / 2


FORMULAS: list[Any] = [
    pytest.param(
        schedules.ExponentialDecay(0.1, 10, 0.9), lambda t: 0.1 * 0.9 ** (t / 10), id="exponential"
    ),
    pytest.param(
        schedules.InverseTimeDecay(0.1, 10, 0.5), lambda t: 0.1 / (1 + 0.05 * t), id="inverse"
    ),
    pytest.param(
        schedules.PiecewiseConstantDecay([3, 8], [1.0, 0.5, 0.1]),
        lambda t: 1.0 if t <= 3 else 0.5 if t <= 8 else 0.1,
        id="piecewise",
    ),
    pytest.param(
        schedules.PolynomialDecay(0.1, 20, 0.01, 2.0),
        lambda t: 0.09 * (1 - min(t, 20) / 20) ** 2 + 0.01,
        id="polynomial",
    ),
    pytest.param(
        schedules.CosineDecay(0.0, 20, warmup_target=0.2, warmup_steps=5),
        lambda t: 0.04 * t if t < 5 else 0.1 * (1 + math.cos(math.pi * min((t - 5) / 20, 1))),
        id="cosine-warmup",
    ),
    pytest.param(schedules.CosineDecayRestarts(0.1, 4), restarts, id="restarts"),
]


@pytest.mark.parametrize(("schedule", "formula"), FORMULAS)
def test_formula(schedule: Any, formula: Callable[[int], float]) -> None:
    steps = [t for t in range(60) if t not in (4, 12, 28)]  # where float32 may fall either side
    found = [float(schedule(t)) for t in steps]
    np.testing.assert_allclose(found, [formula(t) for t in steps], rtol=1e-5, atol=1e-7)


def test_errors() -> None:
    with pytest.raises(InvalidArgumentError, match="2 boundaries need 3 values, got 2"):
        schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2])
    with pytest.raises(InvalidArgumentError, match="must rise"):
        schedules.PiecewiseConstantDecay([2, 1], [0.1, 0.2, 0.3])
    with pytest.raises(InvalidArgumentError, match="decay_steps must be positive, got 0"):
        schedules.CosineDecay(0.1, 0)
    with pytest.raises(InvalidArgumentError, match="'CosineDecai' is not known"):
        schedules.get("CosineDecai")
    with pytest.raises(NotImplementedError):
        schedules.LearningRateSchedule()(0)


def test_one_cycle() -> None:
    # Values of torch.optim.lr_scheduler.OneCycleLR(max_lr=0.1, total_steps=50), at these steps.
    schedule = schedules.OneCycle(0.1, 50)
    expected = {0: 0.004, 1: 0.00520346, 5: 0.03117358, 14: 0.1, 15: 0.09979872, 30: 0.05671184}
    for step, rate in expected.items():
        np.testing.assert_allclose(float(schedule(step)), rate, rtol=1e-5)
    np.testing.assert_allclose([float(schedule(49)), float(schedule(99))], [4e-7, 4e-7], rtol=1e-3)
    again = schedules.OneCycle.from_config(schedule.get_config())
    assert float(again(20)) == float(schedule(20))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_one_cycle_of_few_steps_is_finite(steps: int) -> None:
    rates = [float(schedules.OneCycle(0.1, steps)(i)) for i in range(steps + 1)]
    assert np.isfinite(rates).all()
    assert max(rates) <= 0.1 + 1e-7


def test_one_cycle_refuses_a_part_that_is_none() -> None:
    with pytest.raises(ValueError, match="warmup_fraction must be between 0 and 1, got 1.5"):
        schedules.OneCycle(0.1, 10, warmup_fraction=1.5)
