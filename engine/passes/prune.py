"""Prune: keep what the fetches need, and cut it at the feeds.

A fed tensor stops the search: its producer is kept only if something else needs it. So does a
control edge from a placeholder that is fed: its value is there from the start.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..graph import GraphTensor, Operation
from ..ops.core.basic import placeholder_op


def needed_operations(
    fetches: Sequence[GraphTensor],
    targets: Sequence[Operation] = (),
    feeds: Collection[GraphTensor] = (),
    fed_too: Collection[int] = (),
) -> list[Operation]:
    """The operations to run for `fetches` and `targets` when `feeds` are given, in order.

    Tensors whose id() is in `fed_too` are given as well.

    Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
        arXiv:1603.04467, section 4.2.
    """
    fed = {id(t) for t in feeds}.union(fed_too)
    needed: dict[int, Operation] = {}
    stack = [*targets, *(t.op for t in fetches if id(t) not in fed)]
    while stack:
        op = stack.pop()
        if op.id in needed:
            continue
        needed[op.id] = op
        if op.control_inputs:
            stack.extend([c for c in op.control_inputs if not _is_fed_placeholder(c, fed)])
        stack.extend([x.op for x in op.inputs if id(x) not in fed])
    return [needed[i] for i in sorted(needed)]


def _is_fed_placeholder(op: Operation, fed: Collection[int]) -> bool:
    return op.definition is placeholder_op and id(op.outputs[0]) in fed
