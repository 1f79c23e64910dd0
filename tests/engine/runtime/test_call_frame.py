"""Call frames: typed slots of one step."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import CancelledError, DTypeError, InternalError, InvalidArgumentError
from laminar.engine.graph import float32, int32
from laminar.engine.runtime.call_frame import CallFrame

ONE = np.float32(1)
TWO = np.int32(2)


def test_arguments_and_results() -> None:
    frame = CallFrame([float32, int32], [int32, float32, None])
    got: list[Any] = []
    frame.get_arg(1, got.append)
    frame.set_arg(0, ONE)
    frame.set_arg(1, TWO)
    frame.get_arg(0, got.append)
    assert got == [2, 1.0]
    frame.set_retval(1, ONE)
    frame.set_retval(0, TWO)
    frame.set_retval(2, None)
    assert frame.consume_retvals([1, 2, 0]) == [1.0, None, 2]


def test_results_are_waited_for() -> None:
    frame = CallFrame([], [float32])
    timer = threading.Timer(0.02, frame.set_retval, [0, ONE])
    timer.start()
    assert frame.consume_retvals([0]) == [1.0]
    with pytest.raises(InvalidArgumentError, match="taken twice"):
        frame.consume_retvals([0])


def test_what_does_not_fit() -> None:
    frame = CallFrame([float32, int32], [float32])
    with pytest.raises(DTypeError, match="argument 1 of the call frame is int32, got float32"):
        frame.set_arg(1, ONE)
    frame.set_arg(0, ONE)
    with pytest.raises(InvalidArgumentError, match="argument 0 of the call frame is set twice"):
        frame.set_arg(0, ONE)
    with pytest.raises(DTypeError, match="result 0 of the call frame is float32, got int32"):
        frame.set_retval(0, TWO)
    frame.set_retval(0, ONE)
    with pytest.raises(InternalError, match="set twice"):
        frame.set_retval(0, ONE)


def test_a_result_that_is_not_set() -> None:
    frame = CallFrame([], [float32, float32])
    frame.set_retval(1, ONE)
    frame.end()
    with pytest.raises(InternalError, match="was not set"):
        frame.consume_retvals([0, 1])
    assert frame.consume_retvals([1]) == [1.0]


def test_the_error_of_a_step_is_raised() -> None:
    frame = CallFrame([], [float32])
    frame.end(CancelledError("stopped"))
    frame.end()
    with pytest.raises(CancelledError, match="stopped"):
        frame.consume_retvals([0])
