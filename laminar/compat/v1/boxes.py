"""`tf.image`: boxes in images, (top, left, bottom, right), and windows of images."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.core.checks import assert_op
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random.boxes import sample_distorted_box
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .values import dims_of, static, symbol, tensor


def _corners(boxes: Any) -> list[Any]:
    """The least row and column, and the greatest, whichever corners the boxes are given by."""
    y1, x1, y2, x2 = (boxes[..., i] for i in range(4))
    return [ops.minimum(y1, y2), ops.minimum(x1, x2), ops.maximum(y1, y2), ops.maximum(x1, x2)]


def overlap(one: Any, others: Any) -> Any:
    """Intersection over union of a box with others; 0 of boxes without area."""
    a, b = _corners(one), _corners(others)
    height = ops.maximum(ops.minimum(a[2], b[2]) - ops.maximum(a[0], b[0]), 0.0)
    width = ops.maximum(ops.minimum(a[3], b[3]) - ops.maximum(a[1], b[1]), 0.0)
    both = height * width
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return lookup("DivNoNan")(both, areas[0] + areas[1] - both)


@v1()
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    box_indices: Any = None,
) -> Any:
    """Parts of images in one size.

    Args:
        image: (batch, h, w, c).
        boxes: (n, 4), where 0 and 1 are the centers of the pixels at the edges.
        box_ind, box_indices: (n), of which image each is a part.
        crop_size: (height, width).
        method: "bilinear" or "nearest".
        extrapolation_value: what stands outside of the image.

    Returns:
        (n, height, width, c), float32.
    """
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"crop_and_resize: method is 'bilinear' or 'nearest', got {method!r}")
    x, places = cast(symbol(image), "float32"), cast(symbol(boxes), "float32")
    of = cast(symbol(box_ind if box_indices is None else box_indices), "int32")
    if x.shape.rank != 4 or places.shape.rank != 2 or places.shape[-1] not in (4, None):
        raise ValueError(f"crop_and_resize: images {x.spec} and boxes {places.spec} are not such")
    known = static(crop_size)
    target = [known[0], known[1]] if isinstance(known, Tensor) else list(known)
    sampled = gathering.gather(x, of)
    outside: list[Any] = []
    for axis in (1, 2):
        sampled, beyond = _sampled(sampled, places, axis, target[axis - 1], method)
        outside.append(beyond)
    out = lookup("LogicalOr")(outside[0][:, :, None, None], outside[1][:, None, :, None])
    return ops.where(out, tensor(extrapolation_value, "float32"), sampled)


def _sampled(x: Tensor, boxes: Any, axis: int, target: Any, method: str) -> tuple[Any, Any]:
    """Images read along an axis at the places of their boxes, and which of these are outside."""
    edge = cast(symbol(dims_of(x)[axis]), "float32") - 1.0
    first, last = boxes[:, axis - 1], boxes[:, axis + 1]
    steps = creation.arange(target, dtype="float32")
    count = cast(symbol(target), "float32")
    share = ops.where(count > 1.0, steps / ops.maximum(count - 1.0, 1.0), 0.5)
    place = (first[:, None] + (last - first)[:, None] * share) * edge
    beyond = lookup("LogicalOr")(place < 0.0, place > edge)
    inside = ops.minimum(ops.maximum(place, 0.0), edge)
    columns = creation.arange(dims_of(x)[axis], dtype="float32")
    near = inside if method == "bilinear" else ops.floor(inside + 0.5)
    weights = ops.maximum(1.0 - ops.abs(near[:, :, None] - columns), 0.0)
    equation = "nti,nijc->ntjc" if axis == 1 else "nti,njic->njtc"
    return ops.einsum(equation, weights, x), beyond


@v1(ksizes="sizes")
def extract_image_patches(
    images: Any, sizes: Any = None, strides: Any = None, rates: Any = None, padding: str = "VALID"
) -> Any:
    """The windows of images as channels: (batch, rows, columns, height * width * c).

    Args:
        images: (batch, h, w, c).
        sizes: (1, height, width, 1) of a window.
        strides: (1, down, right, 1) from a window to the next.
        rates: (1, down, right, 1) between the pixels of a window.
        padding: "VALID" or "SAME".
    """
    x = tensor(images)
    numbers = [tuple(static(n)) for n in (sizes, strides, rates)]
    for what, given in zip(("sizes", "strides", "rates"), numbers, strict=True):
        if len(given) != 4 or given[0] != 1 or given[3] != 1:
            raise ValueError(f"extract_image_patches: {what} are (1, n, m, 1), got {given}")
    size, stride, rate = (n[1:3] for n in numbers)
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"extract_image_patches: padding is SAME or VALID, got {padding!r}")
    around: Literal["same", "valid"] = "same" if padding == "SAME" else "valid"
    return ops.image.extract_patches(x, size, stride, rate, around, "channels_last")


@v1()
def draw_bounding_boxes(images: Any, boxes: Any, colors: Any = None) -> Any:
    """Images with lines, one pixel wide, around boxes.

    Args:
        images: (batch, h, w, c), floats.
        boxes: (batch, n, 4), parts of the height and width.
        colors: (k, c at least), taken in turn; by default yellow, blue, red, ...
    """
    x, places = symbol(images), cast(symbol(boxes), "float32")
    if x.shape.rank != 4 or places.shape.rank != 3:
        raise ValueError(f"draw_bounding_boxes: images {x.spec}, boxes {places.spec} are not such")
    if places.shape[1] is None or x.shape[-1] is None:
        raise ValueError("draw_bounding_boxes: the numbers of boxes and channels must be known")
    depth = x.shape[-1]
    table = _COLORS if depth > 1 else [[1.0, 1.0, 1.0, 1.0]]
    palette = tensor(np.asarray(table, "float32")) if colors is None else tensor(colors)
    height, width = (cast(symbol(d), "float32") for d in dims_of(x)[1:3])
    rows = creation.arange(dims_of(x)[1], dtype="float32")[None, :, None]
    columns = creation.arange(dims_of(x)[2], dtype="float32")[None, None, :]
    for number in range(places.shape[1]):
        top, left, bottom, right = (places[:, number, i, None, None] for i in range(4))
        top, bottom = (_whole(y * (height - 1.0)) for y in (top, bottom))
        left, right = (_whole(z * (width - 1.0)) for z in (left, right))
        across = lookup("LogicalAnd")(columns >= left, columns <= right)
        down = lookup("LogicalAnd")(rows >= top, rows <= bottom)
        level = lookup("LogicalOr")(lookup("Equal")(rows, top), lookup("Equal")(rows, bottom))
        upright = lookup("LogicalOr")(
            lookup("Equal")(columns, left), lookup("Equal")(columns, right)
        )
        line = lookup("LogicalOr")(
            lookup("LogicalAnd")(level, across), lookup("LogicalAnd")(upright, down)
        )
        color = cast(palette[number % int(palette.shape[0] or 1), :depth], x.dtype)
        x = ops.where(line[..., None], color, x)
    return x


def _whole(x: Any) -> Any:
    """Rounded towards 0."""
    return cast(cast(x, "int32"), "float32")


_COLORS = [
    [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1],
    [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
]  # fmt: skip


@v1()
def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
) -> Any:
    """A random part of an image that holds enough of one of the objects in it.

    Args:
        image_size: (height, width, channels).
        bounding_boxes: (batch, n, 4), parts of the sides.
        seed: for the same parts in each session.
        seed2: accepted.
        min_object_covered: how much of an object is in it.
        aspect_ratio_range: of its width over its height, by default 0.75 to 1.33.
        area_range: which part of the image it is, by default 0.05 to 1.
        max_attempts: after how many tries it is the whole image, by default 100.
        use_image_if_no_bounding_boxes: whether there may be no objects.

    Returns:
        (begin (top, left, 0), size (height, width, -1), box (1, 1, 4)): for `tf.slice` and
        `draw_bounding_boxes`.

    Raises:
        InvalidArgumentError: there are no objects, and that is not allowed.
    """
    size, places = cast(symbol(image_size), "int32"), cast(symbol(bounding_boxes), "float32")
    flat = lookup("Reshape")(places, shape=(-1, 4))
    if not use_image_if_no_bounding_boxes:
        count = lookup("Size")(flat)
        there = lookup("Greater")(count, tensor(0, count.dtype))
        message = "sample_distorted_bounding_box: there are no boxes"
        held = assert_op(there, message=message, summarize=0)
        flat = flat * cast(held, "float32")
    ratios, areas = aspect_ratio_range or (0.75, 1.33), area_range or (0.05, 1.0)
    part = sample_distorted_box(
        draw_state(seed),
        size,
        flat,
        min_object_covered=float(min_object_covered),
        aspect_ratio_range=(float(ratios[0]), float(ratios[1])),
        area_range=(float(areas[0]), float(areas[1])),
        max_attempts=max_attempts or 100,
    )
    begin = ops.concatenate([part[:2], tensor(np.array([0], "int32"))])
    extent = ops.concatenate([part[2:], tensor(np.array([-1], "int32"))])
    sides = cast(ops.concatenate([size[:2], size[:2]]), "float32")
    corners = cast(ops.concatenate([part[:2], part[:2] + part[2:]]), "float32") / sides
    return begin, extent, lookup("Reshape")(corners, shape=(1, 1, 4))
