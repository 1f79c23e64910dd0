"""Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.complex_numbers import complex_of, view_as_real
from laminar.engine.ops.math.fft import fft, ifft, irfft, rfft

from ..harness import check_op

rng = np.random.default_rng(5)


def of_parts(transform: Any, **options: Any) -> Any:
    """A transform of complex numbers as a function of real and imaginary parts."""

    def fn(a: Tensor, b: Tensor) -> Tensor:
        y = transform(complex_of(a, b), **options)
        return view_as_real(y) if y.dtype.is_complex else y

    return fn


def parts(z: Any) -> Any:
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("shape", [(6,), (2, 5), (1,), (3, 1, 4)])
def test_fft_and_its_inverse(shape: tuple[int, ...]) -> None:
    inputs = [rng.normal(size=shape), rng.normal(size=shape)]
    check_op(of_parts(fft), lambda a, b: parts(np.fft.fft(a + 1j * b)), inputs)
    check_op(of_parts(ifft), lambda a, b: parts(np.fft.ifft(a + 1j * b)), inputs)


def test_fft_over_two_axes() -> None:
    inputs = [rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))]
    check_op(of_parts(fft, axes=2), lambda a, b: parts(np.fft.fft2(a + 1j * b)), inputs)
    check_op(of_parts(ifft, axes=2), lambda a, b: parts(np.fft.ifft2(a + 1j * b)), inputs)


@pytest.mark.parametrize("shape", [(6,), (2, 5), (1,), (3, 2, 4)])
def test_rfft(shape: tuple[int, ...]) -> None:
    check_op(
        lambda x: view_as_real(rfft(x)),
        lambda x: parts(np.fft.rfft(x)),
        [rng.normal(size=shape)],
        dtypes=["float32"],
    )


@pytest.mark.parametrize(("bins", "n"), [(4, None), (4, 6), (4, 7), (1, 1), (2, 2)])
def test_irfft(bins: int, n: int | None) -> None:
    check_op(
        of_parts(irfft, n=n),
        lambda a, b: np.fft.irfft(a + 1j * b, n),
        [rng.normal(size=(2, bins)), rng.normal(size=(2, bins))],
    )


def test_float32_stays_single_precision() -> None:
    x = convert_to_tensor(rng.normal(size=8).astype("float32"))
    assert rfft(x).dtype == "complex64"
    assert irfft(rfft(x)).dtype == "float32"


def test_errors() -> None:
    z = convert_to_tensor(np.zeros((2, 4), "complex64"))
    with pytest.raises(ShapeError, match=r"Irfft: 9 numbers have 5 bins, got complex64\[2, 4\]"):
        irfft(z, 9)
    with pytest.raises(InvalidArgumentError, match="n must be positive, got 0"):
        irfft(z, 0)
    with pytest.raises(ShapeError, match="Fft: expected at least 3 axes"):
        fft(z, 3)
    with pytest.raises(ShapeError, match="is empty"):
        rfft(convert_to_tensor(np.zeros((2, 0), "float32")))
