"""Fourier transforms, where TensorFlow 1 has other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.math import fft as transforms

from .adapting import v1
from .values import static, symbol


def _complex(axes: int, inverse: bool) -> Callable[..., Any]:
    @v1()
    def transform(input: Any) -> Tensor:
        """The transform of complex numbers over the last axes, or its inverse."""
        x = symbol(input)
        if not x.dtype.is_complex:
            raise TypeError(f"expected complex numbers, got {x.dtype}")
        return (transforms.ifft if inverse else transforms.fft)(x, axes)

    return transform


def _sized(x: Tensor, size: int, axis: int) -> Tensor:
    """Cut, or filled up with zeros, to a size along one axis."""
    rank = len(x.shape)
    own = x.shape[axis]
    if own is None:
        raise ValueError("a transform of a given length needs a known size")
    if own < size:
        x = ops.pad(x, [(0, size - own if a == axis % rank else 0) for a in range(rank)])
    return x if own == size else x[(..., slice(0, size), *[slice(None)] * (-1 - axis))]


def _lengths(fft_length: Any, axes: int) -> list[int] | None:
    if fft_length is None:
        return None
    found = [int(n) for n in np.ravel(static(fft_length))]
    return found if len(found) == axes else found * axes


def _real(axes: int) -> Callable[..., Any]:
    @v1()
    def transform(input_tensor: Any, fft_length: Any = None) -> Tensor:
        """The first half of the transform of real numbers over the last axes."""
        x = symbol(input_tensor)
        for axis, size in enumerate(_lengths(fft_length, axes) or (), -axes):
            x = _sized(x, size, axis)
        y: Tensor = transforms.rfft(x)
        for axis in range(-axes, -1):
            y = ops.swapaxes(transforms.fft(ops.swapaxes(y, axis, -1), 1), axis, -1)
        return y

    return transform


def _real_again(axes: int) -> Callable[..., Any]:
    @v1()
    def transform(input_tensor: Any, fft_length: Any = None) -> Tensor:
        """The inverse of the transform of real numbers."""
        y = symbol(input_tensor)
        sizes = _lengths(fft_length, axes)
        for axis in range(-axes, -1):
            y = y if sizes is None else _sized(y, sizes[axis], axis)
            y = ops.swapaxes(transforms.ifft(ops.swapaxes(y, axis, -1), 1), axis, -1)
        if sizes is None:
            return transforms.irfft(y)
        return transforms.irfft(_sized(y, sizes[-1] // 2 + 1, -1), sizes[-1])

    return transform


fft, fft2d, fft3d = (_complex(axes, False) for axes in (1, 2, 3))
ifft, ifft2d, ifft3d = (_complex(axes, True) for axes in (1, 2, 3))
rfft, rfft2d, rfft3d = map(_real, (1, 2, 3))
irfft, irfft2d, irfft3d = map(_real_again, (1, 2, 3))
