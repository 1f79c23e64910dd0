"""Summaries of tensors.

While a plain graph is built, a summary is an operation that gives a message (a string), which a
session fetches and `FileWriter.add_summary` writes; the graph lists it for `merge_all`. In eager
code and in functions a summary is written when it runs, to where `FileWriter.as_default` says, if
`record_if` allows it: which that is, is asked at each call, so a function is traced once for all
writers.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    section 9.1; "RFC: Functions, not sessions", 2018, "Summaries".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import GraphTensor, Tensor, bool_, building, get_default_graph, int64, string
from ..graph.scopes import is_name
from ..ops.core.convert import convert_to_tensor
from ..ops.io.summaries import MESSAGES, merge_summary, write_summary
from ..ops.math.cast import cast
from ..resources import summary_writing
from ..state import GraphKeys


def scalar(
    name: str,
    tensor: Any,
    step: Any = None,
    *,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A number.

    Args:
        name: the tag, after the names of the scopes around.
        tensor: of one element.
        step: in functions and eager code, the step that it is of, as a number, tensor or variable;
            by default what `set_step` says.
        collections: in a graph, the lists that it is put on; by default "summaries".
        family: a first part of the tag.

    Returns:
        In a graph the message, a string; else whether it was written.

    Raises:
        ShapeError: there are several numbers.
        InvalidArgumentError: in functions and eager code, nothing says which step it is.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     message = session.run(engine.summary.scalar("loss", engine.constant(0.5)))
        >>> engine.summary.Summary.from_bytes(message).value[0].simple_value
        0.5
    """
    return _summary("scalar", name, (tensor,), step, collections, family)


