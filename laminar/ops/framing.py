"""Images at another size: resized, padded, cropped, cut into patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, canonical_axes, int32
from laminar.engine.ops.array import padding as engine_padding
from laminar.engine.ops.array.axes import transpose
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.math.arithmetic import maximum, minimum, rint
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import greater, where
from laminar.engine.ops.nn import image as engine
from laminar.engine.ops.nn.windows import per_axis

from ..typing import DataFormat, Padding, TensorLike
from .arguments import floating, known_rank, one_of, tensor, whole
from .creation import full
from .layout import known_dims, on_batch, sizes
from .patches import windows
from .products import matmul
from .recording import public
from .resampling import resampling_weights

__all__ = [
    "crop_images",
    "extract_patches",
    "extract_patches_3d",
    "pad_images",
    "resize",
    "scale_and_translate",
]

_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")


@public
def resize(
    images: TensorLike,
    size: Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: DataFormat | None = None,
) -> Tensor:
    """Images at another resolution.

    Args:
        images: a batch, or one image.
        size: new height and width.
        interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5".
        antialias: whether, in shrinking, all pixels count.
        crop_to_aspect_ratio: whether to cut off borders first, so that nothing is distorted.
        pad_to_aspect_ratio: whether to add borders first, so that nothing is distorted.
        fill_mode: "constant", what borders are added.
        fill_value: the value of added borders.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Images of the new size, in the type of `images`.

    Raises:
        ShapeError: neither an image nor a batch.
        InvalidArgumentError: an unknown choice, or both aspect ratio options.

    Examples:
        >>> ops.image.resize(np.array([[[0.0], [4.0]]], "float32"), (1, 4))[0, :, 0]
        Tensor([0., 1., 3., 4.], shape=(4,), dtype=float32)
    """
    one_of("resize", "interpolation", interpolation, _INTERPOLATIONS)
    one_of("resize", "fill_mode", fill_mode, ("constant",))
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise InvalidArgumentError(
            "resize: crop_to_aspect_ratio and pad_to_aspect_ratio exclude each other"
        )
    size = _height_and_width("resize", size)

    def compute(x: Tensor) -> Tensor:
        if crop_to_aspect_ratio:
            x = _cropped_to(x, size)
        elif pad_to_aspect_ratio:
            x = _padded_to(x, size, fill_value)
        return engine.resize(x, size, interpolation=interpolation, antialias=antialias)

    return on_batch("resize", images, data_format, compute)


def _height_and_width(who: str, size: Sequence[Any]) -> tuple[Any, Any]:
    """Two sizes: numbers, or scalar tensors."""
    try:
        height, width = size
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{who}: size must be (height, width), got {size!r}") from None
    sides = (n if isinstance(n, Tensor) else whole(who, "a size", n) for n in (height, width))
    height, width = sides
    return height, width


def _in_ratio(x: Tensor, size: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """Height and width; and the height for this width, the width for this height, as `size` has it.

    They are numbers, or scalar tensors where the shape of the images is not known.
    """
    height, width = sizes(x)[1:3]
    rows, columns = size
    return [height, width], [width * rows // columns, height * columns // rows]


def _larger(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return maximum(*(x if isinstance(x, Tensor) else tensor(x, int32) for x in (a, b)))


def _cropped_to(x: Tensor, size: Sequence[int]) -> Tensor:
    now, fit = _in_ratio(x, size)
    inner = [_larger(-_larger(-n, -f), 1) for n, f in zip(now, fit, strict=True)]
    begin = [(n - i) // 2 for n, i in zip(now, inner, strict=True)]
    return _cut(x, begin, inner)


def _padded_to(x: Tensor, size: Sequence[int], fill_value: float) -> Tensor:
    now, fit = _in_ratio(x, size)
    above, left = ((_larger(n, f) - n) // 2 for n, f in zip(now, fit, strict=True))
    if isinstance(above, int) and isinstance(left, int):
        pads = [(0, 0), (above, above), (0, 0) if above else (left, left), (0, 0)]
        return engine_padding.pad(x, pads, "constant", fill_value)
    nothing = tensor(0, int32)
    left = where(greater(tensor(above, int32), nothing), nothing, tensor(left, int32))
    for axis, count in ((1, above), (2, left)):
        shape = [count if i == axis else n for i, n in enumerate(sizes(x))]
        border = full(shape, fill_value, x.dtype)
        x = concat([border, x, border], axis)
    return x


def _cut(x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    (top, left), (height, width) = begin, size
    return get_item(x, (slice(None), slice(top, top + height), slice(left, left + width)))


def _margins(
    who: str, total: int, before: int | None, after: int | None, target: int | None, sign: int
) -> tuple[int, int]:
    """Two margins, given two of: the one before, the one after, the size in the end."""
    before, after, target = (
        None if v is None else whole(who, "a margin or size", v) for v in (before, after, target)
    )
    if sum(v is None for v in (before, after, target)) != 1:
        raise InvalidArgumentError(
            f"{who}: for height and width alike, give two of the two margins and the target size, "
            f"got {before}, {after} and {target}"
        )
    if target is not None:
        change = sign * (target - total)
        if before is None:
            assert after is not None
            before = change - after
        else:
            after = change - before
    assert before is not None
    assert after is not None
    if before < 0 or after < 0 or (sign < 0 and before + after > total):
        raise InvalidArgumentError(
            f"{who}: margins of {before} and {after} do not fit a side of {total}"
        )
    return before, after


@public
def pad_images(
    images: TensorLike,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: DataFormat | None = None,
) -> Tensor:
    """Images with borders of zeros; for each side of two, give its width or the size in the end.

    Args:
        images: a batch, or one image.
        top_padding: rows above.
        left_padding: columns on the left.
        bottom_padding: rows below.
        right_padding: columns on the right.
        target_height: rows in the end.
        target_width: columns in the end.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Images with the borders, in the type of `images`.

    Raises:
        ShapeError: neither an image nor a batch.
        InvalidArgumentError: too many or too few are given, or a border would be negative.

    Examples:
        >>> images = np.zeros((1, 4, 4, 3))
        >>> padded = ops.image.pad_images(
        ...     images, top_padding=1, left_padding=0, target_height=8, target_width=6
        ... )
        >>> padded.shape
        (1, 8, 6, 3)
    """

    def compute(x: Tensor) -> Tensor:
        height, width = known_dims("pad_images", x, 1, 2)
        rows = _margins("pad_images", height, top_padding, bottom_padding, target_height, 1)
        columns = _margins("pad_images", width, left_padding, right_padding, target_width, 1)
        return engine_padding.pad(x, [(0, 0), rows, columns, (0, 0)])

    return on_batch("pad_images", images, data_format, compute)


@public
def crop_images(
    images: TensorLike,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: DataFormat | None = None,
) -> Tensor:
    """Images without borders; for each side of two, give its width or the size in the end.

    Args:
        images: a batch, or one image.
        top_cropping: rows cut off above.
        left_cropping: columns cut off on the left.
        bottom_cropping: rows cut off below.
        right_cropping: columns cut off on the right.
        target_height: rows in the end.
        target_width: columns in the end.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Images without the borders, in the type of `images`.

    Raises:
        ShapeError: neither an image nor a batch.
        InvalidArgumentError: too many or too few are given, or more is cut off than there is.

    Examples:
        >>> images = np.zeros((1, 8, 8, 3))
        >>> cropped = ops.image.crop_images(
        ...     images, top_cropping=2, left_cropping=1, target_height=4, target_width=5
        ... )
        >>> cropped.shape
        (1, 4, 5, 3)
    """

    def compute(x: Tensor) -> Tensor:
        height, width = known_dims("crop_images", x, 1, 2)
        top, bottom = _margins(
            "crop_images", height, top_cropping, bottom_cropping, target_height, -1
        )
        left, right = _margins(
            "crop_images", width, left_cropping, right_cropping, target_width, -1
        )
        return _cut(x, (top, left), (height - top - bottom, width - left - right))

    return on_batch("crop_images", images, data_format, compute)


def _patches(
    who: str,
    x: TensorLike,
    size: Any,
    strides: Any,
    dilation_rate: Any,
    padding: Padding,
    data_format: DataFormat | None,
    spatial: int,
) -> Tensor:
    found = per_axis(who, "size", size, spatial)

    def compute(x: Tensor) -> Tensor:
        steps = found if strides is None else strides
        y = windows(floating(x), found, steps, dilation_rate, padding)
        return cast(y, x.dtype)

    return on_batch(who, x, data_format, compute, spatial)


@public
def extract_patches(
    images: TensorLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: Padding = "valid",
    data_format: DataFormat | None = None,
) -> Tensor:
    """The pixels of each window of images, as the channels of one pixel.

    Args:
        images: a batch, or one image; with a size of three numbers, volumes.
        size: height and width of a window.
        strides: steps of the windows, by default their size.
        dilation_rate: distance of the pixels of a window.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        (batch, rows, columns, height * width * channels) of the windows, or without batch.

    Raises:
        ShapeError: wrong rank, or a window greater than the images.

    Examples:
        >>> ops.image.extract_patches(np.zeros((1, 6, 6, 3), "float32"), size=2, strides=2).shape
        (1, 3, 3, 12)
    """
    spatial = 3 if isinstance(size, Sequence) and len(size) == 3 else 2
    return _patches(
        "extract_patches", images, size, strides, dilation_rate, padding, data_format, spatial
    )


@public
def extract_patches_3d(
    volumes: TensorLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: Padding = "valid",
    data_format: DataFormat | None = None,
) -> Tensor:
    """As `extract_patches`, of volumes (batch, depth, height, width, channels) or of one volume.

    Args:
        volumes: a batch, or one volume.
        size: depth, height and width of a window; one number stands for all.
        strides: steps of the windows, by default their size.
        dilation_rate: distance of the cells of a window.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        The number of windows along each spatial axis, and as channels the cells of a window times
        the channels.

    Raises:
        ShapeError: wrong rank, or a window greater than the volumes.

    Examples:
        >>> volumes = np.zeros((1, 4, 4, 4, 1), "float32")
        >>> ops.image.extract_patches_3d(volumes, size=2, strides=2).shape
        (1, 2, 2, 2, 8)
    """
    return _patches(
        "extract_patches_3d", volumes, size, strides, dilation_rate, padding, data_format, 3
    )


@public
def scale_and_translate(
    images: TensorLike,
    output_shape: Sequence[int | None],
    scale: TensorLike,
    translation: TensorLike,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Tensor:
    """A tensor resampled along some axes: y(i) = x((i + 0.5 - translation) / scale - 0.5).

    Args:
        images: any tensor.
        output_shape: the shape of the result, of which the sizes of `spatial_dims` count; others
            may be None.
        scale: a factor for each of `spatial_dims`.
        translation: a shift in places of the result, for each of `spatial_dims`.
        spatial_dims: the axes.
        method: "linear", "bilinear", "trilinear", "triangle", "cubic", "bicubic", "tricubic",
            "lanczos3" or "lanczos5".
        antialias: whether, in shrinking, all places count.

    Places that fall outside of `images` give 0.

    Examples:
        >>> x = np.array([1.0, 2.0], "float32")
        >>> ops.image.scale_and_translate(x, (4,), np.array([2.0]), np.array([0.0]), (0,), "linear")
        Tensor([1.  , 1.25, 1.75, 2.  ], shape=(4,), dtype=float32)
    """
    given = tensor(images)
    x = floating(given)
    who = "scale_and_translate"
    factors, shifts = tensor(scale, x.dtype), tensor(translation, x.dtype)
    rank = known_rank(who, x)
    resized = canonical_axes(who, spatial_dims, rank)
    if len(output_shape) != rank:
        raise ShapeError(f"{who}: {output_shape} is no shape of {rank} axes, as {x.spec} has them")
    target = {axis: whole(who, "a size", output_shape[axis]) for axis in resized}
    for number, axis in enumerate(resized):
        (size,) = known_dims(who, x, axis)
        weights = resampling_weights(
            size,
            target[axis],
            get_item(factors, number),
            get_item(shifts, number),
            method,
            antialias,
        )
        order = [i for i in range(rank) if i != axis] + [axis]
        back = [order.index(i) for i in range(rank)]
        x = transpose(matmul(transpose(x, order), weights), back)
    if given.dtype.is_floating:
        return x
    limits = _limits(given)
    return cast(minimum(maximum(rint(x), limits[0]), limits[1]), given.dtype)


def _limits(x: Tensor) -> tuple[Tensor, Tensor]:
    bits = 8 * x.dtype.size
    low, high = (0, 2**bits - 1) if x.dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    dtype = floating(x).dtype
    return tensor(float(low), dtype), tensor(float(high), dtype)
