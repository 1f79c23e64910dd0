"""Images of another size, sampled where TensorFlow 1 samples: output i at input i * scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .values import dims_of, static, symbol


class ResizeMethod:
    """How pixels between pixels are made."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = 0, 1, 2, 3


_METHODS = {0: "bilinear", 1: "nearest", 2: "bicubic", 3: "area"}


def _number(x: Any) -> Any:
    return cast(symbol(x), "float32")


def _scale(size: Any, target: Any, align_corners: bool) -> Any:
    """How many input pixels go to an output pixel."""
    old, new = _number(size), _number(target)
    if not align_corners:
        return old / new
    inner = (old - 1.0) / ops.maximum(new - 1.0, 1.0)
    return ops.where(lookup("Greater")(new, _number(1)), inner, old / new)


def _at(places: Any, size: Any, weights: Any) -> Any:
    """A matrix with `weights` at the places of each row, which are kept inside."""
    columns = creation.arange(size, dtype="int32")
    last = cast(symbol(size), "int32") - 1
    inside = ops.minimum(ops.maximum(cast(places, "int32"), 0), last)
    hit = lookup("Equal")(ops.expand_dims(inside, -1), columns)
    return ops.where(hit, ops.expand_dims(weights, -1), 0.0)


def _bilinear(size: Any, target: Any, align: bool) -> Any:
    place = creation.arange(target, dtype="float32") * _scale(size, target, align)
    low = ops.floor(place)
    part = place - low
    return _at(low, size, 1.0 - part) + _at(low + 1.0, size, part)


def _cubic(t: Any) -> Any:
    """Keys's kernel, with a = -0.75."""
    a, t = -0.75, ops.abs(t)
    near = ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    far = ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a
    return ops.where(t <= 1.0, near, far)


def _bicubic(size: Any, target: Any, align: bool) -> Any:
    place = creation.arange(target, dtype="float32") * _scale(size, target, align)
    low = ops.floor(place)
    part = ops.round((place - low) * 1024.0) / 1024.0  # TensorFlow reads the kernel from a table
    found = _at(low - 1.0, size, _cubic(part + 1.0))
    for step in (0.0, 1.0, 2.0):
        found = found + _at(low + step, size, _cubic(part - step))
    return found


def _area(size: Any, target: Any, align: bool) -> Any:
    scale = _scale(size, target, align)
    start = ops.expand_dims(creation.arange(target, dtype="float32") * scale, -1)
    pixel = creation.arange(size, dtype="float32")
    covered = ops.minimum(start + scale, pixel + 1.0) - ops.maximum(start, pixel)
    return ops.maximum(covered, 0.0) / scale


_MATRICES: dict[str, Callable[[Any, Any, bool], Any]] = {
    "bilinear": _bilinear,
    "bicubic": _bicubic,
    "area": _area,
}


def _nearest(x: Tensor, axis: int, target: Any, align: bool) -> Tensor:
    size = dims_of(x)[axis]
    place = creation.arange(target, dtype="float32") * _scale(size, target, align)
    place = ops.floor(place + 0.5) if align else ops.floor(place)
    last = cast(symbol(size), "int32") - 1
    return gathering.gather(x, ops.minimum(cast(place, "int32"), last), axis)


def _targets(size: Any) -> tuple[Any, Any]:
    known = static(size)
    if isinstance(known, Tensor):
        if not known.shape.is_compatible_with([2]):
            raise ValueError(f"a size is (height, width), got {known.spec}")
        return known[0], known[1]
    if len(known) != 2:
        raise ValueError(f"a size is (height, width), got {known!r}")
    for number in known:
        if isinstance(number, int) and number <= 0:
            raise ValueError(f"a height and a width are above 0, got {known!r}")
    return known[0], known[1]


def resized(images: Any, size: Any, method: str, align_corners: bool) -> Any:
    """Images (batch, h, w, c) or one (h, w, c) in another height and width."""
    x = symbol(images)
    rank = x.shape.rank
    if rank not in (3, 4):
        raise ValueError(f"images have 3 or 4 axes, got {x.spec}")
    height, width = _targets(size)
    if method == "nearest":
        return _nearest(
            _nearest(x, rank - 3, height, align_corners), rank - 2, width, align_corners
        )
    if x.dtype not in ("float32", "float64"):
        x = cast(x, "float32")
    own = dims_of(x)
    rows = cast(_MATRICES[method](own[-3], height, align_corners), x.dtype)
    columns = cast(_MATRICES[method](own[-2], width, align_corners), x.dtype)
    return ops.einsum("wj,...hjc->...hwc", columns, ops.einsum("hi,...ijc->...hjc", rows, x))


@v1()
def resize_images(
    images: Any,
    size: Any,
    method: Any = 0,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
) -> Any:
    """Images of another height and width.

    Args:
        images: (batch, h, w, c) or (h, w, c).
        size: (height, width).
        method: a ResizeMethod.
        align_corners: whether the centers of the corner pixels stay where they are; else output i
            is sampled at i * (old size) / (new size).
        preserve_aspect_ratio: whether the images become as large as fits, and no larger.

    Returns:
        Floats; of the nearest neighbour, and where the size stays, the type of `images`.
    """
    name = _METHODS.get(method, method)
    if name not in (*_MATRICES, "nearest"):
        raise ValueError(f"resize_images: method is one of 0 to 3, got {method!r}")
    x = symbol(images)
    height, width = _targets(size)
    if preserve_aspect_ratio:
        own = dims_of(x)[-3:-1]
        if all(isinstance(d, int) for d in (*own, height, width)):
            factor = min(height / own[0], width / own[1])
            whole = [round(factor * o) for o in own]
        else:
            scale = ops.minimum(_number(height) / _number(own[0]), _number(width) / _number(own[1]))
            whole = [cast(ops.round(scale * _number(o)), "int32") for o in own]
        height, width = whole
    target = [d if isinstance(d, int) else -1 for d in (height, width)]
    if x.shape.rank in (3, 4) and target == list(x.shape[-3:-1]):
        return x
    return resized(x, [height, width], name, align_corners)


def _resize(method: str, doc: str) -> Callable[..., Any]:
    @v1()
    def resize(
        images: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False
    ) -> Any:
        if half_pixel_centers:
            raise ValueError(f"resize_{method}: there is no half_pixel_centers here")
        return resized(images, size, method, align_corners)

    resize.__doc__ = doc
    return resize


resize_bilinear = _resize("bilinear", "Images of another height and width, by lines.")
resize_bicubic = _resize("bicubic", "Images of another height and width, by cubics.")
resize_area = _resize("area", "Images of another height and width, by means over areas.")
resize_nearest_neighbor = _resize("nearest", "Images of another height and width, same pixels.")
