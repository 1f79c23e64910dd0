"""Images in files and as arrays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import preprocessing, utils
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    MissingFileError,
    ShapeError,
)

pytest.importorskip("PIL")
rng = np.random.default_rng(0)
COLOUR = rng.integers(0, 256, (12, 20, 3), dtype="uint8")


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_an_image_comes_back(tmp_path: Path, channels: int) -> None:
    x = rng.integers(0, 256, (5, 7, channels), dtype="uint8")
    mode = {1: "grayscale", 3: "rgb", 4: "rgba"}[channels]
    path = tmp_path / "x.png"
    utils.save_img(path, x, scale=False)
    array = utils.img_to_array(utils.load_img(path, color_mode=mode))
    assert array.dtype == "float32"
    np.testing.assert_array_equal(array, x)
    first = utils.img_to_array(utils.load_img(path, mode), data_format="channels_first")
    np.testing.assert_array_equal(first, x.transpose(2, 0, 1))
    back = utils.array_to_img(first, data_format="channels_first", scale=False)
    np.testing.assert_array_equal(np.asarray(back).reshape(x.shape), x)


def test_scaling_and_sixteen_bits() -> None:
    x = np.array([[[-1.0], [0.0], [1.0]]])
    assert np.asarray(utils.array_to_img(x)).tolist() == [[0, 127, 255]]
    deep = utils.array_to_img(np.array([[[300.0], [5.0]]]), scale=False)
    assert np.asarray(deep).tolist() == [[300, 5]]
    assert utils.img_to_array(deep).tolist() == [[[300.0], [5.0]]]
    assert not np.asarray(utils.array_to_img(np.zeros((2, 2, 3)))).any()


def test_sizes_and_streams() -> None:
    file = io.BytesIO()
    utils.save_img(file, COLOUR, scale=False, file_format="png")
    file.seek(0)
    image = utils.load_img(file, target_size=(6, 6), interpolation="bilinear")
    assert image.size == (6, 6)
    file.seek(0)
    kept = utils.load_img(file, target_size=(6, 6), keep_aspect_ratio=True)
    np.testing.assert_array_equal(np.asarray(kept), COLOUR[1::2, 5:16:2])


def test_jpeg_has_no_transparency(tmp_path: Path) -> None:
    x = rng.integers(0, 256, (5, 7, 4), dtype="uint8")
    with pytest.warns(UserWarning, match="no transparency"):
        utils.save_img(str(tmp_path / "x.jpg"), x)
    assert utils.load_img(tmp_path / "x.jpg").mode == "RGB"


def test_smart_resize_keeps_the_middle() -> None:
    square = preprocessing.image.smart_resize(COLOUR.astype("float32"), (12, 12), "nearest")
    assert isinstance(square, np.ndarray)
    np.testing.assert_array_equal(square, COLOUR[:, 4:16])
    assert preprocessing.image.smart_resize(np.stack([COLOUR] * 2), (3, 9)).shape == (2, 3, 9, 3)


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no file"):
        utils.load_img(tmp_path / "none.png")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    with pytest.raises(DataLossError, match="broken.png' is not an image that can be read"):
        utils.load_img(broken)
    utils.save_img(tmp_path / "whole.png", np.random.default_rng(0).uniform(0, 255, (40, 40, 3)))
    broken.write_bytes((tmp_path / "whole.png").read_bytes()[:-2000])
    with pytest.raises(DataLossError, match="broken.png' is not an image .* truncated"):
        utils.load_img(broken)
    with pytest.raises(InvalidArgumentError, match="color_mode must be"):
        utils.load_img("x.png", color_mode="bw")
    with pytest.raises(InvalidArgumentError, match="interpolation must be"):
        utils.load_img("x.png", target_size=(2, 2), interpolation="cubic")
    with pytest.raises(InvalidArgumentError, match="path must be"):
        utils.load_img(3)
    with pytest.raises(ShapeError, match="expected one image of 3 axes"):
        utils.array_to_img(np.zeros((2, 2)))
    with pytest.raises(ShapeError, match="expected 1, 3 or 4 channels, got 2"):
        utils.array_to_img(np.zeros((2, 2, 2)))
    with pytest.raises(InvalidArgumentError, match="data_format must be"):
        utils.img_to_array(np.zeros((2, 2)), data_format="first")  # type: ignore[arg-type]  # the mistake


def keras_utils() -> Any:
    return pytest.importorskip("keras").utils


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"color_mode": "grayscale"},
        {"target_size": (5, 6)},
        {"target_size": (5, 9), "interpolation": "lanczos", "keep_aspect_ratio": True},
        {"target_size": (30, 9), "interpolation": "box", "keep_aspect_ratio": True},
    ],
)
def test_loading_as_in_keras(tmp_path: Path, options: dict[str, Any]) -> None:
    keras = keras_utils()
    path = str(tmp_path / "x.png")
    utils.save_img(path, COLOUR, scale=False)
    ours = utils.img_to_array(utils.load_img(path, **options))
    theirs = keras.img_to_array(keras.load_img(path, **options))
    np.testing.assert_array_equal(ours, theirs)


def test_jpg_is_a_name_of_jpeg(tmp_path: Path) -> None:
    path = str(tmp_path / "a.jpg")
    utils.save_img(path, np.zeros((4, 5, 3)), file_format="jpg", scale=False)
    assert utils.load_img(path).size == (5, 4)
