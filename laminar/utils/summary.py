"""`model.summary()`: the layers as a table, and the number of weights.

This module owns rich, which is loaded when a summary is printed.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from laminar import config
from laminar.callbacks.bars import is_live
from laminar.callbacks.display import format_bytes as format_bytes
from laminar.callbacks.display import say
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.layers.layer import Layer
from laminar.layers.symbolic import Node
from laminar.tree import flatten, map_shape_structure

# The width where nothing bounds it (a file, a function): names are not broken there.
_UNBOUNDED = 400


@dataclass(frozen=True)
class Row:
    """A layer, or an op, of the table.

    Attributes:
        operation: the layer or op.
        depth: how many layers it stands inside of.
        nodes: its calls in the model or layer that it stands in; none when that records none.
    """

    operation: Any
    depth: int
    nodes: tuple[Node, ...]


def print_summary(
    model: Any,
    line_length: int | None = None,
    print_fn: Callable[[str], Any] | None = None,
    expand_nested: bool = False,
    show_trainable: bool = False,
    layer_range: Sequence[str] | None = None,
) -> None:
    """Print the layers of a model; see `Model.summary`."""
    from rich.console import Console, Group

    parts = Group(
        _title(model),
        _table(model, expand_nested, show_trainable, layer_range),
        *_totals(model),
    )
    if print_fn is None and not config.is_interactive_logging_enabled():
        print_fn = say
    if print_fn is None:
        width = line_length or (None if is_live() else _UNBOUNDED)
        Console(width=width, highlight=False).print(parts)
        return
    text = io.StringIO()
    Console(file=text, width=line_length or _UNBOUNDED, highlight=False).print(parts)
    print_fn("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def _title(model: Any) -> Any:
    from rich.text import Text

    return Text(f'Model: "{model.name}"', style="bold")


def _table(
    model: Any, expand_nested: bool, show_trainable: bool, layer_range: Sequence[str] | None
) -> Any:
    from rich.table import Table

    rows = list(_rows(model, expand_nested))
    if layer_range is not None:
        rows = _between(rows, layer_range)
    is_connected = model._laminar_network is not None and not _is_chain(model)
    calls = (
        Counter(n.operation for n in model._laminar_network.nodes) if is_connected else Counter()
    )
    table = Table(header_style="bold")
    table.add_column("Layer (type)", overflow="fold")
    table.add_column("Output Shape", overflow="fold")
    table.add_column("Param #", justify="right", no_wrap=True)
    if is_connected:
        table.add_column("Connected to", overflow="fold")
    if show_trainable:
        table.add_column("Trainable", justify="center")
    for row in rows:
        cells = [_name(row), _shapes(row), _count(row.operation)]
        if is_connected:
            cells.append(_parents(row, calls) if row.depth == 0 else "")
        if show_trainable:
            cells.append(_is_trainable(row.operation))
        table.add_row(*cells)
    return table


# Rows


def _rows(parent: Any, expand: bool, depth: int = 0) -> Iterator[Row]:
    """The parts of a model or layer, and with `expand` the parts of these."""
    network = getattr(parent, "_laminar_network", None)
    nodes = [] if network is None else network.nodes
    for operation in parent._laminar_summarized():
        yield Row(operation, depth, tuple(n for n in nodes if n.operation is operation))
        if expand and isinstance(operation, Layer):
            yield from _rows(operation, expand, depth + 1)


def _between(rows: list[Row], names: Sequence[str]) -> list[Row]:
    """The rows from one name, or pattern, to another one, and what is inside of them."""
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(
            f"summary: layer_range must be two names of layers, got {names!r}",
            remedy='layer_range=("first", "last")',
        )
    places = []
    for name in names:
        found = [
            i
            for i, row in enumerate(rows)
            if row.depth == 0 and re.fullmatch(name, row.operation.name)
        ]
        if not found:
            raise NotFoundError(
                f"summary: layer_range names {name!r}, which is no layer of the model",
                remedy=f"its layers are {', '.join(r.operation.name for r in rows if not r.depth)}",
            )
        places.append(found)
    first, last = sorted((min(places[0]), max(places[1])))
    after = [i for i, row in enumerate(rows) if i > last and row.depth == 0]
    return rows[first : after[0] if after else None]


def _is_chain(model: Any) -> bool:
    """Whether each part takes what the one before gives, so that the order says it all."""
    nodes = model._laminar_network.nodes
    return len(model._laminar_network.operations) == len(nodes) and all(
        n.parents == [before] for before, n in pairwise(nodes)
    )


# Cells


def _name(row: Row) -> Any:
    from rich.text import Text

    guide = "   " * (row.depth - 1) + "└ " if row.depth else ""
    kind = type(row.operation).__name__
    return Text.assemble((guide, "dim"), row.operation.name, " (", (kind, "cyan"), ")")


def _shapes(row: Row) -> str:
    """The shapes of the outputs; a shared layer may have several, one for each call."""
    if row.nodes:
        found = [[t.shape for t in flatten(n.structured_outputs)] for n in row.nodes]
        return "\n".join(dict.fromkeys(_shape_text(shapes) for shapes in found))
    return _inferred_shapes(row.operation)


def _inferred_shapes(layer: Any) -> str:
    """The shapes that the layer gives for those it was built with, at any size of the batch."""
    shapes = getattr(layer, "_laminar_build_shapes", None)
    shapes = shapes or getattr(layer, "_laminar_first_shapes", None)
    if not layer.built or not shapes:
        return "?"
    known = {name: map_shape_structure(_any_batch, shape) for name, shape in shapes.items()}
    try:
        if len(known) == 1:
            outputs = layer.compute_output_shape(*known.values())
        else:
            outputs = layer.compute_output_shape(**known)
    except Exception:  # what a user's layer does with other inputs is its affair
        return "?"
    found: list[Any] = []
    map_shape_structure(found.append, outputs)
    return _shape_text(found)


def _any_batch(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return (None, *shape[1:]) if shape else shape


def _shape_text(shapes: Iterable[Any]) -> str:
    texts = ["(" + ", ".join(map(str, shape)) + ("," * (len(shape) == 1)) + ")" for shape in shapes]
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"


def _count(operation: Any) -> str:
    if not isinstance(operation, Layer):
        return "0"
    return f"{operation.count_params():,}" if operation.built else "not built"


def _parents(row: Row, calls: Mapping[Any, int]) -> str:
    """Where the inputs come from: names, with call and output where there are several."""
    names = []
    for tensor in (x for node in row.nodes for x in node.inputs):
        operation, call, output = tensor.history
        is_only = calls[operation] == 1 and len(operation.inbound_nodes[call].outputs) == 1
        names.append(operation.name if is_only else f"{operation.name}[{call}][{output}]")
    return ", ".join(names) or "-"


def _is_trainable(operation: Any) -> str:
    if not isinstance(operation, Layer) or not operation.weights:
        return "-"
    return "yes" if operation.trainable else "no"


# Totals


def _totals(model: Any) -> Iterator[Any]:
    from rich.text import Text

    groups = [
        ("Total params", model.weights),
        ("Trainable params", model.trainable_weights),
        ("Non-trainable params", model.non_trainable_weights),
    ]
    optimizer = model.optimizer
    if optimizer is not None and optimizer.built:
        groups.append(("Optimizer params", optimizer.variables))
    for label, variables in groups:
        count = sum(v.size for v in variables)
        size = sum(v.size * v.dtype.size for v in variables)
        yield Text.assemble((f" {label}: ", "bold"), f"{count:,} ({format_bytes(size)})")
    if not all(layer.built for layer in model._laminar_flatten_layers()):
        yield Text(" Not all layers are built: call the model on data, or build(input_shape).")
