"""What a layer computes of its input and its large weight: sums of products over shared axes."""

from __future__ import annotations

import math
import string
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from laminar import ops


class Contraction(ABC):
    """y = sum over some axes of x W.

    Attributes:
        summed: the axes of W that are summed over; the others have one place for each output.
        is_matrix: whether it is a product of the rows of x and a matrix, that W is without moving
            anything but by `matrix`.
    """

    summed: tuple[int, ...]
    is_matrix: bool

    @abstractmethod
    def __call__(self, x: Any, w: Any) -> Any:
        """y."""

    @abstractmethod
    def backward(self, dy: Any, w: Any) -> Any:
        """The gradient of x, for a gradient of y; only where `is_matrix`."""

    @abstractmethod
    def summed_inputs(self, x: Any) -> tuple[int, ...]:
        """The axes of x that are summed over."""

    @abstractmethod
    def low_rank(self, x: Any, a: Any, b: Any) -> Any:
        """y for W = A B, where A has the axes of W but for the last one, and that of the rank."""

    # As a product of a matrix

    def rows(self, x: Any) -> Any:
        """x with all that is summed over along the last axis."""
        return x

    def matrix(self, w: Any) -> Any:
        """W as (what is summed over, outputs)."""
        return w

    def outputs(self, y: Any, x: Any) -> Any:
        """The product of `rows(x)` and the matrix as it is given out."""
        return y

    # The scale of W, one number for each output, as layers keep it: to divide outputs by

    @abstractmethod
    def kept_scale(self, scale: Any) -> Any:
        """A scale whose axes are those of W, of size 1 where it sums, as it is kept."""

    @abstractmethod
    def scale_of_weight(self, kept: Any) -> Any:
        """A scale that is kept, as it divides W."""


class MatrixProduct(Contraction):
    """y[..., n] = sum over k of x[..., k] W[k, n]."""

    summed = (0,)
    is_matrix = True

    def __call__(self, x: Any, w: Any) -> Any:
        """y."""
        return ops.matmul(x, w)

    def backward(self, dy: Any, w: Any) -> Any:
        """dy W'."""
        return ops.matmul(dy, ops.transpose(w))

    def summed_inputs(self, x: Any) -> tuple[int, ...]:
        """The last axis."""
        return (-1,)

    def low_rank(self, x: Any, a: Any, b: Any) -> Any:
        """x A B."""
        return ops.matmul(ops.matmul(x, a), b)

    def kept_scale(self, scale: Any) -> Any:
        """One axis."""
        return ops.squeeze(scale, self.summed)

    def scale_of_weight(self, kept: Any) -> Any:
        """Along the axes of W."""
        return ops.expand_dims(kept, self.summed[0])


class TransposedProduct(MatrixProduct):
    """y[..., n] = sum over k of x[..., k] W[n, k]."""

    summed = (1,)

    def __call__(self, x: Any, w: Any) -> Any:
        """y."""
        return ops.matmul(x, ops.transpose(w))

    def backward(self, dy: Any, w: Any) -> Any:
        """dy W."""
        return ops.matmul(dy, w)

    def low_rank(self, x: Any, a: Any, b: Any) -> Any:
        """x B' A'."""
        return ops.matmul(ops.matmul(x, ops.transpose(b)), ops.transpose(a))

    def matrix(self, w: Any) -> Any:
        """W'."""
        return ops.transpose(w)


class EinsumProduct(Contraction):
    """einsum(equation, x, W).

    Args:
        equation: such as "abc,cde->abde"; dots stand for other axes of x and y.
        dotted: how many.
        shape: of W.
    """

    _spare: ClassVar[str] = string.ascii_letters

    def __init__(self, equation: str, dotted: int, shape: Sequence[int]) -> None:
        equation = equation.replace(" ", "")
        free = "".join(c for c in self._spare if c not in equation)[:dotted]
        left, self._y = equation.replace("...", free).split("->")
        self._x, self._w = left.split(",")
        self._sizes = dict(zip(self._w, shape, strict=True))
        self.summed = tuple(i for i, c in enumerate(self._w) if c not in self._y)
        kept = [c for c in self._x if c not in self._w]
        terms = [c for c in self._w if c not in self._y]
        new = [c for c in self._w if c in self._y]
        self._num_terms = len(terms)
        self.is_matrix = (
            [*self._x] == kept + terms and [*self._w] == terms + new and [*self._y] == kept + new
        )

    @property
    def _equation(self) -> str:
        return f"{self._x},{self._w}->{self._y}"

    def __call__(self, x: Any, w: Any) -> Any:
        """y."""
        return ops.einsum(self._equation, x, w)

    def backward(self, dy: Any, w: Any) -> Any:
        """The product over the axes that W and y share."""
        return ops.einsum(f"{self._y},{self._w}->{self._x}", dy, w)

    def summed_inputs(self, x: Any) -> tuple[int, ...]:
        """The axes that y does not have."""
        return tuple(i for i, c in enumerate(self._x) if c not in self._y)

    def low_rank(self, x: Any, a: Any, b: Any) -> Any:
        """y for W = A B, by way of the rank where that axis is the last one of y."""
        if self._w[-1] == self._y[-1:] and self._w[-1] not in self._x:
            return ops.matmul(ops.einsum(self._equation, x, a), b)
        return self(x, ops.matmul(a, b))

    def rows(self, x: Any) -> Any:
        """x with what is summed over as one axis, the last."""
        shape = ops.shape(x)
        if self._num_terms == 1:
            return x
        return ops.reshape(x, (*shape[: len(shape) - self._num_terms], self._count))

    @property
    def _count(self) -> int:
        """How many terms a sum has."""
        return math.prod(self._sizes[c] for c in self._w if c not in self._y)

    def matrix(self, w: Any) -> Any:
        """W as two axes."""
        return ops.reshape(w, (self._count, -1))

    def outputs(self, y: Any, x: Any) -> Any:
        """y with an axis for each letter."""
        new = [self._sizes[c] for c in self._w if c in self._y]
        if len(new) == 1:
            return y
        return ops.reshape(y, (*ops.shape(y)[:-1], *new))

    def kept_scale(self, scale: Any) -> Any:
        """With the axes of y, of size 1 where W has none."""
        kept = [c for c in self._w if c in self._y]
        order = sorted(range(len(kept)), key=lambda i: self._y.index(kept[i]))
        scale = ops.transpose(ops.squeeze(scale, self.summed), order)
        return ops.reshape(scale, [self._sizes.get(c, 1) for c in self._y])

    def scale_of_weight(self, kept: Any) -> Any:
        """Along the axes of W."""
        ordered = [c for c in self._y if c in self._w]
        scale = ops.reshape(kept, [self._sizes[c] for c in ordered])
        scale = ops.transpose(scale, [ordered.index(c) for c in self._w if c in self._y])
        shape = [self._sizes[c] if c in self._y else 1 for c in self._w]
        return ops.reshape(scale, shape)
