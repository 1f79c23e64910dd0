from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn import windows
from laminar.engine.ops.nn.conv_transpose import conv_transpose
from laminar.engine.ops.nn.convolution import conv
from laminar.engine.ops.nn.depthwise import depthwise_conv, separable_conv
from laminar.engine.runtime import Session

from ..derivatives import check_third
from ..harness import check_op

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)


def each(value: Any, axes: int) -> tuple[int, ...]:
    return (value,) * axes if isinstance(value, int) else tuple(value)


def pairs(
    padding: Any, dims: Any, window: Any, strides: Any, dilations: Any
) -> list[tuple[int, int]]:
    found = []
    for axis, (n, k, s, d) in enumerate(zip(dims, window, strides, dilations, strict=True)):
        span = 1 + d * (k - 1)
        if padding == "valid":
            found.append((0, 0))
        elif padding == "causal":
            found.append((span - 1, 0))
        elif padding == "same":
            out = int(np.ceil(n / s))
            total = max(0, (out - 1) * s + span - n)
            found.append((total // 2, total - total // 2))
        else:
            found.append(padding[axis])
    return found


def conv_reference(
    x: Array,
    kernel: Array,
    strides: Any = 1,
    padding: Any = "valid",
    dilations: Any = 1,
    groups: int = 1,
) -> Array:
    """Position by position, over an explicitly padded (or cropped) input."""
    axes = x.ndim - 2
    strides, dilations = each(strides, axes), each(dilations, axes)
    window = kernel.shape[:axes]
    pads = pairs(padding, x.shape[1:-1], window, strides, dilations)
    padded = np.pad(x, [(0, 0), *[(max(b, 0), max(a, 0)) for b, a in pads], (0, 0)])
    for axis, (b, a) in enumerate(pads, 1):
        padded = np.take(padded, range(max(-b, 0), padded.shape[axis] - max(-a, 0)), axis)
    spans = [1 + d * (k - 1) for d, k in zip(dilations, window, strict=True)]
    out = [
        (n - span) // s + 1 for n, span, s in zip(padded.shape[1:-1], spans, strides, strict=True)
    ]
    inner, filters = kernel.shape[-2], kernel.shape[-1] // groups
    y = np.zeros((x.shape[0], *out, kernel.shape[-1]))
    for place in np.ndindex(*out):
        seen = padded[
            (
                slice(None),
                *(
                    slice(i * s, i * s + span, d)
                    for i, s, span, d in zip(place, strides, spans, dilations, strict=True)
                ),
            )
        ]
        for g in range(groups):
            columns = slice(g * filters, (g + 1) * filters)
            y[(slice(None), *place, columns)] = np.tensordot(
                seen[..., g * inner : (g + 1) * inner], kernel[..., columns], axes + 1
            )
    return y


def depthwise_reference(x: Array, kernel: Array, **attrs: Any) -> Array:
    *window, channels, multiplier = kernel.shape
    flat = kernel.reshape(*window, 1, channels * multiplier)
    return conv_reference(x, flat, groups=channels, **attrs)


def separable_reference(x: Array, depthwise: Array, pointwise: Array, **attrs: Any) -> Array:
    return conv_reference(depthwise_reference(x, depthwise, **attrs), pointwise)


def transpose_reference(
    x: Array,
    kernel: Array,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    dilations: Any = 1,
) -> Array:
    """Each input cell adds its multiple of the kernel to a large canvas, of which a part is cut."""
    axes = x.ndim - 2
    strides, dilations = each(strides, axes), each(dilations, axes)
    window = kernel.shape[:axes]
    spans = [1 + d * (k - 1) for d, k in zip(dilations, window, strict=True)]
    canvas = [n * s + span + 9 for n, s, span in zip(x.shape[1:], strides, spans, strict=False)]
    y = np.zeros((x.shape[0], *canvas, kernel.shape[-2]))
    for place in np.ndindex(*x.shape[1:-1]):
        for tap in np.ndindex(*window):
            cell = [
                i * s + t * d for i, s, t, d in zip(place, strides, tap, dilations, strict=True)
            ]
            y[(slice(None), *cell)] += x[(slice(None), *place)] @ kernel[tap].T
    part: list[slice] = [slice(None)]
    extras = [None] * axes if output_padding is None else each(output_padding, axes)
    for n, s, k, p in zip(x.shape[1:-1], strides, spans, extras, strict=True):
        if padding == "valid":
            part.append(slice(0, (n - 1) * s + (max(k, s) if p is None else k + p)))
        else:
            size = n * s if p is None else (n - 1) * s + k % 2 + p
            first = max(((n - 1) * s + k - size) // 2, 0)
            part.append(slice(first, first + size))
    return y[tuple(part)]


def normal(*shape: int) -> Array:
    return rng.normal(size=shape)


HALVES = ["float32", "float16", "bfloat16"]

CONV = [
    pytest.param((2, 9, 3), (3, 3, 4), {}, id="1d"),
    pytest.param((2, 9, 3), (4, 3, 2), {"strides": 2, "padding": "same"}, id="1d-same-stride"),
    pytest.param((2, 8, 2), (3, 2, 2), {"padding": "causal", "dilations": 2}, id="1d-causal"),
    pytest.param((2, 6, 5, 3), (3, 2, 3, 4), {}, id="2d"),
    pytest.param((2, 6, 5, 1), (3, 3, 1, 2), {"padding": "same"}, id="2d-same-one-channel"),
    pytest.param((2, 7, 6, 2), (2, 3, 2, 3), {"strides": (2, 3)}, id="2d-strides"),
    pytest.param((2, 7, 6, 2), (3, 3, 2, 3), {"strides": 2, "padding": "same"}, id="2d-same-2"),
    pytest.param((1, 5, 5, 2), (1, 1, 2, 3), {"strides": 3, "padding": "same"}, id="2d-1x1-3"),
    pytest.param((1, 7, 8, 2), (3, 2, 2, 3), {"dilations": (2, 3)}, id="2d-dilations"),
    pytest.param((1, 7, 8, 2), (3, 3, 2, 2), {"dilations": 2, "padding": "same"}, id="2d-atrous"),
    pytest.param((2, 4, 5, 2), (2, 2, 2, 2), {"padding": ((2, 0), (1, 3))}, id="2d-pairs"),
    pytest.param((2, 6, 6, 2), (2, 2, 2, 2), {"padding": ((-1, 1), (2, -2))}, id="2d-cropped"),
    pytest.param((2, 5, 5, 4), (3, 3, 2, 6), {"groups": 2, "padding": "same"}, id="2d-groups"),
    pytest.param((2, 5, 5, 3), (3, 3, 1, 6), {"groups": 3, "strides": 2}, id="2d-groups-all"),
    pytest.param((1, 4, 5, 4, 2), (2, 3, 2, 2, 3), {}, id="3d"),
    pytest.param(
        (1, 4, 5, 3, 2), (3, 3, 3, 2, 2), {"strides": (1, 2, 2), "padding": "same"}, id="3d-same"
    ),
    pytest.param((0, 5, 5, 2), (3, 3, 2, 3), {}, id="empty-batch"),
    pytest.param((2, 5, 5, 0), (3, 3, 0, 3), {}, id="no-channels"),
    pytest.param((1, 3, 3, 1), (3, 3, 1, 1), {}, id="one-position"),
]


@pytest.mark.parametrize(("x", "kernel", "attrs"), CONV)
def test_conv(x: tuple[int, ...], kernel: tuple[int, ...], attrs: dict[str, Any]) -> None:
    check_op(conv, conv_reference, [normal(*x), normal(*kernel)], attrs=attrs, dtypes=HALVES)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(
    ("fn", "reference", "kernel"),
    [
        pytest.param(conv, conv_reference, (3, 3, 2, 3), id="conv"),
        pytest.param(depthwise_conv, depthwise_reference, (3, 3, 2, 2), id="depthwise"),
        pytest.param(conv_transpose, transpose_reference, (3, 3, 3, 2), id="transpose"),
    ],
)
def test_a_batch_in_several_parts(
    fn: Any, reference: Any, kernel: Any, padding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels take a part of the batch at a time; the last part is smaller here."""
    monkeypatch.setattr(windows, "_BLOCK_BYTES", 4 * 25 * 18 * 2)
    inputs = [normal(7, 5, 5, 2), normal(*kernel)]
    check_op(fn, reference, inputs, attrs={"padding": padding}, dynamic=False)


DEPTHWISE = [
    pytest.param((2, 8, 3), (3, 3, 1), {}, id="1d"),
    pytest.param((2, 6, 5, 3), (3, 3, 3, 1), {"padding": "same"}, id="2d"),
    pytest.param((2, 6, 5, 3), (3, 2, 3, 2), {"strides": 2, "padding": "same"}, id="2d-multiplier"),
    pytest.param((2, 7, 8, 2), (3, 2, 2, 3), {"dilations": (2, 3)}, id="2d-dilations"),
    pytest.param((2, 5, 6, 2), (2, 2, 2, 2), {"padding": ((-1, 2), (1, -1))}, id="2d-pairs"),
    pytest.param((1, 4, 4, 4, 2), (2, 2, 3, 2, 2), {"padding": "same"}, id="3d"),
    pytest.param((0, 5, 5, 2), (3, 3, 2, 1), {}, id="empty-batch"),
]


@pytest.mark.parametrize(("x", "kernel", "attrs"), DEPTHWISE)
def test_depthwise(x: tuple[int, ...], kernel: tuple[int, ...], attrs: dict[str, Any]) -> None:
    inputs = [normal(*x), normal(*kernel)]
    check_op(depthwise_conv, depthwise_reference, inputs, attrs=attrs, dtypes=HALVES)


def test_separable() -> None:
    inputs = [normal(2, 6, 5, 3), normal(3, 3, 3, 2), normal(1, 1, 6, 4)]
    attrs = {"strides": 2, "padding": "same"}
    check_op(separable_conv, separable_reference, inputs, attrs=attrs)


TRANSPOSE = [
    pytest.param((2, 5, 3), (3, 2, 3), {}, id="1d"),
    pytest.param((2, 5, 3), (2, 2, 3), {"strides": 3}, id="1d-gaps"),
    pytest.param((2, 5, 3), (2, 2, 3), {"strides": 3, "padding": "same"}, id="1d-gaps-same"),
    pytest.param((2, 5, 3), (3, 2, 3), {"strides": 2, "output_padding": 1}, id="1d-padding"),
    pytest.param((2, 4, 5, 2), (3, 2, 3, 2), {"strides": (2, 3)}, id="2d"),
    pytest.param((2, 4, 5, 2), (3, 4, 3, 2), {"strides": 2, "padding": "same"}, id="2d-same"),
    pytest.param(
        (2, 4, 3, 2),
        (3, 4, 3, 2),
        {"strides": 2, "padding": "same", "output_padding": (0, 1)},
        id="2d-same-padding",
    ),
    pytest.param((1, 4, 4, 2), (3, 3, 2, 2), {"dilations": 2, "padding": "same"}, id="2d-atrous"),
    pytest.param((1, 4, 4, 2), (3, 3, 2, 2), {"dilations": (1, 2)}, id="2d-dilations"),
    pytest.param((1, 2, 3, 2, 2), (2, 3, 2, 1, 2), {"strides": 2, "padding": "same"}, id="3d"),
    pytest.param((0, 4, 2), (3, 3, 2), {}, id="empty-batch"),
]


@pytest.mark.parametrize(("x", "kernel", "attrs"), TRANSPOSE)
def test_conv_transpose(x: tuple[int, ...], kernel: tuple[int, ...], attrs: dict[str, Any]) -> None:
    inputs = [normal(*x), normal(*kernel)]
    check_op(conv_transpose, transpose_reference, inputs, attrs=attrs, dtypes=HALVES, dynamic=False)


def test_conv_transpose_of_unknown_dims() -> None:
    """All but the window may be unknown."""
    kernel = normal(3, 3, 2, 2)
    check_op(
        lambda x: conv_transpose(x, convert_to_tensor(kernel), strides=2, padding="same"),
        lambda x: transpose_reference(x, kernel, 2, "same"),
        [normal(2, 3, 4, 2)],
    )


# What Keras 3.15 gives for x = 1, 2, 3 and a kernel of the powers of 10.
@pytest.mark.parametrize(
    ("window", "strides", "padding", "output_padding", "expected"),
    [
        pytest.param(3, 1, "valid", None, [1, 12, 123, 230, 300]),
        pytest.param(3, 2, "valid", 1, [1, 10, 102, 20, 203, 30, 300, 0]),
        pytest.param(2, 3, "valid", None, [1, 10, 0, 2, 20, 0, 3, 30, 0]),
        pytest.param(3, 2, "same", None, [1, 10, 102, 20, 203, 30]),
        pytest.param(4, 2, "same", None, [10, 102, 1020, 203, 2030, 300]),
        pytest.param(3, 2, "same", 0, [10, 102, 20, 203, 30]),
        pytest.param(4, 3, "same", 1, [10, 100, 1002, 20, 200, 2003, 30]),
    ],
)
def test_conv_transpose_like_keras(
    window: int, strides: int, padding: str, output_padding: int | None, expected: list[int]
) -> None:
    y = conv_transpose(
        convert_to_tensor(np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1)),
        convert_to_tensor((10.0 ** np.arange(window)).reshape(-1, 1, 1)),
        strides=strides,
        padding=padding,
        output_padding=output_padding,
    )
    assert y.numpy().ravel().tolist() == expected


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_shapes_are_inferred_with_an_unknown_batch(rank: int) -> None:
    axes = rank - 2
    with Graph().as_default():
        x = placeholder("float32", [None, *(8 for _ in range(axes)), 3])
        kernel = placeholder("float32", [*(3 for _ in range(axes)), 3, 5])
        assert conv(x, kernel, strides=2).shape == (None, *(3 for _ in range(axes)), 5)
        assert conv(x, kernel, padding="same", strides=2).shape[1:] == (*(4,) * axes, 5)
        assert depthwise_conv(x, kernel).shape == (None, *(6 for _ in range(axes)), 15)
        back = placeholder("float32", [*(3 for _ in range(axes)), 5, 3])
        assert conv_transpose(x, back, strides=2).shape == (None, *(17 for _ in range(axes)), 5)


def test_unknown_rank() -> None:
    with Graph().as_default():
        x = placeholder("float32")
        kernel = placeholder("float32", [3, 3, 2, 4])
        assert conv(x, kernel).shape == (None, None, None, 4)
        assert depthwise_conv(x, kernel).shape == (None, None, None, 8)
        assert conv_transpose(x, kernel).shape == (None, None, None, 2)
        with pytest.raises(ShapeError, match="the number of axes of x or of the kernel"):
            conv(x, placeholder("float32"))


ERRORS = [
    pytest.param(
        conv,
        [(1, 5, 5, 3), (3, 3, 4, 8)],
        {},
        "Conv: the input has 3 channels, but the kernel float32[3, 3, 4, 8] takes 4",
        id="channels",
    ),
    pytest.param(
        conv,
        [(1, 5, 5, 6), (3, 3, 4, 8)],
        {"groups": 2},
        "Conv: the input has 6 channels, but the kernel float32[3, 3, 4, 8] takes 4 "
        "in 2 groups (4 * 2 = 8)",
        id="channels-of-groups",
    ),
    pytest.param(
        conv,
        [(1, 5, 5, 6), (3, 3, 3, 7)],
        {"groups": 2},
        "Conv: 7 filters cannot be divided into 2 groups (kernel is float32[3, 3, 3, 7])",
        id="filters-of-groups",
    ),
    pytest.param(
        conv,
        [(1, 4, 2, 1), (3, 3, 1, 1)],
        {},
        "Conv: the window covers 3 cells along spatial axis 1, but the input has 2 there "
        "(2 with padding 'valid')",
        id="window-too-large",
    ),
    pytest.param(
        conv,
        [(5, 5), (3, 3)],
        {},
        "Conv: x must be (batch, *spatial, channels) with one to three spatial axes, "
        "got x float32[5, 5] and kernel float32[3, 3]",
        id="too-few-axes",
    ),
    pytest.param(
        conv,
        [(1, 5, 5, 1), (3, 1, 1)],
        {},
        "Conv: kernel must have 4 axes, got float32[3, 1, 1]",
        id="ranks-differ",
    ),
    pytest.param(
        conv,
        [(1, 5, 5, 1), (3, 3, 1, 1)],
        {"strides": (1, 0)},
        "Conv: strides must be one whole number >= 1, or 2 of them (one per spatial axis), "
        "got (1, 0)",
        id="strides",
    ),
    pytest.param(
        conv,
        [(1, 5, 5, 1), (3, 3, 1, 1)],
        {"padding": "full"},
        "Conv: padding must be one of 'valid', 'same', 'causal', or 2 pairs (before, after), "
        "got 'full'",
        id="padding",
    ),
    pytest.param(
        conv,
        [(1, 5, 5, 1), (3, 3, 1, 1)],
        {"groups": 0},
        "Conv: groups must be at least 1, got 0",
        id="groups",
    ),
    pytest.param(
        depthwise_conv,
        [(1, 5, 5, 3), (3, 3, 4, 1)],
        {},
        "DepthwiseConv: the input has 3 channels, but the kernel float32[3, 3, 4, 1] takes 4",
        id="depthwise-channels",
    ),
    pytest.param(
        conv_transpose,
        [(1, 5, 5, 3), (3, 3, 3, 4)],
        {},
        "ConvTranspose: the input has 3 channels, but the kernel float32[3, 3, 3, 4] takes 4",
        id="transpose-channels",
    ),
    pytest.param(
        conv_transpose,
        [(1, 1, 3), (4, 2, 3)],
        {"padding": "same", "output_padding": 0},
        "ConvTranspose: the output would have the size (0,) along the spatial axes, "
        "from (1,) with a window of (4,)",
        id="transpose-empty",
    ),
    pytest.param(
        conv_transpose,
        [(1, 5, 3), (3, 2, 3)],
        {"padding": "causal"},
        "ConvTranspose: padding must be 'valid' or 'same', got 'causal'",
        id="transpose-padding",
    ),
    pytest.param(
        conv_transpose,
        [(1, 5, 3), (3, 2, 3)],
        {"output_padding": -1},
        "ConvTranspose: output_padding must be one whole number >= 0, or 1 of them, got -1",
        id="transpose-output-padding",
    ),
]


@pytest.mark.parametrize(("fn", "shapes", "attrs", "message"), ERRORS)
def test_errors(fn: Any, shapes: list[Any], attrs: dict[str, Any], message: str) -> None:
    inputs = [convert_to_tensor(np.zeros(shape, "float32")) for shape in shapes]
    with pytest.raises(InvalidArgumentError) as caught:
        fn(*inputs, **attrs)
    assert caught.value.message == message


def test_channels_are_checked_when_they_become_known() -> None:
    graph = Graph()
    with graph.as_default():
        x, kernel = placeholder("float32", [None] * 4), placeholder("float32", [None] * 4)
        y = conv(x, kernel)
    with (
        Session(graph=graph) as session,
        pytest.raises(ShapeError, match="the input has 3 channels, but the kernel"),
    ):
        session.run(y, {x: np.zeros((1, 5, 5, 3)), kernel: np.zeros((3, 3, 4, 8))})


@pytest.mark.parametrize(
    ("fn", "reference", "x", "kernel", "attrs"),
    [
        pytest.param(
            conv,
            conv_reference,
            (1, 3, 4, 2),
            (2, 3, 1, 2),
            {"groups": 2, "padding": "same", "strides": 2},
            id="conv",
        ),
        pytest.param(
            depthwise_conv,
            depthwise_reference,
            (1, 3, 4, 2),
            (2, 3, 2, 2),
            {"padding": "same", "strides": 2},
            id="depthwise",
        ),
        pytest.param(
            conv_transpose,
            transpose_reference,
            (1, 2, 3, 2),
            (3, 2, 1, 2),
            {"padding": "same", "strides": 2},
            id="transpose",
        ),
    ],
)
def test_third_derivatives(
    fn: Any, reference: Any, x: Any, kernel: Any, attrs: dict[str, Any]
) -> None:
    inputs = [normal(*x), normal(*kernel)]
    check_third(fn, reference, inputs, attrs, dynamic=fn is not conv_transpose)
