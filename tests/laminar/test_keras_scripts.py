"""Scripts as Keras users write them run on laminar, and give what they give on Keras."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import laminar

from .scripts.catalogue import OWN, SHARED
from .scripts.digest import differences, digest

REFERENCE = json.loads((Path(__file__).parent / "scripts" / "reference.json").read_text())


def run(name: str) -> Any:
    """The digest of a script on laminar."""
    laminar.utils.clear_session(free_memory=False)
    return digest(SHARED[name](laminar))


def named(name: str) -> Any:
    """Scripts of three rooms are for the quick run."""
    quick = name.startswith(("functional-", "sequential-", "steps-"))
    return pytest.param(name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize("name", [named(name) for name in SHARED])
def test_script_gives_what_keras_gave(name: str) -> None:
    assert not list(differences(run(name), REFERENCE[name]))


@pytest.mark.parametrize("name", OWN)
def test_own_script(name: str) -> None:
    laminar.utils.clear_session(free_memory=False)
    OWN[name](laminar)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SHARED)
@pytest.mark.keras_on_jax
def test_script_gives_what_keras_gives(name: str) -> None:
    keras = pytest.importorskip("keras")
    found = run(name)
    keras.utils.clear_session(free_memory=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = digest(SHARED[name](keras))
    assert not list(differences(found, expected))
