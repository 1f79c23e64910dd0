"""Summaries of tensors: as messages, in a graph, or written at once, in functions and eager code.

What a summary says of arrays is one row of `SUMMARIES`, for both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import ANY, BOOLEAN, INTEGER, REAL, STRING, Array, TensorSpec, bool_, string
from ...io.summaries import (
    Summary,
    SummaryValue,
    audio_value,
    histogram_value,
    image_value,
    scalar_value,
    text_value,
)
from ...resources import summary_writing
from ..core.op_def import KernelContext, OpDef
from ..core.registry import define, no_gradient

Maker = Callable[..., Sequence[SummaryValue]]


def _scalar(x: Array, *, tag: str) -> list[SummaryValue]:
    if np.size(x) != 1:
        raise ShapeError(
            f"summary {tag!r}: a scalar summary is of one number, got {list(np.shape(x))}",
            remedy="reduce it, or use summary.histogram",
        )
    return [scalar_value(tag, np.asarray(x).astype("float64").item())]


def _histogram(x: Array, *, tag: str) -> list[SummaryValue]:
    return [histogram_value(tag, x)]


def _each(tag: str, count: int, max_outputs: int) -> list[str]:
    """The tags of the first items of a batch."""
    if max_outputs < 1:
        raise InvalidArgumentError(
            f"summary {tag!r}: max_outputs must be at least 1, got {max_outputs}"
        )
    kept = min(count, max_outputs)
    return [tag] if max_outputs == 1 else [f"{tag}/{i}" for i in range(kept)]


def _image(x: Array, *, tag: str, max_outputs: int) -> list[SummaryValue]:
    if np.ndim(x) != 4:
        raise ShapeError(
            f"summary {tag!r}: expected (batch, height, width, channels), got {list(x.shape)}",
            remedy="give a batch of images",
        )
    tags = _each(tag, len(x), max_outputs)
    return [image_value(t, _levels(pixels)) for t, pixels in zip(tags, x, strict=False)]


def _levels(pixels: Array) -> Array:
    """Floats from 0 to 1 as they are; others so that they use the range, with 0 in its middle
    where some are negative."""
    if pixels.dtype == np.uint8:
        return pixels
    x = pixels.astype("float32")
    finite = x[np.isfinite(x)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if low >= 0:
        return x if high <= 1 else x / high
    return 0.5 + x / (2 * max(high, -low))


def _audio(x: Array, sample_rate: Array, *, tag: str, max_outputs: int) -> list[SummaryValue]:
    sounds = x[..., None] if np.ndim(x) == 2 else x
    if np.ndim(sounds) != 3:
        raise ShapeError(
            f"summary {tag!r}: expected (batch, frames, channels) or (batch, frames), "
            f"got {list(x.shape)}"
        )
    tags = _each(tag, len(sounds), max_outputs)
    rate = float(np.asarray(sample_rate).item())
    return [audio_value(t, s, rate) for t, s in zip(tags, sounds, strict=False)]


def _text(x: Array, *, tag: str) -> list[SummaryValue]:
    if np.ndim(x) > 1:
        raise ShapeError(
            f"summary {tag!r}: expected a text or a list of texts, got {list(x.shape)}",
            remedy="join the columns, such as with ' | ' for Markdown",
        )
    return [text_value(tag, *np.asarray(x, object).reshape(-1))]


# By kind: what it says, and the types of the tensors.
SUMMARIES: Mapping[str, tuple[Maker, Any]] = {
    "scalar": (_scalar, REAL),
    "histogram": (_histogram, REAL),
    "image": (_image, REAL),
    "audio": (_audio, REAL),
    "text": (_text, STRING),
}


def _message_op(type: str, kind: str) -> OpDef:
    """The op that gives a summary as a message, for sessions to fetch."""
    make, _ = SUMMARIES[kind]

    @define(type, dtypes=ANY, same_dtype=False)
    def rule(*xs: TensorSpec, kind: str, tag: str, options: tuple[tuple[str, Any], ...]) -> Any:
        """A Summary message of what a tensor holds, under a tag."""
        check_types(kind, tag, xs)
        return TensorSpec([], string)

    @rule.kernel("cpu")
    def kernel(*xs: Array, kind: str, tag: str, options: tuple[tuple[str, Any], ...]) -> Array:
        values = make(*xs, tag=tag, **dict(options))
        return np.array(Summary(list(values)).to_bytes(), object)

    rule.grad(no_gradient)
    return rule


def check_types(kind: str, tag: str, xs: Sequence[TensorSpec]) -> None:
    """DTypeError where a summary of that kind is not of such tensors."""
    _, allowed = SUMMARIES[kind]
    for x in xs:
        if x.dtype not in allowed:
            raise DTypeError(
                f"summary {tag!r}: a {kind} summary is not of {x.dtype}", remedy="cast it first"
            )


MESSAGES: Mapping[str, OpDef] = {
    kind: _message_op(f"{kind.capitalize()}Summary", kind) for kind in SUMMARIES
}


@define("MergeSummary", dtypes=STRING)
def merge_summary(*messages: TensorSpec) -> TensorSpec:
    """The values of several summaries as one."""
    return TensorSpec([], string)


@merge_summary.kernel("cpu")
def _merge_kernel(*messages: Array) -> Array:
    found = b"".join(m for x in messages for m in np.asarray(x, object).reshape(-1))
    seen: set[str] = set()
    for value in Summary.from_bytes(found).value:
        if value.tag in seen:
            raise InvalidArgumentError(
                f"merge: two summaries have the tag {value.tag!r}", remedy="name one otherwise"
            )
        seen.add(value.tag)
    return np.array(found, object)


merge_summary.grad(no_gradient)


@define(
    "WriteSummary",
    dtypes={"step": INTEGER, "record": BOOLEAN, "xs": ANY},
    same_dtype=False,
    stateful=True,
)
def write_summary(
    step: TensorSpec,
    record: TensorSpec,
    *xs: TensorSpec,
    kind: str,
    tag: str,
    options: tuple[tuple[str, Any], ...],
    sink: Any = None,
    allowed: bool = False,
) -> TensorSpec:
    """Write a summary if `record` holds, where the block that is running says; whether it was.

    A negative step is the one that the block says. `sink` and `allowed` are what blocks said that
    were traced: where to write, and that `record` alone decides.
    """
    check_types(kind, tag, xs)
    return TensorSpec([], bool_)


@write_summary.effect
def _write_kernel(
    context: KernelContext,
    step: Array,
    record: Array,
    *xs: Array,
    kind: str,
    tag: str,
    options: tuple[tuple[str, Any], ...],
    sink: Any,
    allowed: bool,
) -> Array:
    target = summary_writing.current_sink(sink, allowed=allowed) if np.all(record) else None
    if target is None:
        return np.array(False)
    number = int(step)
    if number < 0:
        ask = summary_writing.step.get()
        if ask is None:
            raise InvalidArgumentError(
                f"summary {tag!r}: nothing says of which step it is",
                remedy="give step=, or call summary.set_step(step) before",
            )
        number = ask()
    make, _ = SUMMARIES[kind]
    target.add_summary(Summary(list(make(*xs, tag=tag, **dict(options)))), number)
    return np.array(True)


write_summary.grad(no_gradient)
