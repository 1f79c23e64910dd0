"""`tf.graph_util`: graphs as data."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "convert_variables_to_constants": ".graphs:convert_variables_to_constants",
    "import_graph_def": ".framework:import_graph_def",
    "extract_sub_graph": ".graphs:extract_sub_graph",
}

__getattr__, __dir__ = face(__name__, NAMES)
