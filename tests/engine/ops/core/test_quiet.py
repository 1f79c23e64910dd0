"""Arithmetic without NumPy's warnings, by the quick way and by the one for other versions."""

from __future__ import annotations

import importlib.util
import threading
import warnings
from typing import Any

import numpy as np
import pytest

from laminar.engine.ops.core import kernels


@pytest.fixture(params=["quick", "other"])
def functions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    if request.param == "quick":
        return vars(kernels)
    monkeypatch.delattr("numpy._core.umath._make_extobj")
    spec = importlib.util.spec_from_file_location(f"{kernels.__name__}_again", kernels.__file__)
    assert spec is not None
    assert spec.loader is not None
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return vars(again)


def overflows() -> None:
    np.array([3e38], np.float32) * np.float32(10) / 0


@pytest.mark.parametrize("outside", ["ignore", "raise", "warn"])
def test_nothing_is_told_inside_and_all_is_as_before_outside(
    functions: dict[str, Any], outside: Any
) -> None:
    hush, restore = functions["hush"], functions["restore"]
    with np.errstate(all=outside), warnings.catch_warnings():
        warnings.simplefilter("error")
        held = np.geterr()
        before = hush()
        overflows()
        again = hush()
        overflows()
        restore(again)
        overflows()
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(np.geterr()))
        thread.start()
        thread.join()
        assert np.geterr() == dict.fromkeys(held, "ignore")
        restore(before)
        assert np.geterr() == held
    assert others == [np.geterr()]  # another thread begins with the defaults


def test_numpy_offers_the_quick_way(
    functions: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    assert ("_make_extobj" in functions) == ("[quick]" in request.node.name)
