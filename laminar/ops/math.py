"""Segments, the greatest k, special functions, distances; complex numbers as pairs."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import INTEGER, GraphTensor, Tensor, int32
from laminar.engine.ops.array import axes, segment, sort
from laminar.engine.ops.linalg import solve
from laminar.engine.ops.math import arithmetic, complex_numbers, reduce
from laminar.engine.ops.math import elementary as engine
from laminar.engine.ops.math.cast import cast

from ..typing import AxisLike, TensorLike
from .arguments import floating, floating_pair, known_rank, tensor, whole
from .recording import public

__all__ = [
    "cdist",
    "erf",
    "erfc",
    "erfinv",
    "in_top_k",
    "logdet",
    "logsumexp",
    "polar",
    "psnr",
    "rsqrt",
    "segment_max",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "top_k",
    "view_as_complex",
    "view_as_real",
]


@public
def rsqrt(x: TensorLike) -> Tensor:
    """1 / sqrt(x).

    Examples:
        >>> ops.rsqrt([4.0, 16.0])
        Tensor([0.5 , 0.25], shape=(2,), dtype=float32)
    """
    return engine.rsqrt(floating(x))


@public
def erf(x: TensorLike) -> Tensor:
    """The error function: 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x.

    Examples:
        >>> ops.erf([0.0, 1.0])
        Tensor([0.    , 0.8427], shape=(2,), dtype=float32)
    """
    return engine.erf(floating(x))


@public
def erfc(x: TensorLike) -> Tensor:
    """1 - erf(x), exact where it is small.

    Examples:
        >>> ops.erfc([0.0, 1.0])
        Tensor([1.    , 0.1573], shape=(2,), dtype=float32)
    """
    return engine.erfc(floating(x))


@public
def erfinv(x: TensorLike) -> Tensor:
    """The y for which erf(y) = x.

    Examples:
        >>> ops.erfinv([0.0, 0.5])
        Tensor([0.    , 0.4769], shape=(2,), dtype=float32)
    """
    return engine.erfinv(floating(x))


@public
def logsumexp(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over one axis, several, or (None) all; without overflow.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.logsumexp([0.0, 0.0, 0.0])
        Tensor(1.0986, shape=(), dtype=float32)
    """
    return reduce.logsumexp(floating(x), axis, keepdims)


@public
def logdet(x: TensorLike) -> Tensor:
    """The logarithm of the size of the determinant of (..., n, n).

    Returns:
        The shape without the last two axes; -inf for a singular matrix.

    Raises:
        ShapeError: the matrices are not square.

    Examples:
        >>> ops.logdet([[2.0, 0.0], [0.0, 4.0]])
        Tensor(2.0794, shape=(), dtype=float32)
    """
    return solve.slogdet(floating(x))[1]


