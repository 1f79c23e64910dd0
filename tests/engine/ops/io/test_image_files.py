"""Images as the contents of files, as ops."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine import (
    Graph,
    Session,
    constant,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
    placeholder,
)
from laminar.engine.errors import DataLossError, DTypeError, InvalidArgumentError, ShapeError

pytest.importorskip("PIL")
PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)


def test_round_trip() -> None:
    file = encode_png(constant(PIXELS))
    np.testing.assert_array_equal(decode_png(file).numpy(), PIXELS)
    np.testing.assert_array_equal(decode_image(file, 3).numpy(), PIXELS)
    assert decode_image(file, 1).shape == (4, 6, 1)
    smooth = np.full((8, 8, 3), 90, np.uint8)
    found = decode_jpeg(encode_jpeg(constant(smooth), 95)).numpy().astype(int)
    assert np.abs(found - 90).max() <= 2


def test_types() -> None:
    file = encode_png(constant(np.array([[[0], [51], [255]]], np.uint8)))
    np.testing.assert_allclose(
        decode_image(file, dtype="float32").numpy().ravel(), [0, 0.2, 1], rtol=1e-6
    )
    assert decode_image(file, dtype="uint16").numpy().ravel().tolist() == [0, 51 * 257, 65535]


def test_in_a_session() -> None:
    graph = Graph()
    with graph.as_default():
        file = placeholder("string", ())
        image = decode_png(file, 3)
    assert image.shape == (None, None, 3)
    content = encode_png(constant(PIXELS)).numpy()
    with Session(graph=graph) as session:
        np.testing.assert_array_equal(session.run(image, {file: content}), PIXELS)
        with pytest.raises(DataLossError, match="DecodeImage"):
            session.run(image, {file: b"no image"})


def test_mistakes() -> None:
    with pytest.raises(DataLossError):
        decode_jpeg(encode_png(constant(PIXELS)))
    with pytest.raises(InvalidArgumentError, match="channels"):
        decode_png(constant(b""), 5)
    with pytest.raises(DTypeError, match="type"):
        decode_image(constant(b""), dtype="int64")
    with pytest.raises(ShapeError, match="scalar"):
        decode_png(constant([b"", b""]))
    with pytest.raises(ShapeError, match="height, width, channels"):
        encode_png(constant(PIXELS[0]))
    with pytest.raises(DTypeError):
        encode_png(constant(PIXELS.astype(np.float32)))
