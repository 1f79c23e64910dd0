"""Rules for matrices, for images as blocks, and for what dilated convolutions are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import UnimplementedError
from ...ops.array import axes, blocks, diagonal, padding, slicing
from ...ops.array import shape as shapes
from ...ops.core.registry import lookup
from ...ops.linalg import decompositions, solve
from ...ops.linalg.einsum import einsum
from ...ops.nn.image import resize
from .maths import channels_last
from .rules import Call, direct, rule


@rule("Einsum")
def _einsum(call: Call) -> Any:
    return einsum(call.node.text("equation"), *call.values)


@rule("Qr")
def _qr(call: Call) -> Any:
    mode = "complete" if call.node.attr("full_matrices", False) else "reduced"
    return direct(call, lookup("Qr"), call[0], mode=mode)


@rule("Cholesky")
def _cholesky(call: Call) -> Any:
    return decompositions.cholesky(call[0])


@rule("MatrixInverse")
def _inverse(call: Call) -> Any:
    if call.node.attr("adjoint", False):
        raise UnimplementedError("it is only known without `adjoint`")
    return solve.inverse(call[0])


@rule("MatrixBandPart")
def _band_part(call: Call) -> Any:
    return diagonal.band_part(call[0], call[1], call[2])


@rule("MatrixDiagPart", "MatrixDiagPartV3")
def _diag_part(call: Call) -> Any:
    if len(call) > 1 and call.known_list(1) != [0]:
        raise UnimplementedError("only the main diagonal is known here")
    return diagonal.diagonal(call[0])


@rule("MatrixDiag", "MatrixDiagV3")
def _matrix_diag(call: Call) -> Any:
    side = call[0].shape[-1]
    given = [call.known_list(i)[0] for i in (1, 2, 3)] if len(call) > 1 else [0, -1, -1]
    if given[0] or any(n not in (-1, side) for n in given[1:]):
        raise UnimplementedError("only square matrices with a main diagonal are known here")
    return diagonal.matrix_diag(call[0])


# Images


@rule("SpaceToDepth")
def _space_to_depth(call: Call) -> Any:
    channels_last(call)
    return blocks.space_to_depth(call[0], call.node.attr("block_size"))


@rule("DepthToSpace")
def _depth_to_space(call: Call) -> Any:
    channels_last(call)
    return blocks.depth_to_space(call[0], call.node.attr("block_size"))


@rule("ResizeBilinear", "ResizeNearestNeighbor")
def _resize(call: Call) -> Any:
    attr = call.node.attr
    if attr("align_corners", False) or not attr("half_pixel_centers", False):
        raise UnimplementedError("the centres of pixels are at halves here")
    way = "bilinear" if call.node.op == "ResizeBilinear" else "nearest"
    return resize(call[0], call.known_list(1), interpolation=way)


def _blocks(call: Call) -> tuple[Any, list[int], list[Any], list[Any]]:
    """The input, the sizes of a block, and the sizes of the input: of batch and blocks, others."""
    x, block = call[0], call.known_list(1)
    sizes = _sizes(x)
    return x, block, sizes[: len(block) + 1], sizes[len(block) + 1 :]


def _sizes(x: Any) -> list[Any]:
    """The sizes of a tensor, scalar tensors where a run says them."""
    known, dims = shapes.dims_of(x)
    given = iter(dims)
    return [next(given) if n is None else n for n in known]


def _pairs(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    return [x for pair in zip(values, others, strict=True) for x in pair]


@rule("SpaceToBatchND")
def _space_to_batch(call: Call) -> Any:
    """The places within a block become the slowest part of the batch."""
    widths = call.known(2)
    x, block, _, rest = _blocks(call)
    x = padding.pad(x, [(0, 0), *map(tuple, widths), *([(0, 0)] * len(rest))], "constant", 0)
    batch, *sizes = _sizes(x)[: len(block) + 1]
    count = len(block)
    small = [size // n for size, n in zip(sizes, block, strict=True)]
    x = shapes.reshape(x, [batch, *_pairs(small, block), *rest])
    others = range(2 * count + 1, 2 * count + 1 + len(rest))
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count + 1, 2), *others]
    for n in block:
        batch = batch * n
    return shapes.reshape(axes.transpose(x, order), [batch, *small, *rest])


@rule("BatchToSpaceND")
def _batch_to_space(call: Call) -> Any:
    cuts = call.known(2)
    x, block, (batch, *sizes), rest = _blocks(call)
    count = len(block)
    for n in block:
        batch = batch // n
    x = shapes.reshape(x, [*block, batch, *sizes, *rest])
    inner = [i for k in range(count) for i in (count + 1 + k, k)]
    others = range(2 * count + 1, 2 * count + 1 + len(rest))
    large = [size * n for size, n in zip(sizes, block, strict=True)]
    x = shapes.reshape(axes.transpose(x, [count, *inner, *others]), [batch, *large, *rest])
    begin = [0, *(before for before, _ in cuts), *([0] * len(rest))]
    kept = [size - before - after for size, (before, after) in zip(large, cuts, strict=True)]
    return slicing.slice_at(x, begin, [batch, *kept, *rest])
