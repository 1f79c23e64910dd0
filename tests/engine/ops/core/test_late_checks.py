"""Checks on a device are told when somebody reads from it, and make nobody wait before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, ops
from laminar.engine.devices import GpuDevice
from laminar.engine.errors import InvalidArgumentError
from tests.engine.runtime.fake_gpu import one_gpu

X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def gpu() -> Iterator[GpuDevice]:
    with one_gpu() as device:
        yield device


CASES = [
    pytest.param(lambda: ops.take(X, [5], axis=0), r"index 5 at position \[0\].*size 3", id="take"),
    pytest.param(lambda: ops.scatter([[-9]], [1.0], (3,)), r"index -9 at position", id="scatter"),
    pytest.param(
        lambda: ops.take_along_axis(X, np.array([[0, 7]]), axis=0), "index 7", id="take-along"
    ),
    pytest.param(
        lambda: ops.sparse_categorical_crossentropy([0, 1, 2], X, from_logits=True),
        r"the label 2 at \(2,\) is not one of the 2 classes",
        id="labels",
    ),
    pytest.param(
        lambda: engine.lookup("CheckNumerics")(ops.log(X), message="x"), "1 infinite", id="numerics"
    ),
]


@pytest.mark.parametrize(("compute", "message"), CASES)
def test_a_check_is_told_at_the_next_reading(
    compute: Callable[[], Any], message: str, gpu: GpuDevice
) -> None:
    with laminar.device("gpu:0"):
        gpu.xp.waits.clear()
        y = compute()
        assert not gpu.xp.waits
        other = ops.ones((2,)) + 1
        with pytest.raises(InvalidArgumentError, match=message):
            other.numpy()
        assert other.numpy().tolist() == [2, 2]  # it is told once
        assert y.shape is not None
    with pytest.raises(InvalidArgumentError, match=message):
        compute()  # on the host at once


def test_what_nobody_reads_is_looked_at_some_day(gpu: GpuDevice) -> None:
    with laminar.device("gpu:0"):
        good = np.array([1])

        def compute(count: int) -> None:
            for _ in range(count):
                ops.take(X, good, axis=0)

        ops.take(X, [5], axis=0)
        with pytest.raises(InvalidArgumentError, match="index 5"):
            compute(1100)
