"""How an operation computes with pieces: which it takes of its inputs, and which it then gives.

A rule gets an operation and the cuts that its inputs have, and answers with the cuts that it wants
them to have (what is not so is cut or gathered before) and those of its outputs. Along the axes of
the mesh in `sums` each process has a summand of the outputs. An op without a rule takes inputs that
are whole.

Source: Xu et al., "GSPMD: general and scalable parallelization for ML computation graphs", 2021,
    arXiv:2105.04663, section 3; for pairs of matrices Shoeybi et al., "Megatron-LM", 2019,
    arXiv:1909.08053, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from laminar.engine.graph import GraphTensor, Operation

from .cuts import Cut, piece_shape, whole
from .mesh import ProcessMesh

_UNKNOWN: Final = 64  # what the size of an axis is taken for where only a run knows it


class Pieces(NamedTuple):
    """With which pieces an operation computes.

    Attributes:
        inputs: the cuts that it takes its inputs in.
        outputs: those of its outputs.
        sums: along which axes of the mesh the outputs are to be summed.
        attrs: attributes that are others for pieces.
    """

    inputs: Sequence[Cut]
    outputs: Sequence[Cut]
    sums: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = {}


Rule: TypeAlias = Callable[[Operation, Sequence[Cut], ProcessMesh], Pieces]


def pieces_for(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """With which pieces `op` is to compute, where its inputs have these cuts."""
    rule = _RULES.get(op.type)
    if rule is None and op.definition.scalar is not None:  # type: ignore[attr-defined]  # an OpDef
        rule = _elementwise
    tensors = [*op.inputs, *op.outputs]
    if rule is None or not any(map(any, cuts)) or any(x.shape.rank is None for x in tensors):
        return _of_wholes(op)
    return rule(op, cuts, mesh)


def _of_wholes(op: Operation) -> Pieces:
    return Pieces([whole(x) for x in op.inputs], [whole(y) for y in op.outputs])


def _elementwise(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """Axes are those of the output, from the last on; what is cut in an input is cut in all."""
    (y,) = op.outputs
    rank = len(y.shape)
    found: list[str | None] = [None] * rank
    for x, cut in zip(op.inputs, cuts, strict=True):
        for i, name in enumerate(cut, rank - len(cut)):
            n = x.shape[i - rank]
            if name not in (None, *found) and found[i] is None and n == y.shape[i]:
                sizes = [z.shape[i - rank] for z in op.inputs if len(z.shape) >= rank - i]
                found[i] = name if all(m in (n, 1) for m in sizes) else None
    output = tuple(found)
    return Pieces([_from_end(x, output, y) for x in op.inputs], [output])


def _from_end(x: GraphTensor, output: Cut, y: GraphTensor) -> Cut:
    """The cut of an input whose axes are the last ones of the output."""
    lead = len(y.shape) - len(x.shape)
    return tuple(
        output[lead + i] if n == y.shape[lead + i] else None for i, n in enumerate(x.shape)
    )


def _each_alike(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """Each output is an input, in its place, as it is or summed over other processes."""
    return Pieces(cuts, cuts)


def _begun(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """BeginSum: of pieces as they are."""
    return Pieces(cuts, [()])


def _ended(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """EndSum: each sum is cut as the input after the number."""
    return Pieces(cuts, cuts[1:])


def _inner_axes(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """Rows are taken out, put together or added up; what is inside of them stays as it is."""
    first = (None, *cuts[0][1:])
    return Pieces([first, *(whole(x) for x in op.inputs[1:])], [first])


def _looked_up(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """Gather: the axes around the one that is indexed stay as they are."""
    axis, indices = op.attrs["axis"], op.inputs[1]
    if op.attrs["batch_dims"]:
        return _of_wholes(op)
    table = (*cuts[0][:axis], None, *cuts[0][axis + 1 :])
    output = (*table[:axis], *whole(indices), *table[axis + 1 :])
    return Pieces([table, whole(indices)], [output])


def _contraction(
    op: Operation,
    cuts: Sequence[Cut],
    mesh: ProcessMesh,
    terms: Sequence[Sequence[Any]],
    output: Sequence[Any],
) -> Pieces:
    """A sum of products. Of the ways to cut it, that which sends the fewest elements.

    Args:
        op: the operation.
        cuts: of its inputs.
        mesh: the processes.
        terms: for each of the first inputs, a label for each axis; None for one that stays whole.
        output: the labels of the output.
    """
    operands = op.inputs[: len(terms)]
    sizes: dict[Any, set[Any]] = {}
    for x, term in zip(operands, terms, strict=True):
        for label, n in zip(term, x.shape, strict=True):
            sizes.setdefault(label, set()).add(n)
    fit = {k for k, found in sizes.items() if k and len(found) == 1 and None not in found}
    chosen: dict[Any, str] = {}

    def sent(name: str, label: Any) -> int:
        """How many elements are sent if the axes `label` are cut by `name`, about."""
        total = 0 if label in output else 2 * _elements(op.outputs[0])
        for x, term, cut in zip(operands, terms, cuts, strict=False):
            if name in cut and term[cut.index(name)] != label:
                total += _elements(x)
        return total

    for name in mesh.sizes:
        labels = [
            term[cut.index(name)]
            for term, cut in zip(terms, cuts, strict=False)
            if name in cut and term[cut.index(name)] in fit - chosen.keys()
        ]
        if labels:
            chosen[min(labels, key=lambda label: sent(name, label))] = name
    inputs = [tuple(chosen.get(label) for label in term) for term in terms]
    inputs += [whole(x) for x in op.inputs[len(terms) :]]
    sums = tuple(name for label, name in chosen.items() if label not in output)
    return Pieces(inputs, [tuple(chosen.get(label) for label in output)], sums)


def _elements(x: GraphTensor) -> int:
    return math.prod(_UNKNOWN if n is None else n for n in x.shape)


def _matrices(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    a, b = op.inputs
    left = ["k", "m"] if op.attrs["transpose_a"] else ["m", "k"]
    right = ["n", "k"] if op.attrs["transpose_b"] else ["k", "n"]
    lead = len(op.outputs[0].shape) - 2
    outer = [f"axis {i}" for i in range(lead)]
    terms = [[*outer[lead - len(x.shape) + 2 :], *term] for x, term in ((a, left), (b, right))]
    return _contraction(op, cuts, mesh, terms, [*outer, "m", "n"])


def _einsum(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    given, _, output = op.attrs["equation"].partition("->")
    twice = {k for term in given.split(",") for k in term if term.count(k) > 1}
    terms = [[None if k in twice else k for k in term] for term in (*given.split(","), output)]
    return _contraction(op, cuts, mesh, terms[:-1], terms[-1])


def _convolution(*terms: str) -> Rule:
    """Of images; b, c and f are examples, channels and filters, the axes between stay whole."""

    def rule(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
        if op.attrs["groups"] != 1:
            return _of_wholes(op)
        axes = [None] * len(op.attrs["strides"])
        labels = [[*axes, *term] if term == "cf" else [term[0], *axes, term[1]] for term in terms]
        return _contraction(op, cuts, mesh, labels[:-1], labels[-1])

    return rule


def _reduction(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """A sum over an axis that is cut is the sum of sums; other reductions take the whole axis."""
    (cut,), axis, rank = cuts, op.attrs["axis"], len(op.inputs[0].shape)
    given = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {i % rank for i in given}
    is_sum = op.type == "Sum"
    taken = tuple(None if i in axes and not is_sum else c for i, c in enumerate(cut))
    sums = tuple(c for i, c in enumerate(taken) if i in axes and c is not None)
    kept = bool(op.attrs["keepdims"])
    output = tuple(None if i in axes else c for i, c in enumerate(taken) if kept or i not in axes)
    return Pieces([taken], [output], sums)


def _along_axes(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """Softmax: the axes that it runs along are whole."""
    rank = len(op.inputs[0].shape)
    axes = {i % rank for i in op.attrs["axes"]}
    cut = tuple(None if i in axes else c for i, c in enumerate(cuts[0]))
    return Pieces([cut], [cut])


def _transposed(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    return Pieces(cuts, [tuple(cuts[0][i] for i in op.attrs["axes"])])


def _expanded(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    rank = len(op.outputs[0].shape)
    new, left = {i % rank for i in op.attrs["axis"]}, iter(cuts[0])
    return Pieces(cuts, [tuple(None if i in new else next(left) for i in range(rank))])


def _squeezed(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    (x,), rank = op.inputs, len(op.inputs[0].shape)
    axis = op.attrs["axis"]
    gone = {i % rank for i in axis} if axis else {i for i, n in enumerate(x.shape) if n == 1}
    return Pieces(cuts, [tuple(c for i, c in enumerate(cuts[0]) if i not in gone)])


def _broadcast(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """Axes that are repeated are not cut."""
    x, y = op.inputs[0], op.outputs[0]
    lead = len(y.shape) - len(x.shape)
    cut = tuple(c if x.shape[i] == y.shape[lead + i] else None for i, c in enumerate(cuts[0]))
    return _to_shape(op, cut, ((None,) * lead + cut), (), mesh)


def _summed_to(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """The opposite of `_broadcast`: a sum over an axis that is cut is the sum of sums."""
    x, y = op.inputs[0], op.outputs[0]
    lead = len(x.shape) - len(y.shape)
    stays = [i >= lead and n == y.shape[i - lead] for i, n in enumerate(x.shape)]
    sums = tuple(c for c, s in zip(cuts[0], stays, strict=True) if c is not None and not s)
    output = tuple(c if stays[i] else None for i, c in enumerate(cuts[0]))[lead:]
    return _to_shape(op, cuts[0], output, sums, mesh)


def _reshaped(op: Operation, cuts: Sequence[Cut], mesh: ProcessMesh) -> Pieces:
    """Only a last axis that stays as it is stays cut."""
    x, y, given = op.inputs[0], op.outputs[0], op.attrs["shape"]
    if not cuts[0] or not given or given[-1] != x.shape[-1] or y.shape[-1] != x.shape[-1]:
        return _of_wholes(op)
    last = cuts[0][-1]
    shape = given if last is None else (*given[:-1], given[-1] // mesh.sizes[last])
    inputs = [(*whole(x)[:-1], last), *(whole(z) for z in op.inputs[1:])]
    return Pieces(inputs, [(*whole(y)[:-1], last)], (), {"shape": shape})


def _to_shape(
    op: Operation, cut: Cut, output: Cut, sums: tuple[str, ...], mesh: ProcessMesh
) -> Pieces:
    """Of an op whose attribute `shape` is that of its output."""
    shape = tuple(piece_shape(op.outputs[0].shape, output, mesh))
    rows = zip(op.attrs["shape"], shape, output, strict=True)
    given = tuple(n if c is None else m for n, m, c in rows)
    inputs = [cut, *(whole(z) for z in op.inputs[1:])]
    return Pieces(inputs, [output], sums, {"shape": given})


_ALIKE = ("Cast", "Where", "ZerosLike", "OnesLike", "Identity", "StopGradient", "AddN")
_REDUCTIONS = ("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "Variance", "ArgMax", "ArgMin")
_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(_ALIKE, _elementwise),
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _along_axes),
    **dict.fromkeys(("Replicated", "SumOverWorkers"), _each_alike),
    **dict.fromkeys(("OwnRows", "GatherRows", "SegmentSum", "SegmentSpread"), _inner_axes),
    "BeginSum": _begun,
    "BroadcastTo": _broadcast,
    "Conv": _convolution("bc", "cf", "bf"),
    "ConvInputGrad": _convolution("bf", "cf", "bc"),
    "ConvKernelGrad": _convolution("bc", "bf", "cf"),
    "Einsum": _einsum,
    "EndSum": _ended,
    "ExpandDims": _expanded,
    "Gather": _looked_up,
    "MatMul": _matrices,
    "Reshape": _reshaped,
    "Squeeze": _squeezed,
    "SumTo": _summed_to,
    "Transpose": _transposed,
}
