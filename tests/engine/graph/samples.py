"""Graphs to be written and read."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import engine as eng
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.array.join import split
from laminar.engine.ops.math.arithmetic import add
from laminar.engine.ops.math.elementary import tanh


def sample() -> eng.Graph:
    """A bit of everything: scopes, control edges, devices, colocation, variables, constants."""
    with eng.Graph().as_default() as graph:
        x: Any = eng.placeholder("float32", [None, 2], name="x")
        with eng.name_scope("layer"), eng.device("/job:worker/gpu:1"), eng.container("box"):
            w = eng.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
            y = tanh(x @ w)
        first = eng.no_op("first")
        with eng.control_dependencies([first]):
            parts = split(y, 2, axis=1)
        add(parts[1], eng.constant([b"\x00\xff", "ä"])[0:0].shape[0] + parts[0], name="total")
        eng.constant(np.array([], np.int64), name="empty")
        eng.global_variables_initializer()
    return graph


def load(graph_def: GraphDef, **options: Any) -> eng.Graph:
    with eng.Graph().as_default() as graph:
        eng.import_graph_def(graph_def, **{"name": "", **options})
    return graph
