"""Sizes that are only known when a program runs, as people read them."""

from __future__ import annotations

import pytest

from laminar.engine.compiler.ir.not_lowered import NotLoweredError
from laminar.engine.compiler.ir.sizes import shown, shown_size, symbolic_size

A, B, C = (symbolic_size(k) for k in range(3))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (7, "7"),
        (-7, "-7"),
        (A, "n0"),
        (4 * A, "4*n0"),
        (A * B, "n0*n1"),
        (6 * C * A, "6*n0*n2"),
        (A * A, "n0*n0"),
        (A + 3, "n0 + 3"),
        (2 * B - 1, "2*n1 - 1"),
        ((A + 1) * B, "n1*(n0 + 1)"),
        (-A, "-n0"),
        (-A - 2, "-(n0 + 2)"),
        (1 << 100, "?"),
        (A + B, "?"),
    ],
)
def test_text_of_a_size(size: int, text: str) -> None:
    assert shown_size(size) == text


def test_text_of_a_shape() -> None:
    assert shown((A, 3, A * B)) == "[n0, 3, n0*n1]"


@pytest.mark.parametrize(("size", "text"), [(4 * A, "4*n0"), (A + 3, "n0 + 3"), (7, "7")])
def test_errors_show_them_by_name(size: int, text: str) -> None:
    error = NotLoweredError(f"Split of {size} into {[B, 3]}", remedy="none")
    assert error.message == f"Split of {text} into [n1, 3]"
    assert error.remedy == "none"
