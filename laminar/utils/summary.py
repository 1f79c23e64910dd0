"""`model.summary()`: the layers as a table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.tree import flatten


def print_summary(
    model: Any,
    line_length: int | None = None,
    print_fn: Callable[[str], Any] | None = None,
    expand_nested: bool = False,
    show_trainable: bool = False,
    layer_range: Sequence[str] | None = None,
) -> None:
    """Print the layers of a model; see `Model.summary`."""
    from rich.console import Console
    from rich.table import Table

    rows = list(_rows(model, expand_nested))
    if layer_range is not None:
        rows = _between(rows, layer_range)
    connected = model.network is not None and not _is_chain(model)
    table = Table(title=f'Model: "{model.name}"', title_justify="left", title_style="bold")
    table.add_column("Layer (type)", style="cyan", overflow="fold")
    table.add_column("Output shape")
    table.add_column("Weights", justify="right", style="green")
    if connected:
        table.add_column("Connected to")
    if show_trainable:
        table.add_column("Trains", justify="center")
    for depth, layer in rows:
        cells = [
            f"{'  ' * depth}{layer.name} ({type(layer).__name__})",
            _output_shape(layer, model),
            f"{layer.count_params():,}" if layer.built else "not built",
        ]
        if connected:
            cells.append(_parents(layer, model) if depth == 0 else "")
        if show_trainable:
            cells.append("yes" if layer.trainable else "no")
        table.add_row(*cells)
    console = Console(
        width=line_length,
        record=print_fn is not None,
        file=None if print_fn is None else _Nowhere(),
        highlight=False,
    )
    console.print(table)
    for line in _totals(model):
        console.print(line)
    if print_fn is not None:
        print_fn(console.export_text())


class _Nowhere:
    """A file that keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def _rows(model: Any, expand: bool, depth: int = 0) -> Iterator[tuple[int, Any]]:
    layers = model.network.layers if model.network is not None else model.sublayers
    for layer in layers:
        yield depth, layer
        if expand and hasattr(layer, "network"):
            yield from _rows(layer, expand, depth + 1)


def _between(rows: list[tuple[int, Any]], names: Sequence[str]) -> list[tuple[int, Any]]:
    if len(names) != 2:
        raise InvalidArgumentError(f"summary: layer_range is (first, last), got {names!r}")
    places = []
    for name in names:
        found = [i for i, (_, layer) in enumerate(rows) if re.fullmatch(name, layer.name)]
        if not found:
            raise InvalidArgumentError(f"summary: no layer is named {name!r}")
        places.append(found)
    return rows[min(places[0]) : max(places[1]) + 1]


def _is_chain(model: Any) -> bool:
    nodes = model.network.nodes
    return all(len(node.inputs) <= 1 for node in nodes) and len(model.outputs) == 1


def _output_shape(layer: Any, model: Any) -> str:
    nodes = layer.inbound_nodes
    if model.network is not None:
        inside = [n for n in nodes if any(n is m for m in model.network.nodes)]
        nodes = inside or nodes
    if not nodes:
        return "?"
    shapes = [_shape(t.shape) for t in flatten(nodes[0].structured_outputs)]
    return shapes[0] if len(shapes) == 1 else "[" + ", ".join(shapes) + "]"


def _shape(shape: Any) -> str:
    return "(" + ", ".join("None" if d is None else str(d) for d in shape) + ")"


def _parents(layer: Any, model: Any) -> str:
    names = []
    for node in layer.inbound_nodes:
        if any(node is m for m in model.network.nodes):
            names.extend(
                f"{x.history.operation.name}[{x.history.tensor_index}]" for x in node.inputs
            )
    return ", ".join(names) or "-"


def _totals(model: Any) -> Iterator[str]:
    groups = [
        ("Total weights", model.weights),
        ("Trainable", model.trainable_weights),
        ("Not trainable", model.non_trainable_weights),
    ]
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and optimizer.built:
        groups.append(("Optimizer", optimizer.variables))
    for label, variables in groups:
        count = sum(v.size for v in variables)
        size = sum(v.size * v.dtype.size for v in variables)
        yield f"{label}: {count:,} ({_bytes(size)})"


def _bytes(size: int) -> str:
    if not size:
        return "0 B"
    step = min(int(math.log(size, 1024)), 4)
    return f"{size / 1024**step:.2f} {('B', 'KB', 'MB', 'GB', 'TB')[step]}"
