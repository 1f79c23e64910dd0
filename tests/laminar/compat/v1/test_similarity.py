"""How alike images are, against SciPy; glimpses and edges; files of images and tensors."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.signal import convolve2d

import laminar.compat.v1 as tf
from laminar.engine.errors import DataLossError, DTypeError, InvalidArgumentError

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


def ssim(x: Any, y: Any, size: int = 11, sigma: float = 1.5) -> tuple[float, float]:
    """Wang et al. 2004, equation 13, of one channel; and the factor of contrast and structure."""
    place = np.arange(size) - (size - 1) / 2
    bell = np.exp(-(place**2) / (2 * sigma**2))
    window = np.outer(bell, bell) / bell.sum() ** 2

    def mean(z: Any) -> Any:
        return convolve2d(z, window, "valid")

    mx, my = mean(x), mean(y)
    vx, vy, vxy = mean(x * x) - mx * mx, mean(y * y) - my * my, mean(x * y) - mx * my
    structure = (2 * vxy + 0.03**2) / (vx + vy + 0.03**2)
    light = (2 * mx * my + 0.01**2) / (mx * mx + my * my + 0.01**2)
    return float(np.mean(light * structure)), float(np.mean(structure))


def test_structural_similarity() -> None:
    x = rng.uniform(size=(2, 14, 15, 2))
    y = np.clip(x + 0.1 * rng.normal(size=x.shape), 0, 1)
    expected = [
        np.mean([ssim(a[..., c], b[..., c])[0] for c in (0, 1)]) for a, b in zip(x, y, strict=True)
    ]
    x, y = x.astype("float32"), y.astype("float32")
    np.testing.assert_allclose(run(tf.image.ssim(x, y, 1.0)), expected, rtol=1e-4)
    deep = run(tf.image.ssim(x[None], y[None], 1.0))
    np.testing.assert_allclose(deep, [expected], rtol=1e-4)
    with pytest.raises(ValueError, match="one shape"):
        tf.image.ssim(x, y[:, 1:], 1.0)


def test_over_scales() -> None:
    x = rng.uniform(size=(25, 24))
    y = np.clip(x + 0.1 * rng.normal(size=x.shape), 0, 1)
    powers = (0.4, 0.6)
    fine = ssim(x, y, 7, 1.0)[1]
    halves = []
    for z in (x, y):
        z = np.concatenate([z, z[-1:]])
        halves.append(z.reshape(13, 2, 12, 2).mean((1, 3)))
    expected = (
        max(fine, 0) ** powers[0] * max(ssim(halves[0], halves[1], 7, 1.0)[0], 0) ** powers[1]
    )
    a, b = (z.astype("float32")[None, :, :, None] for z in (x, y))
    found = run(tf.image.ssim_multiscale(a, b, 1.0, powers, 7, 1.0))
    np.testing.assert_allclose(found, [expected], rtol=1e-4)


def test_edges_and_glimpses() -> None:
    ramp = np.broadcast_to(np.arange(5.0, dtype="float32")[None, :, None, None], (1, 5, 4, 1))
    down, right = np.moveaxis(run(tf.image.sobel_edges(ramp)), -1, 0)
    np.testing.assert_array_equal(down[0, 1:-1, :, 0], 8.0)  # (1 + 2 + 1) * 2
    np.testing.assert_array_equal(right, 0.0)
    unknown = tf.placeholder("float32", [None, None, None, 1])
    edges = run(tf.image.sobel_edges(unknown), {unknown: ramp})
    np.testing.assert_array_equal(edges, np.stack([down, right], -1))
    image = np.arange(72, dtype="float32").reshape(2, 6, 6, 1)
    middle = tf.image.extract_glimpse(image, [3, 3], [[0.0, 0.0], [0.3, -0.3]])
    expected = [image[0, 1:4, 1:4], image[1, 2:5, 0:3]]
    np.testing.assert_array_equal(run(middle), expected)
    corner = run(tf.image.extract_glimpse(image, [4, 4], [[0.0, 0.0]] * 2, False, False))
    np.testing.assert_array_equal(corner[:, 2:, 2:], image[:, :2, :2])
    assert ((corner[:, :2] >= 0) & (corner[:, :2] <= 1)).all()  # noise


def test_image_files() -> None:
    pytest.importorskip("PIL")
    pixels = (np.arange(10 * 12 * 3) % 255).reshape(10, 12, 3).astype("uint8")
    file = tf.image.encode_jpeg(pixels)
    assert run(tf.image.is_jpeg(file))
    assert not run(tf.image.is_jpeg("GIF89a"))
    assert run(tf.image.extract_jpeg_shape(file)).tolist() == [10, 12, 3]
    part = tf.image.decode_and_crop_jpeg(file, [1, 2, 3, 4])
    assert part.shape.as_list() == [3, 4, None]
    np.testing.assert_array_equal(run(part), run(tf.image.decode_jpeg(file))[1:4, 2:6])
    rough = run(tf.image.adjust_jpeg_quality(pixels, 100)).astype(int)
    assert rough.shape == pixels.shape
    assert abs(rough - pixels).max() < 60
    header = b"BM" + bytes(8) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    size = (2).to_bytes(4, "little") + (1).to_bytes(4, "little")
    bmp = header + size + (1).to_bytes(2, "little") + (24).to_bytes(2, "little") + bytes(24)
    bmp += bytes([1, 2, 3, 4, 5, 6, 0, 0])  # blue, green, red
    assert run(tf.image.decode_bmp(bmp)).tolist() == [[[3, 2, 1], [6, 5, 4]]]
    gif = (
        b"GIF89a\x02\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x02\x00\x01"
        b"\x00\x00\x02\x02D\n\x00;"
    )
    assert run(tf.image.decode_gif(gif)).shape == (1, 1, 2, 3)
    with pytest.raises(DataLossError, match="not a readable GIF"):
        run(tf.image.decode_gif(bmp))


def test_tensors_as_bytes(tmp_path: Path) -> None:
    text = tf.io.serialize_tensor(tf.constant([[1.0, 2.0]]))
    assert run(tf.io.parse_tensor(text, tf.float32)).tolist() == [[1, 2]]
    assert run(tf.parse_tensor(tf.serialize_tensor(["a", "b"]), tf.string)).tolist() == [b"a", b"b"]
    with pytest.raises(DTypeError, match="expected int32"):
        run(tf.io.parse_tensor(text, tf.int32))
    with pytest.raises(InvalidArgumentError, match="no TensorProto"):
        run(tf.io.parse_tensor("abc", tf.int32))
    run(tf.io.write_file(str(tmp_path / "new" / "a.txt"), "text"))
    assert (tmp_path / "new" / "a.txt").read_text() == "text"


def test_compressed_strings_and_json() -> None:
    decode = tf.io.decode_compressed
    assert run(decode([zlib.compress(b"abc")], "ZLIB")).tolist() == [b"abc"]
    assert run(decode([gzip.compress(b"abc")], "GZIP")).tolist() == [b"abc"]
    assert run(decode(["abc"])).tolist() == [b"abc"]
    for damaged in (b"abc", zlib.compress(b"abc")[:-2]):
        with pytest.raises(DataLossError):
            run(decode([damaged], "ZLIB"))
    json = (
        '{"features": {"feature": {"a": {"int64List": {"value": ["7"]}}, '
        '"b": {"bytesList": {"value": ["YWI="]}}, "c": {"floatList": {"value": [1.5]}}}}}'
    )
    kinds = {"a": tf.int64, "b": tf.string, "c": tf.float32}
    features = {key: tf.FixedLenFeature([], kind) for key, kind in kinds.items()}
    found = run(tf.io.parse_single_example(tf.io.decode_json_example(json), features))
    assert found == {"a": 7, "b": b"ab", "c": 1.5}
    with pytest.raises(InvalidArgumentError, match="not the JSON"):
        run(tf.io.decode_json_example('{"features": 3'))
