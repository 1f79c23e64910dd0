"""Compressed strings, Examples as JSON, what image files say of themselves, written files."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

import numpy as np
import pytest

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.engine.io.example import decode_example
from laminar.engine.ops.io.compressed import decode_compressed, decode_json_example
from laminar.engine.ops.io.files import write_file
from laminar.engine.ops.io.image_frames import decode_frames, image_shape, is_image_file


def strings(*items: bytes) -> EagerTensor:
    return EagerTensor(np.array(items, object))


def scalar(item: bytes) -> EagerTensor:
    return EagerTensor(np.array(item, object))


@pytest.mark.parametrize(
    ("kind", "compress"), [("ZLIB", zlib.compress), ("GZIP", gzip.compress), ("", bytes)]
)
def test_strings_are_what_was_compressed(kind: str, compress: type[bytes]) -> None:
    texts = [b"", b"one", b"many " * 1000]
    given = strings(*map(compress, texts))
    assert decode_compressed(given, compression_type=kind).numpy().tolist() == texts


def test_data_that_end_early() -> None:
    with pytest.raises(DataLossError, match="end too early"):
        decode_compressed(strings(zlib.compress(b"text" * 99)[:-5]), compression_type="ZLIB")


def test_examples_as_json() -> None:
    text = b'{"features": {"feature": {"a": {"int64List": {"value": ["3", 4]}}}}}'
    (found,) = decode_json_example(strings(text)).numpy().tolist()
    (values,) = decode_example(found).values()
    np.testing.assert_array_equal(values, [3, 4])
    with pytest.raises(InvalidArgumentError, match="is not the JSON of an Example"):
        decode_json_example(strings(b"{"))


def test_what_image_files_say() -> None:
    image = pytest.importorskip("PIL.Image")
    files = {}
    for kind in ("JPEG", "GIF", "PNG"):
        with io.BytesIO() as file:
            image.new("RGB", (5, 3), (255, 0, 0)).save(file, kind)
            files[kind] = file.getvalue()
    np.testing.assert_array_equal(image_shape(scalar(files["JPEG"])).numpy(), [3, 5, 3])
    frames = decode_frames(scalar(files["GIF"])).numpy()
    np.testing.assert_array_equal(frames, np.broadcast_to([255, 0, 0], (1, 3, 5, 3)))
    found = is_image_file(strings(*files.values()), format="JPEG").numpy()
    np.testing.assert_array_equal(found, [True, False, False])


def test_a_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "note.txt"
    write_file(str(path), b"text")
    assert path.read_bytes() == b"text"
