"""`tf.linalg.LinearOperator...`: matrices that are known by what they do to vectors.

A class says its shape and how it multiplies; what it does not say better is computed of the dense
matrix. Leading axes are those of a stack of matrices.
"""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import TensorShape, as_dtype, broadcast_shapes
from laminar.engine.late import later
from laminar.engine.ops.array.creation import eye as unit_matrix
from laminar.engine.ops.core.checks import check
from laminar.engine.ops.core.registry import lookup

from .adapting import in_graph
from .linear import matrix_solve
from .values import symbol, tensor

# Operators that others make stand in files of their own.
_COMPOSED = "laminar.compat.v1.composed_operators"
_composition = later(_COMPOSED, "LinearOperatorComposition")
_adjoint = later(_COMPOSED, "LinearOperatorAdjoint")
_inversion = later(_COMPOSED, "LinearOperatorInversion")
_lower_triangular = later("laminar.compat.v1.simple_operators", "LinearOperatorLowerTriangular")


def conjugate(x: Any) -> Any:
    """Of complex numbers; others as they are."""
    return ops.conj(x) if x.dtype.is_complex else x


def adjoint_of(x: Any) -> Any:
    """The last two axes exchanged, and conjugated."""
    return ops.swapaxes(conjugate(x), -1, -2)


def alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two stacks of matrices, such that they have the same number of each axis of the stack."""
    lead = a.shape[:-2], b.shape[:-2]
    if None in (*lead[0], *lead[1]) or tuple(lead[0]) == tuple(lead[1]):
        return a, b
    batch = tuple(broadcast_shapes("LinearOperator", TensorShape(lead[0]), TensorShape(lead[1])))
    return tuple(ops.broadcast_to(x, [*batch, *x.shape[-2:]]) for x in (a, b))  # type: ignore[return-value]  # two


class LinearOperator:
    """A matrix, or a stack of them.

    Args:
        dtype: element type.
        graph_parents: accepted: the tensors that it is made of.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: what is known of it;
            None for what is not. It is believed.
        name: of it.

    Raises:
        ValueError: what is said of it cannot be true.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("LinearOperator: a positive definite matrix is not singular")
            is_non_singular = True
        if (is_non_singular or is_self_adjoint) and is_square is False:
            raise ValueError("LinearOperator: only a square matrix can be so")
        is_square = True if is_non_singular or is_self_adjoint else is_square
        self._dtype = as_dtype(dtype)
        self._parents = list(graph_parents or [])
        self._is_square = is_square
        self.is_non_singular = is_non_singular
        self.is_self_adjoint = is_self_adjoint
        self.is_positive_definite = is_positive_definite
        self.name = name or type(self).__name__

    # What a class says.

    def _shape(self) -> TensorShape:
        """The shape as far as it is known."""
        raise NotImplementedError

    def _sizes(self) -> Any:
        """The shape, as a vector of int32, where it is not known."""
        raise NotImplementedError

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        a, b = alike(adjoint_of(self._dense()) if adjoint else self._dense(), x)
        return ops.matmul(a, b)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if not self.is_square:
            raise NotImplementedError(f"{self.name}: only square matrices are solved with")
        a, b = alike(self._dense(), rhs)
        return matrix_solve(a, b, adjoint=adjoint)

    def _dense(self) -> Any:
        n = self.domain_dimension_tensor()
        known = self.domain_dimension
        return self._matmul(unit_matrix(n if known is None else known, dtype=self.dtype), False)

    def _diagonal(self) -> Any:
        return ops.diagonal(self._dense(), axis1=-2, axis2=-1)

    def _determinant(self) -> Any:
        return ops.det(self._dense())

    def _log_abs_determinant(self) -> Any:
        return ops.slogdet(self._dense())[1]

    def _cholesky(self) -> LinearOperator:
        found: LinearOperator = _lower_triangular(ops.cholesky(self._dense()), is_non_singular=True)
        return found

    # What all have.

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self._dtype

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that it is made of."""
        return self._parents

    @property
    def shape(self) -> TensorShape:
        """(..., rows, columns), as far as it is known."""
        return self._shape()

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the stack."""
        return TensorShape(self.shape[:-2])

    @property
    def tensor_rank(self) -> int | None:
        """The number of axes."""
        return self.shape.rank

    @property
    def domain_dimension(self) -> Any:
        """The number of columns."""
        return self.shape[-1]

    @property
    def range_dimension(self) -> Any:
        """The number of rows."""
        return self.shape[-2]

    @property
    def is_square(self) -> bool | None:
        """Whether there are as many rows as columns, as far as that is known."""
        rows, columns = self.shape[-2:]
        if None in (rows, columns):
            return self._is_square
        if self._is_square is not None and self._is_square != (rows == columns):
            raise ValueError(f"{self.name}: is_square={self._is_square}, but it is {self.shape}")
        return bool(rows == columns)

    def shape_tensor(self, name: str | None = None) -> Any:
        """(..., rows, columns) as a vector of int32."""
        with in_graph():
            known = self.shape
            return symbol(list(known), "int32") if known.is_fully_defined else self._sizes()

    def batch_shape_tensor(self, name: str | None = None) -> Any:
        """The shape of the stack as a vector."""
        return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str | None = None) -> Any:
        """The number of axes."""
        with in_graph():
            return symbol(self.tensor_rank)

    def domain_dimension_tensor(self, name: str | None = None) -> Any:
        """The number of columns."""
        return self.shape_tensor()[-1]

    def range_dimension_tensor(self, name: str | None = None) -> Any:
        """The number of rows."""
        return self.shape_tensor()[-2]

    def to_dense(self, name: str | None = None) -> Any:
        """The matrix."""
        with in_graph():
            return self._dense()

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str | None = None
    ) -> Any:
        """The matrix times `x` (..., columns, k), or an operator.

        Args:
            x: what it is multiplied with.
            adjoint: whether the adjoint matrix is meant.
            adjoint_arg: whether that of `x` is.
            name: accepted.
        """
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            if None not in (left.domain_dimension, right.range_dimension) and (
                left.domain_dimension != right.range_dimension
            ):
                raise ValueError(f"{left.shape} and {right.shape} are not to be multiplied")
            return _composition([left, right])
        with in_graph():
            given = symbol(x, self.dtype)
            given = adjoint_of(given) if adjoint_arg else given
            size = self.range_dimension if adjoint else self.domain_dimension
            if given.shape.rank is not None and None not in (size, given.shape[-2]):
                _fits(self, given.shape[-2], size)
            return self._matmul(given, adjoint)

    __matmul__ = matmul

    def matvec(self, x: Any, adjoint: bool = False, name: str | None = None) -> Any:
        """The matrix times a vector (..., columns)."""
        with in_graph():
            return self.matmul(symbol(x, self.dtype)[..., None], adjoint)[..., 0]

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str | None = None
    ) -> Any:
        """The x of matrix x = rhs (..., rows, k); see `matmul` for the arguments."""
        self._need_regular("solve")
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            return left.inverse().matmul(rhs.adjoint() if adjoint_arg else rhs)
        with in_graph():
            given = symbol(rhs, self.dtype)
            given = adjoint_of(given) if adjoint_arg else given
            size = self.domain_dimension if adjoint else self.range_dimension
            if given.shape.rank is not None and None not in (size, given.shape[-2]):
                _fits(self, given.shape[-2], size)
            return self._solve(given, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
        """The x of matrix x = rhs, of a vector (..., rows)."""
        with in_graph():
            return self.solve(symbol(rhs, self.dtype)[..., None], adjoint)[..., 0]

    def determinant(self, name: str | None = None) -> Any:
        """The determinant of each matrix."""
        self._need_square("determinant")
        with in_graph():
            return self._determinant()

    def log_abs_determinant(self, name: str | None = None) -> Any:
        """log|determinant| of each matrix."""
        self._need_square("log_abs_determinant")
        with in_graph():
            return self._log_abs_determinant()

    def diag_part(self, name: str | None = None) -> Any:
        """The diagonal of each matrix."""
        with in_graph():
            return self._diagonal()

    def trace(self, name: str | None = None) -> Any:
        """The sum of the diagonal of each matrix."""
        with in_graph():
            return ops.sum(self._diagonal(), -1)

    def add_to_tensor(self, x: Any, name: str | None = None) -> Any:
        """The matrix plus `x`."""
        with in_graph():
            return self._dense() + symbol(x, self.dtype)

    def adjoint(self, name: str | None = None) -> LinearOperator:
        """The operator of the adjoint matrix."""
        if self.is_self_adjoint:
            return self
        found: LinearOperator = _adjoint(self)
        return found

    @property
    def H(self) -> LinearOperator:  # noqa: N802  # its name there
        """The operator of the adjoint matrix."""
        return self.adjoint()

    def inverse(self, name: str | None = None) -> LinearOperator:
        """The operator of the inverse matrix."""
        self._need_regular("inverse")
        found: LinearOperator = _inversion(self)
        return found

    def cholesky(self, name: str | None = None) -> LinearOperator:
        """The lower triangular operator L with L L^H = this.

        Raises:
            ValueError: it is not said to be self-adjoint and positive definite.
        """
        if not (self.is_positive_definite and self.is_self_adjoint):
            raise ValueError(f"{self.name}: only of self-adjoint positive definite matrices")
        with in_graph():
            return self._cholesky()

    def assert_non_singular(self, name: str | None = None) -> Any:
        """An operation that fails where the matrix is singular."""
        with in_graph():
            values = ops.svd(self._dense(), compute_uv=False)
            least = float(_EPSILON.get(str(values.dtype), 1e-6))
            holds = ops.min(values, -1) > ops.max(values, -1) * least
            return _held(holds, f"{self.name}: the matrix is singular")

    def assert_self_adjoint(self, name: str | None = None) -> Any:
        """An operation that fails where the matrix is not its adjoint."""
        with in_graph():
            dense = self._dense()
            return _held(ops.equal(dense, adjoint_of(dense)), f"{self.name}: not self-adjoint")

    def assert_positive_definite(self, name: str | None = None) -> Any:
        """An operation that fails where x^H (matrix) x is not above 0 for all x."""
        with in_graph():
            dense = self._dense()
            values = ops.eigh((dense + adjoint_of(dense)) * 0.5)[0]
            return _held(values > 0.0, f"{self.name}: not positive definite")

    def _need_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(
                f"{self.name}: {what} is of square matrices, not {self.shape}"
            )

    def _need_regular(self, what: str) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError(f"{self.name}: {what} is not of a singular matrix")
        self._need_square(what)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.shape}, {self.dtype}>"


_EPSILON = {"float32": 1e-6, "float64": 1e-14}


def _fits(who: LinearOperator, given: Any, size: Any) -> None:
    if given != size:
        raise ShapeError(f"{who.name}: {given} rows do not fit to {who.shape}, which has {size}")


def _held(holds: Any, message: str) -> Any:
    found = check(holds, message)
    return getattr(found, "op", None)


def same_type(who: str, operators: Any) -> list[LinearOperator]:
    """The operators, at least one, of one type.

    Raises:
        InvalidArgumentError: there is none, or the types differ.
    """
    given = list(operators)
    if not given:
        raise InvalidArgumentError(f"{who}: at least one operator is needed")
    if len({x.dtype for x in given}) > 1:
        raise InvalidArgumentError(f"{who}: the types differ: {[str(x.dtype) for x in given]}")
    return given


def all_true(values: Any) -> bool | None:
    """Whether all hold; None where that is not known."""
    found = list(values)
    return True if all(found) else None


def sizes_of(x: Any) -> Any:
    """The shape of a tensor as a vector of int32."""
    return lookup("Shape")(tensor(x), dtype="int32")
