"""The names in `laminar.layers`, and the parameters behind them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from laminar import layers

CLASSES = sorted(
    name
    for name, value in vars(layers).items()
    if isinstance(value, type) and issubclass(value, layers.Layer)
)


def parameters(cls: type[Any]) -> list[tuple[str, Any]]:
    """Names and defaults; a number for all axes counts as one for each."""

    def plain(default: Any) -> Any:
        if isinstance(default, tuple) and len(set(default)) == 1:
            return plain(default[0])
        return default

    found = inspect.signature(cls.__init__).parameters.values()
    return [(p.name, plain(p.default)) for p in found if p.kind is not p.VAR_KEYWORD][1:]


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_are_those_of_keras(name: str) -> None:
    keras = pytest.importorskip("keras")
    ours, theirs = getattr(layers, name), getattr(keras.layers, name)
    assert ours.__name__ == theirs.__name__
    assert parameters(ours) == parameters(theirs)


def test_functions_are_those_of_keras() -> None:
    keras = pytest.importorskip("keras")
    for name in ("add", "average", "concatenate", "dot", "maximum", "minimum", "multiply"):
        ours, theirs = getattr(layers, name), getattr(keras.layers, name)
        assert set(inspect.signature(ours).parameters) == set(inspect.signature(theirs).parameters)


def test_importing_layers_loads_nothing_heavy() -> None:
    heavy = ("llvmlite", "cupy", "grpc", "h5py", "matplotlib", "rich", "tqdm", "google.protobuf")
    code = f"import sys, laminar.layers; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
