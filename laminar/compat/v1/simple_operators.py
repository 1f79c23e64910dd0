"""`tf.linalg.LinearOperator...` of one tensor: a number, a diagonal, a matrix, a reflection."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.graph import TensorShape
from laminar.engine.ops.array.creation import eye as unit_matrix
from laminar.engine.ops.array.creation import full
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import in_graph
from .arrays import matrix_band_part
from .linear import matrix_triangular_solve
from .linear_operators import LinearOperator, alike, conjugate, sizes_of
from .values import as_kind, dims_of, static, symbol


def _of_numbers(number: Any, dtype: Any) -> Any:
    return cast(symbol(number), dtype)


class _Sized(LinearOperator):
    """A matrix whose size is given."""

    def __init__(self, rows: Any, columns: Any, batch_shape: Any, dtype: Any, **facts: Any) -> None:
        super().__init__(dtype, **facts)
        known = [static(n) for n in (rows, columns)]
        self._batch = [] if batch_shape is None else static(batch_shape)
        self._given = known
        for n in known:
            if isinstance(n, int) and n < 0:
                raise ValueError(f"{self.name}: a number of rows is at least 0, got {n}")

    def _shape(self) -> TensorShape:
        sides = [n if isinstance(n, int) else None for n in self._given]
        batch = self._batch if isinstance(self._batch, list) else [None]
        return TensorShape([*batch, *sides])

    def _sizes(self) -> Any:
        sides = lookup("Stack")(*(cast(symbol(n), "int32") for n in self._given), axis=0)
        batch = cast(symbol(self._batch, "int32"), "int32")
        return ops.concatenate([batch, sides])

    def _filled(self, value: Any, rest: list[Any]) -> Any:
        return full([*self._batch, *rest], _of_numbers(value, self.dtype), self.dtype)


class LinearOperatorIdentity(_Sized):
    """The unit matrix.

    Args:
        num_rows: its size.
        batch_shape: of the stack.
        dtype: element type, float32 unless told.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: True.
        assert_proper_shapes: accepted.
        name: of it.
    """

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool = True,
        is_self_adjoint: bool = True,
        is_positive_definite: bool = True,
        is_square: bool = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        if not (is_non_singular and is_self_adjoint and is_positive_definite and is_square):
            raise ValueError("LinearOperatorIdentity: a unit matrix is all of this")
        super().__init__(
            num_rows, num_rows, batch_shape, as_kind(dtype), is_non_singular=True,
            is_self_adjoint=True, is_positive_definite=True, is_square=True, name=name,
        )  # fmt: skip

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        if not self._batch:
            return lookup("Identity")(x)
        return x + self._filled(0, [1, 1])

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._matmul(rhs, adjoint)

    def _diagonal(self) -> Any:
        return self._filled(1, [self._given[0]])

    def _determinant(self) -> Any:
        return self._filled(1, [])

    def _log_abs_determinant(self) -> Any:
        return self._filled(0, [])

    def _cholesky(self) -> LinearOperator:
        return self

    def inverse(self, name: str | None = None) -> LinearOperator:
        """Itself."""
        return self


class LinearOperatorScaledIdentity(LinearOperator):
    """A number times the unit matrix.

    Args:
        num_rows: its size.
        multiplier: (...), one number for each matrix of the stack.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        assert_proper_shapes: accepted.
        name: of it.
    """

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        with in_graph():
            self._multiplier = symbol(multiplier)
        self._rows = static(num_rows)
        if is_self_adjoint is None and not self._multiplier.dtype.is_complex:
            is_self_adjoint = True
        super().__init__(
            self._multiplier.dtype, [self._multiplier], is_non_singular, is_self_adjoint,
            is_positive_definite, is_square, name,
        )  # fmt: skip

    @property
    def multiplier(self) -> Any:
        """The numbers."""
        return self._multiplier

    def _shape(self) -> TensorShape:
        n = self._rows if isinstance(self._rows, int) else None
        return TensorShape([*self._multiplier.shape, n, n])

    def _sizes(self) -> Any:
        n = cast(symbol(self._rows), "int32")[None]
        return ops.concatenate([sizes_of(self._multiplier), n, n])

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        m = conjugate(self._multiplier) if adjoint else self._multiplier
        return x * m[..., None, None]

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        m = conjugate(self._multiplier) if adjoint else self._multiplier
        return rhs / m[..., None, None]

    def _diagonal(self) -> Any:
        ones = full([self._rows], _of_numbers(1, self.dtype), self.dtype)
        return self._multiplier[..., None] * ones

    def _power(self) -> Any:
        return cast(symbol(self._rows), self.dtype)

    def _determinant(self) -> Any:
        return ops.power(self._multiplier, self._power())

    def _log_abs_determinant(self) -> Any:
        size = ops.abs(self._multiplier)
        return cast(symbol(self._rows), size.dtype) * ops.log(size)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows, ops.sqrt(self._multiplier), is_non_singular=True
        )


class LinearOperatorZeros(_Sized):
    """A matrix of zeros.

    Args:
        num_rows: how many rows it has.
        num_columns: how many columns; as many, unless told.
        batch_shape: of the stack.
        dtype: element type, float32 unless told.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        assert_proper_shapes: accepted.
        name: of it.
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if is_non_singular or is_positive_definite:
            raise ValueError("LinearOperatorZeros: a matrix of zeros is singular")
        columns = num_rows if num_columns is None else num_columns
        super().__init__(
            num_rows, columns, batch_shape, as_kind(dtype), is_non_singular=False,
            is_self_adjoint=is_self_adjoint, is_positive_definite=False, is_square=is_square,
            name=name,
        )  # fmt: skip

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        rows = self._given[1 if adjoint else 0]
        lead = dims_of(x)[:-2] or self._batch
        return full([*lead, rows, dims_of(x)[-1]], _of_numbers(0, self.dtype), self.dtype)

    def _dense(self) -> Any:
        return self._filled(0, self._given)

    def _diagonal(self) -> Any:
        return self._filled(0, [ops.minimum(*self._given) if not all(
            isinstance(n, int) for n in self._given) else min(self._given)])  # fmt: skip

    def _determinant(self) -> Any:
        return self._filled(0, [])

    def _log_abs_determinant(self) -> Any:
        return self._filled(float("-inf"), [])


