"""Modules that other people's ops import."""

from __future__ import annotations

import importlib

import pytest

from laminar.engine.ops.array import shape
from laminar.engine.ops.core import convert


@pytest.mark.parametrize(("path", "module"), [("convert", convert), ("shape", shape)])
def test_a_module_is_found_without_its_room(path: str, module: object) -> None:
    assert importlib.import_module(f"laminar.engine.ops.{path}") is module
