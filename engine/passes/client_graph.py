"""Client graph: what a step is, with its feeds and fetches as operations.

A fed tensor is the output of an `_Arg` named `_arg_<op>_<k>`, for every one of its consumers; a
fetched tensor is taken by a `_Retval` named `_retval_<op>_<k>_<index>`, and a target is waited for
by one, `_retval_<op>_<index>`. They read and write the slots of the step's call frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import GraphTensor, Operation
from ..ops.core.call_frame import arg, retval
from .fed_variables import other_reads
from .step_graph import StepGraph


def client_graph(
    elements: Sequence[GraphTensor | Operation],
    feeds: Sequence[GraphTensor] = (),
    given: Sequence[GraphTensor] = (),
) -> StepGraph:
    """The graph of a step that runs on a call frame.

    Args:
        elements: what it gives: slot i is element i.
        feeds: what it takes from the frame: slot i is feed i.
        given: what it is given when it begins, such as handles that the graph captures.

    Returns:
        It; its targets are the `_Retval` operations, its feeds those of `given`.
    """
    tensors = [e for e in elements if isinstance(e, GraphTensor)]
    operations = [e for e in elements if isinstance(e, Operation)]
    step = StepGraph.of(tensors, [*feeds, *given], operations, other_reads(feeds))
    graph = step.graph
    fed, step.feeds = step.feeds[: len(feeds)], step.feeds[len(feeds) :]
    pairs = []
    for i, (x, twin) in enumerate(zip(feeds, fed, strict=True)):
        attrs = {"shape": x.shape, "dtype": x.dtype, "index": i}
        name = f"_arg_{x.op.name}_{x.value_index}"
        op = graph.append(arg, name, (), attrs, (x.spec,), like=twin.op)
        pairs.append((twin, op.outputs[0]))
    step.replace(pairs)
    found, ran = iter(step.fetches), iter(step.targets)
    step.fetches, step.targets = [], []
    for i, element in enumerate(elements):
        if isinstance(element, GraphTensor):
            name = f"_retval_{element.op.name}_{element.value_index}_{i}"
            y = next(found)
            op = graph.append(retval, name, (y,), {"index": i}, (), like=y.op)
        else:
            target = next(ran)
            op = graph.append(
                retval, f"_retval_{element.name}_{i}", (), {"index": i}, (), like=target
            )
            op.control_inputs = [target]
        step.targets.append(op)
    step.trim()
    return step
