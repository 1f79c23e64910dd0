"""MetaGraphs as text, to be read and edited by people.

The messages stand in proto/meta_graph.proto. This module alone touches them, and loads
protobuf on first use.
"""

from __future__ import annotations

from typing import Any

from ..errors import DataLossError


def messages() -> Any:
    """The module generated from meta_graph.proto."""
    from .proto import meta_graph_pb2  # protobuf loads on first use

    return meta_graph_pb2


def to_text(data: bytes, is_foreign: bool) -> str:
    """The text of a MetaGraph in its binary form, of laminar or (`is_foreign`) of TensorFlow."""
    from google.protobuf import text_format  # protobuf loads on first use

    kind = messages().TensorFlowMetaGraphDef if is_foreign else messages().MetaGraphDef
    text: str = text_format.MessageToString(kind.FromString(data))
    return text


def from_text(text: str) -> bytes:
    """The binary form of a text: of laminar's, or of TensorFlow's.

    Raises:
        DataLossError: it is neither.
    """
    from google.protobuf import text_format  # protobuf loads on first use

    first: Exception | None = None
    for kind in (messages().MetaGraphDef(), messages().TensorFlowMetaGraphDef()):
        try:
            text_format.Parse(text, kind, allow_unknown_field=kind.DESCRIPTOR.name[0] == "T")
        except Exception as cause:  # ParseError, or what the nesting of the text exceeds
            first = first or cause
            continue
        if hasattr(kind.graph_def, "node_count"):
            kind.graph_def.node_count = len(kind.graph_def.node)
        data: bytes = kind.SerializeToString(deterministic=True)
        return data
    raise DataLossError(f"the text is not a MetaGraph: {first}") from first
