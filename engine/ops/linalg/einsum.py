"""Einsum: products of tensors, summed over the axes that the result does not name."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import NUMERIC, Array, Dim, OpView, Tensor, TensorSpec
from ..array.axes import expand_dims
from ..array.broadcast import broadcast_to, sum_to
from ..array.creation import eye
from ..array.shape import dim_of
from ..core.arrays import computing_dtype
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import conjugate


def _terms(equation: str) -> tuple[list[str], str]:
    inputs, _, output = equation.partition("->")
    return inputs.split(","), output


@define("Einsum", dtypes=NUMERIC)
def einsum_op(*xs: TensorSpec, equation: str) -> TensorSpec:
    """The sum of the products of elements over all labels that the output does not name.

    `equation` names the axes: "ab,bc->ac" is a matrix product. A letter that a term names twice
    means its diagonal. Under a letter of the output, an axis of size 1 is repeated to the size that
    the others have.
    """
    terms, output = _terms(equation)
    if len(terms) != len(xs):
        raise InvalidArgumentError(
            f"Einsum: {equation!r} has {len(terms)} terms for {len(xs)} operands",
            remedy="write one term for each operand, between commas",
        )
    sizes: dict[str, Dim] = {}
    for term, x in zip(terms, xs, strict=True):
        if x.shape.rank is None:
            continue
        if len(x.shape) != len(term):
            raise ShapeError(
                f"Einsum: the term {term!r} of {equation!r} names {len(term)} axes, "
                f"its operand is {x}",
                remedy="name each axis once",
            )
        for label, n in zip(term, x.shape, strict=True):
            sizes[label] = _merge(equation, label, sizes.get(label, n), n)
    unknown = any(x.shape.rank is None for x in xs)
    for label, n in sizes.items():
        if unknown and n == 1:
            sizes[label] = None
    return TensorSpec([sizes.get(label) for label in output], xs[0].dtype)


def _merge(equation: str, label: str, a: Dim, b: Dim) -> Dim:
    """The size of an axis, known as `a`, when an operand has `b` there."""
    repeats = label in _terms(equation)[1]
    if a is None or b is None:
        known = b if a is None else a
        return None if known == 1 and repeats else known
    if a != b and not (repeats and 1 in (a, b)):
        raise ShapeError(
            f"Einsum: the axes named {label!r} in {equation!r} have the sizes {a} and {b}",
            remedy="give axes of different sizes different letters",
        )
    return a if b == 1 else b


@einsum_op.reference
def _einsum_kernel(xp: Any, *xs: Array, equation: str) -> Array:
    """Contract two operands at a time, each pair by one matrix product."""
    terms, output = _terms(equation)
    dtype = xs[0].dtype
    wide = computing_dtype(xp, xs[0])
    xs = tuple(x.astype(wide, copy=False) for x in xs)
    sizes: dict[str, Any] = {}
    for term, x in zip(terms, xs, strict=True):
        for label, n in zip(term, x.shape, strict=True):
            sizes[label] = _merge(equation, label, sizes.get(label, n), n)
    work = [_simplified(xp, x, t) for x, t in zip(xs, terms, strict=True)]
    while len(work) > 1:
        i, j = _cheapest([labels for _, labels in work], sizes)
        (y, y_labels), (x, x_labels) = work.pop(j), work.pop(i)
        needed = output + "".join(labels for _, labels in work)
        work.append(_contract(xp, x, x_labels, y, y_labels, needed))
    result, labels = _sum_out(xp, *work[0], output)
    missing = [label for label in output if label not in labels]
    for label in missing:  # of size 1 everywhere
        result, labels = result[..., None], labels + label
    result = xp.transpose(result, [labels.index(label) for label in output])
    return result.astype(dtype, copy=False)


def _simplified(xp: Any, x: Array, term: str) -> tuple[Array, str]:
    """The operand with diagonals taken and without its axes of size 1."""
    small = tuple(i for i, n in enumerate(x.shape) if n == 1)
    x = xp.squeeze(x, small)
    term = "".join(label for i, label in enumerate(term) if i not in small)
    for label, count in Counter(term).items():
        for _ in range(count - 1):
            first = term.index(label)
            second = term.index(label, first + 1)
            x = xp.diagonal(x, 0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + label
    return x, term


def _cheapest(terms: Sequence[str], sizes: Mapping[str, int]) -> tuple[int, int]:
    """The two operands, i < j, whose product has the fewest multiplications."""
    pairs = [(i, j) for j in range(len(terms)) for i in range(j)]
    return min(pairs, key=lambda p: math.prod(sizes[a] for a in {*terms[p[0]], *terms[p[1]]}))


def _sum_out(xp: Any, x: Array, labels: str, needed: str) -> tuple[Array, str]:
    axes = tuple(i for i, label in enumerate(labels) if label not in needed)
    if not axes:
        return x, labels
    return xp.sum(x, axis=axes, dtype=x.dtype), "".join(a for a in labels if a in needed)


def _contract(
    xp: Any, x: Array, x_labels: str, y: Array, y_labels: str, needed: str
) -> tuple[Array, str]:
    """The product of two operands, summed over what only they have and nobody needs."""
    x, x_labels = _sum_out(xp, x, x_labels, needed + y_labels)
    y, y_labels = _sum_out(xp, y, y_labels, needed + x_labels)
    batch = [a for a in x_labels if a in y_labels and a in needed]
    inner = [a for a in x_labels if a in y_labels and a not in needed]
    rows = [a for a in x_labels if a not in y_labels]
    columns = [a for a in y_labels if a not in x_labels]
    x = xp.transpose(x, [x_labels.index(a) for a in (*batch, *rows, *inner)])
    y = xp.transpose(y, [y_labels.index(a) for a in (*batch, *inner, *columns)])
    b, r, k = len(batch), len(rows), len(inner)
    lead, row_dims, column_dims = x.shape[:b], x.shape[b : b + r], y.shape[b + k :]
    if inner:
        size = math.prod(x.shape[b + r :])
        z = xp.matmul(
            x.reshape((*lead, math.prod(row_dims), size)),
            y.reshape((*lead, size, math.prod(column_dims))),
        ).reshape((*lead, *row_dims, *column_dims))
    else:
        z = x.reshape((*x.shape, *(1,) * len(columns))) * y.reshape(
            (*lead, *(1,) * r, *column_dims)
        )
    return z, "".join((*batch, *rows, *columns))


@einsum_op.grad
def _einsum_grad(op: OpView, dy: Tensor) -> Grads:
    """For each operand, the einsum of dy and of the other operands, with its labels as output."""
    terms, output = _terms(op.attrs["equation"])
    return [_operand_grad(op.inputs, terms, output, i, dy) for i in range(len(op.inputs))]


def _operand_grad(
    inputs: Sequence[Tensor], terms: Sequence[str], output: str, i: int, dy: Tensor
) -> Tensor:
    x = inputs[i]
    others = [j for j in range(len(inputs)) if j != i]
    labels = "".join(dict.fromkeys(terms[i]))
    given = {*output, *(label for j in others for label in terms[j])}
    known = "".join(label for label in labels if label in given)
    several = {a for a in output if a not in labels and sum(a in terms[j] for j in others) > 1}
    operands = [dy, *(conjugate(_spread(inputs[j], terms[j], several, dy, output)) for j in others)]
    g = einsum_explicit([output, *(terms[j] for j in others)], known, operands)
    g = _repeated(g, x, known, labels, terms[i])
    if len(labels) < len(terms[i]):
        g = _on_diagonals(g, x, labels, terms[i])
    return sum_to(g, x)


def _spread(x: Tensor, term: str, labels: Collection[str], dy: Tensor, output: str) -> Tensor:
    """An operand repeated to dy's sizes along its axes under `labels` that have, or may have, 1."""
    if x.shape.rank is None:
        return x
    short = [axis for axis, n in enumerate(x.shape) if term[axis] in labels and n in (1, None)]
    if not short:
        return x
    sources = [(dy, output.index(a)) if i in short else (x, i) for i, a in enumerate(term)]
    return _with_sizes_of(sources, x)


