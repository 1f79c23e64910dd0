"""`tf.linalg.LinearOperatorCirculant`, `...Toeplitz`: matrices that are constant along lines."""

from __future__ import annotations

import math
from typing import Any

from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.graph import TensorShape, as_dtype
from laminar.engine.ops.array.gather import gather
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from . import transforms
from .adapting import in_graph
from .linear_operators import LinearOperator, sizes_of
from .values import symbol

_FORWARD = {1: transforms.fft, 2: transforms.fft2d, 3: transforms.fft3d}
_BACK = {1: transforms.ifft, 2: transforms.ifft2d, 3: transforms.ifft3d}


class _Circulant(LinearOperator):
    """F^-1 diag(spectrum) F, of the discrete Fourier transform F over so many axes."""

    depth = 1

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = "complex64",
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        with in_graph():
            self._spectrum = symbol(spectrum)
        rank = self._spectrum.shape.rank
        if rank is None or rank < self.depth or None in self._spectrum.shape[-self.depth :]:
            raise ShapeError(
                f"{type(self).__name__}: expected a spectrum of at least {self.depth} known axes, "
                f"got {self._spectrum.spec}"
            )
        if not self._spectrum.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("a matrix with a real spectrum is self-adjoint")
            is_self_adjoint = True
        super().__init__(
            as_dtype(input_output_dtype), [self._spectrum], is_non_singular, is_self_adjoint,
            is_positive_definite, True, name or type(self).__name__,
        )  # fmt: skip

    @property
    def spectrum(self) -> Any:
        """The eigenvalues."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """Over how many axes the transform goes."""
        return self.depth

    @property
    def block_shape(self) -> TensorShape:
        """The sizes of these axes."""
        return TensorShape(self._spectrum.shape[-self.depth :])

    def _size(self) -> int:
        return math.prod(int(n or 0) for n in self._spectrum.shape[-self.depth :])

    def _shape(self) -> TensorShape:
        n = self._size()
        return TensorShape([*self._spectrum.shape[: -self.depth], n, n])

    def _sizes(self) -> Any:
        lead = sizes_of(self._spectrum)[: -self.depth]
        return ops.concatenate([lead, symbol([self._size()] * 2, "int32")])

    def _complex(self) -> Any:
        kind = "complex128" if str(self.dtype) in ("float64", "complex128") else "complex64"
        return cast(self._spectrum, kind)

    def _applied(self, x: Any, spectrum: Any) -> Any:
        block = list(self._spectrum.shape[-self.depth :])
        columns = ops.swapaxes(cast(x, spectrum.dtype), -1, -2)  # (..., k, n)
        lead = [-1 if n is None else n for n in columns.shape[:-1]]
        boxes = lookup("Reshape")(columns, shape=(*lead, *block))
        factor = ops.expand_dims(spectrum, -self.depth - 1)
        done = _BACK[self.depth](_FORWARD[self.depth](boxes) * factor)
        sizes = [-1 if n is None else n for n in done.shape[: -self.depth]]
        rows = lookup("Reshape")(done, shape=(*sizes, self._size()))
        found = ops.swapaxes(rows, -1, -2)
        return cast(found if self.dtype.is_complex else ops.real(found), self.dtype)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        spectrum = self._complex()
        return self._applied(x, ops.conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        spectrum = self._complex()
        return self._applied(rhs, 1.0 / (ops.conj(spectrum) if adjoint else spectrum))

    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-self.depth, 0))

    def _diagonal(self) -> Any:
        mean = ops.sum(self._complex(), self._axes()) / float(self._size())
        own = cast(mean if self.dtype.is_complex else ops.real(mean), self.dtype)
        shape = [*list(own.shape), self._size()]
        return ops.broadcast_to(own[..., None], shape)

    def _determinant(self) -> Any:
        found = ops.prod(self._complex(), self._axes())
        return cast(found if self.dtype.is_complex else ops.real(found), self.dtype)

    def _log_abs_determinant(self) -> Any:
        found = ops.sum(ops.log(ops.abs(self._complex())), self._axes())
        return cast(found, self.dtype)

    def convolution_kernel(self, name: str | None = None) -> Any:
        """What a vector is convolved with: the inverse transform of the spectrum."""
        with in_graph():
            found = _BACK[self.depth](self._complex())
            return cast(found if self.dtype.is_complex else ops.real(found), self.dtype)


class LinearOperatorCirculant(_Circulant):
    """A matrix whose rows are each the one above, turned by one: a convolution that wraps around.

    Args:
        spectrum: its eigenvalues, (..., n): the transform of its first column.
        input_output_dtype: element type of what it is multiplied with, and of results.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 4.8.
    """


class LinearOperatorCirculant2D(_Circulant):
    """A convolution of images that wraps around; see `LinearOperatorCirculant`."""

    depth = 2


class LinearOperatorCirculant3D(_Circulant):
    """A convolution of volumes that wraps around; see `LinearOperatorCirculant`."""

    depth = 3


class LinearOperatorToeplitz(LinearOperator):
    """A matrix that is constant along each diagonal.

    Args:
        col: its first column, (..., n).
        row: its first row, (..., n); the first element is that of the column.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        name: of it.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 4.7.
    """

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        with in_graph():
            self._col, self._row = symbol(col), symbol(row)
        for what, x in (("col", self._col), ("row", self._row)):
            if not x.shape.rank or x.shape[-1] is None:
                raise ShapeError(f"{name}: {what} has a last axis of known size, got {x.spec}")
        super().__init__(
            self._col.dtype, [self._col, self._row], is_non_singular, is_self_adjoint,
            is_positive_definite, is_square, name,
        )  # fmt: skip

    @property
    def col(self) -> Any:
        """The first column."""
        return self._col

    @property
    def row(self) -> Any:
        """The first row."""
        return self._row

    def _lengths(self) -> tuple[int, int]:
        return int(self._col.shape[-1] or 0), int(self._row.shape[-1] or 0)

    def _shape(self) -> TensorShape:
        return TensorShape([*self._col.shape, self._row.shape[-1]])

    def _sizes(self) -> Any:
        return ops.concatenate([sizes_of(self._col), sizes_of(self._row)[-1:]])

    def _dense(self) -> Any:
        rows, columns = self._lengths()
        # The last column of the matrix, from its last row upwards, and the first row onwards.
        line = ops.concatenate([ops.flip(self._col, -1), self._row[..., 1:]], -1)
        places = ops.arange(columns)[None, :] + (rows - 1 - ops.arange(rows))[:, None]
        return gather(line, places, axis=len(line.shape) - 1)

    def _diagonal(self) -> Any:
        size = min(self._lengths())
        return ops.broadcast_to(self._col[..., :1], [*self._col.shape[:-1], size])
