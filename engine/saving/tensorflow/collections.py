"""Collections of TensorFlow's graphs: objects are bytes in them, of a kind that the key says."""

from __future__ import annotations

from typing import Any

from ...graph import Graph
from ...state.variable_def import read_variable_bytes
from ..collections import codec, read_collection, read_runner

_VARIABLES = frozenset(
    {
        "variables",
        "trainable_variables",
        "local_variables",
        "model_variables",
        "moving_average_variables",
        "metric_variables",
        "global_step",
        "concatenated_variables",
        "trainable_resource_variables",
    }
)
_LEFT_OUT = frozenset({"cond_context", "while_context"})  # the operations say it


def read_tensorflow_collection(
    key: str, data: bytes, graph: Graph, scope: str, known: dict[bytes, Any]
) -> list[Any]:
    """The values of a collection; see `read_collection`."""
    if key in _LEFT_OUT:
        return []
    values = read_collection(data, graph, scope, known)

    def made(value: Any) -> Any:
        if not isinstance(value, bytes):
            return value
        if key in _VARIABLES:
            if value not in known:
                known[value] = read_variable_bytes(value, graph, scope)
            return known[value]
        if key == "queue_runners":
            return read_runner(value, graph, scope)
        if key == "savers":
            return codec("laminar.Saver").decode(value, graph, scope)
        return value

    return [made(value) for value in values]