@public
def top_k(x: TensorLike, k: int | Tensor, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k greatest elements along the last axis, and their int32 indices.

    Args:
        x: (..., n).
        k: how many, at most n; a number, or a scalar tensor.
        sorted: from the greatest down; otherwise in the order of `x`.

    Returns:
        Values and indices, both (..., k).

    Raises:
        ShapeError: the last axis has less than k elements.

    Examples:
        >>> values, indices = ops.top_k([3, 9, 5], k=2)
        >>> values, indices
        (Tensor([9, 5], shape=(2,), dtype=int32), Tensor([1, 2], shape=(2,), dtype=int32))
    """
    return sort.top_k(tensor(x), k if isinstance(k, Tensor) else whole("top_k", "k", k), sorted)


@public
def in_top_k(targets: TensorLike, predictions: TensorLike, k: int) -> Tensor:
    """Whether the prediction for the target is among the k greatest; ties count.

    Args:
        targets: (...), class numbers.
        predictions: (..., classes).
        k: how many predictions count.

    Returns:
        Bools of the shape of `targets`; False where the class does not exist.

    Raises:
        ShapeError: `targets` has not the shape of `predictions` without the last axis.

    Examples:
        >>> ops.in_top_k([1, 0], [[0.1, 0.6, 0.3], [0.1, 0.6, 0.3]], k=2)
        Tensor([ True, False], shape=(2,), dtype=bool)
    """
    labels = tensor(targets)
    labels = labels if labels.dtype in INTEGER else cast(labels, int32)
    return sort.in_top_k(labels, floating(predictions), whole("in_top_k", "k", k))


def _segments(
    op: Any, data: TensorLike, segment_ids: TensorLike, num_segments: int | None, sorted: bool
) -> Tensor:
    ids = tensor(segment_ids)
    if isinstance(ids, GraphTensor) and ids.dtype.is_floating:
        ids = cast(ids, int32)  # a KerasTensor of which only the shape was said
    if ids.dtype not in INTEGER:
        raise DTypeError(f"{op.__name__}: segment_ids must be whole numbers, got {ids.spec}")
    found: Tensor = op(tensor(data), ids, num_segments, is_sorted=sorted)
    return found


@public
def segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The sum of the slices of `data` with each segment number.

    Args:
        data: (n, ...).
        segment_ids: (n,), which segment each slice belongs to; numbers out of range to none.
        num_segments: how many segments there are, by default one more than the greatest number.
        sorted: whether the numbers are known to rise, which saves sorting them.

    Returns:
        (num_segments, ...); 0 for a segment without slices.

    Raises:
        DTypeError: the segment numbers are no integers.
        ShapeError: there are not as many numbers as slices.

    Examples:
        >>> ops.segment_sum([1, 5, 2, 4], [0, 0, 1, 1])
        Tensor([6, 6], shape=(2,), dtype=int32)
    """
    return _segments(segment.segment_sum, data, segment_ids, num_segments, sorted)


@public
def segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The product of the slices with each segment number, 1 for none; see `segment_sum`.

    Args:
        data: (n, ...).
        segment_ids: (n,), which segment each slice belongs to; numbers out of range to none.
        num_segments: how many segments there are, by default one more than the greatest number.
        sorted: whether the numbers are known to rise, which saves sorting them.

    Returns:
        (num_segments, ...), of the type of `data`.

    Raises:
        DTypeError: the segment numbers are no integers.
        ShapeError: there are not as many numbers as slices.

    Examples:
        >>> ops.segment_prod([1, 5, 2, 4], [0, 0, 1, 1])
        Tensor([5, 8], shape=(2,), dtype=int32)
    """
    return _segments(segment.segment_prod, data, segment_ids, num_segments, sorted)


@public
def segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The greatest of the slices with each segment number; see `segment_sum`.

    The least number of the type (minus infinity) for a segment without slices.

    Args:
        data: (n, ...).
        segment_ids: (n,), which segment each slice belongs to; numbers out of range to none.
        num_segments: how many segments there are, by default one more than the greatest number.
        sorted: whether the numbers are known to rise, which saves sorting them.

    Returns:
        (num_segments, ...), of the type of `data`.

    Raises:
        DTypeError: the segment numbers are no integers.
        ShapeError: there are not as many numbers as slices.

    Examples:
        >>> ops.segment_max([1, 5, 2, 4], [0, 0, 1, 1])
        Tensor([5, 4], shape=(2,), dtype=int32)
    """
    return _segments(segment.segment_max, data, segment_ids, num_segments, sorted)


@public
def segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The least of the slices with each segment number; see `segment_sum`.

    The greatest number of the type (infinity) for a segment without slices.

    Args:
        data: (n, ...).
        segment_ids: (n,), which segment each slice belongs to; numbers out of range to none.
        num_segments: how many segments there are, by default one more than the greatest number.
        sorted: whether the numbers are known to rise, which saves sorting them.

    Returns:
        (num_segments, ...), of the type of `data`.

    Raises:
        DTypeError: the segment numbers are no integers.
        ShapeError: there are not as many numbers as slices.

    Examples:
        >>> ops.segment_min([1, 5, 2, 4], [0, 0, 1, 1])
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    return _segments(segment.segment_min, data, segment_ids, num_segments, sorted)


@public
def cdist(x: TensorLike, y: TensorLike) -> Tensor:
    """The Euclidean distance of each row of `x` from each row of `y`.

    Args:
        x: (..., m, d).
        y: (..., n, d).

    Returns:
        (..., m, n).

    Raises:
        ShapeError: less than two axes.

    Examples:
        >>> ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]])
        Tensor([[5., 1.]], shape=(1, 2), dtype=float32)
    """
    a, b = floating_pair(x, y)
    if min(known_rank("cdist", a), known_rank("cdist", b)) < 2:
        raise ShapeError(f"cdist: expected at least two axes each, got {a.spec} and {b.spec}")
    difference = arithmetic.subtract(axes.expand_dims(a, -2), axes.expand_dims(b, -3))
    return reduce.euclidean_norm(difference, -1)


@public
def view_as_complex(x: TensorLike) -> Tensor:
    """Complex numbers from a last axis of two: real and imaginary part.

    Args:
        x: (..., 2), float32 or float64; integers become the default float.

    Returns:
        (...), complex64 or complex128.

    Raises:
        ShapeError: the last axis has another size.
        DTypeError: `x` has a half type.

    Examples:
        >>> ops.view_as_complex([[1.0, 2.0]])
        Tensor([1.+2.j], shape=(1,), dtype=complex64)
    """
    return complex_numbers.view_as_complex(floating(x))


@public
def view_as_real(x: TensorLike) -> Tensor:
    """Real and imaginary parts of complex numbers, as a new last axis of two.

    Args:
        x: (...), complex64 or complex128.

    Returns:
        (..., 2), float32 or float64.

    Raises:
        DTypeError: `x` is not complex.

    Examples:
        >>> ops.view_as_real([1 + 2j])
        Tensor([[1., 2.]], shape=(1, 2), dtype=float32)
    """
    return complex_numbers.view_as_real(tensor(x))


@public
def polar(abs_: TensorLike, angle: TensorLike) -> Tensor:
    """The complex number of a given size and angle.

    Args:
        abs_: the size, float32 or float64; integers become the default float.
        angle: in radians; of a shape that broadcasts against `abs_`.

    Returns:
        abs_ (cos(angle) + i sin(angle)), complex64 or complex128.

    Raises:
        DTypeError: the common type is a half type.

    Examples:
        >>> ops.polar([2.0], [np.pi / 2])
        Tensor([-0.+2.j], shape=(1,), dtype=complex64)
    """
    size, turn = floating_pair(abs_, angle)
    return complex_numbers.complex_of(
        arithmetic.multiply(size, engine.cos(turn)), arithmetic.multiply(size, engine.sin(turn))
    )


@public
def psnr(x1: TensorLike, x2: TensorLike, max_val: float) -> Tensor:
    """The peak signal-to-noise ratio: 20 log10(max_val) - 10 log10(mean((x1 - x2)**2)).

    Args:
        x1: any tensor.
        x2: a tensor of the same shape.
        max_val: the range of the values, more than 0.

    Returns:
        A scalar; infinite where the two are equal.

    Raises:
        InvalidArgumentError: `max_val` is not positive.
        ShapeError: the shapes differ.

    Examples:
        >>> ops.psnr(np.zeros((4, 4)), np.full((4, 4), 0.1), max_val=1.0)
        Tensor(20., shape=(), dtype=float64)
    """
    a, b = floating_pair(x1, x2)
    if not a.shape.is_compatible_with(b.shape):
        raise ShapeError(f"psnr: the shapes differ, {a.spec} and {b.spec}")
    if max_val <= 0:
        raise InvalidArgumentError(f"psnr: max_val must be positive, got {max_val}")
    error = reduce.reduce_mean(arithmetic.square(arithmetic.subtract(a, b)))
    peak = engine.log10(tensor(float(max_val), a.dtype))
    return arithmetic.subtract(
        arithmetic.multiply(tensor(20.0, a.dtype), peak),
        arithmetic.multiply(tensor(10.0, a.dtype), engine.log10(error)),
    )