def einsum_explicit(terms: Sequence[str], output: str, operands: Sequence[Tensor]) -> Tensor:
    """The einsum of operands whose axes are named one by one."""
    return einsum_op(*operands, equation=f"{','.join(terms)}->{output}")


def _repeated(g: Tensor, x: Tensor, known: str, labels: str, term: str) -> Tensor:
    """`g`, whose axes are `known`, repeated along the axes that x alone has and sums over."""
    new = [i for i, label in enumerate(labels) if label not in known]
    if not new:
        return g
    g = expand_dims(g, new)
    sources = [(x, term.index(a)) if i in new else (g, i) for i, a in enumerate(labels)]
    return _with_sizes_of(sources, g)


def _with_sizes_of(sources: Sequence[tuple[Tensor, int]], x: Tensor) -> Tensor:
    """`x` repeated: each of its axes gets the size of an axis of a tensor."""
    shape = [source.shape[axis] for source, axis in sources]
    dims = [dim_of(source, axis=axis) for source, axis in sources if source.shape[axis] is None]
    return broadcast_to(x, shape, dims)


def _on_diagonals(g: Tensor, x: Tensor, labels: str, term: str) -> Tensor:
    """`g` on the diagonals of zeros, for the labels that `term` repeats."""
    free = iter(a for a in string.ascii_letters if a not in term)
    renamed, masks, operands = "", [], [g]
    for axis, label in enumerate(term):
        if label not in renamed:
            renamed += label
            continue
        other = next(free)
        n = x.shape[axis]
        masks.append(label + other)
        operands.append(eye(dim_of(x, axis=axis) if n is None else n, dtype=g.dtype))
        renamed += other
    return einsum_explicit([labels, *masks], renamed, operands)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """The sum of products of elements that `equation` describes.

    Args:
        equation: for each operand a letter per axis, between commas; "..." stands for any number
            of axes, which broadcast. After "->" the axes of the result: what it leaves out is
            summed over. Without "->": the "..." and the letters that occur once, in alphabetical
            order. A letter twice in a term takes the diagonal.
        operands: numbers of one dtype.

    Raises:
        InvalidArgumentError: the equation is malformed or has another number of terms.
        ShapeError: a term does not fit its operand, or sizes under one letter differ.

    Source: the notation is NumPy's, after Einstein, "Die Grundlage der allgemeinen
        Relativitaetstheorie", 1916, section 5.
    """
    terms, output = _parse(equation)
    if len(terms) != len(operands):
        raise InvalidArgumentError(
            f"einsum: {equation!r} has {len(terms)} terms for {len(operands)} operands",
            remedy="write one term for each operand, between commas",
        )
    if not any("." in term for term in terms):
        return einsum_explicit(terms, output.replace(".", ""), operands)
    used = {*equation}
    free = [a for a in string.ascii_letters if a not in used]
    spread = 0
    for term, x in zip(terms, operands, strict=True):
        if "." in term:
            if x.shape.rank is None or len(x.shape) < len(term) - 1:
                raise ShapeError(
                    f"einsum: the term {term.replace('.', '...')!r} of {equation!r} "
                    f"does not fit {x.spec}",
                    remedy="give the tensor a known number of axes, at least one for each letter",
                )
            spread = max(spread, len(x.shape) - len(term) + 1)
    letters = "".join(free[:spread])
    full = []
    for term, x in zip(terms, operands, strict=True):
        width = x.ndim - len(term) + 1
        full.append(term.replace(".", letters[spread - width :]) if "." in term else term)
    return einsum_explicit(full, output.replace(".", letters), operands)


