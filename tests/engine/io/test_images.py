"""Image files through Pillow."""

from __future__ import annotations

import builtins
import io
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from laminar.engine.io import images
from laminar.engine.io.images import read_image, write_image

pytest.importorskip("PIL")
rng = np.random.default_rng(0)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_is_exact(channels: int) -> None:
    pixels = rng.integers(0, 256, (5, 7, channels), np.uint8)
    found = read_image(write_image(pixels, "PNG"))
    np.testing.assert_array_equal(found, pixels)


def test_jpeg_is_near() -> None:
    ramp = np.linspace(0, 255, 32).astype(np.uint8)
    pixels = np.broadcast_to(ramp[None, :, None], (24, 32, 3))
    found = read_image(write_image(pixels, "JPEG"), formats=("JPEG",))
    assert found.shape == pixels.shape
    assert np.abs(found.astype(int) - pixels).max() < 12


@pytest.mark.parametrize(("channels", "shape"), [(1, 1), (3, 3), (4, 4), (0, 3)])
def test_channels_are_converted(channels: int, shape: int) -> None:
    pixels = np.full((2, 3, 3), 100, np.uint8)
    found = read_image(write_image(pixels, "PNG"), channels)
    assert found.shape == (2, 3, shape)
    assert (found[:, :, 0] == 100).all()


def saved(mode: str, value: Any, **options: Any) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new(mode, (3, 2), value).save(out, "PNG", **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("mode", "value", "shape", "dtype"),
    [
        ("1", 1, (2, 3, 1), np.uint8),
        ("P", 0, (2, 3, 3), np.uint8),
        ("I;16", 40000, (2, 3, 1), np.uint16),
    ],
)
def test_other_kinds(mode: str, value: int, shape: tuple[int, ...], dtype: Any) -> None:
    found = read_image(saved(mode, value))
    assert found.shape == shape
    assert found.dtype == dtype
    if mode == "I;16":
        assert (found == 40000).all()
        assert read_image(saved(mode, value), 3).shape == (2, 3, 3)
        assert read_image(saved(mode, value), 4)[0, 0].tolist() == [40000] * 3 + [65535]


def test_damage_and_wrong_use(monkeypatch: pytest.MonkeyPatch) -> None:
    good = write_image(rng.integers(0, 256, (50, 50, 3), np.uint8), "PNG")
    for bad in (b"", b"nothing", good[:100], good[:60] + b"\xff" * 50 + good[110:]):
        with pytest.raises(DataLossError):
            read_image(bad)
    with pytest.raises(DataLossError, match="JPEG"):
        read_image(good, formats=("JPEG",))
    with pytest.raises(InvalidArgumentError, match="channels"):
        read_image(good, 5)
    for array in (np.zeros((2, 2), np.uint8), np.zeros((2, 2, 3)), np.zeros((2, 2, 5), np.uint8)):
        with pytest.raises(InvalidArgumentError, match="an image is"):
            write_image(array, "PNG")
    with pytest.raises(InvalidArgumentError, match="no pixels"):
        write_image(np.zeros((0, 2, 3), np.uint8), "PNG")
    with pytest.raises(InvalidArgumentError, match="quality"):
        write_image(np.zeros((2, 2, 3), np.uint8), "JPEG", 101)
    monkeypatch.setattr(images, "MAX_PIXELS", 100)
    with pytest.raises(ResourceExhaustedError, match="pixels"):
        read_image(good)


def test_without_pillow_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("PIL"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnimplementedError, match="Pillow"):
        read_image(b"")
