"""`plot_model`: a model as a drawing of boxes and arrows, by Graphviz.

The description (the DOT text) is written here and needs nothing; a picture is drawn by the program
`dot`, which is looked for when one is asked for.
"""

from __future__ import annotations

import html
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    MissingFileError,
)
from laminar.layers.layer import Layer
from laminar.naming import who
from laminar.tree import flatten

_SECONDS = 120  # how long `dot` may take
_DIRECTIONS = ("TB", "BT", "LR", "RL")
_GREEN, _GREY = "#e3f1e4", "#eeeeee"


class Drawing:
    """A description of a drawing, in the language of Graphviz.

    Args:
        text: the description.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> str(laminar.utils.model_to_dot(model)).split()[0]
        'digraph'
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def to_string(self) -> str:
        """The description."""
        return self._text

    __str__ = to_string

    def create(self, format: str = "png") -> bytes:
        """The picture, drawn by the program `dot`.

        Args:
            format: "png", "svg", "pdf", ...: what the program knows.

        Raises:
            FailedPreconditionError: the program is not installed, or fails.
        """
        program = shutil.which("dot")
        if program is None:
            raise FailedPreconditionError(
                "plot_model: the program `dot` of Graphviz, which draws, is not installed",
                remedy="install Graphviz (`apt install graphviz`, `brew install graphviz`), or "
                'write the description alone: to_file="model.dot"',
            )
        done = subprocess.run(
            [program, f"-T{format}"],
            input=self._text.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise FailedPreconditionError(
                f"plot_model: `dot -T{format}` failed: "
                f"{done.stderr.decode(errors='replace').strip()}",
                remedy='write a picture that it can draw, such as to_file="model.svg"',
            )
        return done.stdout

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write the picture, or the description if the format is "dot"."""
        if not Path(path).parent.is_dir():
            raise MissingFileError(
                f"plot_model: there is no folder {str(Path(path).parent)!r} to write "
                f"{Path(path).name!r} to",
                remedy="make the folder first, or write elsewhere: to_file=",
            )
        kind = format or Path(path).suffix.removeprefix(".").lower() or "png"
        data = self._text.encode() if kind in ("dot", "gv") else self.create(kind)
        Path(path).write_bytes(data)

    def _repr_svg_(self) -> str | None:
        """What notebooks show."""
        return self.create("svg").decode() if shutil.which("dot") else None


def model_to_dot(
    model: Any,
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    subgraph: bool = False,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
    **kwargs: Any,
) -> Drawing:
    """A model as a description of a drawing.

    Args:
        model: built.
        show_shapes: whether boxes have the shapes of inputs and outputs.
        show_dtype: whether they have the dtype of outputs.
        show_layer_names: whether they have the names of layers besides their classes.
        rankdir: "TB" from top to bottom, "LR" from left to right, "BT" or "RL".
        expand_nested: whether models and layers inside of the model are opened.
        dpi: dots per inch of the picture.
        subgraph: whether the drawing is to be part of another one.
        show_layer_activations: whether boxes have the names of activations.
        show_trainable: whether they tell if the layer is trained.
        splines: how arrows run: "ortho", "curved", "polyline", "line" or "spline".

    Returns:
        the drawing: `str()` gives it in the language of Graphviz, `write(path)` draws it.

    Raises:
        InvalidArgumentError: no model, one that is not built, or another direction.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2, name="head")])
        >>> "head" in str(laminar.utils.model_to_dot(model))
        True
    """
    if kwargs:
        raise InvalidArgumentError(f"plot_model: unknown arguments {', '.join(sorted(kwargs))}")
    if rankdir not in _DIRECTIONS:
        raise InvalidArgumentError(
            f"plot_model: rankdir must be one of {', '.join(_DIRECTIONS)}, got {rankdir!r}"
        )
    if not isinstance(model, Layer):
        raise InvalidArgumentError(f"plot_model: expected a model, got {model!r}")
    if not model.built:
        raise InvalidArgumentError(
            f"plot_model: {who(model)} is not built, so its layers are not known",
            remedy="call it on data, or build(input_shape)",
        )
    shown = _Shown(
        show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable
    )
    drawer = _Drawer(shown, expand_nested)
    parts = list(drawer.parts(model))
    kind = f"subgraph {_quoted(f'cluster_{model.name}')}" if subgraph else "digraph"
    settings = f"rankdir={rankdir}; dpi={dpi}; splines={_quoted(splines)}; "
    nodes = (
        'graph [fontname="Helvetica", fontsize=11]; '
        'node [shape=plaintext, fontname="Helvetica", fontsize=11];'
    )
    body = "\n".join(f"  {line}" for line in [settings + nodes, *parts, *drawer.arrows])
    return Drawing(f"{kind} {{\n{body}\n}}\n")


