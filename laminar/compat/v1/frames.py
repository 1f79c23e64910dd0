"""`tf.signal`: frames of signals, their windows and spectra."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.gather import gather
from laminar.engine.ops.array.segment import segment_sum
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .transforms import irfft, rfft
from .values import as_kind, dims_of, static, symbol, tensor


def _known(who: str, x: Tensor, axis: int) -> int:
    found = x.shape[axis] if x.shape.rank else None
    if found is None:
        raise ShapeError(
            f"{who}: axis {axis} must have a known size, got {x.spec}", remedy="use set_shape"
        )
    return int(found)


@v1()
def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
) -> Tensor:
    """Stretches of `frame_length` samples, each `frame_step` samples after the one before.

    Args:
        signal: (..., samples, ...).
        frame_length: samples of a frame.
        frame_step: distance of the beginnings of frames.
        pad_end: whether frames that begin in the signal go on beyond its end.
        pad_value: what stands there.
        axis: of the samples.

    Returns:
        (..., frames, frame_length, ...).
    """
    x = symbol(signal)
    length, step = int(static(frame_length)), int(static(frame_step))
    place = axis % len(x.shape)
    x = ops.moveaxis(x, place, -1)
    samples: Any = dims_of(x)[-1]
    if pad_end:
        count = -(-samples // step)
    else:
        count = (samples - length) // step + 1
        count = max(count, 0) if isinstance(count, int) else ops.maximum(count, 0)
    begins = ops.reshape(ops.arange(count, dtype="int32") * step, (-1, 1))
    places = begins + np.arange(length, dtype="int32")
    frames = gather(x, ops.minimum(places, samples - 1), -1)
    if pad_end:
        frames = ops.where(places < samples, frames, tensor(pad_value, x.dtype))
    found: Tensor = ops.moveaxis(frames, (-2, -1), (place, place + 1))
    return found


@v1()
def overlap_and_add(signal: Any, frame_step: Any) -> Tensor:
    """The signal whose frames are added where they overlap.

    Args:
        signal: (..., frames, frame_length), of known sizes.
        frame_step: distance of the beginnings of frames.

    Returns:
        (..., (frames - 1) * frame_step + frame_length).
    """
    x, step = symbol(signal), int(static(frame_step))
    count, length = (_known("overlap_and_add", x, axis) for axis in (-2, -1))
    places = np.arange(count)[:, None] * step + np.arange(length)
    samples = ops.moveaxis(x, (-2, -1), (0, 1))
    flat = ops.reshape(samples, [count * length, *dims_of(samples)[2:]])
    added = segment_sum(flat, constant(places.ravel(), "int32"), (count - 1) * step + length)
    found: Tensor = ops.moveaxis(added, 0, -1)
    return found


def _raised_cosine(first: float, name: str) -> Callable[..., Any]:
    @v1()
    def window(window_length: Any, periodic: bool = True, dtype: Any = "float32") -> Tensor:
        length, kind = int(static(window_length)), as_kind(dtype)
        if length == 1:
            return constant(np.ones(1), kind)
        turn = length - 1 + (bool(periodic) and length % 2 == 0)
        points = first - (1 - first) * np.cos(2 * np.pi * np.arange(length) / turn)
        return constant(points, kind)

    window.__doc__ = f"{name}: {first} - {1 - first:.2f} * cos(2 pi k / n), k = 0, 1, ..."
    return window


hann_window = _raised_cosine(0.5, "Hann's window")
hamming_window = _raised_cosine(0.54, "Hamming's window")


def _fft_length(frame_length: int, given: Any) -> int:
    """The least power of two that is not below the length, by default."""
    return 1 << max(frame_length - 1, 0).bit_length() if given is None else int(static(given))


@v1()
def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    pad_end: bool = False,
) -> Tensor:
    """The Fourier transforms of frames: (..., frames, fft_length // 2 + 1), complex.

    Args:
        signals: (..., samples), real.
        frame_length: samples of a frame.
        frame_step: distance of the beginnings of frames.
        fft_length: length of the transform; by default the least power of two from `frame_length`.
        window_fn: of (length, dtype): what frames are multiplied with; None for ones.
        pad_end: whether the last frames go on beyond the signal, with zeros.
    """
    x, length = symbol(signals), int(static(frame_length))
    frames = frame(x, length, frame_step, pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=x.dtype)
    found: Tensor = rfft(frames, [_fft_length(length, fft_length)])
    return found


@v1()
def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
) -> Tensor:
    """The signal that frames with these transforms make, multiplied by a window and added.

    With `window_fn=inverse_stft_window_fn(frame_step)` it is the inverse of `stft`.
    """
    z, length = symbol(stfts), int(static(frame_length))
    size = _fft_length(length, fft_length)
    frames = irfft(z, [size])
    if size < length:
        sides = [*[(0, 0)] * (len(frames.shape) - 1), (0, length - size)]
        frames = ops.pad(frames, sides)
    frames = frames[..., :length]
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    found: Tensor = overlap_and_add(frames, frame_step)
    return found


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Any = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """The window with which `inverse_stft` undoes `stft` with `forward_window_fn`.

    Source: Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984,
        equation 6.
    """
    step = int(static(frame_step))

    def window(frame_length: Any, dtype: Any = "float32") -> Tensor:
        length = int(static(frame_length))
        forward = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        square = ops.pad(forward * forward, [(0, overlaps * step - length)])
        total = ops.sum(ops.reshape(square, (overlaps, step)), 0)
        found: Tensor = forward / ops.tile(total, [overlaps])[:length]
        return found

    return window


_INVERSE = {1: 1, 2: 3, 3: 2}


@v1()
def dct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None
) -> Tensor:
    """The discrete cosine transform over the last axis.

    Type 1 is x[0] + (-1)^k x[N-1] + 2 sum x[n] cos(pi n k / (N - 1)) over the inner samples, type 2
    is 2 sum x[n] cos(pi k (2 n + 1) / 2N), type 3 is x[0] + 2 sum x[n] cos(pi n (2 k + 1) / 2N).

    Args:
        input: (..., samples), real.
        type: 1, 2 or 3.
        n: length; the signal is cut, or goes on with zeros.
        axis: must be -1.
        norm: "ortho" makes types 2 and 3 orthogonal.

    Source: Ahmed, Natarajan and Rao, "Discrete cosine transform", 1974.
    """
    if type not in _INVERSE or axis != -1 or norm not in (None, "ortho"):
        raise InvalidArgumentError(
            f"dct: expected a type of 1, 2 or 3, the axis -1 and the norm None or 'ortho', got "
            f"{type}, {axis} and {norm!r}"
        )
    x = symbol(input)
    size = _known("dct", x, -1) if n is None else int(static(n))
    x = _resized(x, size)
    if type == 1:
        if norm is not None or size < 2:
            raise InvalidArgumentError("dct: type 1 has no norm, and needs two samples or more")
        mirrored = ops.concatenate([x, ops.flip(x[..., 1:-1], -1)], -1)
        spectrum: Tensor = lookup("Real")(rfft(mirrored))
        return spectrum
    angles = np.pi * np.arange(size) / (2 * size)
    weights = np.full(size, math.sqrt(0.5 / size))
    weights[0] = math.sqrt(0.25 / size)
    if type == 2:
        z = rfft(x, [2 * size])[..., :size]
        real, imaginary = lookup("Real")(z), lookup("Imag")(z)
        y: Tensor = 2 * (real * _like(np.cos(angles), x) + imaginary * _like(np.sin(angles), x))
        return y if norm is None else y * _like(weights, x)
    x = x * _like(weights / 0.5 * np.where(np.arange(size), 0.5, 1), x) if norm else x
    z = lookup("Complex")(
        x * _like(2 * size * np.cos(angles), x), x * _like(2 * size * np.sin(angles), x)
    )
    found: Tensor = irfft(z, [2 * size])[..., :size]
    return found


def _like(array: Any, x: Tensor) -> Tensor:
    return constant(array, x.dtype)


def _resized(x: Tensor, size: int) -> Tensor:
    own = _known("dct", x, -1)
    if own < size:
        x = ops.pad(x, [*[(0, 0)] * (len(x.shape) - 1), (0, size - own)])
    cut: Tensor = x[..., :size]
    return cut


@v1()
def idct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None
) -> Tensor:
    """The inverse of `dct`; without a norm, 2 N times it (2 (N - 1) times for type 1)."""
    found: Tensor = dct(input, _INVERSE.get(type, type), n, axis, norm)
    return found


def _shifted(forward: bool) -> Callable[..., Any]:
    @v1()
    def shift(x: Any, axes: Any = None) -> Tensor:
        y = symbol(x)
        given = static(axes)
        over = range(len(y.shape)) if given is None else np.ravel(given).tolist()
        for axis in over:
            half = _known("fftshift", y, axis) // 2
            y = ops.roll(y, half if forward else -half, axis)
        return y

    shift.__doc__ = "The halves of each axis change places" + ("." if forward else ", back.")
    return shift


fftshift, ifftshift = _shifted(True), _shifted(False)


@v1()
def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = "float32",
) -> Tensor:
    """Triangular bands of equal width in mel: (num_spectrogram_bins, num_mel_bins).

    A spectrogram (frames, num_spectrogram_bins) times it has the energies of the bands. Mel is
    1127 ln(1 + f / 700).

    Raises:
        InvalidArgumentError: the edges are not 0 <= lower < upper <= sample_rate / 2.

    Source: Young et al., "The HTK Book", section 5.6.
    """
    rate, lower, upper = (
        float(static(v)) for v in (sample_rate, lower_edge_hertz, upper_edge_hertz)
    )
    if num_mel_bins < 1 or not 0 <= lower < upper <= rate / 2:
        raise InvalidArgumentError(
            f"linear_to_mel_weight_matrix: expected bands, and edges 0 <= lower < upper <= "
            f"{rate / 2}, got {num_mel_bins} and {lower}, {upper}"
        )
    bins = _mel(np.linspace(0, rate / 2, num_spectrogram_bins)[1:, None])
    edges = np.linspace(_mel(lower), _mel(upper), num_mel_bins + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
    weights = np.maximum(0, np.minimum(rising, falling))
    return constant(np.pad(weights, [[1, 0], [0, 0]]), as_kind(dtype))


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


@v1()
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any) -> Tensor:
    """The cepstral coefficients of log energies of mel bands: `dct` / sqrt(2 * bands).

    Source: Davis and Mermelstein, "Comparison of parametric representations for monosyllabic word
        recognition", 1980.
    """
    x = tensor(log_mel_spectrograms)
    bands = _known("mfccs_from_log_mel_spectrograms", x, -1)
    found: Tensor = dct(x) * cast(constant(1 / math.sqrt(2 * bands)), x.dtype)
    return found
