"""Configs of a class name and its arguments."""

from __future__ import annotations

from typing import Any

import pytest

from laminar import layers
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.utils import legacy


class Range:
    def __init__(self, low: int = 0, high: Any = 1) -> None:
        self.low, self.high = low, high

    def get_config(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Range:
        return cls(**config)


def double(x: float) -> float:
    return 2 * x


KNOWN = {"Range": Range, "double": double, "Dense": layers.Dense}


def test_there_and_back() -> None:
    data = legacy.serialize_keras_object(Range(1, Range(2, 3)))
    assert data["class_name"] == "Range"
    again = legacy.deserialize_keras_object(data, KNOWN)
    assert (again.low, again.high.low, again.high.high) == (1, 2, 3)
    assert legacy.serialize_keras_object(double) == "double"
    assert legacy.serialize_keras_object(None) is None
    dense = legacy.deserialize_keras_object(
        legacy.serialize_keras_object(layers.Dense(3)), module_objects=KNOWN
    )
    assert dense.units == 3


def test_names() -> None:
    assert legacy.deserialize_keras_object("double", KNOWN) is double
    assert legacy.deserialize_keras_object("Range", custom_objects=KNOWN).high == 1
    assert legacy.deserialize_keras_object(double) is double
    assert legacy.deserialize_keras_object(None) is None


def test_nothing_else_can_be_named() -> None:
    with pytest.raises(NotFoundError, match="there is no kind 'Other'"):
        legacy.deserialize_keras_object("Other", KNOWN, printable_module_name="kind")
    with pytest.raises(NotFoundError, match="'Other'"):
        legacy.deserialize_keras_object({"class_name": "Other", "config": {}}, KNOWN)
    with pytest.raises(InvalidArgumentError, match="class_name and config"):
        legacy.deserialize_keras_object({"class_name": "Range"}, KNOWN)
    with pytest.raises(InvalidArgumentError, match="no get_config"):
        legacy.serialize_keras_object(object())
