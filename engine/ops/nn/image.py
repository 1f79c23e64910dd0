"""Images (batch, height, width, channels): resizing, and colour to grey."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import DType, Tensor, bool_, float32, float64
from ..core.basic import constant
from ..linalg.matmul import matmul
from ..math.arithmetic import maximum, minimum, rint
from ..math.cast import cast
from .resample import resample

_METHODS = {
    "nearest": "nearest",
    "bilinear": "linear",
    "bicubic": "cubic",
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
    "area": "mean",
}


def resize(
    x: Tensor,
    size: Sequence[int | Tensor],
    *,
    interpolation: str = "bilinear",
    antialias: bool = False,
) -> Tensor:
    """Images at another resolution; the centres of the outer pixels stay half a pixel inside.

    Args:
        x: (batch, height, width, channels) or (height, width, channels).
        size: new height and width; entries may be scalar tensors.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos3", "lanczos5" or "area" (the mean
            of the pixels covered).
        antialias: whether, in shrinking, all pixels count.

    Returns:
        Images of the dtype of `x`: integers are rounded and kept in the range of their type.

    Raises:
        DTypeError: bools are to be interpolated.
        ShapeError: `x` has another number of axes.
        InvalidArgumentError: the interpolation is unknown, or size is not a pair.
    """
    if interpolation not in _METHODS:
        raise InvalidArgumentError(
            f"resize: the interpolation must be one of {', '.join(_METHODS)}, got {interpolation!r}"
        )
    if len(size) != 2:
        raise InvalidArgumentError(f"resize: size must be (height, width), got {size!r}")
    if x.shape.rank not in (3, 4):
        raise ShapeError(
            f"resize: x must be (batch, height, width, channels) or (height, width, channels), "
            f"got {x.spec}",
            remedy="add the channels with expand_dims(x, -1)",
        )
    method = _METHODS[interpolation]
    y = x
    if method != "nearest" and x.dtype == bool_:
        raise DTypeError(
            f"resize: of bools there is nothing between, got {x.spec}",
            remedy='interpolation="nearest", or cast(x, "float32")',
        )
    if method != "nearest" and not x.dtype.is_floating:
        y = cast(x, float32 if x.dtype.size <= 2 else float64)
    y = resample(y, -3, size[0], method=method, antialias=antialias)
    y = resample(y, -2, size[1], method=method, antialias=antialias)
    return y if y.dtype == x.dtype else _to_integer(y, x.dtype)


def _to_integer(y: Tensor, dtype: DType) -> Tensor:
    limits = np.iinfo(dtype.numpy)
    low, high = (constant(float(v), y.dtype) for v in (limits.min, limits.max))
    return cast(maximum(minimum(rint(y), high), low), dtype)


# Luma of ITU-R BT.601-7, section 2.5.1, to the digits that are customary for images.
_LUMA = np.array([[0.2989], [0.5870], [0.1140]])


def rgb_to_grayscale(x: Tensor) -> Tensor:
    """The luma of each pixel, 0.2989 R + 0.5870 G + 0.1140 B.

    Args:
        x: (..., 3), a floating type.

    Returns:
        (..., 1).

    Raises:
        ShapeError: the last axis is not of size 3.
    """
    if x.shape.rank is not None and (not x.shape or x.shape[-1] not in (3, None)):
        raise ShapeError(
            f"rgb_to_grayscale: the last axis must hold red, green and blue, got {x.spec}"
        )
    return matmul(x, constant(_LUMA, x.dtype))
