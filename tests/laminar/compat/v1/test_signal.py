"""Frames, spectra and cosine transforms under `tf.signal`, against NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import laminar.compat.v1 as tf
from laminar.engine.errors import InvalidArgumentError, ShapeError

rng = np.random.default_rng(7)
X = rng.normal(size=(2, 50))


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


def frames(x: Any, length: int, step: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, length, axis=-1)[..., ::step, :]


def test_frames() -> None:
    found = run(
        [
            tf.signal.frame(X, 8, 3),
            tf.signal.frame(X, 8, 3, pad_end=True, pad_value=-1.0),
            tf.signal.frame(X.T, 8, 3, axis=0),
            tf.signal.frame(X[:, :5], 8, 3),
        ]
    )
    np.testing.assert_array_equal(found[0], frames(X, 8, 3))
    longer = np.pad(X, [[0, 0], [0, 6]], constant_values=-1)
    np.testing.assert_array_equal(found[1], frames(longer, 8, 3))
    assert found[1].shape == (2, 17, 8)
    np.testing.assert_array_equal(found[2], np.moveaxis(frames(X, 8, 3), 0, -1))
    assert found[3].shape == (2, 0, 8)


def test_frames_of_a_length_that_a_run_knows() -> None:
    x = tf.placeholder(tf.float64, [None, None])
    found = run([tf.signal.frame(x, 8, 3), tf.signal.frame(x, 8, 3, pad_end=True)], {x: X})
    np.testing.assert_array_equal(found[0], frames(X, 8, 3))
    np.testing.assert_array_equal(found[1], frames(np.pad(X, [[0, 0], [0, 6]]), 8, 3))


def test_frames_are_added() -> None:
    parts = rng.normal(size=(2, 4, 6))
    expected = np.zeros((2, 12))
    for i in range(4):
        expected[:, 2 * i : 2 * i + 6] += parts[:, i]
    np.testing.assert_allclose(run(tf.signal.overlap_and_add(parts, 2)), expected)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_windows(length: int) -> None:
    for fn, name in ((tf.signal.hann_window, "hann"), (tf.signal.hamming_window, "hamming")):
        symmetric = scipy.signal.get_window(name, length, fftbins=False)
        found = run(fn(length, periodic=False, dtype=tf.float64))
        np.testing.assert_allclose(found, symmetric, atol=1e-12)
        periodic = scipy.signal.get_window(name, length) if length % 2 == 0 else symmetric
        np.testing.assert_allclose(run(fn(length)), periodic, atol=1e-6)


@pytest.mark.parametrize(("length", "step", "size"), [(8, 4, None), (12, 3, None), (12, 5, 16)])
def test_spectra_and_back(length: int, step: int, size: int | None) -> None:
    z = tf.signal.stft(X, length, step, size)
    window = scipy.signal.get_window("hann", length)
    expected = np.fft.rfft(frames(X, length, step) * window, size or 1 << (length - 1).bit_length())
    back = tf.signal.inverse_stft(z, length, step, size, tf.signal.inverse_stft_window_fn(step))
    found, again = run([z, back])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    inside = slice(length, again.shape[1] - length)
    np.testing.assert_allclose(again[:, inside], X[:, : again.shape[1]][:, inside], atol=1e-6)


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms(kind: int, norm: str | None) -> None:
    if kind == 1 and norm:
        with pytest.raises(InvalidArgumentError, match="no norm"):
            tf.signal.dct(X, kind, norm=norm)
        return
    scale = 1 if norm else (2 * 49 if kind == 1 else 100)
    found = run(
        [
            tf.signal.dct(X, kind, norm=norm),
            tf.signal.dct(X, kind, 60, norm=norm),
            tf.spectral.dct(X, kind, n=20, norm=norm),
            tf.signal.idct(tf.signal.dct(X, kind, norm=norm), kind, norm=norm),
        ]
    )
    for value, n in zip(found, (50, 60, 20), strict=False):
        np.testing.assert_allclose(value, scipy.fft.dct(X, kind, n, norm=norm), atol=1e-9)
    np.testing.assert_allclose(found[3], scale * X, atol=1e-9)


def test_halves_change_places() -> None:
    x = rng.normal(size=(4, 5))
    found = run([tf.signal.fftshift(x), tf.signal.ifftshift(x), tf.signal.fftshift(x, axes=[1])])
    expected = (np.fft.fftshift(x), np.fft.ifftshift(x), np.fft.fftshift(x, [1]))
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_mel_bands() -> None:
    weights = run(tf.signal.linear_to_mel_weight_matrix(4, 33, 8000, 100.0, 3000.0, tf.float64))

    def mel(f: float) -> float:
        return 1127 * float(np.log(1 + f / 700))

    width = (mel(3000) - mel(100)) / 5
    for b in range(33):
        for m in range(4):
            middle = mel(100) + (m + 1) * width
            expected = max(0.0, 1 - abs(mel(b * 4000 / 32) - middle) / width) if b else 0.0
            np.testing.assert_allclose(weights[b, m], expected, atol=1e-12)
    with pytest.raises(InvalidArgumentError, match="edges"):
        tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0)
    energies = np.log(rng.random((3, 4)) + 1)
    found = run(tf.signal.mfccs_from_log_mel_spectrograms(energies))
    np.testing.assert_allclose(found, scipy.fft.dct(energies) / np.sqrt(8), rtol=1e-6)


def test_what_must_be_known() -> None:
    with pytest.raises(ShapeError, match="known size"):
        tf.signal.dct(tf.placeholder(tf.float32, [None]))
    with pytest.raises(InvalidArgumentError, match="type of 1, 2 or 3"):
        tf.signal.dct(X, 4)