class _OfTensor(LinearOperator):
    """Made of one tensor."""

    axes = 2

    def __init__(self, given: Any, name: str, facts: tuple[Any, ...]) -> None:
        with in_graph():
            self._tensor = symbol(given)
        found = self._tensor
        if found.shape.rank is not None and found.shape.rank < self.axes:
            raise ShapeError(f"{name}: expected at least {self.axes} axes, got {found.spec}")
        regular, own_adjoint, definite, square = facts
        super().__init__(found.dtype, [found], regular, own_adjoint, definite, square, name)

    def _shape(self) -> TensorShape:
        return TensorShape([*self._tensor.shape, self._tensor.shape[-1]])

    def _sizes(self) -> Any:
        found = sizes_of(self._tensor)
        return found if self.axes == 2 else ops.concatenate([found, found[-1:]])


class LinearOperatorDiag(_OfTensor):
    """A diagonal matrix.

    Args:
        diag: (..., n).
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.
    """

    axes = 1

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        with in_graph():
            given = symbol(diag)
        if is_self_adjoint is None and not given.dtype.is_complex:
            is_self_adjoint = True
        super().__init__(
            given, name, (is_non_singular, is_self_adjoint, is_positive_definite, True)
        )

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._tensor

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return x * (conjugate(self._tensor) if adjoint else self._tensor)[..., None]

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return rhs / (conjugate(self._tensor) if adjoint else self._tensor)[..., None]

    def _dense(self) -> Any:
        return lookup("MatrixDiag")(self._tensor)

    def _diagonal(self) -> Any:
        return lookup("Identity")(self._tensor)

    def _determinant(self) -> Any:
        return ops.prod(self._tensor, -1)

    def _log_abs_determinant(self) -> Any:
        return ops.sum(ops.log(ops.abs(self._tensor)), -1)

    def inverse(self, name: str | None = None) -> LinearOperator:
        """The reciprocals."""
        self._need_regular("inverse")
        with in_graph():
            return LinearOperatorDiag(1.0 / self._tensor, True, self.is_self_adjoint)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(ops.sqrt(self._tensor), is_non_singular=True)


class LinearOperatorFullMatrix(_OfTensor):
    """A matrix that is given.

    Args:
        matrix: (..., rows, columns).
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.
    """

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        facts = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(matrix, name, facts)

    def _shape(self) -> TensorShape:
        return self._tensor.shape

    def _dense(self) -> Any:
        return lookup("Identity")(self._tensor)


class LinearOperatorLowerTriangular(_OfTensor):
    """The lower triangle of a matrix; what stands above the diagonal counts as 0.

    Args:
        tril: (..., n, n).
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        super().__init__(tril, name, (is_non_singular, is_self_adjoint, is_positive_definite, True))

    def _shape(self) -> TensorShape:
        return self._tensor.shape

    def _dense(self) -> Any:
        return matrix_band_part(self._tensor, -1, 0)

    def _diagonal(self) -> Any:
        return ops.diagonal(self._tensor, axis1=-2, axis2=-1)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        a, b = alike(self._tensor, rhs)
        return matrix_triangular_solve(a, b, lower=True, adjoint=adjoint)

    def _determinant(self) -> Any:
        return ops.prod(self._diagonal(), -1)

    def _log_abs_determinant(self) -> Any:
        return ops.sum(ops.log(ops.abs(self._diagonal())), -1)


class LinearOperatorHouseholder(_OfTensor):
    """The reflection at the plane across a vector: I - 2 v v^H / |v|^2.

    Args:
        reflection_axis: v, (..., n).
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 5.1.2.
    """

    axes = 1

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        if is_positive_definite or is_non_singular is False or is_self_adjoint is False:
            raise ValueError(f"{name}: a reflection is regular, self-adjoint and not definite")
        super().__init__(reflection_axis, name, (True, True, False, True))

    @property
    def reflection_axis(self) -> Any:
        """The vector."""
        return self._tensor

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        v = self._tensor / ops.sqrt(ops.sum(self._tensor * conjugate(self._tensor), -1, True))
        column = v[..., None]
        return x - 2.0 * column * ops.sum(conjugate(column) * x, -2, True)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._matmul(rhs, adjoint)

    def _dense(self) -> Any:
        n = self._tensor.shape[-1]
        size = self.domain_dimension_tensor() if n is None else n
        return self._matmul(unit_matrix(size, dtype=self.dtype), False)

    def _diagonal(self) -> Any:
        square = self._tensor * conjugate(self._tensor)
        return 1.0 - 2.0 * square / ops.sum(square, -1, True)

    def _determinant(self) -> Any:
        return -ops.ones_like(self._tensor[..., 0])

    def _log_abs_determinant(self) -> Any:
        return ops.zeros_like(ops.abs(self._tensor[..., 0]))
