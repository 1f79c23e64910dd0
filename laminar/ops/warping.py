"""Images read at other places: moved, turned, stretched, shaken."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, int32
from laminar.engine.ops.array import creation, join
from laminar.engine.ops.array.axes import expand_dims, squeeze
from laminar.engine.ops.array.gather import gather, gather_along
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.core.basic import ones_like, zeros_like
from laminar.engine.ops.linalg.solve import solve
from laminar.engine.ops.math.arithmetic import absolute, floor, maximum, minimum, mod, rint, sign
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import greater_equal, less, logical_and, where
from laminar.engine.ops.random.draws import random_normal
from laminar.engine.ops.random.random_state import next_state
from laminar.random.seeds import draw_seed

from ..random.seeds import SeedLike
from ..typing import DataFormat, TensorLike
from .arguments import floating, known_rank, one_of, tensor
from .filters import blurred
from .layout import known_dims, on_batch, sizes
from .recording import public

__all__ = ["affine_transform", "elastic_transform", "map_coordinates", "perspective_transform"]

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
_ORDERS = {"nearest": 0, "bilinear": 1}

# Gives the values at whole places, one tensor of them for each axis.
Reader = Callable[[list[Tensor]], Tensor]


def _inside(place: Any, size: int, mode: str) -> Tensor:
    """Whole places (floats) brought into 0 ... size - 1, as `mode` continues a line."""
    n = size * ones_like(place)
    if mode == "wrap":
        place = mod(place, n)
    elif mode == "mirror":  # b c | a b c | b a: the ends once
        period = max(2 * (size - 1), 1) * ones_like(place)
        turned = mod(place, period)
        place = minimum(turned, period - turned)
    elif mode == "reflect":  # b a | a b c | c b: the ends twice
        turned = mod(place, 2 * n)
        place = minimum(turned, 2 * n - 1 - turned)
    return minimum(maximum(place, zeros_like(place)), n - 1)


def _interpolated(
    read: Reader,
    shape: Sequence[int],
    places: Sequence[Any],
    order: int,
    mode: str,
    fill: Any,
) -> Tensor:
    """The values at places between whole ones, for each axis of `shape` one tensor of places.

    With order 0 the nearest value, with order 1 the mean of the 2**axes around, each weighted by
    its nearness.
    """
    corners: list[list[tuple[Any, Any]]] = []
    for place in places:
        if order == 0:
            nearest = sign(place) * floor(absolute(place) + 0.5)  # halves away from 0
            corners.append([(nearest, None)])
        else:
            lower: Any = floor(place)
            corners.append([(lower, 1 - (place - lower)), (lower + 1, place - lower)])
    total: Any = None
    for corner in itertools.product(*corners):
        whole = [
            cast(_inside(place, size, mode), int32)
            for (place, _), size in zip(corner, shape, strict=True)
        ]
        value: Any = read(whole)
        extra = value.ndim - whole[0].ndim
        if mode == "constant":
            there: Any = None
            for (place, _), size in zip(corner, shape, strict=True):
                within = logical_and(
                    greater_equal(place, zeros_like(place)), less(place, size * ones_like(place))
                )
                there = within if there is None else logical_and(there, within)
            value = where(_widened(there, extra), value, tensor(fill, value.dtype))
        for _, weight in corner:
            if weight is not None:
                value = value * cast(_widened(weight, extra), value.dtype)
        total = value if total is None else total + value
    found: Tensor = total
    return found


def _widened(x: Tensor, extra: int) -> Tensor:
    return expand_dims(x, range(x.ndim, x.ndim + extra)) if extra else x


@public
def map_coordinates(
    inputs: TensorLike,
    coordinates: TensorLike,
    order: int,
    fill_mode: str = "constant",
    fill_value: float = 0,
) -> Tensor:
    """The values of a tensor at given places, also between its elements.

    Args:
        inputs: a tensor with axes of known sizes.
        coordinates: (axes of inputs, places...), 2 axes or more: where to read, along each axis.
        order: 0 for the nearest element, 1 to weigh those around.
        fill_mode: what lies outside: "constant" (`fill_value`), "nearest" (the last element),
            "wrap" (the tensor again), "mirror" (mirrored at the last element) or "reflect"
            (mirrored behind it).
        fill_value: see `fill_mode`.

    Returns:
        The shape of the coordinates without their first axis; the type of the inputs, integers
        rounded.

    Raises:
        ShapeError: there is not one row of coordinates for each axis.
        InvalidArgumentError: another order or mode.

    Examples:
        >>> ops.image.map_coordinates(np.array([0.0, 10.0, 20.0]), [[0.5, 2.0]], order=1)
        Tensor([ 5., 20.], shape=(2,), dtype=float64)
    """
    one_of("map_coordinates", "fill_mode", fill_mode, _MODES)
    one_of("map_coordinates", "order", order, (0, 1))  # type: ignore[arg-type]  # numbers
    if isinstance(coordinates, list | tuple):
        places = [floating(c) for c in coordinates]
    else:
        found = floating(coordinates)
        if known_rank("map_coordinates", found) < 2 or found.shape[0] is None:
            raise ShapeError(
                f"map_coordinates: expected coordinates (axes, places...), got {found.spec}",
                remedy="of one place: coordinates[:, None]",
            )
        places = list(join.unstack(found))
    given = tensor(inputs)
    rank = known_rank("map_coordinates", given)
    if len(places) != rank:
        raise ShapeError(
            f"map_coordinates: {len(places)} rows of coordinates for {given.spec}, which has "
            f"{rank} axes"
        )
    shape = known_dims("map_coordinates", given, *range(rank))
    x = given if order == 0 else floating(given)
    y = _interpolated(lambda p: gather_along(x, p), shape, places, order, fill_mode, fill_value)
    return _like(y, given)


def _like(y: Tensor, given: Tensor) -> Tensor:
    """`y` in the type of `given`; rounded where that has no fractions."""
    if y.dtype == given.dtype:
        return y
    return cast(rint(y) if not given.dtype.is_floating else y, given.dtype)


def _sampled(x: Tensor, down: Any, right: Any, interpolation: str, mode: str, fill: Any) -> Tensor:
    """Images (batch, h, w, c) read at places (batch, h', w') each: (batch, h', w', c)."""
    height, width, channels = known_dims("transform", x, 1, 2, 3)
    order = _ORDERS[interpolation]
    wide = x if order == 0 else floating(x)
    pixels = reshape(wide, (sizes(wide)[0], height * width, channels))

    def read(whole: list[Tensor]) -> Tensor:
        rows: Any = whole[0]
        return gather(pixels, rows * width + whole[1], 1, batch_dims=1)

    y = _interpolated(read, (height, width), (down, right), order, mode, fill)
    return _like(y, x)


def _grid(x: Tensor) -> tuple[Any, Any]:
    """The rows and columns of the pixels of images: (1, h, 1) and (1, 1, w), floats."""
    height, width = known_dims("transform", x, 1, 2)
    dtype = floating(x).dtype
    rows = reshape(creation.arange(height, dtype=dtype), (1, height, 1))
    return rows, reshape(creation.arange(width, dtype=dtype), (1, 1, width))


def _moved(x: Tensor, transform: Tensor, interpolation: str, mode: str, fill: Any) -> Tensor:
    """Images read at the places to which 8 numbers for each image take their pixels."""
    a0, a1, a2, b0, b1, b2, c0, c1 = (expand_dims(v, (1, 2)) for v in join.unstack(transform, 8, 1))
    rows, columns = _grid(x)
    depth = c0 * columns + c1 * rows + 1
    right = (a0 * columns + a1 * rows + a2) / depth
    down = (b0 * columns + b1 * rows + b2) / depth
    return _sampled(x, down, right, interpolation, mode, fill)


@public
def affine_transform(
    images: TensorLike,
    transform: TensorLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: DataFormat | None = None,
) -> Tensor:
    """Images moved, turned and stretched.

    With (a0, a1, a2, b0, b1, b2, c0, c1) for an image, its pixel (x, y) in the result is what was
    at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1.

    Args:
        images: a batch, or one image.
        transform: (8,), or (batch, 8).
        interpolation: "nearest" or "bilinear".
        fill_mode: what lies outside, see `map_coordinates`.
        fill_value: see `fill_mode`.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Shape and type of `images`.

    Raises:
        ShapeError: neither an image nor a batch, or not 8 numbers.
        InvalidArgumentError: another interpolation or mode.

    Examples:
        >>> image = np.arange(4.0, dtype="float32").reshape(2, 2, 1)
        >>> to_the_left = [1, 0, 1, 0, 1, 0, 0, 0]
        >>> ops.image.affine_transform(image, to_the_left, "nearest")[..., 0]
        Tensor([[1., 0.],
                [3., 0.]], shape=(2, 2), dtype=float32)
    """
    one_of("affine_transform", "interpolation", interpolation, tuple(_ORDERS))
    one_of("affine_transform", "fill_mode", fill_mode, _MODES)

    def compute(x: Tensor) -> Tensor:
        numbers = tensor(transform, floating(x).dtype)
        if numbers.shape.rank == 1:
            numbers = expand_dims(numbers, 0)
        if numbers.shape.rank != 2 or numbers.shape[1] != 8:
            raise ShapeError(
                f"affine_transform: expected 8 numbers for each image, got {numbers.spec}"
            )
        return _moved(x, numbers, interpolation, fill_mode, fill_value)

    return on_batch("affine_transform", images, data_format, compute)


@public
def perspective_transform(
    images: TensorLike,
    start_points: TensorLike,
    end_points: TensorLike,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: DataFormat | None = None,
) -> Tensor:
    """Images seen from elsewhere: four points move to four others, straight lines stay straight.

    Args:
        images: a batch, or one image.
        start_points: (4, 2) or (batch, 4, 2): (x, y) before.
        end_points: likewise: (x, y) afterwards.
        interpolation: "nearest" or "bilinear".
        fill_value: what lies outside.
        data_format: "channels_last" or "channels_first", by default the global one.

    Raises:
        ShapeError: neither an image nor a batch, or not four points.
        InvalidArgumentError: another interpolation.

    Examples:
        >>> corners = np.array([[0, 0], [0, 3], [3, 0], [3, 3]], "float32")
        >>> image = np.arange(16.0, dtype="float32").reshape(4, 4, 1)
        >>> bool(ops.all(ops.image.perspective_transform(image, corners, corners) == image))
        True
    """
    one_of("perspective_transform", "interpolation", interpolation, tuple(_ORDERS))

    def compute(x: Tensor) -> Tensor:
        dtype = floating(x).dtype
        start, end = tensor(start_points, dtype), tensor(end_points, dtype)
        for points in (start, end):
            if points.shape.rank not in (2, 3) or points.shape[-2:] != (4, 2):
                raise ShapeError(
                    f"perspective_transform: expected (4, 2) or (batch, 4, 2), got {points.spec}"
                )
        if start.ndim == 2:
            start, end = expand_dims(start, 0), expand_dims(end, 0)
        return _moved(x, homography(start, end), interpolation, "constant", fill_value)

    return on_batch("perspective_transform", images, data_format, compute)


def homography(start: Tensor, end: Tensor) -> Tensor:
    """The 8 numbers of `affine_transform` that take each of `end` to its `start`: (batch, 8).

    Each pair of points gives two equations, linear in the numbers.
    """
    u, v = join.unstack(start, 2, -1)
    x, y = join.unstack(end, 2, -1)
    zero, one = zeros_like(x), ones_like(x)
    x_rows = join.stack([x, y, one, zero, zero, zero, -(u * x), -(u * y)], -1)
    y_rows = join.stack([zero, zero, zero, x, y, one, -(v * x), -(v * y)], -1)
    right_side = expand_dims(join.concat((u, v), 1), -1)
    return squeeze(solve(join.concat((x_rows, y_rows), 1), right_side), -1)


@public
def elastic_transform(
    images: TensorLike,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: SeedLike | None = None,
    data_format: DataFormat | None = None,
) -> Tensor:
    """Images whose pixels are moved at random, neighbours alike.

    Args:
        images: a batch, or one image.
        alpha: how far.
        sigma: over how many pixels moves are alike.
        interpolation: "nearest" or "bilinear".
        fill_mode: what lies outside, see `map_coordinates`.
        fill_value: see `fill_mode`.
        seed: see `laminar.random`.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Shape and type of `images`.

    Raises:
        ShapeError: neither an image nor a batch.
        InvalidArgumentError: another interpolation or mode.

    Source: Simard, Steinkraus and Platt, "Best practices for convolutional neural networks applied
        to visual document analysis", 2003, section 2.

    Examples:
        >>> images = np.ones((1, 4, 4, 1), "float32")
        >>> ops.image.elastic_transform(images, alpha=1.0, sigma=1.0, seed=0).shape
        (1, 4, 4, 1)
    """
    one_of("elastic_transform", "interpolation", interpolation, tuple(_ORDERS))
    one_of("elastic_transform", "fill_mode", fill_mode, _MODES)
    if not 0 <= sigma < math.inf:
        raise InvalidArgumentError(
            f"elastic_transform: sigma must be finite and not negative, got {sigma}"
        )
    side = int(6 * sigma) | 1

    def compute(x: Tensor) -> Tensor:
        moves = random_moves(x, alpha, sigma, side, draw_seed(seed))
        return shaken(x, moves, interpolation, fill_mode, fill_value)

    return on_batch("elastic_transform", images, data_format, compute)


def random_moves(
    x: Tensor, alpha: TensorLike, sigma: TensorLike, side: int, state: Tensor
) -> tuple[Any, Any]:
    """How far each pixel of a batch moves down and right, (batch, h, w) each: smooth noise.

    Args:
        x: the batch, channels last.
        alpha: how far.
        sigma: over how many pixels moves are alike; a number or a tensor.
        side: of the window that smooths, in pixels.
        state: of the random draw.
    """
    batch, height, width, _ = sizes(x)
    dtype = floating(x).dtype
    moves: list[Any] = []
    for each in (state, next_state(state)):
        noise: Any = random_normal(each, (batch, height, width, 1), 0, 1, dtype)
        smooth: Any = blurred(noise * sigma, (side, side), (sigma, sigma))
        moves.append(squeeze(smooth, -1) * alpha)
    return moves[0], moves[1]


def shaken(
    x: Tensor, moves: tuple[Any, Any], interpolation: str, fill_mode: str, fill_value: TensorLike
) -> Tensor:
    """A batch whose pixels are read where `moves` takes them, down and right."""
    rows, columns = _grid(x)
    places = rows + moves[0], columns + moves[1]
    return _sampled(x, *places, interpolation, fill_mode, fill_value)
