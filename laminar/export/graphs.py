"""Which operations a graph in a file may hold: those that touch nothing but its own variables."""

from __future__ import annotations

from laminar.engine import GraphDef
from laminar.engine.errors import LaminarError
from laminar.engine.ops.core.registry import OPS

# With effects, on variables of the file and inside of its graphs.
_WITH_STATE = frozenset(
    {
        *("Placeholder", "ReadVariable", "Assign", "AssignAdd", "AssignSub", "VariableScatter"),
        *("Assert", "Case", "While", "Scan", "StatefulCase", "StatefulWhile", "StatefulScan"),
    }
)
# Without state, but not of their inputs alone.
_REFUSED = frozenset({"HostFunction"})


def check_operations(graph_def: GraphDef, kind: type[LaminarError], who: str) -> None:
    """Refuse a graph that reads files, waits on queues, or calls Python.

    Raises:
        kind: it does, or holds an operation that laminar does not have.
    """
    message = graph_def.message
    functions = {function.name for function in message.function}
    for nodes in (message.node, *(function.node for function in message.function)):
        for node in nodes:
            if node.op in functions or node.op in _WITH_STATE:
                continue
            op = OPS.get(node.op)
            if op is None:
                raise kind(f"{who}: there is no operation {node.op!r} (node {node.name!r})")
            is_pure = not (op.stateful or op.context_kernel or op.async_kernel)
            if not is_pure or node.op in _REFUSED:
                raise kind(
                    f"{who}: {node.op} (node {node.name!r}) is not of its inputs alone; "
                    f"an exported graph may not hold it"
                )
