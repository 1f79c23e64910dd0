"""What takes arrays apart and puts them together, written with TensorFlow's ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...graph import GraphTensor, Operation
from .writing import INT32, Writer, refused, rule


def _known_rank(op: Operation, x: GraphTensor) -> int:
    if x.shape.rank is None:
        raise refused(op, "the rank of its input is not known")
    return x.shape.rank


def _sizes(values: Sequence[int | None], given: Iterator[str]) -> list[int | str]:
    """Numbers, and the names of what gives those that are None."""
    return [next(given) if n is None else n for n in values]


@rule("All", "Any")
def _logical(w: Writer, op: Operation) -> None:
    (x,), axes = op.inputs, op.attrs["axis"]
    along = (
        range(_known_rank(op, x)) if axes is None else (axes,) if isinstance(axes, int) else axes
    )
    inputs = [*w.names([x]), w.ints(f"{op.name}/axes", [*along])]
    attrs: dict[str, Any] = {"Tidx": INT32, "keep_dims": bool(op.attrs["keepdims"])}
    w.give(op, [w.node(op.name, op.type, inputs, **attrs)])


@rule("ArgMax", "ArgMin")
def _place(w: Writer, op: Operation) -> None:
    (x,), axis, dtype = op.inputs, op.attrs["axis"], op.outputs[0].dtype
    if op.attrs["keepdims"] or dtype not in ("int32", "int64"):
        raise refused(op, "its result keeps the axis, or is of another type than int32 and int64")
    name = w.names([x])[0]
    if axis is None:
        flat = w.ints(f"{op.name}/flat", [-1])
        name = w.node(f"{op.name}/x", "Reshape", [name, flat], T=x.dtype, Tshape=INT32)
    inputs = [name, w.ints(f"{op.name}/axis", axis or 0)]
    w.give(op, [w.node(op.name, op.type, inputs, T=x.dtype, Tidx=INT32, output_type=dtype)])


@rule("BandPart")
def _band_part(w: Writer, op: Operation) -> None:
    (x,), low, high = op.inputs, op.attrs["low"], op.attrs["high"]
    if (low or 0) > 0 or (high or 0) < 0:
        raise refused(op, "its band is without the diagonal")
    bounds = [-1 if low is None else -low, -1 if high is None else high]
    ends = [w.ints(f"{op.name}/{n}", k) for n, k in zip(("low", "high"), bounds, strict=True)]
    w.give(op, [w.node(op.name, "MatrixBandPart", [*w.names([x]), *ends], T=x.dtype, Tindex=INT32)])


@rule("Concat")
def _concat(w: Writer, op: Operation) -> None:
    axis = w.ints(f"{op.name}/axis", op.attrs["axis"])
    attrs: dict[str, Any] = {"T": op.outputs[0].dtype, "N": len(op.inputs), "Tidx": INT32}
    w.give(op, [w.node(op.name, "ConcatV2", [*w.names(op.inputs), axis], **attrs)])


@rule("Stack")
def _stack(w: Writer, op: Operation) -> None:
    attrs: dict[str, Any] = {"T": op.outputs[0].dtype, "N": len(op.inputs)}
    w.give(op, [w.node(op.name, "Pack", w.names(op.inputs), axis=op.attrs["axis"], **attrs)])


@rule("Unstack")
def _unstack(w: Writer, op: Operation) -> None:
    num, axis = op.attrs["num"], op.attrs["axis"]
    kind = op.inputs[0].dtype
    name = w.node(op.name, "Unpack", w.names(op.inputs), T=kind, num=num, axis=axis)
    w.give(op, [f"{name}:{i}" for i in range(num)])


@rule("Split")
def _split(w: Writer, op: Operation) -> None:
    x, *dims = op.inputs
    sizes = _sizes(op.attrs["sizes"], iter(w.names(dims)))
    along = w.ints(f"{op.name}/axis", op.attrs["axis"])
    attrs: dict[str, Any] = {"T": x.dtype, "num_split": len(sizes)}
    if set(sizes) == {-1}:
        name = w.node(op.name, "Split", [along, *w.names([x])], **attrs)
    elif sizes.count(-1) < 2:
        lengths = w.vector(f"{op.name}/sizes", sizes)
        name = w.node(op.name, "SplitV", [*w.names([x]), lengths, along], Tlen=INT32, **attrs)
    else:
        raise refused(op, "several of its sizes are shares of what the others leave")
    w.give(op, [f"{name}:{i}" for i in range(len(sizes))])


@rule("Cumsum", "Cumprod")
def _cumulative(w: Writer, op: Operation) -> None:
    (x,) = op.inputs
    axis = w.ints(f"{op.name}/axis", op.attrs["axis"])
    flags: dict[str, Any] = {name: bool(op.attrs[name]) for name in ("exclusive", "reverse")}
    inputs = [*w.names([x]), axis]
    w.give(op, [w.node(op.name, op.type, inputs, T=x.dtype, Tidx=INT32, **flags)])


@rule("ExpandDims")
def _expand_dims(w: Writer, op: Operation) -> None:
    (x,), axes = op.inputs, op.attrs["axis"]
    rank = _known_rank(op, x) + len(axes)
    name = w.names([x])[0]
    places = sorted(axis % rank for axis in axes)
    if not places:
        name = w.node(op.name, "Identity", [name], T=x.dtype)
    for i, place in enumerate(places):
        own = op.name if i == len(places) - 1 else f"{op.name}/axis_{place}"
        along = w.ints(f"{own}/axis", place)
        name = w.node(own, "ExpandDims", [name, along], T=x.dtype, Tdim=INT32)
    w.give(op, [name])


@rule("Squeeze")
def _squeeze(w: Writer, op: Operation) -> None:
    (x,), axes = op.inputs, op.attrs["axis"]
    if axes is not None and not axes:
        w.give(op, [w.node(op.name, "Identity", w.names([x]), T=x.dtype)])
        return
    w.give(op, [w.node(op.name, "Squeeze", w.names([x]), T=x.dtype, squeeze_dims=[*(axes or ())])])


@rule("Tile")
def _tile(w: Writer, op: Operation) -> None:
    x, *dims = op.inputs
    times = w.shape(op, op.attrs["multiples"], dims)
    w.give(op, [w.node(op.name, "Tile", [*w.names([x]), times], T=x.dtype, Tmultiples=INT32)])


@rule("TileGrad")
def _tile_grad(w: Writer, op: Operation) -> None:
    """The copies lie along axes of their own, which are summed over."""
    dy, *dims = op.inputs
    given = iter(w.names(dims))
    times = _sizes(op.attrs["multiples"], given)
    sizes = _sizes(op.attrs["shape"], given)
    apart = [n for pair in zip(times, sizes, strict=True) for n in pair]
    target = w.vector(f"{op.name}/shape", apart)
    kinds = {"T": dy.dtype}
    inputs = [*w.names([dy]), target]
    copies = w.node(f"{op.name}/copies", "Reshape", inputs, Tshape=INT32, **kinds)
    along = w.ints(f"{op.name}/axes", [*range(0, len(apart), 2)])
    attrs: dict[str, Any] = {**kinds, "Tidx": INT32, "keep_dims": False}
    w.give(op, [w.node(op.name, "Sum", [copies, along], **attrs)])


@rule("Pad")
def _pad(w: Writer, op: Operation) -> None:
    (x,), mode = op.inputs, op.attrs["mode"]
    widths = w.constant(f"{op.name}/paddings", np.array(op.attrs["paddings"], np.int32))
    inputs = [*w.names([x]), widths]
    kinds = {"T": x.dtype, "Tpaddings": INT32}
    if mode == "constant":
        value = np.array(op.attrs["value"], x.dtype.numpy)
        inputs.append(w.constant(f"{op.name}/value", value))
        w.give(op, [w.node(op.name, "PadV2", inputs, **kinds)])
    elif mode in ("reflect", "symmetric"):
        w.give(op, [w.node(op.name, "MirrorPad", inputs, mode=mode.upper(), **kinds)])
    else:
        raise refused(op, f"TensorFlow does not pad with {mode!r}")


@rule("Range")
def _range(w: Writer, op: Operation) -> None:
    dtype = op.outputs[0].dtype
    given = iter(w.names(op.inputs))
    if any(x.dtype != dtype for x in op.inputs):
        raise refused(op, "its ends are of another type than its elements")
    ends = []
    for key in ("start", "stop", "step"):
        value = op.attrs[key]
        number = None if value is None else np.array(value, dtype.numpy)
        ends.append(next(given) if number is None else w.constant(f"{op.name}/{key}", number))
    w.give(op, [w.node(op.name, "Range", ends, Tidx=dtype)])


@rule("OneHot")
def _one_hot(w: Writer, op: Operation) -> None:
    (indices,), dtype = op.inputs, op.outputs[0].dtype
    ends = [w.ints(f"{op.name}/depth", op.attrs["depth"])]
    for name, value in (("on", 1), ("off", 0)):
        ends.append(w.constant(f"{op.name}/{name}", np.array(value, dtype.numpy)))
    kinds = {"T": dtype, "TI": indices.dtype}
    inputs = [*w.names([indices]), *ends]
    w.give(op, [w.node(op.name, "OneHot", inputs, axis=op.attrs["axis"], **kinds)])


@rule("TopK")
def _top_k(w: Writer, op: Operation) -> None:
    (x,) = op.inputs
    inputs = [*w.names([x]), w.ints(f"{op.name}/k", op.attrs["k"])]
    name = w.node(op.name, "TopKV2", inputs, T=x.dtype, sorted=bool(op.attrs["sorted"]))
    w.give(op, [name, f"{name}:1"])


@rule("Rank")
def _rank(w: Writer, op: Operation) -> None:
    w.give(op, [w.node(op.name, "Rank", w.names(op.inputs), T=op.inputs[0].dtype)])


@rule("Size")
def _size(w: Writer, op: Operation) -> None:
    kinds = {"T": op.inputs[0].dtype, "out_type": op.outputs[0].dtype}
    w.give(op, [w.node(op.name, "Size", w.names(op.inputs), **kinds)])


# Slices


@rule("Slice")
def _slice(w: Writer, op: Operation) -> None:
    x, *values = op.inputs
    given = iter(w.names(values))
    begin = w.vector(f"{op.name}/begin", _sizes(op.attrs["begin"], given))
    size = w.vector(f"{op.name}/size", _sizes(op.attrs["size"], given))
    w.give(op, [w.node(op.name, "Slice", [*w.names([x]), begin, size], T=x.dtype, Index=INT32)])


@rule("SliceUpdate")
def _slice_update(w: Writer, op: Operation) -> None:
    x, updates, *values = op.inputs
    begin = _sizes(op.attrs["begin"], iter(w.names(values)))
    first = w.vector(f"{op.name}/begin", begin)
    kinds = {"T": updates.dtype, "out_type": INT32}
    size = w.node(f"{op.name}/size", "Shape", w.names([updates]), **kinds)
    end = w.node(f"{op.name}/end", "AddV2", [first, size], T=INT32)
    step = w.ints(f"{op.name}/step", [1] * len(begin))
    inputs = [*w.names([x]), first, end, step, *w.names([updates])]
    kinds = {"T": x.dtype, "Index": INT32}
    w.give(op, [w.node(op.name, "TensorStridedSliceUpdate", inputs, **kinds)])


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _places(w: Writer, op: Operation, given: Iterator[str]) -> tuple[list[str], dict[str, int]]:
    """Begins, ends and steps of a slice, and the masks that say what else its entries are."""
    begins: list[int | str] = []
    ends: list[int | str] = []
    steps: list[int | str] = []
    masks = dict.fromkeys(_MASKS, 0)
    for i, entry in enumerate(op.attrs["index"]):
        begin: int | str = 0
        end: int | str = 0
        step = 1
        if entry in ("...", "new"):
            masks["ellipsis_mask" if entry == "..." else "new_axis_mask"] |= 1 << i
        elif isinstance(entry, tuple):
            bounds = [next(given) if n == "?" else n for n in entry[:2]]
            step = 1 if entry[2] is None else entry[2]
            for bound, mask in zip(bounds, _MASKS, strict=False):
                if bound is None:
                    masks[mask] |= 1 << i
            begin, end = (0 if bound is None else bound for bound in bounds)
        else:
            masks["shrink_axis_mask"] |= 1 << i
            begin = next(given) if entry == "?" else entry
            if isinstance(begin, str):
                one = w.ints(f"{op.name}/one_{i}", 1)
                end = w.node(f"{op.name}/after_{i}", "AddV2", [begin, one], T=INT32)
            else:
                end = begin + 1
        begins.append(begin)
        ends.append(end)
        steps.append(step)
    parts = (("begin", begins), ("end", ends), ("steps", steps))
    return [w.vector(f"{op.name}/{name}", values) for name, values in parts], masks


@rule("StridedSlice")
def _strided_slice(w: Writer, op: Operation) -> None:
    x, *values = op.inputs
    if any(value.dtype != INT32 for value in values):
        raise refused(op, "its bounds are not of int32")
    places, masks = _places(w, op, iter(w.names(values)))
    attrs: dict[str, Any] = {"T": x.dtype, "Index": INT32, **masks}
    w.give(op, [w.node(op.name, "StridedSlice", [*w.names([x]), *places], **attrs)])


@rule("StridedSliceGrad")
def _strided_slice_grad(w: Writer, op: Operation) -> None:
    dy, *values = op.inputs
    given = iter(w.names(values))
    places, masks = _places(w, op, given)
    sizes = op.attrs["shape"]
    shape = next(given) if sizes is None else w.vector(f"{op.name}/shape", _sizes(sizes, given))
    attrs: dict[str, Any] = {"T": dy.dtype, "Index": INT32, **masks}
    inputs = [shape, *places, *w.names([dy])]
    w.give(op, [w.node(op.name, "StridedSliceGrad", inputs, **attrs)])


# Places


@rule("Gather")
def _gather(w: Writer, op: Operation) -> None:
    x, indices = op.inputs
    axis = w.ints(f"{op.name}/axis", op.attrs["axis"])
    attrs: dict[str, Any] = {"batch_dims": op.attrs["batch_dims"]}
    kinds = {"Tparams": x.dtype, "Tindices": indices.dtype, "Taxis": INT32}
    w.give(op, [w.node(op.name, "GatherV2", [*w.names(op.inputs), axis], **kinds, **attrs)])


@rule("GatherGrad")
def _gather_grad(w: Writer, op: Operation) -> None:
    """Added up with the indexed axis in front."""
    dy, indices, *dims = op.inputs
    shape, axis = op.attrs["shape"], op.attrs["axis"]
    if op.attrs["batch_dims"] or shape is None:
        raise refused(op, "it runs over batches, or the rank of its result is not known")
    sizes = _sizes(shape, iter(w.names(dims)))
    inner = _known_rank(op, indices)
    front = [*range(axis, axis + inner), *range(axis), *range(axis + inner, _known_rank(op, dy))]
    kinds = {"T": dy.dtype, "Tperm": INT32}
    (rows,) = w.names([dy])
    if axis:
        order = w.ints(f"{op.name}/to_front", front)
        rows = w.node(f"{op.name}/rows", "Transpose", [rows, order], **kinds)
    target = w.vector(f"{op.name}/shape", [sizes[axis], *sizes[:axis], *sizes[axis + 1 :]])
    last = w.ints(f"{op.name}/last", -1)
    inputs = [*w.names([indices]), last]
    at = w.node(f"{op.name}/at", "ExpandDims", inputs, T=indices.dtype, Tdim=INT32)
    if indices.dtype != INT32:
        at = w.node(f"{op.name}/at_32", "Cast", [at], SrcT=indices.dtype, DstT=INT32)
    name = op.name if not axis else f"{op.name}/sum"
    total = w.node(name, "ScatterNd", [at, rows, target], T=dy.dtype, Tindices=INT32)
    if axis:
        back = w.ints(f"{op.name}/back", [*range(1, axis + 1), 0, *range(axis + 1, len(sizes))])
        total = w.node(op.name, "Transpose", [total, back], **kinds)
    w.give(op, [total])


def _together(w: Writer, op: Operation, indices: Sequence[GraphTensor]) -> str:
    """Arrays of indices as the rows of one."""
    first = indices[0]
    if any((x.shape, x.dtype) != (first.shape, first.dtype) for x in indices):
        raise refused(op, "its arrays of indices are repeated")
    attrs: dict[str, Any] = {"T": first.dtype, "N": len(indices), "axis": -1}
    return w.node(f"{op.name}/indices", "Pack", w.names(indices), **attrs)


@rule("GatherNd")
def _gather_nd(w: Writer, op: Operation) -> None:
    x, *indices = op.inputs
    kinds = {"Tparams": x.dtype, "Tindices": indices[0].dtype}
    inputs = [*w.names([x]), _together(w, op, indices)]
    w.give(op, [w.node(op.name, "GatherNd", inputs, **kinds)])


@rule("ScatterNd")
def _scatter_nd(w: Writer, op: Operation) -> None:
    updates, *rest = op.inputs
    count, shape = op.attrs["num_indices"], op.attrs["shape"]
    indices, dims = rest[:count], w.names(rest[count:])
    sizes = dims[0] if shape is None else w.vector(f"{op.name}/shape", _sizes(shape, iter(dims)))
    at = _together(w, op, indices)
    if indices[0].dtype != INT32:
        at = w.node(f"{op.name}/at_32", "Cast", [at], SrcT=indices[0].dtype, DstT=INT32)
    inputs = [at, *w.names([updates]), sizes]
    w.give(op, [w.node(op.name, "ScatterNd", inputs, T=updates.dtype, Tindices=INT32)])


@rule("SegmentSum")
def _segment_sum(w: Writer, op: Operation) -> None:
    data, ids, *dims = op.inputs
    number = op.attrs["num_segments"]
    count = w.names(dims)[0] if number is None else w.ints(f"{op.name}/count", number)
    kinds = {"T": data.dtype, "Tindices": ids.dtype, "Tnumsegments": INT32}
    inputs = [*w.names([data, ids]), count]
    w.give(op, [w.node(op.name, "UnsortedSegmentSum", inputs, **kinds)])


@rule("AssignRows")
def _assign_rows(w: Writer, op: Operation) -> None:
    dtype, places = op.inputs[2].dtype, op.inputs[1]
    kinds = {"dtype": dtype, "Tindices": places.dtype}
    name = w.node(op.name, "ResourceScatterUpdate", w.names(op.inputs), **kinds)
    handle = w.names(op.inputs[:1])
    w.give(op, [w.node(f"{op.name}/value", "ReadVariableOp", handle, [name], dtype=dtype)])


# Matrices


@rule("Einsum")
def _einsum(w: Writer, op: Operation) -> None:
    if len(op.inputs) > 2:
        raise refused(op, "TensorFlow's takes two inputs")
    attrs: dict[str, Any] = {"T": op.inputs[0].dtype, "N": len(op.inputs)}
    equation = str(op.attrs["equation"])
    w.give(op, [w.node(op.name, "Einsum", w.names(op.inputs), equation=equation, **attrs)])


@rule("DiagPart")
def _diag_part(w: Writer, op: Operation) -> None:
    if op.attrs["offset"]:
        raise refused(op, "it is not about the main diagonal")
    name = w.node(op.name, "MatrixDiagPart", w.names(op.inputs), T=op.inputs[0].dtype)
    w.give(op, [name])


@rule("Qr")
def _qr(w: Writer, op: Operation) -> None:
    is_full = op.attrs["mode"] == "complete"
    kind = op.inputs[0].dtype
    name = w.node(op.name, "Qr", w.names(op.inputs), T=kind, full_matrices=is_full)
    w.give(op, [name, f"{name}:1"])
