"""Every op of cases.py gives what Keras gives: values, shapes, types; eager and in a graph."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.tree import flatten

from .case import Case
from .cases import CASES

REFERENCE = json.loads(Path(__file__).with_name("reference.json").read_text())


def resolved(name: str) -> Callable[..., Any]:
    return functools.reduce(getattr, name.split("."), ops)  # type: ignore[return-value]  # ops holds functions


def expect(found: Any, expected: dict[str, Any], rtol: float) -> None:
    if expected["dtype"] == "python":
        assert found == expected["values"]
        return
    array = np.asarray(found)
    assert array.dtype == expected["dtype"]
    assert list(array.shape) == expected["shape"]
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    values = np.array(expected["values"]).reshape(array.shape)
    if array.dtype.kind in "biu":
        np.testing.assert_array_equal(array, values)
    else:
        np.testing.assert_allclose(array.astype("float64"), values, rtol, rtol, equal_nan=True)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_values_and_types(case: Case) -> None:
    result = flatten(resolved(case.name)(*case.args, **case.kwargs))
    expected = REFERENCE[case.id]
    assert len(result) == len(expected)
    for found, wanted in zip(result, expected, strict=True):
        expect(found, wanted, case.rtol)


def arrays(case: Case) -> list[int]:
    """The arguments that can be placeholders."""
    return [i for i, a in enumerate(case.args) if isinstance(a, np.ndarray) and a.ndim]


IN_GRAPH = [case for case in CASES if arrays(case) and not case.static]


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in IN_GRAPH])
def test_in_a_graph_with_a_first_axis_of_unknown_size(case: Case) -> None:
    places = arrays(case)

    def call(*tensors: Any) -> Any:
        args = list(case.args)
        for place, tensor in zip(places, tensors, strict=True):
            args[place] = tensor
        found = resolved(case.name)(*args, **case.kwargs)
        return [y for y in flatten(found) if not isinstance(y, int)]

    specs = [
        TensorSpec([None, *a.shape[1:]] if i == places[0] else a.shape, a.dtype)
        for i, a in ((i, case.args[i]) for i in places)
    ]
    graph = function(fixed_arity(call, len(places)), input_signature=specs)
    result = graph(*(case.args[place] for place in places))
    expected = [e for e in REFERENCE[case.id] if e["dtype"] != "python"]
    for found, wanted in zip(result, expected, strict=False):
        expect(found, wanted, case.rtol)


def fixed_arity(fn: Callable[..., Any], count: int) -> Callable[..., Any]:
    """`fn` as a function of `count` named arguments, as a signature needs it."""
    forms: dict[int, Callable[..., Any]] = {
        1: lambda a: fn(a),
        2: lambda a, b: fn(a, b),
        3: lambda a, b, c: fn(a, b, c),
        4: lambda a, b, c, d: fn(a, b, c, d),
        5: lambda a, b, c, d, e: fn(a, b, c, d, e),
    }
    return forms[count]


def test_every_name_of_keras_is_there() -> None:
    keras = pytest.importorskip("keras")
    missing = [name for name in dir(keras.ops) if name[0] != "_" and not hasattr(ops, name)]
    assert missing == []
