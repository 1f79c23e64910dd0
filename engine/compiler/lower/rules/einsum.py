"""Einsum: pairs of operands contracted as matrix products of views, without copies where possible.

The axes of two operands are of four kinds: `batch` (both have it, and it stays), `inner` (both have
it, and it is summed over), `rows` (the first alone) and `columns` (the second alone). Each kind
becomes one axis of a batched product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

from ....graph import float32, float64
from ...ir.builder import Builder
from ...ir.element_types import wide
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, Shape, View, contiguous
from .contractions import factors, product, product_into
from .table import Lowered, lowers


class _Term(NamedTuple):
    """A view and the label of each of its axes."""

    view: View
    labels: str

    def size(self, label: str) -> int:
        return self.view.shape[self.labels.index(label)]

    def stride(self, label: str) -> int:
        return self.view.strides[self.labels.index(label)]

    def joined(self, labels: Sequence[str]) -> tuple[int, int] | None:
        """Size and stride of axes put together in this order; None if they are not evenly apart."""
        return joined_axes([(self.size(a), self.stride(a)) for a in labels])


def joined_axes(axes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Size and stride of axes taken as one; None if its elements are not evenly apart."""
    size, stride = 1, 1
    for n, s in reversed(axes):
        if n == 1:
            continue
        if size == 1:
            size, stride = n, s
        elif s == stride * size:
            size *= n
        else:
            return None
    return size, stride


@lowers("Einsum", takes_halves=True)
def _einsum(b: Builder, step: Lowered, *xs: Operand) -> Operand:
    dtype = step.dtypes[0]
    if wide(dtype) not in (float32, float64):
        raise NotLoweredError(f"Einsum of {dtype}")
    inputs, _, output = step.attrs["equation"].partition("->")
    sizes: dict[str, int] = {}
    for term, x in zip(inputs.split(","), xs, strict=True):
        for label, n in zip(term, b.shape(x), strict=True):
            known = sizes.setdefault(label, n)
            if known != n and (label not in output or 1 not in (known, n)):
                raise NotLoweredError(f"Einsum: {label} has the sizes {known} and {n}")
            sizes[label] = n if known == 1 else known
    work = [_simplified(b, x, term, sizes) for term, x in zip(inputs.split(","), xs, strict=True)]
    shape = tuple(sizes[a] for a in output)
    while len(work) > 1:
        i, j = _cheapest(work, sizes)
        second, first = work.pop(j), work.pop(i)
        needed = output + "".join(t.labels for t in work)
        wanted = None if work else output
        work.append(_contract(b, first, second, needed, wanted))
    last = _summed(b, work[0], output)
    missing = [a for a in output if a not in last.labels]  # of size 1 everywhere
    labels = last.labels + "".join(missing)
    view = last.view._replace(
        shape=(*last.view.shape, *(1 for _ in missing)),
        strides=(*last.view.strides, *(0 for _ in missing)),
    )
    found = b.reshape(b.transpose(view, [labels.index(a) for a in output]), shape)
    return b.cast(found, dtype)


def _simplified(b: Builder, x: Operand, term: str, sizes: dict[str, int]) -> _Term:
    """The operand with diagonals taken and without its axes of size 1."""
    view = x if isinstance(x, View) else b.copy(x)
    steps: dict[str, int] = {}
    for label, n, s in zip(term, view.shape, view.strides, strict=True):
        if n == 1:
            continue
        if n != sizes[label]:
            raise NotLoweredError(f"Einsum: {label} has the sizes {n} and {sizes[label]}")
        steps[label] = steps.get(label, 0) + s
    if any(view.shape[i] == 1 and a in steps for i, a in enumerate(term)):
        raise NotLoweredError("Einsum: the diagonal of a row")
    shape = tuple(sizes[a] for a in steps)
    return _Term(view._replace(shape=shape, strides=tuple(steps.values())), "".join(steps))


def _cheapest(work: Sequence[_Term], sizes: dict[str, int]) -> tuple[int, int]:
    """The two operands, i < j, whose product has the fewest multiplications."""
    pairs = [(i, j) for j in range(len(work)) for i in range(j)]
    return min(
        pairs,
        key=lambda p: math.prod(sizes[a] for a in {*work[p[0]].labels, *work[p[1]].labels}),
    )


def _summed(b: Builder, x: _Term, needed: str) -> _Term:
    axes = [i for i, a in enumerate(x.labels) if a not in needed]
    if not axes:
        return x
    total = b.reduce("sum", b.widened(x.view), axes)
    return _Term(total, "".join(a for a in x.labels if a in needed))


