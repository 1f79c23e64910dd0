"""Files written, tensors as strings of bytes, and image files of more formats."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.graph import DType, Tensor, as_dtype, int32, string
from laminar.engine.io.images import read_image, write_image
from laminar.engine.ops.core import host
from laminar.engine.ops.io import compressed, image_frames
from laminar.engine.ops.random import draws
from laminar.engine.saving.meta_graph_text import messages
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .pictures import convert_image_dtype
from .protos import make_ndarray, make_tensor_proto
from .values import as_kind, static, symbol, tensor


@v1()
def write_file(filename: Any, contents: Any, name: str | None = None) -> Any:
    """An operation that writes a file; see `laminar.engine.write_file`."""
    return engine.write_file(tensor(filename, string), tensor(contents, string), name)


@v1()
def serialize_tensor(tensor: Any) -> Tensor:
    """A tensor as the bytes of a TensorProto, a string scalar."""

    def write(x: Any) -> list[Any]:
        found = make_tensor_proto(x).SerializeToString(deterministic=True)
        return [np.array(found, object)]

    spec = engine.TensorSpec([], string)
    return host.host_function(write, [symbol(tensor)], [spec], None)[0]


@v1()
def parse_tensor(serialized: Any, out_type: Any) -> Tensor:
    """The tensor of the bytes of a TensorProto.

    Raises:
        DTypeError: it is of another type than `out_type`.
        InvalidArgumentError: these bytes are no TensorProto.
    """
    wanted = as_kind(out_type)

    def read(text: Any) -> list[Any]:
        proto = messages().TensorProto()
        try:
            proto.ParseFromString(text.item())
        except Exception as cause:  # protobuf's own class, which is not to be imported here
            raise InvalidArgumentError(
                f"parse_tensor: {len(text.item())} bytes are no TensorProto: {cause}"
            ) from cause
        array = make_ndarray(proto)
        found = string if array.dtype == object else DType(str(array.dtype))
        if found != wanted:
            raise DTypeError(f"parse_tensor: the tensor is {found}, expected {wanted}")
        return [array]

    spec = engine.TensorSpec(None, wanted)
    return host.host_function(read, [tensor(serialized, string)], [spec], None)[0]


@v1()
def decode_compressed(bytes: Any, compression_type: str = "") -> Tensor:
    """Strings without their compression, "ZLIB" or "GZIP"."""
    return compressed.decode_compressed(tensor(bytes, string), compression_type=compression_type)


@v1()
def decode_json_example(json_examples: Any) -> Tensor:
    """Examples that are written as JSON as messages, for `parse_example`."""
    return compressed.decode_json_example(tensor(json_examples, string))


# Images


@v1()
def decode_bmp(contents: Any, channels: int = 0) -> Tensor:
    """The pixels of a BMP file, uint8."""
    return engine.decode_image(tensor(contents, string), channels, "uint8", ("BMP",))


@v1()
def decode_gif(contents: Any) -> Tensor:
    """The pictures of a GIF file, uint8 (pictures, height, width, 3)."""
    return image_frames.decode_frames(tensor(contents, string))


@v1()
def is_jpeg(contents: Any) -> Tensor:
    """Whether a string begins as a JPEG file does."""
    return image_frames.is_image_file(tensor(contents, string), format="JPEG")


@v1()
def extract_jpeg_shape(contents: Any, output_type: Any = int32) -> Tensor:
    """(height, width, channels) of a JPEG file, of which only the head is read."""
    return image_frames.image_shape(tensor(contents, string), dtype=as_dtype(output_type))


@v1()
def decode_and_crop_jpeg(contents: Any, crop_window: Any, channels: int = 0, **hints: Any) -> Any:
    """A part of the pixels of a JPEG file.

    Args:
        contents: the file.
        crop_window: (top, left, height, width).
        channels: 0 for those of the file, 1 or 3.
        hints: how it is decoded; accepted.
    """
    pixels = engine.decode_jpeg(tensor(contents, string), channels)
    top, left, height, width = (symbol(crop_window)[i] for i in range(4))
    window = pixels[top : top + height, left : left + width]
    known = static(crop_window)
    if isinstance(known, list):
        window.set_shape([*known[2:], channels or None])
    return window


@v1()
def adjust_jpeg_quality(image: Any, jpeg_quality: Any) -> Any:
    """An image as it comes out of a JPEG file of that quality, 0 to 100."""
    x = symbol(image)
    quality = static(jpeg_quality)
    pixels = convert_image_dtype(x, "uint8", saturate=True)

    def through(picture: Any, at: Any) -> list[Any]:
        return [read_image(write_image(picture, "JPEG", int(at)), picture.shape[-1], ("JPEG",))]

    spec = engine.TensorSpec(x.shape, "uint8")
    found = host.host_function(through, [pixels, symbol(quality)], [spec], None)[0]
    return convert_image_dtype(found, x.dtype, saturate=True)


@v1()
def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Any:
    """An image as it comes out of a JPEG file of a random quality."""
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise ValueError(
            f"random_jpeg_quality: expected 0 <= min < max <= 100, got {min_jpeg_quality} and "
            f"{max_jpeg_quality}"
        )
    quality = draws.random_int(draw_state(seed), (), min_jpeg_quality, max_jpeg_quality)
    return adjust_jpeg_quality(image, quality)
