"""Which operations a graph in a file may hold: those that touch nothing but its own variables."""

from __future__ import annotations

from laminar.engine import GraphDef
from laminar.engine.errors import LaminarError
from laminar.engine.ops.control.structured import CASE, SCAN, WHILE
from laminar.engine.ops.core.basic import placeholder_op
from laminar.engine.ops.core.checks import assert_op
from laminar.engine.ops.core.host import host_function_op
from laminar.engine.ops.core.registry import find
from laminar.engine.ops.state.variable import assign, assign_add, assign_sub, read_variable
from laminar.engine.ops.state.variable_scatter import variable_scatter

# With effects, on variables of the file and inside of its graphs.
_WITH_STATE = frozenset(
    {
        *(placeholder_op, read_variable, assign, assign_add, assign_sub, variable_scatter),
        *(assert_op, *CASE, *WHILE, *SCAN),
    }
)


def check_operations(graph_def: GraphDef, kind: type[LaminarError], who: str) -> None:
    """Refuse a graph that reads files, waits on queues, or calls Python.

    Raises:
        kind: it does, or holds an operation that laminar does not have.
    """
    message = graph_def.message
    functions = {function.name for function in message.function}
    for nodes in (message.node, *(function.node for function in message.function)):
        for node in nodes:
            if node.op in functions:
                continue
            op = find(node.op)
            if op is None:
                raise kind(f"{who}: there is no operation {node.op!r} (node {node.name!r})")
            if op in _WITH_STATE:
                continue
            is_pure = not (op.stateful or op.context_kernel or op.async_kernel)
            if not is_pure or op is host_function_op:  # Python may do anything
                raise kind(
                    f"{who}: {node.op} (node {node.name!r}) is not of its inputs alone; "
                    f"an exported graph may not hold it"
                )
