"""Packers: flat values in the structure of a function's results."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from laminar import engine as eng
from laminar.engine.functions.packing import packer
from laminar.engine.graph import GraphTensor, TensorShape
from laminar.engine.tree import flatten, map_structure


class Pair(NamedTuple):
    first: Any
    second: Any


class Own(dict[str, Any]):
    pass


FORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "tensor": lambda a, b, c: a,
    "none": lambda a, b, c: None,
    "list": lambda a, b, c: [a, b, c],
    "tuple": lambda a, b, c: (a, b, c),
    "one tensor twice": lambda a, b, c: (a, b, a),
    "dict": lambda a, b, c: {"x": a, "y": b},
    "dict in no order": lambda a, b, c: {"z": a, "b": b, "m": c},
    "dict of mixed keys": lambda a, b, c: {"z": a, 1: b, None: c},
    "nothing": lambda a, b, c: [],
    "with None": lambda a, b, c: [a, None, b],
    "tuple with None": lambda a, b, c: (None, a),
    "nested": lambda a, b, c: {"z": [a, {"q": b, "p": None}], "a": (c, (a,), [])},
    "named": lambda a, b, c: Pair(a, Pair(b, c)),
    "named alone": lambda a, b, c: Pair(a, b),
    "ordered": lambda a, b, c: OrderedDict(z=a, a=[b]),
    "default": lambda a, b, c: defaultdict(list, z=a, a=b),
    "own": lambda a, b, c: Own(z=a, a=b),
    "shape as a leaf": lambda a, b, c: [a, TensorShape((2, 3))],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_values_take_the_places_of_tensors(form: Callable[[Any, Any, Any], Any]) -> None:
    with eng.Graph().as_default():
        structure = form(*(eng.placeholder("float32", [2]) for _ in range(3)))
    count = sum(isinstance(leaf, GraphTensor) for leaf in flatten(structure))
    values = [f"value {i}" for i in range(count)]
    left = iter(values)
    expected = map_structure(
        lambda leaf: next(left) if isinstance(leaf, GraphTensor) else leaf, structure
    )
    found = packer(structure)(values)
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
    if isinstance(expected, defaultdict):
        assert found.default_factory is list


def test_containers_are_new_in_each_call() -> None:
    with eng.Graph().as_default():
        a = eng.placeholder("float32", [2])
    pack = packer({"x": [a], "y": []})
    values = ["value"]
    found = pack(values)
    found["x"].append(1)
    found["y"].append(2)
    assert pack(values) == {"x": ["value"], "y": []}
    flat = packer([a])(values)
    assert flat == values
    assert flat is not values
