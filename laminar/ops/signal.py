"""Fourier transforms; complex numbers are pairs (real part, imaginary part) of tensors."""

from __future__ import annotations

import math
from typing import Any

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, float32, float64
from laminar.engine.ops.array import axes, creation, padding
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.segment import segment_sum
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.core.basic import ones_like
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math import fft as engine
from laminar.engine.ops.math.complex_numbers import complex_of, imag, real
from laminar.engine.ops.math.elementary import cos

from ..typing import TensorLike
from .arguments import floating, known_rank, known_size, tensor
from .layout import sizes
from .patches import extract_sequences
from .recording import public

__all__ = ["extract_sequences", "fft", "fft2", "ifft2", "irfft", "istft", "rfft", "stft"]

_FLOATS = (float32, float64)


def _complex(who: str, x: TensorLike) -> Tensor:
    """The complex numbers that a pair of tensors stands for."""
    if not isinstance(x, tuple | list) or len(x) != 2:
        raise InvalidArgumentError(
            f"{who}: expected a pair (real part, imaginary part), got {type(x).__name__}"
        )
    a, b = (tensor(part) for part in x)
    if a.dtype not in _FLOATS or b.dtype != a.dtype:
        raise DTypeError(f"{who}: both parts must be float32 or float64, got {a.spec}, {b.spec}")
    if not a.shape.is_compatible_with(b.shape):
        raise ShapeError(f"{who}: the parts differ in shape, {a.spec} and {b.spec}")
    return complex_of(a, b)


def _parts(z: Tensor) -> tuple[Tensor, Tensor]:
    return real(z), imag(z)


def _real(who: str, x: TensorLike) -> Tensor:
    found = floating(x)
    if found.dtype not in _FLOATS:
        raise DTypeError(f"{who}: expected float32 or float64, got {found.spec}")
    return found


def _with_last(x: Tensor, size: int) -> Tensor:
    """`x` with its last axis cut, or filled up with zeros, to `size`."""
    if x.shape[-1] == size:
        return x
    missing = size if x.shape[-1] is None else max(0, size - x.shape[-1])
    x = padding.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return get_item(x, (..., slice(0, size)))


@public
def fft(x: TensorLike) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform over the last axis, of a pair and as a pair.

    Examples:
        >>> real, imaginary = ops.fft(([1.0, 2.0, 3.0, 4.0], [0.0] * 4))
        >>> real
        Tensor([10., -2., -2., -2.], shape=(4,), dtype=float32)
        >>> imaginary
        Tensor([ 0.,  2.,  0., -2.], shape=(4,), dtype=float32)
    """
    return _parts(engine.fft(_complex("fft", x)))


@public
def fft2(x: TensorLike) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform over the last two axes, of a pair and as a pair.

    Examples:
        >>> real, imaginary = ops.fft2(([[1.0, 2.0], [3.0, 4.0]], np.zeros((2, 2), "float32")))
        >>> real
        Tensor([[10., -2.],
                [-4.,  0.]], shape=(2, 2), dtype=float32)
    """
    return _parts(engine.fft(_complex("fft2", x), 2))


@public
def ifft2(x: TensorLike) -> tuple[Tensor, Tensor]:
    """The inverse of `fft2`, of a pair and as a pair.

    Examples:
        >>> pair = ops.fft2(([[1.0, 2.0], [3.0, 4.0]], np.zeros((2, 2), "float32")))
        >>> ops.ifft2(pair)[0]
        Tensor([[1., 2.],
                [3., 4.]], shape=(2, 2), dtype=float32)
    """
    return _parts(engine.ifft(_complex("ifft2", x), 2))


