"""Kinds of recurrent layers, and how what they give is compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.tree import flatten

KINDS = ("SimpleRNN", "LSTM", "GRU")


def check_equal(found: Any, expected: Any, atol: float = 2e-5) -> None:
    found, expected = flatten(found), flatten(expected)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-4, atol=atol)
