"""What of Keras's surface is there: the README tells it, and it does not shrink."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest

import laminar

from .surface import compare, in_readme, load_digest, parameters, table

pytest.importorskip("sklearn")  # laminar.wrappers stands on it


def test_the_readme_tells_what_is_there() -> None:
    """`python tests/laminar/surface.py readme` writes the table anew."""
    assert in_readme() == table(compare(laminar, load_digest()))


def test_whole_modules_are_there() -> None:
    gaps = compare(laminar, load_digest())
    whole = (
        *("activations", "constraints", "distribution", "layers", "losses", "metrics", "ops"),
        *("random", "wrappers"),
    )
    for name in whole:
        assert gaps[name].missing == [], name
        assert gaps[name].total > 2


def test_no_module_hides_a_function() -> None:
    for path, names in load_digest().items():
        if not path.endswith("()"):
            try:
                module = importlib.import_module(f"laminar.{path}".rstrip("."))
            except ModuleNotFoundError:
                continue
            hidden = [n for n in names if isinstance(getattr(module, n, None), ModuleType)]
            assert hidden == [], path


def test_gaps_are_found() -> None:
    digest: Any = {
        "layers": {
            "Dense": {"kind": "class", "parameters": [["units"], ["activation", "'relu'"], ["no"]]},
            "Denser": {"kind": "class", "parameters": []},
            "JaxLayer": {"kind": "class", "parameters": []},
        },
        "Layer()": {"built": {"kind": "value"}, "nothing": {"kind": "value"}},
    }
    gaps = compare(laminar, digest)
    assert gaps["layers"].missing == ["Denser"]
    assert gaps["layers"].total == 2
    assert gaps["layers"].arguments == {"Dense": ["no"]}
    assert gaps["layers"].defaults == {"Dense": [("activation", "'relu'", "None")]}
    assert gaps["Layer()"].missing == ["nothing"]
    assert "| `keras.layers` | 1 of 2 | `Denser` |" in table(gaps)


def test_parameters_of_a_constructor_include_those_above() -> None:
    class Above:
        def __init__(self, b: int = 2) -> None: ...

    class Below(Above):
        def __init__(self, a: int, **kwargs: int) -> None: ...

    assert parameters(Below) == [["a"], ["b", "2.0"]]
    assert parameters(Below, inherited=False) == [["a"]]
