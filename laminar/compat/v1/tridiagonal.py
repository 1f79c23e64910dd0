"""Matrices with three diagonals: products, and systems of equations."""

from __future__ import annotations

from typing import Any

from laminar import engine, ops
from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, TensorShape
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.core.checks import assert_op
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.compare import where
from laminar.engine.ops.math.reduce import reduce_all

from .adapting import v1
from .values import operands, symbol, tensor

_FORMATS = ("compact", "matrix", "sequence")


def _diagonals(who: str, given: Any, form: str) -> tuple[Any, Any, Any]:
    """The upper, the main and the lower diagonal, each of the length of the main one.

    The last element of the upper one and the first of the lower one are 0.
    """
    if form not in _FORMATS:
        raise ValueError(f"{who}: diagonals_format is one of {', '.join(_FORMATS)}, got {form!r}")
    if form == "matrix":
        matrix = symbol(given)
        if matrix.shape.rank is not None and matrix.shape[-1] != matrix.shape[-2]:
            raise ShapeError(f"{who}: expected square matrices, got {matrix.spec}")
        upper, main, lower = (ops.diagonal(matrix, k, -2, -1) for k in (1, 0, -1))
    elif form == "compact":
        table = symbol(given)
        if table.shape.rank is None or table.shape.rank < 2 or table.shape[-2] not in (3, None):
            raise ShapeError(f"{who}: diagonals are (..., 3, size), got {table.spec}")
        upper, main, lower = (table[..., i, :] for i in range(3))
    else:
        if len(given) != 3:
            raise ShapeError(f"{who}: expected three diagonals, got {len(given)}")
        upper, main, lower = (symbol(d) for d in given)
    size = main.shape[-1] if main.shape.rank else None
    if size is None:
        raise ShapeError(f"{who}: the size of the matrices must be known, got {main.spec}")
    for side in (upper, lower):
        if side.shape[-1] not in (size, size - 1) or not side.shape[:-1] == main.shape[:-1]:
            raise ShapeError(f"{who}: diagonals {side.spec} and {main.spec} do not fit together")
    edge = zeros_like(main)[..., :1]
    upper = upper[..., : size - 1] if size else upper[..., :0]
    lower = lower if lower.shape[-1] == size - 1 else lower[..., 1:]
    both = (lookup("Concat")(upper, edge, axis=-1), lookup("Concat")(edge, lower, axis=-1))
    return both[0], main, both[1]


@v1()
def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact") -> Any:
    """The product of a matrix with three diagonals and a matrix.

    Args:
        diagonals: "compact": (..., 3, m), the upper, main and lower one, of which the last of the
            upper and the first of the lower one are not looked at; "sequence": these three;
            "matrix": (..., m, m).
        rhs: (..., m, n).
        diagonals_format: which of these.
    """
    upper, main, lower = _diagonals("tridiagonal_matmul", diagonals, diagonals_format)
    x = tensor(rhs)
    row = zeros_like(x)[..., :1, :]
    after = lookup("Concat")(x[..., 1:, :], row, axis=-2)
    before = lookup("Concat")(row, x[..., :-1, :], axis=-2)
    column = [ops.expand_dims(d, -1) for d in (upper, main, lower)]
    return column[0] * after + column[1] * x + column[2] * before


@v1()
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Any:
    """x with matrix @ x = rhs of a matrix with three diagonals, in a time linear in its size.

    Args:
        diagonals, diagonals_format: see `tridiagonal_matmul`.
        rhs: (..., m) or (..., m, n).
        transpose_rhs: whether rhs is (..., n, m), and so is x.
        conjugate_rhs: whether rhs is conjugated before.
        name: of the operations.
        partial_pivoting: whether rows are exchanged; without, dividing by small numbers is
            possible.

    Raises:
        InvalidArgumentError: (in the step) the matrix has no inverse.

    Source: Golub and Van Loan, "Matrix Computations", 4th edition, section 4.3.
    """
    upper, main, lower = _diagonals("tridiagonal_solve", diagonals, diagonals_format)
    main, b = operands(main, symbol(rhs))
    is_vector = b.shape.rank == main.shape.rank
    if is_vector:
        b = ops.expand_dims(b, -1)
    elif transpose_rhs:
        b = ops.swapaxes(b, -1, -2)
    if conjugate_rhs:
        b = ops.conj(b)
    size = main.shape[-1]
    if b.shape[-2] not in (size, None) or not TensorShape(b.shape[:-2]).is_compatible_with(
        main.shape[:-1]
    ):
        raise ShapeError(f"tridiagonal_solve: the matrices are {main.spec}, and rhs {b.spec}")
    if size:
        u, d, l_ = (ops.moveaxis(ops.expand_dims(x, -1), -2, 0) for x in (upper, main, lower))
        b = ops.moveaxis(_solved(u, d, l_, ops.moveaxis(b, -2, 0), partial_pivoting), 0, -2)
    if is_vector:
        return ops.squeeze(b, -1)
    return ops.swapaxes(b, -1, -2) if transpose_rhs else b


def _solved(upper: Any, main: Any, lower: Any, rhs: Any, pivoting: bool) -> Any:
    """Solutions, where the first axis goes along the rows, and the last along right sides."""

    def eliminate(above: Any, row: Any) -> tuple[Any, Any]:
        """Row i, as it is above i, and the row below: which of them is the pivot's, less it."""
        (d, u, b), (l_, d2, u2, b2) = above, row
        zero = zeros_like(d)
        swap = lookup("Greater")(ops.abs(l_), ops.abs(d)) if pivoting else None

        def one(yes: Any, no: Any) -> Any:
            return no if swap is None else where(swap, yes, no)

        pivot, part = one(l_, d), one(d, l_)
        part = part / pivot
        first, second = (one(d2, u), one(u2, zero)), (one(u, d2), one(zero, u2))
        top, bottom = one(b2, b), one(b, b2)
        left = (second[0] - part * first[0], second[1] - part * first[1], bottom - part * top)
        return left, (pivot, *first, top)

    begin = (main[0], upper[0], rhs[0])
    (d, _, b), rows = engine.scan(eliminate, begin, (lower[1:], main[1:], upper[1:], rhs[1:]))
    pivots = lookup("Concat")(rows[0], ops.expand_dims(d, 0), axis=0)
    holds = reduce_all(lookup("NotEqual")(pivots, zeros_like(pivots)))
    held = assert_op(holds, message="tridiagonal_solve: the matrix has no inverse", summarize=1)
    with engine.control_dependencies([held] if hasattr(held, "op") else []):
        last = lookup("Identity")(b / d)

    def substitute(after: Any, row: Any) -> tuple[Any, Any]:
        (x1, x2), (d, u, v, b) = after, row
        x = (b - u * x1 - v * x2) / d
        return (x, x1), x

    _, xs = engine.scan(substitute, (last, zeros_like(last)), rows, reverse=True)
    found: Tensor = lookup("Concat")(xs, ops.expand_dims(last, 0), axis=0)
    return found
