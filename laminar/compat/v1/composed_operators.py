"""`tf.linalg.LinearOperator...` of other operators: products, blocks, adjoints, inverses, ..."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.graph import TensorShape, broadcast_shapes
from laminar.engine.ops.core.registry import lookup

from .adapting import in_graph
from .linear_operators import (
    LinearOperator,
    adjoint_of,
    alike,
    all_true,
    conjugate,
    same_type,
    sizes_of,
)
from .simple_operators import LinearOperatorDiag
from .values import dims_of, symbol


def _batch(who: str, operators: Any) -> list[Any]:
    shapes = [x.batch_shape for x in operators]
    return list(broadcast_shapes(who, *shapes))


class _OfOperators(LinearOperator):
    """Made of several operators of one type."""

    def __init__(self, operators: Any, facts: dict[str, Any], name: str | None) -> None:
        kind = type(self).__name__
        self._operators = same_type(kind, operators)
        own = name or f"{kind}_{'_'.join(x.name for x in self._operators)}"
        parents = [p for x in self._operators for p in x.graph_parents]
        super().__init__(self._operators[0].dtype, parents, name=own, **facts)

    @property
    def operators(self) -> list[LinearOperator]:
        """What it is made of."""
        return self._operators

    def _sizes(self) -> Any:
        return sizes_of(self._dense())


def _facts(
    regular: bool | None, own_adjoint: bool | None, definite: bool | None, square: bool | None
) -> dict[str, Any]:
    return {
        "is_non_singular": regular,
        "is_self_adjoint": own_adjoint,
        "is_positive_definite": definite,
        "is_square": square,
    }


class LinearOperatorComposition(_OfOperators):
    """The product of operators.

    Args:
        operators: of which the last is applied first.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.
    """

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if is_non_singular is None:
            is_non_singular = all_true(x.is_non_singular for x in operators)
        facts = _facts(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(operators, facts, name)

    def _shape(self) -> TensorShape:
        first, last = self._operators[0], self._operators[-1]
        batch = _batch(self.name, self._operators)
        return TensorShape([*batch, first.range_dimension, last.domain_dimension])

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        for own in self._operators if adjoint else reversed(self._operators):
            x = own.matmul(x, adjoint)
        return x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        for own in reversed(self._operators) if adjoint else self._operators:
            rhs = own.solve(rhs, adjoint)
        return rhs

    def _dense(self) -> Any:
        return self._matmul_all()

    def _matmul_all(self) -> Any:
        found = self._operators[-1].to_dense()
        for own in reversed(self._operators[:-1]):
            found = own.matmul(found)
        return found

    def _determinant(self) -> Any:
        if not all(x.is_square for x in self._operators):
            return super()._determinant()
        found = self._operators[0].determinant()
        for own in self._operators[1:]:
            found = found * own.determinant()
        return found

    def _log_abs_determinant(self) -> Any:
        if not all(x.is_square for x in self._operators):
            return super()._log_abs_determinant()
        found = self._operators[0].log_abs_determinant()
        for own in self._operators[1:]:
            found = found + own.log_abs_determinant()
        return found


class LinearOperatorBlockDiag(_OfOperators):
    """Operators along a diagonal, zeros elsewhere.

    Args:
        operators: the blocks.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`;
            what holds of all blocks holds of it.
        name: of it.
    """

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        given = list(operators)
        facts = _facts(
            all_true(x.is_non_singular for x in given)
            if is_non_singular is None
            else is_non_singular,
            all_true(x.is_self_adjoint for x in given)
            if is_self_adjoint is None
            else is_self_adjoint,
            all_true(x.is_positive_definite for x in given)
            if is_positive_definite is None
            else is_positive_definite,
            is_square,
        )
        super().__init__(given, facts, name)

    def _shape(self) -> TensorShape:
        sides = []
        for axis in (-2, -1):
            sizes: list[Any] = [x.shape[axis] for x in self._operators]
            sides.append(None if None in sizes else sum(sizes))
        return TensorShape([*_batch(self.name, self._operators), *sides])

    def _parts(self, x: Any, axis: int) -> list[Any]:
        sizes: list[Any] = [own.shape[axis] for own in self._operators]
        if None in sizes:
            sizes = [own.shape_tensor()[axis] for own in self._operators]
        found: list[Any] = []
        begin: Any = 0
        for size in sizes:
            found.append(x[..., begin : begin + size, :])
            begin = begin + size
        return found

    def _joined(self, parts: list[Any]) -> Any:
        lead = [p.shape[:-2] for p in parts]
        if len({tuple(s) for s in lead}) > 1:
            batch = list(broadcast_shapes(self.name, *(TensorShape(s) for s in lead)))
            parts = [ops.broadcast_to(p, [*batch, *p.shape[-2:]]) for p in parts]
        return ops.concatenate(parts, -2)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        parts = self._parts(x, -2 if adjoint else -1)
        each = zip(self._operators, parts, strict=True)
        return self._joined([own.matmul(part, adjoint) for own, part in each])

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        parts = self._parts(rhs, -1 if adjoint else -2)
        each = zip(self._operators, parts, strict=True)
        return self._joined([own.solve(part, adjoint) for own, part in each])

    def _diagonal(self) -> Any:
        parts = [x.diag_part()[..., None] for x in self._operators]
        return self._joined(parts)[..., 0]

    def _determinant(self) -> Any:
        found = self._operators[0].determinant()
        for own in self._operators[1:]:
            found = found * own.determinant()
        return found

    def _log_abs_determinant(self) -> Any:
        found = self._operators[0].log_abs_determinant()
        for own in self._operators[1:]:
            found = found + own.log_abs_determinant()
        return found

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorBlockDiag([x.cholesky() for x in self._operators])


class LinearOperatorKronecker(_OfOperators):
    """The Kronecker product of operators: each element of one times the next.

    Args:
        operators: from the outermost on.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.
    """

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        given = list(operators)
        if is_non_singular is None:
            is_non_singular = all_true(x.is_non_singular for x in given)
        if is_self_adjoint is None:
            is_self_adjoint = all_true(x.is_self_adjoint for x in given)
        facts = _facts(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(given, facts, name)

    def _shape(self) -> TensorShape:
        sides = []
        for axis in (-2, -1):
            product: Any = 1
            for x in self._operators:
                size = x.shape[axis]
                product = None if None in (size, product) else product * size
            sides.append(product)
        return TensorShape([*_batch(self.name, self._operators), *sides])

    def _dense(self) -> Any:
        found = self._operators[0].to_dense()
        for own in self._operators[1:]:
            other = own.to_dense()
            wide = found[..., :, None, :, None] * other[..., None, :, None, :]
            sizes = dims_of(wide)
            rows, columns = sizes[-4] * sizes[-3], sizes[-2] * sizes[-1]
            found = ops.reshape(wide, [*sizes[:-4], rows, columns])
        return found

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        inverse = LinearOperatorKronecker([x.inverse() for x in self._operators])
        dense = adjoint_of(inverse.to_dense()) if adjoint else inverse.to_dense()
        a, b = alike(dense, rhs)
        return ops.matmul(a, b)

    def _exponents(self) -> list[Any]:
        """How often the determinant of each is a factor: the whole size over its own."""
        if not all(x.is_square and x.domain_dimension for x in self._operators):
            raise NotImplementedError(f"{self.name}: the operators must be square, and known so")
        whole = self.domain_dimension
        return [whole // x.domain_dimension for x in self._operators]

    def _determinant(self) -> Any:
        found: Any = 1.0
        for own, times in zip(self._operators, self._exponents(), strict=True):
            found = found * ops.power(own.determinant(), float(times))
        return found

    def _log_abs_determinant(self) -> Any:
        found: Any = 0.0
        for own, times in zip(self._operators, self._exponents(), strict=True):
            found = found + own.log_abs_determinant() * float(times)
        return found

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorKronecker([x.cholesky() for x in self._operators])


class _OfOne(LinearOperator):
    """Made of one other operator."""

    def __init__(self, operator: LinearOperator, facts: dict[str, Any], name: str) -> None:
        self._operator = operator
        super().__init__(operator.dtype, operator.graph_parents, name=name, **facts)

    @property
    def operator(self) -> LinearOperator:
        """What it is made of."""
        return self._operator


class LinearOperatorAdjoint(_OfOne):
    """The adjoint of an operator.

    Args:
        operator: the other one.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: by default what holds of
            the other.
        name: of it.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        given = _facts(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        facts = {k: getattr(operator, k) if v is None else v for k, v in given.items()}
        super().__init__(operator, facts, name or f"{operator.name}_adjoint")

    def _shape(self) -> TensorShape:
        *batch, rows, columns = self._operator.shape
        return TensorShape([*batch, columns, rows])

    def _sizes(self) -> Any:
        sizes = self._operator.shape_tensor()
        return ops.concatenate([sizes[:-2], sizes[-1:], sizes[-2:-1]])

    def adjoint(self, name: str | None = None) -> LinearOperator:
        """The operator that this is the adjoint of."""
        return self._operator

    def _dense(self) -> Any:
        return adjoint_of(self._operator.to_dense())

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._operator.matmul(x, not adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._operator.solve(rhs, not adjoint)

    def _diagonal(self) -> Any:
        return conjugate(self._operator.diag_part())

    def _determinant(self) -> Any:
        return conjugate(self._operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()


class LinearOperatorInversion(_OfOne):
    """The inverse of an operator.

    Args:
        operator: the other one, which is not singular.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: by default what holds of
            the other.
        name: of it.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if operator.is_square is False or False in (operator.is_non_singular, is_non_singular):
            raise ValueError(f"{operator.name} is singular, or not square: it has no inverse")
        given = _facts(True, is_self_adjoint, is_positive_definite, is_square)
        facts = {k: getattr(operator, k) if v is None else v for k, v in given.items()}
        super().__init__(operator, facts, name or f"{operator.name}_inv")

    def _shape(self) -> TensorShape:
        return self._operator.shape

    def _sizes(self) -> Any:
        return self._operator.shape_tensor()

    def inverse(self, name: str | None = None) -> LinearOperator:
        """The operator that this is the inverse of."""
        return self._operator

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._operator.solve(x, adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._operator.matmul(rhs, adjoint)

    def _determinant(self) -> Any:
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator.log_abs_determinant()


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D V^H, of an operator L and a product of low rank.

    Args:
        base_operator: L, which is easy to solve with.
        u: (..., n, k).
        diag_update: the diagonal of D, (..., k); ones without it.
        v: (..., n, k); `u` without it.
        is_diag_update_positive: whether D is known to be positive.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.

    Source: the matrix inversion and determinant lemmas: Golub and Van Loan, "Matrix Computations",
        4th ed., 2013, section 2.1.4.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        with in_graph():
            self._u = symbol(u, base_operator.dtype)
            self._v = self._u if v is None else symbol(v, base_operator.dtype)
            if diag_update is None:
                self._diag = lookup("OnesLike")(self._u[..., 0, :])
            else:
                self._diag = symbol(diag_update, base_operator.dtype)
        if v is None and base_operator.is_self_adjoint and is_self_adjoint is None:
            is_self_adjoint = True
        positive = diag_update is None or is_diag_update_positive
        if is_self_adjoint and base_operator.is_positive_definite and positive and v is None:
            is_positive_definite = True if is_positive_definite is None else is_positive_definite
        self._base = base_operator
        parents = [*base_operator.graph_parents, self._u, self._v, self._diag]
        super().__init__(
            base_operator.dtype, parents, is_non_singular, is_self_adjoint, is_positive_definite,
            is_square, name,
        )  # fmt: skip

    @property
    def base_operator(self) -> LinearOperator:
        """L."""
        return self._base

    @property
    def u(self) -> Any:
        """U."""
        return self._u

    @property
    def v(self) -> Any:
        """V."""
        return self._v

    @property
    def diag_operator(self) -> LinearOperator:
        """D."""
        return LinearOperatorDiag(self._diag)

    def _shape(self) -> TensorShape:
        lead = broadcast_shapes(self.name, self._base.batch_shape, TensorShape(self._u.shape[:-2]))
        return TensorShape([*lead, *self._base.shape[-2:]])

    def _sizes(self) -> Any:
        return sizes_of(self._dense())

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        diag = conjugate(self._diag) if adjoint else self._diag
        inner = diag[..., None] * ops.matmul(*alike(adjoint_of(right), x))
        return self._base.matmul(x, adjoint) + ops.matmul(*alike(left, inner))

    def _dense(self) -> Any:
        product = ops.matmul(self._u * self._diag[..., None, :], adjoint_of(self._v))
        return self._base.to_dense() + product

    def _capacitance(self) -> Any:
        """D^-1 + V^H L^-1 U."""
        inner = self._base.solve(self._u)
        return lookup("MatrixDiag")(1.0 / self._diag) + ops.matmul(
            *alike(adjoint_of(self._v), inner)
        )

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        middle = adjoint_of(self._capacitance()) if adjoint else self._capacitance()
        first = self._base.solve(rhs, adjoint)
        inner = ops.matmul(*alike(adjoint_of(right), first))
        a, b = alike(middle, inner)
        correction = ops.matmul(*alike(left, ops.solve(a, b)))
        return first - self._base.solve(correction, adjoint)

    def _determinant(self) -> Any:
        own = ops.det(self._capacitance()) * ops.prod(self._diag, -1)
        return own * self._base.determinant()

    def _log_abs_determinant(self) -> Any:
        own = ops.slogdet(self._capacitance())[1] + ops.sum(ops.log(ops.abs(self._diag)), -1)
        return own + self._base.log_abs_determinant()
