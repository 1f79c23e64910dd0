"""Training goes as it goes in Keras: losses of twenty steps, of six models and seven optimizers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import laminar

from ..training.twenty_steps import MODELS, OPTIMIZERS, REFERENCE, losses

EXPECTED: dict[str, list[float]] = json.loads(REFERENCE.read_text())


def pairs() -> list[Any]:
    """All pairs; a few of them, in which each model and each optimizer is, are not for --slow."""
    quick = {
        *zip(MODELS, OPTIMIZERS, strict=False),
        ("dense", "Nadam"),
    }
    return [
        pytest.param(m, o, marks=() if (m, o) in quick else pytest.mark.exhaustive)
        for m in MODELS
        for o in OPTIMIZERS
    ]


@pytest.mark.parametrize(("model", "optimizer"), pairs())
def test_losses_are_those_of_keras(model: str, optimizer: str) -> None:
    found = losses(laminar, model, optimizer)
    np.testing.assert_allclose(found, EXPECTED[f"{model} {optimizer}"], rtol=2e-4)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("model", "optimizer"), pairs())
@pytest.mark.keras_on_jax
def test_losses_are_those_that_keras_gives_now(model: str, optimizer: str) -> None:
    keras = pytest.importorskip("keras")
    expected = EXPECTED[f"{model} {optimizer}"]
    np.testing.assert_allclose(losses(keras, model, optimizer), expected, rtol=2e-4)
