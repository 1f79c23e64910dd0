"""Diagonals, bands and triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.array.diagonal import band_part, diag, diagonal, matrix_diag, tril, triu
from laminar.engine.ops.core.basic import constant, placeholder

from ..harness import check_op

rng = np.random.default_rng(13)

TYPES = ["float16", "bfloat16", "complex64", "int8", "bool"]


def reference_band(x: Any, lower: int, upper: int) -> Any:
    i, j = np.indices(x.shape[-2:])
    keep = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    return np.where(keep, x, np.zeros((), x.dtype))


def reference_matrix_diag(x: Any, k: int) -> Any:
    rows = [np.diag(row, k) for row in x.reshape(-1, x.shape[-1])]
    side = x.shape[-1] + abs(k)
    return np.array(rows, x.dtype).reshape(*x.shape[:-1], side, side)


CASES = [
    pytest.param(tril, np.tril, (3, 4), (), id="tril"),
    pytest.param(tril, np.tril, (3, 4), (1,), id="tril-above"),
    pytest.param(tril, np.tril, (2, 4, 3), (-2,), id="tril-below"),
    pytest.param(triu, np.triu, (3, 4), (), id="triu"),
    pytest.param(triu, np.triu, (2, 4, 3), (1,), id="triu-above"),
    pytest.param(triu, np.triu, (4, 3), (-5,), id="triu-all"),
    pytest.param(tril, np.tril, (0, 3), (), id="tril-empty"),
    pytest.param(band_part, reference_band, (4, 5), (1, 2), id="band"),
    pytest.param(band_part, reference_band, (2, 4, 4), (-1, 0), id="band-lower"),
    pytest.param(band_part, reference_band, (4, 4), (0, -1), id="band-upper"),
    pytest.param(band_part, reference_band, (4, 4), (-1, -1), id="band-all"),
    pytest.param(diagonal, np.diagonal, (3, 4), (), id="diagonal"),
    pytest.param(diagonal, np.diagonal, (3, 4), (2,), id="diagonal-above"),
    pytest.param(diagonal, np.diagonal, (3, 4), (-1,), id="diagonal-below"),
    pytest.param(diagonal, np.diagonal, (3, 4), (9,), id="diagonal-outside"),
    pytest.param(diagonal, np.diagonal, (3, 4), (-9,), id="diagonal-outside-below"),
    pytest.param(diagonal, np.diagonal, (2, 3, 4), (1, 0, 2), id="diagonal-axes"),
    pytest.param(diagonal, np.diagonal, (2, 3, 4), (-1, 2, 1), id="diagonal-turned"),
    pytest.param(diagonal, np.diagonal, (0, 4), (), id="diagonal-empty"),
    pytest.param(diag, np.diag, (3,), (), id="diag"),
    pytest.param(diag, np.diag, (3,), (-2,), id="diag-below"),
    pytest.param(diag, np.diag, (3, 4), (1,), id="diag-of-matrix"),
    pytest.param(diag, np.diag, (0,), (1,), id="diag-empty"),
    pytest.param(matrix_diag, reference_matrix_diag, (2, 3), (0,), id="matrix-diag"),
    pytest.param(matrix_diag, reference_matrix_diag, (2, 2, 3), (1,), id="matrix-diag-above"),
]


@pytest.mark.parametrize(("fn", "reference", "shape", "args"), CASES)
def test_op(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    shape: tuple[int, ...],
    args: tuple[Any, ...],
) -> None:
    check_op(
        lambda x: fn(x, *args),
        lambda x: reference(x, *args),
        [rng.normal(size=shape)],
        dtypes=TYPES,
    )


def test_what_is_cut_off_may_be_nan() -> None:
    x = constant(np.array([[1.0, np.nan], [2.0, np.inf]]))
    assert tril(x, -1).numpy().tolist() == [[0, 0], [2, 0]]


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 3, 4])
        assert diagonal(x, 1).shape == TensorShape([None, 3])
        assert diagonal(x, 0, 0, 1).shape == TensorShape([4, None])
        assert matrix_diag(x, -1).shape == TensorShape([None, 3, 5, 5])
        assert tril(placeholder("float32", None)).shape.rank is None


ERRORS = [
    pytest.param(lambda x: tril(x), ShapeError, "BandPart: expected a matrix", id="tril"),
    pytest.param(lambda x: diagonal(x), ShapeError, "diagonal: axis -2 does not exist", id="diag"),
    pytest.param(
        lambda x: band_part(constant(np.zeros((2, 2))), -2, 0),
        InvalidArgumentError,
        "got -2, 0",
        id="band",
    ),
    pytest.param(
        lambda x: diag(constant(np.zeros((1, 1, 1)))),
        ShapeError,
        "diag: expected a vector or a matrix",
        id="stack",
    ),
    pytest.param(
        lambda x: matrix_diag(constant(1.0)), ShapeError, "MatrixDiag: expected", id="scalar"
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros(3)))
