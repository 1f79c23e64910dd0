"""Variables that are fed: what a step is given for one, all of its reads give.

A use of a variable is a read of its own. Whoever feeds the variable, which is feeding any of its
reads, means all of them, also those that wait for an update: the step has that value. Updates go on
from the value that is stored, which a feed leaves as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import InvalidArgumentError
from ..graph import GraphTensor, Operation, resource
from ..ops.state.variable import initialized_value, read_variable
from .inner_graphs import inner_operations

_READS = (read_variable, initialized_value)


def other_reads(feeds: Sequence[GraphTensor]) -> dict[int, GraphTensor]:
    """By the id of a tensor that is read of a fed variable elsewhere, the one that is fed.

    Raises:
        InvalidArgumentError: a variable is fed twice, by two of its reads.
    """
    found: dict[int, GraphTensor] = {}
    for fed in feeds:
        if fed.op.definition is not read_variable:
            continue
        for op in fed.op.inputs[0].consumers():
            if op.definition in _READS and op is not fed.op:
                found[id(op.outputs[0])] = fed
    for fed in feeds:
        if id(fed) in found:
            raise InvalidArgumentError(
                f"the variable {fed.op.inputs[0].op.name!r} is fed twice: {fed.name} and "
                f"{found[id(fed)].name} are both its value",
                remedy="feed the variable itself, once",
            )
    return found


def check_reads(feeds: Sequence[GraphTensor], operations: Iterable[Operation]) -> None:
    """Refuse a step that reads a fed variable where its feed does not reach.

    Raises:
        InvalidArgumentError: a branch or the body of a loop reads it.
    """
    handles = {id(fed.op.inputs[0]): fed for fed in feeds if fed.op.definition is read_variable}
    for op in operations if handles else ():
        fed = next((handles[id(x)] for x in op.inputs if id(x) in handles), None)
        if fed is None or op.definition in _READS:
            continue
        passes_on = any(y.dtype == resource for y in op.outputs)
        if passes_on or any(inner.definition is read_variable for inner in inner_operations(op)):
            name = fed.op.inputs[0].op.name
            raise InvalidArgumentError(
                f"the variable {name!r} is fed, and {op.name} ({op.type}) reads it inside, where "
                f"the feed does not reach",
                remedy="read it outside (value = w.read_value()), and use that value inside",
            )
