"""What image files say of themselves, and all pictures of those that have several. On the host."""

from __future__ import annotations

import numpy as np

from ...errors import ShapeError
from ...graph import STRING, Array, TensorSpec, as_dtype, bool_, int32, uint8
from ...io.images import image_size, is_image, read_frames
from ..core.registry import define, no_gradient
from ..text.string import map_strings


def _check(who: str, contents: TensorSpec) -> None:
    if not contents.shape.is_compatible_with(()):
        raise ShapeError(f"{who}: the contents of one file are a scalar, got {contents}")


@define("DecodeFrames", dtypes=STRING)
def decode_frames(contents: TensorSpec) -> TensorSpec:
    """The pictures of a GIF file, uint8 (pictures, height, width, 3)."""
    _check("DecodeFrames", contents)
    return TensorSpec([None, None, None, 3], uint8)


@decode_frames.kernel("cpu")
def _decode_frames_kernel(contents: Array) -> Array:
    return read_frames(contents.item())


decode_frames.grad(no_gradient)


@define("ImageShape", dtypes=STRING)
def image_shape(contents: TensorSpec, *, dtype: str = int32) -> TensorSpec:
    """(height, width, channels) of a JPEG file, of which only the head is read."""
    _check("ImageShape", contents)
    return TensorSpec([3], as_dtype(dtype))


@image_shape.kernel("cpu")
def _image_shape_kernel(contents: Array, *, dtype: str) -> Array:
    return np.array(image_size(contents.item(), ("JPEG",)), as_dtype(dtype).numpy)


image_shape.grad(no_gradient)


@define("IsImage", dtypes=STRING)
def is_image_file(contents: TensorSpec, *, format: str) -> TensorSpec:
    """Whether each string begins as a file of the format does."""
    return TensorSpec(contents.shape, bool_)


@is_image_file.kernel("cpu")
def _is_image_kernel(contents: Array, *, format: str) -> Array:
    return map_strings(lambda item: is_image(item, format), contents, np.bool_)


is_image_file.grad(no_gradient)