class _Shown:
    """What boxes show."""

    def __init__(
        self, shapes: bool, dtype: bool, names: bool, activations: bool, trainable: bool
    ) -> None:
        self.shapes = shapes
        self.dtype = dtype
        self.names = names
        self.activations = activations
        self.trainable = trainable

    def label(self, operation: Any, nodes: list[Any]) -> str:
        """The box of a layer or op, as a table in the HTML of Graphviz."""
        title = type(operation).__name__
        if self.names:
            title = f"<b>{html.escape(operation.name)}</b> ({html.escape(title)})"
        lines = []
        activation = getattr(operation, "activation", None)
        if self.activations and activation is not None:
            name = getattr(activation, "__name__", type(activation).__name__)
            lines.append(f"activation: {name}")
        if self.shapes and nodes:
            before = [_shapes(node.inputs) for node in nodes if node.inputs]
            after = [_shapes(node.outputs) for node in nodes]
            for word, found in (("in", before), ("out", after)):
                lines += [f"{word}: {text}" for text in dict.fromkeys(found)]
        if self.dtype and nodes:
            lines.append(
                f"dtype: {', '.join(dict.fromkeys(str(y.dtype) for y in nodes[0].outputs))}"
            )
        is_layer = isinstance(operation, Layer)
        if self.trainable and is_layer and operation.weights:
            lines.append("trained" if operation.trainable else "frozen")
        color = _GREEN if is_layer and operation.weights else _GREY
        cells = "".join(f"<tr><td>{html.escape(line)}</td></tr>" for line in lines)
        head = f'<tr><td bgcolor="{color}">{title}</td></tr>'
        style = 'border="0" cellborder="1" cellspacing="0" cellpadding="5"'
        return f"<<table {style}>{head}{cells}</table>>"


def _shapes(tensors: list[Any]) -> str:
    found = [str(tuple(t.shape)) for t in tensors]
    return found[0] if len(found) == 1 else ", ".join(found)


class _Drawer:
    """Writes boxes, and collects arrows.

    Args:
        shown: what boxes show.
        expands: whether nested models and layers are opened.

    Attributes:
        arrows: the lines of the arrows.
    """

    def __init__(self, shown: _Shown, expands: bool) -> None:
        self.shown = shown
        self.expands = expands
        self.arrows: list[str] = []

    def parts(self, model: Any, depth: int = 1) -> Iterator[str]:
        """The lines of the boxes inside of a model or layer."""
        network = getattr(model, "_laminar_network", None)
        operations = model._laminar_sublayers if network is None else network.operations
        for operation in operations or [model]:
            nodes = [] if network is None else network.calls_of(operation)
            if self._opens(operation):
                yield f"subgraph {_quoted(f'cluster_{id(operation)}')} {{"
                yield f"  label={_quoted(operation.name)}; style=dashed;"
                for line in self.parts(operation, depth + 1):
                    yield f"  {line}"
                yield "}"
            else:
                yield f"{_box(operation)} [label={self.shown.label(operation, nodes)}];"
        for node in [] if network is None else network.nodes:
            for source in dict.fromkeys(t.history.operation for t in node.inputs):
                self._arrows(source, node.operation)

    def _opens(self, operation: Any) -> bool:
        """Whether a layer is drawn as what is inside of it."""
        if not self.expands or not isinstance(operation, Layer):
            return False
        return getattr(operation, "_laminar_network", None) is not None

    def _arrows(self, source: Any, target: Any) -> None:
        for a in self._ends(source, "outputs"):
            for b in self._ends(target, "inputs"):
                self.arrows.append(f"{_box(a)} -> {_box(b)};")

    def _ends(self, operation: Any, which: str) -> list[Any]:
        """Where arrows begin or end: at a layer, or inside of it if it is opened."""
        if not self._opens(operation):
            return [operation]
        inner = {
            t.history.operation: None for t in flatten(getattr(operation._laminar_network, which))
        }
        return [end for part in inner for end in self._ends(part, which)]


def _box(operation: Any) -> str:
    return _quoted(f"{operation.name}_{id(operation)}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def plot_model(
    model: Any,
    to_file: str | Path = "model.png",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = False,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
    **kwargs: Any,
) -> Drawing:
    r"""Draw a model into a file.

    Args:
        model: built.
        to_file: where: a picture ("model.png", "model.svg", ...), drawn by the program `dot`, or
            "model.dot" for the description alone, which needs no program.
        show_shapes: whether boxes have the shapes of inputs and outputs.
        show_dtype: whether they have the dtype of outputs.
        show_layer_names: whether they have the names of layers besides their classes.
        rankdir: "TB" from top to bottom, "LR" from left to right, "BT" or "RL".
        expand_nested: whether models and layers inside of the model are opened.
        dpi: dots per inch of the picture.
        show_layer_activations: whether boxes have the names of activations.
        show_trainable: whether they tell if the layer is trained.
        splines: how arrows run: "ortho", "curved", "polyline", "line" or "spline".

    Returns:
        The drawing, which notebooks show.

    Raises:
        FailedPreconditionError: the program `dot` is not installed, or fails.
        InvalidArgumentError: no model, one that is not built, or another direction.
        MissingFileError: the folder of `to_file` does not exist.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> drawing = laminar.utils.plot_model(model, "model.dot")
        >>> import pathlib
        >>> pathlib.Path("model.dot").read_text().splitlines()[0]
        'digraph {'
    """
    drawing = model_to_dot(
        model,
        show_shapes=show_shapes,
        show_dtype=show_dtype,
        show_layer_names=show_layer_names,
        rankdir=rankdir,
        expand_nested=expand_nested,
        dpi=dpi,
        show_layer_activations=show_layer_activations,
        show_trainable=show_trainable,
        splines=splines,
        **kwargs,
    )
    drawing.write(to_file)
    return drawing
