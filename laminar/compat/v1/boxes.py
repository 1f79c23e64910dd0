"""`tf.image`: boxes in images, (top, left, bottom, right), and windows of images."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from laminar import engine, ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .values import dims_of, static, symbol, tensor


def _corners(boxes: Any) -> list[Any]:
    """The least row and column, and the greatest, whichever corners the boxes are given by."""
    y1, x1, y2, x2 = (boxes[..., i] for i in range(4))
    return [ops.minimum(y1, y2), ops.minimum(x1, x2), ops.maximum(y1, y2), ops.maximum(x1, x2)]


def _overlap(one: Any, others: Any) -> Any:
    """Intersection over union of a box with others; 0 of boxes without area."""
    a, b = _corners(one), _corners(others)
    height = ops.maximum(ops.minimum(a[2], b[2]) - ops.maximum(a[0], b[0]), 0.0)
    width = ops.maximum(ops.minimum(a[3], b[3]) - ops.maximum(a[1], b[1]), 0.0)
    both = height * width
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return lookup("DivNoNan")(both, areas[0] + areas[1] - both)


@v1()
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: float = float("-inf"),
) -> Any:
    """The boxes of the greatest scores, none of which overlaps a greater one too much.

    Args:
        boxes: (n, 4).
        scores: (n).
        max_output_size: how many there are at most.
        iou_threshold: how much of their union two boxes may share.
        score_threshold: boxes without a greater score are left out.

    Returns:
        The numbers of the boxes, int32.
    """
    places, weights = symbol(boxes), symbol(scores)
    if places.shape.rank not in (2, None) or places.shape[-1] not in (4, None):
        raise ValueError(f"non_max_suppression: boxes are (n, 4), got {places.spec}")
    if weights.shape.rank not in (1, None):
        raise ValueError(f"non_max_suppression: scores are a vector, got {weights.spec}")
    if None not in (places.shape[0], weights.shape[0]) and places.shape[0] != weights.shape[0]:
        raise ValueError(f"non_max_suppression: {places.shape[0]} boxes, {weights.shape[0]} scores")
    for share in (static(iou_threshold),):
        if isinstance(share, int | float) and not 0 <= share <= 1:
            raise ValueError(f"non_max_suppression: iou_threshold is from 0 to 1, got {share}")
    limit, none = tensor(iou_threshold, places.dtype), tensor(-np.inf, weights.dtype)
    left = ops.where(weights > tensor(score_threshold, weights.dtype), weights, none)
    count = dims_of(places)[0]
    numbers = creation.arange(count, dtype="int32")

    def go_on(found: Any, chosen: Any, left: Any) -> Any:
        more = lookup("Less")(found, cast(symbol(max_output_size), "int32"))
        return lookup("LogicalAnd")(more, lookup("Any")(lookup("Greater")(left, none)))

    def choose(found: Any, chosen: Any, left: Any) -> Any:
        best = cast(lookup("ArgMax")(left, axis=0), "int32")
        shared = _overlap(gathering.gather(places, best), places)
        here = lookup("Equal")(numbers, best)
        gone = lookup("LogicalOr")(shared > limit, here)
        return found + 1, ops.where(here, found, chosen), ops.where(gone, none, left)

    begin = (symbol(0), symbol(creation.full([count], -1, "int32")), left)
    if isinstance(count, int) and count == 0:
        return begin[1]
    found, chosen, _ = engine.while_loop(go_on, choose, begin)
    order = ops.argsort(ops.where(chosen < 0, found, chosen))
    return cast(order[:found], "int32")


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