def _contract(b: Builder, x: _Term, y: _Term, needed: str, output: str | None) -> _Term:
    """The product of two operands, summed over what only they have and nobody needs.

    `output`: the order of the axes of the result that is best, if there is one.
    """
    x, y = _summed(b, x, needed + y.labels), _summed(b, y, needed + x.labels)
    dtype = wide(b.dtype(x.view))
    if not any(a in y.labels and a not in needed for a in x.labels):
        return _multiplied(b, x, y)
    x_view, y_view = factors(b, x.view, y.view)
    x, y = x._replace(view=x_view), y._replace(view=y_view)
    if output is not None:
        last = next((a for a in reversed(output) if a in x.labels or a in y.labels), "")
        if last in x.labels and last not in y.labels:
            x, y = y, x  # so that the last axis is one of columns
    else:
        output = ""

    def ordered(labels: Sequence[str]) -> list[str]:
        return sorted(labels, key=lambda a: output.index(a) if a in output else len(output))

    batch = ordered([a for a in x.labels if a in y.labels and a in needed])
    rows = ordered([a for a in x.labels if a not in y.labels])
    columns = ordered([a for a in y.labels if a not in x.labels])
    inner = [a for a in x.labels if a in y.labels and a not in needed]
    inner, x, y = _alike(b, x, y, rows, inner, columns)
    left, right = _matrix(x, batch, rows, inner), _matrix(y, batch, inner, columns)
    shape = [*(x.size(a) for a in (*batch, *rows)), *(y.size(a) for a in columns)]
    natural = "".join((*batch, *rows, *columns))
    found = _into_place(b, left, right, natural, shape, output, (batch, rows, columns))
    if found is not None:
        return found
    z = product(b, left, right, dtype)
    return _Term(b.reshape(z, tuple(shape)), natural)


def _multiplied(b: Builder, x: _Term, y: _Term) -> _Term:
    """Nothing is summed: one element times another."""
    labels = x.labels + "".join(a for a in y.labels if a not in x.labels)

    def spread(t: _Term) -> View:
        return t.view._replace(
            shape=tuple(t.size(a) if a in t.labels else 1 for a in labels),
            strides=tuple(t.stride(a) if a in t.labels else 0 for a in labels),
        )

    dtype = wide(b.dtype(x.view))
    return _Term(b.compute(lambda s, p, q: p * q, spread(x), spread(y), dtype=dtype), labels)


def _alike(
    b: Builder,
    x: _Term,
    y: _Term,
    rows: Sequence[str],
    inner: Sequence[str],
    columns: Sequence[str],
) -> tuple[list[str], _Term, _Term]:
    """An order of the inner axes in which both have them as one axis; copies where there is none.

    Copies also what has rows or columns that are no single axis.
    """

    def fits(t: _Term, own: Sequence[str], order: Sequence[str]) -> bool:
        return t.joined(own) is not None and t.joined(order) is not None

    orders = list(permutations(inner)) if len(inner) < 4 else [tuple(inner)]
    best = max(orders, key=lambda o: fits(x, rows, o) + fits(y, columns, o))
    if not fits(x, rows, best):
        x = _copied(b, x, [*rows, *best])
    if not fits(y, columns, best):
        y = _copied(b, y, [*best, *columns])
    return list(best), x, y


def _copied(b: Builder, x: _Term, last: Sequence[str]) -> _Term:
    """In new memory, with the axes `last` innermost."""
    labels = "".join([*(a for a in x.labels if a not in last), *last])
    order = [x.labels.index(a) for a in labels]
    return _Term(b.copy(b.transpose(x.view, order)), labels)


def _matrix(x: _Term, batch: Sequence[str], first: Sequence[str], second: Sequence[str]) -> View:
    """(batch..., first, second) as a view."""
    parts = [x.joined(first), x.joined(second)]
    assert None not in parts
    axes = [(x.size(a), x.stride(a)) for a in batch] + [p for p in parts if p is not None]
    return x.view._replace(shape=tuple(n for n, _ in axes), strides=tuple(s for _, s in axes))


def _into_place(
    b: Builder,
    left: View,
    right: View,
    natural: str,
    shape: Sequence[int],
    output: str,
    kinds: tuple[Sequence[str], Sequence[str], Sequence[str]],
) -> _Term | None:
    """The product written in the order of `output`; None where a kernel cannot, or need not."""
    order = "".join(a for a in output if a in natural)
    if len(order) != len(natural) or order == natural:
        return None
    sizes = dict(zip(natural, shape, strict=True))
    whole: Shape = tuple(sizes[a] for a in order)
    steps = dict(zip(order, contiguous(whole), strict=True))
    batch, rows, columns = kinds
    row_axis, column_axis = (
        joined_axes([(sizes[a], steps[a]) for a in labels]) for labels in (rows, columns)
    )
    if row_axis is None or column_axis is None or column_axis[1] != 1:
        return None
    lead = [(sizes[a], steps[a]) for a in batch]
    strides = (*(s for _, s in lead), row_axis[1], 1)
    made = product_into(b, left, right, whole, strides)
    return None if made is None else _Term(made, order)
