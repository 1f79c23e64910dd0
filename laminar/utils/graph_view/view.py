"""`view_graph`: what is to be looked at, and the page of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from laminar.engine import Function, Graph, RunMetadata, RunOptions, TensorSpec
from laminar.engine import function as traced
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.io.atomic import atomic_write
from laminar.layers import Layer
from laminar.naming import who
from laminar.tree import map_structure

from .contents import GraphContents
from .page import page_bytes


def view_graph(
    target: Any,
    path: str | os.PathLike[str] = "graph.html",
    *args: Any,
    trace: bool = False,
    run_metadata: RunMetadata | None = None,
    title: str | None = None,
) -> Path:
    r"""Write a page that shows a graph in a browser, and needs nothing but itself.

    Operations stand in groups by scope, which open and close; what is alike has one colour, what
    has many neighbours stands aside. A click shows shapes, attributes, and the user's line.

        view_graph(model, "model.html")
        view_graph(step, "step.html", x, y, trace=True)  # with the time of each operation

    Args:
        target: a graph, a session, a function (also one that `laminar.function` has not made), a
            layer or a model.
        path: of the page.
        args: what the function or model is called with: tensors, arrays or specs. They may be left
            out for a model that knows its inputs, and for a function with one trace.
        trace: whether the function or model is run once with `args`, for time and memory of each
            operation; see `RunOptions`.
        run_metadata: what a traced run of a session has told, for the same.
        title: of the page, by default the name of the target.

    Returns:
        the path.

    Raises:
        InvalidArgumentError: the target is none of these, or it is not known what it is called
            with.
        MissingFileError, PermissionDeniedError: the page cannot be written there.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> page = laminar.utils.view_graph(model, "graph.html")
        >>> import pathlib
        >>> pathlib.Path("graph.html").read_text().splitlines()[0]
        '<!doctype html>'
    """
    if trace and run_metadata is not None:
        raise InvalidArgumentError("view_graph: give trace=True or run_metadata, not both")
    fn = _function_of(target)
    graph = target if isinstance(target, Graph) else getattr(target, "graph", None)
    if fn is not None:
        given = args or (_inputs_of(target) if isinstance(target, Layer) else ())
        graph = _traced_graph(fn, given)
    if not isinstance(graph, Graph):
        raise InvalidArgumentError(
            f"view_graph: expected a graph, a session, a function or a model, got {target!r:.80}"
        )
    if trace:
        if fn is None or not args:
            raise InvalidArgumentError(
                "view_graph: trace=True runs a function or a model with what it is given",
                remedy="give the arguments, or run_metadata= of a traced run of a session",
            )
        run_metadata = RunMetadata()
        fn.with_options(RunOptions(trace=True), run_metadata)(*args)
    name = title or _title(target)
    data = page_bytes(GraphContents(graph, run_metadata), name)
    with atomic_write(path) as file:
        file.write(data)
    return Path(path)


def _function_of(target: Any) -> Function | None:
    """What is traced: None for what has a graph already."""
    if isinstance(target, Function):
        return target
    has_graph = isinstance(target, Graph) or isinstance(getattr(target, "graph", None), Graph)
    if not isinstance(target, Layer) and (has_graph or not callable(target)):
        return None
    found: Function = traced(target)
    return found


def _traced_graph(fn: Function, args: Sequence[Any]) -> Graph:
    if not args and fn.traces:
        if len(fn.traces) > 1:
            raise InvalidArgumentError(
                f"view_graph: {_title(fn)} has {len(fn.traces)} traces",
                remedy="give what it is called with: view_graph(f, path, x, y)",
            )
        return fn.traces[0].graph
    return fn.concrete(*args).graph


def _inputs_of(layer: Layer) -> list[Any]:
    """The specs of the inputs that a model knows."""
    inputs = getattr(layer, "inputs", None)
    if not inputs:
        raise InvalidArgumentError(
            f"view_graph: it is not known what {who(layer)} is called with",
            remedy="give it: view_graph(model, path, x)",
        )
    specs = map_structure(
        lambda x: TensorSpec(x.shape, x.dtype), getattr(layer, "_inputs_struct", inputs)
    )
    return [specs[0] if isinstance(specs, list) and len(specs) == 1 else specs]


def _title(target: Any) -> str:
    name = getattr(target, "name", None) or getattr(target, "__name__", None)
    return str(name or type(target).__name__)