def histogram(
    name: str,
    values: Any,
    step: Any = None,
    *,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """How the numbers of a tensor of any shape are spread; see `scalar`.

    Args:
        name: the tag, after the names of the scopes around.
        values: numbers, of any shape; not strings.
        step: as of `scalar`.
        collections: in a graph, the lists that it is put on; by default "summaries".
        family: a first part of the tag.

    Returns:
        In a graph the message, a string; else whether it was written.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     message = session.run(
        ...         engine.summary.histogram("w", engine.constant([0.0, 1.0, 2.0]))
        ...     )
        >>> engine.summary.Summary.from_bytes(message).value[0].histo.num
        3.0
    """
    return _summary("histogram", name, (values,), step, collections, family)


def image(
    name: str,
    tensor: Any,
    step: Any = None,
    *,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Pictures; see `scalar`.

    Args:
        name: the tag; where max_outputs is not 1, "/0", "/1", ... come after it.
        tensor: (batch, height, width, channels) with 1, 3 or 4 channels; uint8, or floats from 0 to
            1. Floats beyond that are scaled: so that the largest is white, or, where some are
            negative, that 0 is in the middle.
        step: see `scalar`.
        max_outputs: how many of the batch.
        collections: see `scalar`.
        family: see `scalar`.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     picture = engine.constant(np.zeros((1, 4, 6, 3), "float32"))
        ...     message = session.run(engine.summary.image("picture", picture))
        >>> engine.summary.Summary.from_bytes(message).value[0].image.width
        6
    """
    options = (("max_outputs", int(max_outputs)),)
    return _summary("image", name, (tensor,), step, collections, family, options)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    step: Any = None,
    *,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Sounds; see `scalar`.

    Args:
        name: the tag; where max_outputs is not 1, "/0", "/1", ... come after it.
        tensor: (batch, frames, channels) or (batch, frames), floats from -1 to 1.
        sample_rate: frames per second.
        step: see `scalar`.
        max_outputs: how many of the batch.
        collections: see `scalar`.
        family: see `scalar`.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     sound = engine.constant(np.zeros((1, 100, 1), "float32"))
        ...     message = session.run(engine.summary.audio("sound", sound, sample_rate=8000))
        >>> engine.summary.Summary.from_bytes(message).value[0].audio.length_frames
        100
    """
    options = (("max_outputs", int(max_outputs)),)
    xs = (tensor, convert_to_tensor(sample_rate, "float32"))
    return _summary("audio", name, xs, step, collections, family, options)


def text(
    name: str, tensor: Any, step: Any = None, *, collections: Sequence[str] | None = None
) -> Tensor:
    """A text, which may be Markdown, or the rows of a table; see `scalar`.

    Args:
        name: the tag, after the names of the scopes around.
        tensor: strings, of any shape.
        step: as of `scalar`.
        collections: in a graph, the lists that it is put on; by default "summaries".

    Returns:
        In a graph the message, a string; else whether it was written.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     message = session.run(engine.summary.text("note", engine.constant("begins")))
        >>> engine.summary.Summary.from_bytes(message).value[0].tag
        'note'
    """
    return _summary("text", name, (convert_to_tensor(tensor, string),), step, collections, None)


def merge(
    inputs: Sequence[Tensor], *, collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """The values of several messages in one.

    Args:
        inputs: messages, string scalars.
        collections: the lists that the result is put on.
        name: of the operation.

    Returns:
        a message, a string scalar.

    Raises:
        InvalidArgumentError: when it runs, if two have one tag.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     parts = [
        ...         engine.summary.scalar(name, engine.constant(0.5)) for name in ("loss", "error")
        ...     ]
        ...     message = session.run(engine.summary.merge(parts))
        >>> [value.tag for value in engine.summary.Summary.from_bytes(message).value]
        ['loss', 'error']
    """
    merged = merge_summary(*inputs, name=name or "Merge")
    _list(merged, collections or ())
    return merged


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None) -> Tensor | None:
    """All summaries that the default graph lists, in one message; None where there are none.

    Args:
        key: of the list.
        scope: only those whose names begin so.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     _ = engine.summary.scalar("loss", engine.constant(0.5))
        ...     message = session.run(engine.summary.merge_all())
        >>> [value.tag for value in engine.summary.Summary.from_bytes(message).value]
        ['loss']
    """
    found = get_default_graph().get_collection(key, scope)
    return merge(found) if found else None


def _summary(
    kind: str,
    name: str,
    xs: Sequence[Any],
    step: Any,
    collections: Sequence[str] | None,
    family: str | None,
    options: tuple[tuple[str, Any], ...] = (),
) -> Tensor:
    tensors = [convert_to_tensor(x) for x in xs]
    graph = building()
    if graph is None:
        graph = next((x.graph for x in tensors if isinstance(x, GraphTensor)), None)
    label = name if family is None else f"{family}/{name}"
    if graph is None or graph.captures_values:
        tag = label if graph is None else graph.scopes.name + label
        return _write(tensors, step, kind=kind, tag=tag, options=options)
    with graph.as_default(), graph.name_scope(_as_name(label)) as scope:
        tag = scope[:-1] if family is None else f"{family}/{scope[:-1]}"
        message = MESSAGES[kind](*tensors, kind=kind, tag=tag, options=options, name=scope)
    _list(message, (GraphKeys.SUMMARIES,) if collections is None else collections)
    return message


def _write(tensors: Sequence[Tensor], step: Any, **attrs: Any) -> Tensor:
    """Write a summary where blocks say: those of the trace that it stands in as they say here."""
    sink, condition, numbers = (
        setting.traced()
        for setting in (summary_writing.sink, summary_writing.condition, summary_writing.step)
    )
    record: Any = True
    if condition is not None:
        (record,) = condition
        record = record() if callable(record) else record
    if step is None and numbers is not None:
        (step,) = numbers
        step = step() if callable(step) else step
    number = convert_to_tensor(-1 if step is None else step, int64 if step is None else None)
    return write_summary(
        number,
        cast(convert_to_tensor(record), bool_),
        *tensors,
        sink=None if sink is None else sink[0],
        allowed=condition is not None,
        **attrs,
    )


def _as_name(label: str) -> str:
    """A tag as the name of a scope: what a name cannot hold becomes "_"."""
    if is_name(label):
        return label
    found = "".join(c if c.isascii() and (c.isalnum() or c in "_.-/") else "_" for c in label)
    return found.lstrip("/_-.") or "summary"


def _list(message: Tensor, keys: Sequence[str]) -> None:
    if isinstance(message, GraphTensor):
        for key in keys:
            message.graph.add_to_collection(key, message)
