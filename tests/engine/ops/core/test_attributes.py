"""Attributes are checked against the annotations of the rule."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import ArgumentTypeError, InvalidArgumentError
from laminar.engine.ops.core.attributes import allowed_values


def rule(
    x: eng.TensorSpec,
    *,
    flag: bool = False,
    count: int | None = None,
    scale: float = 1.0,
    text: str = None,  # type: ignore[assignment]  # as many write it
    mode: Literal["fast", "exact"] = "fast",
    side: int | Literal["left"] = "left",
    axes: Any = (),
) -> eng.TensorSpec:
    return x


op = eng.define("TestOfAttributes")(rule)
op.reference(lambda xp, x, **attrs: x)

RIGHT: list[dict[str, Any]] = [
    {"flag": np.True_},
    {"count": np.int64(3)},
    {"count": None},
    {"scale": 2},
    {"scale": np.float32(0.5)},
    {"text": None},
    {"mode": "exact"},
    {"side": 3},
    {"axes": object()},
]
WRONG = [
    ({"flag": 1}, "flag must be bool, got 1"),
    ({"count": 1.0}, "count must be int or None, got 1.0"),
    ({"scale": "2"}, "scale must be float or int, got '2'"),
    ({"text": 1}, "text must be str or None, got 1"),
    ({"mode": 3}, "mode must be 'fast' or 'exact', got 3"),
    ({"side": "right"}, "side must be int or 'left', got 'right'"),
]


def test_what_fits() -> None:
    for attrs in RIGHT:
        assert op(eng.constant(1.0), **attrs).numpy() == 1.0


@pytest.mark.parametrize(("attrs", "said"), WRONG)
def test_what_does_not(attrs: dict[str, Any], said: str) -> None:
    with eng.Graph().as_default() as graph:
        x = eng.constant(1.0)
        with pytest.raises(InvalidArgumentError, match=said):
            op(x, **attrs)
        assert len(graph.operations) == 1


def test_another_type_is_a_type_error_and_another_value_is_none() -> None:
    x = eng.constant(1.0)
    with pytest.raises(ArgumentTypeError):
        op(x, mode=3)
    with pytest.raises(InvalidArgumentError) as caught:
        op(x, mode="slow")
    assert not isinstance(caught.value, TypeError)


def test_annotations_that_are_objects_mean_the_same() -> None:
    other = eng.define("TestOfAttributesToo")(rule_of_objects())
    other.reference(lambda xp, x, **attrs: x)
    x = eng.constant(1.0)
    with pytest.raises(InvalidArgumentError, match="count must be int or None, got 'a'"):
        other(x, count="a")
    with pytest.raises(InvalidArgumentError, match="mode must be 1 or 2, got 3"):
        other(x, mode=3)
    assert other(x, count=3, mode=2).numpy() == 1.0


def rule_of_objects() -> Any:
    def made(x: Any, *, count: Any = None, mode: Any = 1) -> Any:
        return x

    made.__annotations__ |= {"count": int | None, "mode": Literal[1, 2]}
    return made


def test_the_defaults_of_all_ops_are_values_that_they_take() -> None:
    checked = 0
    for name in eng.op_names():
        known = eng.lookup(name)
        for attribute, (classes, values) in allowed_values(known.rule).items():
            if attribute in known.defaults:
                default = known.defaults[attribute]
                assert isinstance(default, classes) or default in values, (name, attribute)
                checked += 1
    assert checked > 50
