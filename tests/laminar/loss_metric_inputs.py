"""What losses and metrics are given, what Keras makes of it, and the two ways to run them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core.convert import convert_to_tensor

Array = np.ndarray[Any, Any]

REFERENCE = json.loads(Path(__file__).with_name("loss_metric_reference.json").read_text())
INPUTS = {
    name: np.array(entry["value"], entry["dtype"]) for name, entry in REFERENCE["inputs"].items()
}


def close(found: Any, expected: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def traced(fn: Callable[..., Any], *args: Any) -> Any:
    """`fn` run as a graph that does not know the batch size."""
    arrays = [convert_to_tensor(a) for a in args]
    specs = [TensorSpec([None, *a.shape[1:]] if a.shape else (), a.dtype) for a in arrays]
    with_arity: list[Callable[..., Any]] = [
        lambda: fn(),
        lambda a: fn(a),
        lambda a, b: fn(a, b),
        lambda a, b, c: fn(a, b, c),
        lambda a, b, c, d: fn(a, b, c, d),
    ]
    return function(with_arity[len(args)], input_signature=specs)(*arrays)


def run_eagerly(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


MODES = [pytest.param(run_eagerly, id="eager"), pytest.param(traced, id="traced")]
