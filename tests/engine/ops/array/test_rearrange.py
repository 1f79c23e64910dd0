"""Tile, repeat, flip, roll, and blocks of pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.array.blocks import depth_to_space, space_to_depth
from laminar.engine.ops.array.rearrange import flip, repeat, roll, tile
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.convert import convert_to_tensor

from ..harness import check_op

rng = np.random.default_rng(11)

TYPES = ["float16", "bfloat16", "complex64", "int8", "bool"]

CASES = [
    pytest.param(tile, np.tile, (2, 3), ([2, 3],), id="tile"),
    pytest.param(tile, np.tile, (2, 3), (2,), id="tile-last"),
    pytest.param(tile, np.tile, (3,), ([2, 2],), id="tile-new-axis"),
    pytest.param(tile, np.tile, (), ([2],), id="tile-scalar"),
    pytest.param(tile, np.tile, (2, 3), ([0, 2],), id="tile-nothing"),
    pytest.param(tile, np.tile, (2, 0), ([2, 2],), id="tile-empty"),
    pytest.param(repeat, np.repeat, (2, 3), (2, 0), id="repeat"),
    pytest.param(repeat, np.repeat, (2, 3), (3, -1), id="repeat-last"),
    pytest.param(repeat, np.repeat, (2, 3), (2,), id="repeat-elements"),
    pytest.param(repeat, np.repeat, (2, 3), ([2, 0], 0), id="repeat-each"),
    pytest.param(repeat, np.repeat, (2, 3), ([1, 2, 3], 1), id="repeat-each-last"),
    pytest.param(repeat, np.repeat, (2, 3), ([2], 1), id="repeat-one-for-all"),
    pytest.param(repeat, np.repeat, (2, 3), (0, 1), id="repeat-nothing"),
    pytest.param(repeat, np.repeat, (0, 3), (2, 0), id="repeat-empty"),
    pytest.param(flip, np.flip, (2, 3), (), id="flip"),
    pytest.param(flip, np.flip, (2, 3), (1,), id="flip-axis"),
    pytest.param(flip, np.flip, (2, 3, 2), ((0, -1),), id="flip-axes"),
    pytest.param(flip, np.flip, (0, 2), (), id="flip-empty"),
    pytest.param(roll, np.roll, (2, 5), (2, 1), id="roll"),
    pytest.param(roll, np.roll, (2, 5), (-7, -1), id="roll-back"),
    pytest.param(roll, np.roll, (2, 5), (3,), id="roll-elements"),
    pytest.param(roll, np.roll, (2, 5), ((1, 2), (0, 1)), id="roll-axes"),
    pytest.param(roll, np.roll, (3, 5), (1, (0, 1)), id="roll-all-alike"),
    pytest.param(roll, np.roll, (0, 5), (1, 0), id="roll-empty"),
]


@pytest.mark.parametrize(("fn", "reference", "shape", "args"), CASES)
def test_op(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    shape: tuple[int, ...],
    args: tuple[Any, ...],
) -> None:
    check_op(
        lambda x: fn(x, *args),
        lambda x: reference(x, *args),
        [rng.normal(size=shape)],
        dtypes=TYPES,
    )


def test_tile_and_repeat_by_numbers_known_at_run_time() -> None:
    x, counts = rng.normal(size=(2, 3)), np.array([2, 0, 1])
    check_op(lambda x, n: repeat(x, n, 1), lambda x, n: np.repeat(x, n, 1), [x, counts])
    check_op(lambda x, n: repeat(x, n, 1), lambda x, n: np.repeat(x, n, 1), [x, np.array([2])])
    check_op(
        lambda x, n: tile(x, [dim_of(n, axis=0), 2]),
        lambda x, n: np.tile(x, (3, 2)),
        [x, counts],
    )


def test_strings() -> None:
    x = convert_to_tensor(["a", "b"])
    assert tile(x, 2).numpy().tolist() == [b"a", b"b"] * 2
    assert repeat(x, 2).numpy().tolist() == [b"a", b"a", b"b", b"b"]


def test_flip_along_no_axis() -> None:
    x = constant(np.zeros(3))
    assert flip(x, ()) is x


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 3])
        assert tile(x, [2, 2]).shape == TensorShape([None, 6])
        assert repeat(x, 2, 1).shape == TensorShape([None, 6])
        assert repeat(x, [1, 2, 3], 1).shape == TensorShape([None, None])
        assert flip(x).shape == TensorShape([None, 3])
        assert roll(x, 1, 0).shape == TensorShape([None, 3])


IMAGES = [
    pytest.param((2, 4, 6, 3), 2, "channels_last", id="last"),
    pytest.param((1, 3, 3, 2), 3, "channels_last", id="one-block"),
    pytest.param((2, 3, 4, 6), 2, "channels_first", id="first"),
    pytest.param((0, 2, 2, 1), 2, "channels_last", id="empty"),
    pytest.param((2, 3, 3, 2), 1, "channels_first", id="blocks-of-one"),
]


def reference_space_to_depth(x: Any, s: int, data_format: str) -> Any:
    """Pixel by pixel, from the definition."""
    if data_format == "channels_first":
        n, c, h, w = x.shape
        y = np.zeros((n, c * s * s, h // s, w // s), x.dtype)
        for k, i, j in np.ndindex(c, s, s):
            y[:, (k * s + i) * s + j] = x[:, k, i::s, j::s]
        return y
    n, h, w, c = x.shape
    y = np.zeros((n, h // s, w // s, s * s * c), x.dtype)
    for k, i, j in np.ndindex(c, s, s):
        y[..., (i * s + j) * c + k] = x[:, i::s, j::s, k]
    return y


@pytest.mark.parametrize(("shape", "block_size", "data_format"), IMAGES)
def test_blocks(shape: tuple[int, ...], block_size: int, data_format: str) -> None:
    x = rng.normal(size=shape)
    args = (block_size, data_format)
    deep = reference_space_to_depth(x, *args)
    check_op(
        lambda x: space_to_depth(x, *args),
        lambda x: reference_space_to_depth(x, *args),
        [x],
        dtypes=TYPES,
    )
    check_op(lambda x: depth_to_space(x, *args), lambda y: x, [deep])


def test_blocks_of_unknown_images() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 8, None, 4])
        assert space_to_depth(x, 2).shape == TensorShape([None, 4, None, 16])
        assert depth_to_space(x, 2).shape == TensorShape([None, 16, None, 1])


ERRORS = [
    pytest.param(
        lambda x: tile(x, [-1, 1]), InvalidArgumentError, "cannot be negative", id="tile-negative"
    ),
    pytest.param(
        lambda x: repeat(x, [1, 2, 3], 0),
        ShapeError,
        r"repeat: 3 numbers for the 2 slices along axis 0 of float64\[2, 3\]",
        id="repeat-count",
    ),
    pytest.param(
        lambda x: repeat(x, -1, 0), InvalidArgumentError, "negative, got -1", id="repeat-negative"
    ),
    pytest.param(lambda x: repeat(x, 2, 2), ShapeError, "axis 2 does not exist", id="repeat-axis"),
    pytest.param(lambda x: flip(x, 2), ShapeError, "flip: axis 2 does not exist", id="flip"),
    pytest.param(
        lambda x: roll(x, (1, 2), 0), InvalidArgumentError, "2 shifts for 1 axes", id="roll"
    ),
    pytest.param(
        lambda x: roll(x, 1, 5), ShapeError, "Roll: axis 5 does not exist", id="roll-axis"
    ),
    pytest.param(lambda x: space_to_depth(x, 2), ShapeError, "with four axes", id="images"),
    pytest.param(
        lambda x: space_to_depth(constant(np.zeros((1, 3, 4, 1))), 2),
        ShapeError,
        r"SpaceToDepth: the height of float64\[1, 3, 4, 1\] must be a multiple of 2, got 3",
        id="height",
    ),
    pytest.param(
        lambda x: depth_to_space(constant(np.zeros((1, 2, 2, 6))), 2),
        ShapeError,
        "the number of channels of .* must be a multiple of 4, got 6",
        id="channels",
    ),
    pytest.param(
        lambda x: depth_to_space(constant(np.zeros((1, 2, 2, 4))), 0),
        InvalidArgumentError,
        "block_size must be at least 1, got 0",
        id="block-size",
    ),
    pytest.param(
        lambda x: depth_to_space(constant(np.zeros((1, 2, 2, 4))), 2, "NHWC"),
        InvalidArgumentError,
        "data_format must be .* got 'NHWC'",
        id="format",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Tensor], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((2, 3))))
