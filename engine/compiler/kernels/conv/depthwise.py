"""Plans of convolutions in which each channel is by itself."""

from __future__ import annotations

from ....graph import DType
from ...ir.kernel_target import Target
from ...ir.launch import Epilogue, Launch, Scratch, Word
from ...target import host
from .depthwise_kernel import BLOCK_PIXELS, BLOCK_ROWS, GRADIENT_WORDS, WORDS, Form
from .filter_gradient_kernel import SUM_WORDS, sum_code
from .window import Convolution

# Taps that stay in registers, with the columns that neighbours share.
_MOST_TAPS = 9
_MOST_STRIDE = 2
# Parts of the sum over blocks of rows; each has some.
_MOST_PARTS = 16
_PART_BLOCKS = 4

_Pair = tuple[int, int]


def is_in_rows(conv: Convolution) -> bool:
    """Whether a convolution of separate channels is one that these kernels know."""
    depth, height, width = conv.axes
    is_flat = depth.size == depth.output == depth.window == 1
    is_small = height.window * width.window <= _MOST_TAPS and width.stride <= _MOST_STRIDE
    return is_flat and is_small and height.dilation == width.dilation == 1


def plan_depthwise_forward(
    x: Word,
    filters: Word,
    y: Word,
    conv: Convolution,
    dtype: DType,
    target: Target,
    epilogue: Epilogue | None,
) -> list[Launch]:
    """See plan_conv_forward."""
    _, height, width = conv.axes
    first = -height.padding[0], -width.padding[0]
    steps = height.stride, width.stride
    sizes = (height.size, width.size), (height.output, width.output)
    tap = conv.channels * dtype.size
    return [_plan(x, filters, 0, tap, y, *sizes, first, steps, conv, dtype, target, epilogue)]


def plan_depthwise_input_gradient(
    dy: Word,
    filters: Word,
    dx: Word,
    conv: Convolution,
    dtype: DType,
    target: Target,
    epilogue: Epilogue | None,
) -> list[Launch]:
    """See plan_conv_input_gradient; for strides of 1: a convolution with the taps in turn."""
    _, height, width = conv.axes
    first = height.padding[0] - height.window + 1, width.padding[0] - width.window + 1
    sizes = (height.output, width.output), (height.size, width.size)
    tap = conv.channels * dtype.size
    last = (height.window * width.window - 1) * tap
    launch = _plan(
        dy, filters, last, -tap, dx, *sizes, first, (1, 1), conv, dtype, target, epilogue
    )
    return [launch]


def _plan(
    x: Word,
    filters: Word,
    first_tap: int,
    tap: int,
    y: Word,
    x_size: _Pair,
    y_size: _Pair,
    first: _Pair,
    steps: _Pair,
    conv: Convolution,
    dtype: DType,
    target: Target,
    epilogue: Epilogue | None,
) -> Launch:
    pixel = conv.channels * dtype.size
    values = _image_words(x, x_size, y_size, first, steps, conv, dtype, target) | {
        "y": y,
        "y_row": y_size[1] * pixel,
        "y_pixel": pixel,
        "filters": filters,
        "first_tap": first_tap,
        "filter_tap": tap,
        "epilogue": epilogue.code if epilogue else 0,
        "epilogue_words": epilogue.words if epilogue else 0,
    }
    code = _form(conv, steps, dtype, target).code(is_gradient=False)
    return Launch(code, tuple(values[name] for name in WORDS))


def plan_depthwise_filter_gradient(
    x: Word, dy: Word, df: Word, conv: Convolution, dtype: DType, target: Target
) -> list[Launch]:
    """See plan_conv_filter_gradient."""
    _, height, width = conv.axes
    tap = conv.channels * dtype.size
    num_taps = height.window * width.window
    part = host.whole_lines(num_taps * tap)
    parts = max(1, min(_MOST_PARTS, conv.images * -(-height.output // BLOCK_ROWS) // _PART_BLOCKS))
    sums = df if parts == 1 else Scratch(part * parts, "parts")
    first = -height.padding[0], -width.padding[0]
    steps = height.stride, width.stride
    sizes = (height.size, width.size), (height.output, width.output)
    values = _image_words(x, *sizes, first, steps, conv, dtype, target) | {
        "dy": dy,
        "dy_row": width.output * tap,
        "dy_pixel": tap,
        "sums": sums,
        "sums_part": part,
        "sums_tap": tap,
        "parts": parts,
    }
    code = _form(conv, steps, dtype, target).code(is_gradient=True)
    total = sum_code(dtype, target.vector_bytes)
    others = (total,) if target.has_sizes else ()  # another number of images may have parts
    found = [Launch(code, tuple(values[name] for name in GRADIENT_WORDS), others)]
    if parts > 1:
        of_sum: dict[str, Word] = {
            "to": df,
            "sums": sums,
            "sums_part": part,
            "parts": parts,
            "elements": num_taps * conv.channels,
        }
        words = tuple(of_sum[name] for name in SUM_WORDS)
        found.append(Launch(total, words))
    return found


def _form(conv: Convolution, steps: _Pair, dtype: DType, target: Target) -> Form:
    _, height, width = conv.axes
    masked = conv.channels % target.lanes(dtype) != 0
    return Form(dtype, target.vector_bytes, (height.window, width.window), steps, masked)


def _image_words(
    x: Word,
    x_size: _Pair,
    y_size: _Pair,
    first: _Pair,
    steps: _Pair,
    conv: Convolution,
    dtype: DType,
    target: Target,
) -> dict[str, Word]:
    pixel = conv.channels * dtype.size
    height, width = x_size
    step, window = steps[1], conv.axes[2].window
    # Pixels of y whose window begins at 0 or later, and ends before the width.
    inner_first = min(max(0, -(first[1] // step)), y_size[1])
    inner_last = min((width - window - first[1]) // step + 1, y_size[1])
    inner = max(0, inner_last - inner_first) // BLOCK_PIXELS * BLOCK_PIXELS
    columns = (BLOCK_PIXELS - 1) * step + window
    zeros_bytes = host.whole_lines((columns - 1) * pixel + target.vector_bytes)
    return {
        "x": x,
        "x_image": height * width * pixel,
        "x_row": width * pixel,
        "x_pixel": pixel,
        "height": height,
        "width": width,
        "first_h": first[0],
        "first_w": first[1],
        "images": conv.images,
        "rows": y_size[0],
        "pixels": y_size[1],
        "channels": conv.channels,
        "inner_first": inner_first,
        "inner_last": inner_first + inner,
        "zeros": Scratch(zeros_bytes * target.threads, "zeros"),
        "zeros_bytes": zeros_bytes,
    }