@public
def rfft(x: TensorLike, fft_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The first half of the transform of real numbers over the last axis, as a pair.

    Args:
        x: (..., n).
        fft_length: cuts or fills up the axis first, by default n.

    Returns:
        Real and imaginary parts, (..., fft_length // 2 + 1) each.

    Examples:
        >>> real, imaginary = ops.rfft([1.0, 2.0, 3.0, 4.0])
        >>> real
        Tensor([10., -2., -2.], shape=(3,), dtype=float32)
        >>> imaginary
        Tensor([0., 2., 0.], shape=(3,), dtype=float32)
    """
    x = _real("rfft", x)
    return _parts(engine.rfft(x if fft_length is None else _with_last(x, fft_length)))


@public
def irfft(x: TensorLike, fft_length: int | None = None) -> Tensor:
    """The real numbers whose transform begins with the pair `x`.

    Args:
        x: real and imaginary parts, (..., n // 2 + 1) each.
        fft_length: n, by default 2 * (bins - 1); the bins are cut or filled up to fit.

    Returns:
        (..., n).

    Raises:
        InvalidArgumentError: `x` is no pair.

    Examples:
        >>> ops.irfft(ops.rfft([1.0, 2.0, 3.0, 4.0]))
        Tensor([1., 2., 3., 4.], shape=(4,), dtype=float32)
    """
    z = _complex("irfft", x)
    if fft_length is None:
        return engine.irfft(z)
    return engine.irfft(_padded_bins(z, fft_length // 2 + 1), fft_length)


def _padded_bins(z: Tensor, size: int) -> Tensor:
    return z if z.shape[-1] == size else complex_of(*(_with_last(p, size) for p in _parts(z)))


def _window(window: Any, length: int, fft_length: int, like: Tensor) -> Tensor:
    """The window of `length` points in the middle of `fft_length` zeros; None is ones alone."""
    if window is None:
        return creation.full((fft_length,), 1, like.dtype)
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise InvalidArgumentError(f"stft: window must be 'hann' or 'hamming', got {window!r}")
        constant = 0.5 if window == "hann" else 0.54
        turn = creation.arange(length, dtype=like.dtype) * (2 * math.pi / length)
        points = constant - (1 - constant) * cos(turn)
    else:
        points = tensor(window, like.dtype)
        if points.shape != (length,):
            raise ShapeError(f"stft: the window must have {length} points, got {points.spec}")
    before = (fft_length - length) // 2
    return padding.pad(points, [(before, fft_length - length - before)])


def _check(who: str, sequence_length: int, sequence_stride: Any, fft_length: int) -> None:
    if not isinstance(sequence_stride, int) or sequence_stride < 1:
        raise InvalidArgumentError(
            f"{who}: sequence_stride must be a whole number of at least 1, got {sequence_stride!r}"
        )
    if sequence_length < 1:
        raise InvalidArgumentError(f"{who}: sequence_length must be at least 1, got 0")
    if fft_length < sequence_length:
        raise InvalidArgumentError(
            f"{who}: fft_length must be at least sequence_length, "
            f"got {fft_length} and {sequence_length}"
        )


@public
def stft(
    x: TensorLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: TensorLike | None = "hann",
    center: bool = True,
) -> tuple[Tensor, Tensor]:
    """The transforms of stretches of a signal, each multiplied by a window; as a pair.

    Args:
        x: (..., samples), real.
        sequence_length: samples of a stretch.
        sequence_stride: distance of the beginnings of stretches.
        fft_length: samples transformed: a stretch is put in the middle of zeros.
        window: "hann", "hamming" (periodic), a vector of sequence_length, or None.
        center: whether the signal is mirrored at both ends by fft_length // 2, so that the i-th
            stretch has its middle at sample i * sequence_stride.

    Returns:
        Real and imaginary parts, (..., stretches, fft_length // 2 + 1) each.

    Raises:
        ShapeError: the number of samples is unknown.

    Examples:
        >>> x = np.ones(8, "float32")
        >>> real, imaginary = ops.stft(x, sequence_length=4, sequence_stride=2, fft_length=4)
        >>> real.shape
        (5, 3)
    """
    signal = _real("stft", x)
    _check("stft", sequence_length, sequence_stride, fft_length)
    if center:
        half = fft_length // 2
        signal = padding.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(half, half)], "reflect")
    frames = extract_sequences(signal, fft_length, sequence_stride)
    points = _window(window, sequence_length, fft_length, signal)
    return _parts(engine.rfft(arithmetic.multiply(frames, points)))


@public
def istft(
    x: TensorLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: TensorLike = "hann",
    center: bool = True,
) -> Tensor:
    """The signal whose `stft` is the pair `x`; arguments as there.

    Stretches are multiplied by the window once more, added where they overlap, and divided by the
    sum of the squares of the windows there; without a window they are only added.

    Args:
        x: real and imaginary parts, (..., stretches, fft_length // 2 + 1) each.
        sequence_length: see `stft`.
        sequence_stride: see `stft`.
        fft_length: see `stft`.
        length: samples of the result, by default as many as the stretches cover (without the
            mirrored ends, where `center` is true).
        window: see `stft`.
        center: see `stft`.

    Returns:
        (..., length).

    Source: Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984,
        equation 6.

    Examples:
        >>> x = np.sin(np.arange(16.0, dtype="float32"))
        >>> pair = ops.stft(x, sequence_length=4, sequence_stride=2, fft_length=4)
        >>> back = ops.istft(pair, sequence_length=4, sequence_stride=2, fft_length=4, length=16)
        >>> bool(ops.allclose(back, x, atol=1e-5))
        True
    """
    z = _complex("istft", x)
    _check("istft", sequence_length, sequence_stride, fft_length)
    if known_rank("istft", z) < 2:
        raise ShapeError(f"istft: expected (..., stretches, bins), got {z.spec}")
    count = known_size("istft", z, -2)
    frames = engine.irfft(_padded_bins(z, fft_length // 2 + 1), fft_length)
    points = _window(window, sequence_length, fft_length, frames)
    total = fft_length + sequence_stride * (count - 1)
    signal = _overlapped(arithmetic.multiply(frames, points), sequence_stride, total)
    if window is not None:
        weight = arithmetic.multiply(ones_like(frames), arithmetic.square(points))
        weight = _overlapped(weight, sequence_stride, total)
        tiny = tensor(1e-10, weight.dtype)
        signal = arithmetic.divide(signal, arithmetic.maximum(weight, tiny))
    start = fft_length // 2 if center else 0
    end = total - start if length is None else start + length
    return get_item(signal, (..., slice(start, end)))


def _overlapped(frames: Tensor, stride: int, total: int) -> Tensor:
    """Stretches (..., count, size) added at distances of `stride`: (..., total)."""
    count, size = (known_size("istft", frames, axis) for axis in (-2, -1))
    starts = creation.arange(0, count * stride, stride, "int32")
    places = axes.expand_dims(starts, 1) + creation.arange(size, dtype="int32")
    rows = axes.moveaxis(frames, (-2, -1), (0, 1))
    flat = reshape(rows, (count * size, *sizes(rows)[2:]))
    return axes.moveaxis(segment_sum(flat, reshape(places, (-1,)), total), 0, -1)