def _parse(equation: str) -> tuple[list[str], str]:
    """The terms and the output, with "." for "..."."""
    dense = equation.replace(" ", "")
    plain = dense.replace("...", ".")
    inputs, arrow, output = plain.partition("->")
    terms = inputs.split(",")
    names = [*terms, output]
    good = all(t.count(".") <= 1 and t.replace(".", "a").isalpha() for t in names if t)
    if not good or not plain.isascii() or "." in dense.replace("...", ""):
        raise InvalidArgumentError(
            f"einsum: {equation!r} is not an equation",
            remedy='write letters and at most one "..." in each term, such as "...ij,jk->...ik"',
        )
    counts = Counter(inputs.replace(",", ""))
    if not arrow:
        once = sorted(a for a, n in counts.items() if n == 1 and a != ".")
        return terms, ("." if "." in counts else "") + "".join(once)
    for label in output:
        if output.count(label) > 1 or label not in counts:
            raise InvalidArgumentError(
                f"einsum: the output of {equation!r} names {label.replace('.', '...')!r} "
                f"{'twice' if output.count(label) > 1 else 'but no operand does'}",
                remedy="name each axis of the result once",
            )
    if "." in counts and "." not in output:
        raise InvalidArgumentError(
            f'einsum: the output of {equation!r} leaves out the "..." of its operands',
            remedy='add "..." to the output, and sum over its axes afterwards',
        )
    return terms, output
