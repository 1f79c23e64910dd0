"""Windows are SciPy's, and the STFT initializer makes its transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal

from laminar import initializers
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.windows import _WINDOWS, window_points


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("name", _WINDOWS)
def test_windows(name: str, periodic: bool) -> None:
    for length in (1, 2, 7, 32):
        expected = signal.get_window(name, length, periodic)
        found = window_points("test", name, length, periodic)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_points_by_hand() -> None:
    np.testing.assert_array_equal(window_points("test", [1, 2], 2, True), [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="3 points"):
        window_points("test", [1, 2], 3, True)
    with pytest.raises(InvalidArgumentError, match="window must be one of"):
        window_points("test", "triangle", 3, True)


@pytest.mark.parametrize("scaling", ["density", "spectrum", None])
@pytest.mark.parametrize("window", ["hann", "tukey", None])
def test_the_initializer_makes_the_transform(window: Any, scaling: Any) -> None:
    x = np.random.default_rng(0).normal(size=16)
    parts = [
        initializers.STFT(side, window, scaling)((16, 1, 17), "float64").numpy()[:, 0].T @ x
        for side in ("real", "imag")
    ]
    points = np.ones(16) if window is None else signal.get_window(window, 16, fftbins=False)
    scale = {"density": np.sqrt((points**2).sum()), "spectrum": points.sum(), None: 1.0}[scaling]
    scale = 1.0 if window is None else scale
    expected = np.fft.rfft(x * points / scale, 32)
    np.testing.assert_allclose(parts[0], expected.real, atol=1e-12)
    np.testing.assert_allclose(parts[1], expected.imag, atol=1e-12)


def test_the_initializer_in_files() -> None:
    made = initializers.STFT("imag", "hamming", None, True)
    again = initializers.deserialize(initializers.serialize(made))
    assert again.get_config() == made.get_config()
    assert initializers.serialize(made)["class_name"] == "STFT"
    assert isinstance(initializers.get("stft"), initializers.STFTInitializer)
    mistakes: list[dict[str, Any]] = [{"side": "both"}, {"scaling": "l2"}, {"window": "none"}]
    for bad in mistakes:
        with pytest.raises(InvalidArgumentError):
            initializers.STFT(**bad)
    with pytest.raises(ShapeError, match="length, 1, bins"):
        made((3, 4))
