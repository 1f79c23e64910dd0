"""Einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.einsum import einsum

from ..harness import check_op

rng = np.random.default_rng(16)

CASES: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ba", [(2, 3)]),
    ("ij,kj->ki", [(2, 3), (4, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->i", [(2, 3)]),
    ("ij->ji", [(2, 3)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("i,j->ij", [(3,), (2,)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,k->", [(2, 3), (4,)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->j", [(3, 3, 2)]),
    ("iji->j", [(3, 2, 3)]),
    ("iii->i", [(3, 3, 3)]),
    ("ii,jj->", [(2, 2), (3, 3)]),
    ("ij,jj->i", [(2, 3), (3, 3)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("bthd,bshd->bhts", [(2, 3, 2, 4), (2, 5, 2, 4)]),
    ("bhts,bshd->bthd", [(2, 2, 3, 5), (2, 5, 2, 4)]),
    ("abc,cd->abd", [(2, 3, 4), (4, 2)]),
    ("abcd,cdef->abef", [(2, 1, 3, 2), (3, 2, 2, 2)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)]),
    ("i,j,k->kji", [(2,), (3,), (4,)]),
    ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]),
    (",i->i", [(), (3,)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("i...->...", [(2, 3, 4)]),
    ("...i,i...->...", [(4, 3), (3, 4)]),
    ("i...j,j->...i", [(2, 3, 1, 4), (4,)]),
    ("...", [(2, 3)]),
    ("...,...", [(2, 3), (3,)]),
    ("ij...,jk...->ik...", [(2, 3), (3, 4, 5)]),
    ("ij,ij->ij", [(2, 1), (2, 4)]),
    ("i,i,j->ij", [(4,), (1,), (3,)]),
    ("ii,ij,k->jk", [(1, 1), (1, 3), (2,)]),
    ("...ij,...jk,kl->...il", [(4, 2, 3), (1, 3, 2), (2, 3)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    ("ij->i", [(2, 0)]),
]


@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check_op(
        lambda *xs: einsum(equation, *xs),
        lambda *xs: np.einsum(equation, *xs),
        [rng.normal(size=s) for s in shapes],
        dtypes=["float32", "float16", "bfloat16", "complex64"],
    )


def test_spaces_are_ignored() -> None:
    check_op(
        lambda a, b: einsum(" i j , j k -> i k ", a, b),
        np.matmul,
        [rng.normal(size=(2, 3)), rng.normal(size=(3, 2))],
    )


def test_integers() -> None:
    x = rng.integers(-5, 5, size=(3, 4))
    check_op(lambda x: einsum("ij,kj->ik", x, x), lambda x: x @ x.T, [x], grad=False)


def test_the_cheapest_pair_is_contracted_first() -> None:
    # From the left this would make a matrix of 40000 x 40000.
    a, b, c = constant(np.ones((40000, 1))), constant(np.ones((1, 40000))), constant(np.ones(40000))
    assert einsum("ij,jk,k->", a, b, c).numpy() == 40000.0**2


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 3, None])
        y = placeholder("float32", [None, 4])
        assert einsum("bij,jk->bik", x, y).shape == TensorShape([None, 3, 4])
        assert einsum("...j,jk->...k", x, y).shape == TensorShape([None, 3, 4])
        assert einsum("bij,ik->bk", x, placeholder("float32", None)).shape == TensorShape(
            [None, None]
        )
        with pytest.raises(ShapeError, match="known number of axes"):
            einsum("...i->...", placeholder("float32", None))


ERRORS: list[Any] = [
    ("ij,jk->ik", [(2, 3), (4, 2)], ShapeError, "axes named 'j' .* have the sizes 3 and 4"),
    ("ij,j->i", [(2, 1), (4,)], ShapeError, "axes named 'j' .* have the sizes 1 and 4"),
    ("ij->i", [(2,)], ShapeError, "the term 'ij' of 'ij->i' names 2 axes"),
    ("ii->i", [(2, 3)], ShapeError, "axes named 'i'"),
    ("...ij->...i", [(2,)], ShapeError, "does not fit"),
    ("ij,j->i", [(2, 3)], InvalidArgumentError, "2 terms for 1 operands"),
    ("ij->ii", [(2, 3)], InvalidArgumentError, "names 'i' twice"),
    ("ij->k", [(2, 3)], InvalidArgumentError, "names 'k' but no operand does"),
    ("i1->i", [(2, 3)], InvalidArgumentError, "is not an equation"),
    ("......->", [(2, 3)], InvalidArgumentError, "is not an equation"),
    ("i.->i", [(2, 3)], InvalidArgumentError, "is not an equation"),
    ("...i->i", [(2, 3)], InvalidArgumentError, 'leaves out the "..."'),
    ("ij->...i", [(2, 3)], InvalidArgumentError, "but no operand does"),
]


@pytest.mark.parametrize(("equation", "shapes", "error", "message"), ERRORS)
def test_errors(
    equation: str, shapes: list[tuple[int, ...]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        einsum(equation, *(constant(np.zeros(s)) for s in shapes))
