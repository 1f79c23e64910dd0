"""`tf.image`: how alike two images are, their edges, and parts of them around points."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array.gather import gather
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state
from laminar.ops.filters import filtered, gaussian, slopes

from .adapting import v1
from .maths import reduce_mean
from .pictures import convert_image_dtype
from .values import dims_of, static, symbol

# Source: Wang et al., "Multiscale structural similarity for image quality assessment", 2003.
_SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def _as_floats(a: Any, b: Any, max_val: Any) -> tuple[Tensor, Tensor, Any]:
    x, y = symbol(a), symbol(b)
    if not x.shape.is_compatible_with(y.shape) or (x.shape.rank is not None and x.shape.rank < 3):
        raise ShapeError(f"expected two batches of images of one shape, got {x.spec} and {y.spec}")
    most = cast(convert_image_dtype(cast(symbol(max_val), x.dtype), "float32"), "float32")
    return convert_image_dtype(x, "float32"), convert_image_dtype(y, "float32"), most


def _parts(
    x: Tensor, y: Tensor, most: Any, size: int, sigma: float, k1: float, k2: float
) -> tuple[Any, Any]:
    """(similarity, its factor of contrast and structure), of each channel: (..., channels)."""
    if x.shape[-1] is None:
        raise ShapeError("ssim: the number of channels must be known")
    line: Any = gaussian(size, sigma, x.dtype)
    window = line[:, None] * line
    lead = x.shape[:-3]

    def blurred(z: Any) -> Any:
        flat = lookup("Reshape")(z, shape=(-1, *z.shape[-3:])) if len(lead) != 1 else z
        found = filtered(flat, window, "valid")
        if len(lead) == 1:
            return found
        return lookup("Reshape")(found, shape=(*lead, *found.shape[1:]))

    c1, c2 = (k1 * most) ** 2, (k2 * most) ** 2
    mean_x, mean_y = blurred(x), blurred(y)
    both = mean_x * mean_y * 2.0
    squares = mean_x * mean_x + mean_y * mean_y
    luminance = (both + c1) / (squares + c1)
    product = blurred(x * y) * 2.0
    second = blurred(x * x + y * y)
    structure = (product - both + c2) / (second - squares + c2)
    return reduce_mean(luminance * structure, [-3, -2]), reduce_mean(structure, [-3, -2])


@v1()
def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of images, at most 1, as the mean over windows and channels.

    Args:
        img1: (..., height, width, channels), each side at least the size of a window.
        img2: likewise.
        max_val: the range of a pixel, such as 255.
        filter_size: of the windows, whose weights are a Gaussian bell.
        filter_sigma: its width.
        k1: keeps quotients of means in bounds.
        k2: keeps quotients of variances in bounds.

    Source: Wang et al., "Image quality assessment: from error visibility to structural
        similarity", 2004, equation 13.
    """
    x, y, most = _as_floats(img1, img2, max_val)
    whole, _ = _parts(x, y, most, filter_size, filter_sigma, k1, k2)
    found: Tensor = reduce_mean(whole, [-1])
    return found


@v1()
def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Any = _SCALES,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of images over several scales, each half of the one before.

    Args:
        img1, img2, max_val, filter_size, filter_sigma, k1, k2: see `ssim`.
        power_factors: the exponent of each scale.

    Source: Wang et al., "Multiscale structural similarity for image quality assessment", 2003,
        equation 7.
    """
    x, y, most = _as_floats(img1, img2, max_val)
    found: Any = None
    for scale, power in enumerate(power_factors):
        if scale:
            x, y = _half(x), _half(y)
        whole, structure = _parts(x, y, most, filter_size, filter_sigma, k1, k2)
        factor = whole if scale == len(power_factors) - 1 else structure
        own = ops.power(ops.relu(factor), float(power))
        found = own if found is None else found * own
    result: Tensor = reduce_mean(found, [-1])
    return result


def _half(x: Any) -> Any:
    """The means of 2 by 2 pixels; a side of odd length has its last line twice."""
    if None in x.shape[-3:-1]:
        raise ShapeError("ssim_multiscale: the height and width must be known")
    height, width, channels = x.shape[-3:]
    edges = [(0, 0)] * (len(x.shape) - 3) + [(0, height % 2), (0, width % 2), (0, 0)]
    if height % 2 or width % 2:
        x = ops.pad(x, edges, "symmetric")
    lead = x.shape[:-3]
    sizes = (
        -1 if None in lead else int(np.prod(lead)),
        -(-height // 2),
        2,
        -(-width // 2),
        2,
        channels,
    )
    means = reduce_mean(lookup("Reshape")(x, shape=sizes), [2, 4])
    if len(lead) == 1:
        return means
    return lookup("Reshape")(means, shape=(*lead, *means.shape[1:]))


@v1()
def sobel_edges(image: Any) -> Tensor:
    """The change of images downwards and to the right: (batch, height, width, channels, 2)."""
    x = symbol(image)
    if x.shape.rank != 4 or x.shape[-1] is None:
        raise ShapeError(f"sobel_edges: expected (batch, height, width, channels), got {x.spec}")
    return slopes(ops.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "reflect"), "valid")


@v1()
def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
) -> Tensor:
    """A window of each image around a point; beyond the edges is noise.

    Args:
        input: (batch, height, width, channels), float32.
        size: (height, width) of the window.
        offsets: (batch, 2), of the middle of each window, down and right.
        centered: whether they count from the middle of the image, else from its corner.
        normalized: whether they are parts of the sides, -1 to 1 from the middle, else pixels.
        uniform_noise: whether the noise is uniform from 0 to 1, else normal.

    Returns:
        (batch, height, width, channels) of windows.
    """
    x, places = symbol(input), cast(symbol(offsets), "float32")
    if x.shape.rank != 4 or places.shape.rank != 2:
        raise ShapeError(f"extract_glimpse: images {x.spec}, offsets {places.spec} are not such")
    known = static(size)
    lengths = [known[i] if not isinstance(known, Tensor) else known[i] for i in (0, 1)]
    lines, there = [], []
    for axis in (0, 1):
        side = cast(symbol(dims_of(x)[axis + 1]), "float32")
        middle = places[:, axis] * (side if normalized else 1.0)
        if centered:
            middle = middle / 2.0 + side / 2.0
        first = middle - cast(symbol(lengths[axis]), "float32") / 2.0
        line = cast(first, "int32")[:, None] + creation.arange(lengths[axis], dtype="int32")
        end = cast(side, "int32")
        there.append(lookup("LogicalAnd")(line >= 0, line < end))
        lines.append(ops.minimum(ops.maximum(line, 0), end - 1))
    rows, columns = lines
    found = gather(gather(x, rows, 1, 1), columns, 2, 1)
    inside = lookup("LogicalAnd")(there[0][:, :, None], there[1][:, None, :])
    shape = dims_of(found)
    draw = draws.random_uniform if uniform_noise else draws.random_normal
    noise = draw(draw_state(None), shape, 0.0, 1.0, found.dtype)
    window: Tensor = ops.where(inside[..., None], found, noise)
    return window
