"""Spectrograms and ReversibleEmbedding agree with Keras."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers
from laminar.engine.errors import InvalidArgumentError
from laminar.layers.masking import get_mask

from .harness import check_config, check_same_config, check_symbolic, check_traced

rng = np.random.default_rng(5)
SOUND = rng.normal(size=(2, 300, 2)).astype(np.float32)

STFTS: list[dict[str, Any]] = [
    *[{"mode": mode} for mode in ("log", "magnitude", "psd", "real", "imag", "stft")],
    {"mode": "magnitude", "frame_step": 10, "fft_length": 128, "padding": "same"},
    {"mode": "psd", "window": "hamming", "scaling": "spectrum", "periodic": True},
    {"mode": "real", "window": None, "scaling": None, "expand_dims": True},
    {"mode": "imag", "window": "blackman", "data_format": "channels_first"},
    {"mode": "stft", "data_format": "channels_first", "expand_dims": True},
]
MELS: list[dict[str, Any]] = [
    {},
    {"num_mel_bins": 12, "power_to_db": False, "max_freq": 6000},
    {"sequence_length": 48, "mag_exp": 1.0, "window": "hamming", "top_db": 30.0},
    {"window": None},
]


@pytest.mark.slow
@pytest.mark.parametrize("kwargs", STFTS)
def test_stft(kwargs: dict[str, Any]) -> None:
    keras = pytest.importorskip("keras")
    kwargs = {"frame_length": 50, **kwargs}
    theirs, ours = keras.layers.STFTSpectrogram(**kwargs), layers.STFTSpectrogram(**kwargs)
    x = SOUND.swapaxes(1, 2) if kwargs.get("data_format") else SOUND
    expected, value = np.asarray(theirs(x)), ours(x).numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-3, atol=2e-5)
    assert [(w.name, tuple(w.shape)) for w in ours.weights] == [
        (w.name, tuple(w.shape)) for w in theirs.weights
    ]
    check_same_config(theirs, ours)
    check_symbolic(ours, x, value)
    check_traced(ours, x, value, 1e-4)
    check_config(layers.STFTSpectrogram, ours, x, value)


def test_angles_are_those_of_the_parts() -> None:
    kwargs: dict[str, Any] = {"frame_length": 50, "scaling": None}
    real, imag, angle = (
        layers.STFTSpectrogram(mode, **kwargs)(SOUND).numpy() for mode in ("real", "imag", "angle")
    )
    length = np.hypot(real, imag)
    np.testing.assert_allclose(np.cos(angle) * length, real, atol=1e-4)
    np.testing.assert_allclose(np.sin(angle) * length, imag, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kwargs", MELS)
def test_mel(kwargs: dict[str, Any]) -> None:
    keras = pytest.importorskip("keras")
    kwargs = {"fft_length": 64, "sequence_stride": 32, **kwargs}
    theirs, ours = keras.layers.MelSpectrogram(**kwargs), layers.MelSpectrogram(**kwargs)
    for x in (SOUND[..., 0], SOUND[0, :, 0]):
        expected, value = np.asarray(theirs(x)), ours(x).numpy()
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=2e-3)
    check_same_config(theirs, ours)
    symbol = ours(layers.Input((300,)))
    assert tuple(symbol.shape)[1:] == ours(SOUND[..., 0]).shape[1:]


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"tie_weights": False, "mask_zero": True},
        {"logit_soft_cap": 0.3, "reverse_dtype": "float32"},
    ],
)
def test_reversible_embedding(kwargs: dict[str, Any]) -> None:
    keras = pytest.importorskip("keras")
    theirs = keras.layers.ReversibleEmbedding(5, 3, **kwargs)
    ours = layers.ReversibleEmbedding(5, 3, **kwargs)
    ids, vectors = np.array([[1, 0, 4]]), rng.normal(size=(2, 3)).astype("float32")
    theirs(ids)
    ours(ids)
    weights = [rng.normal(size=w.shape).astype("float32") for w in theirs.weights]
    theirs.set_weights(weights)
    ours.set_weights(weights)
    np.testing.assert_allclose(ours(ids), np.asarray(theirs(ids)), rtol=1e-6)
    expected = np.asarray(theirs(vectors, reverse=True))
    np.testing.assert_allclose(ours(vectors, reverse=True), expected, rtol=1e-5, atol=1e-6)
    assert (get_mask(ours(ids)) is not None) == bool(kwargs.get("mask_zero"))
    check_same_config(theirs, ours)
    assert tuple(ours(layers.Input((7, 3)), reverse=True).shape) == (None, 7, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.STFTSpectrogram("loud"), "mode must be one of"),
        (lambda: layers.STFTSpectrogram(frame_length=4, frame_step=5), "at most frame_length"),
        (lambda: layers.STFTSpectrogram(frame_length=9, fft_length=8), "at least 9"),
        (lambda: layers.STFTSpectrogram(frame_length=4, window=[1, 2]), "4 points"),
        (lambda: layers.STFTSpectrogram(window="flat"), "window must be one of"),
        (lambda: layers.MelSpectrogram(fft_length=8, sequence_length=9), "at most fft_length"),
        (lambda: layers.ReversibleEmbedding(3, 2, logit_soft_cap=0), "above 0"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()
