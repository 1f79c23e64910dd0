"""Layouts, windows, strides and paddings, as `tf.nn` has them, for laminar's ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor

from .values import static


def is_channels_first(data_format: Any) -> bool:
    """Whether a layout such as "NCHW" has its channels before the spatial axes."""
    return data_format is not None and str(data_format).startswith("NC")


def layout(data_format: Any, rank: int) -> tuple[Any, slice]:
    """Keras's word for a layout, and where the spatial axes stand in a list of all."""
    if is_channels_first(data_format):
        return "channels_first", slice(2, rank)
    return "channels_last", slice(1, rank - 1)


def spatial(who: str, given: Any, where: slice, rank: int) -> Any:
    """The numbers of the spatial axes, of one for each axis; the others must be 1."""
    found = static(given)
    if isinstance(found, int):
        return found
    if len(found) == rank:
        if any(n != 1 for i, n in enumerate(found) if not where.start <= i < where.stop):
            raise InvalidArgumentError(
                f"{who}: {found} moves over the batch or the channels",
                remedy="give 1 for these axes",
            )
        return found[where]
    return found[0] if len(found) == 1 else found


def per_axis(who: str, given: Any, where: slice, rank: int) -> tuple[int, ...]:
    """As `spatial`, a number for each spatial axis."""
    found = spatial(who, 1 if given is None else given, where, rank)
    return (found,) * (where.stop - where.start) if isinstance(found, int) else tuple(found)


def padding_word(padding: Any) -> Any:
    """ "same" or "valid"."""
    if not isinstance(padding, str) or padding.lower() not in ("same", "valid"):
        raise InvalidArgumentError(
            f"padding must be 'SAME' or 'VALID', got {padding!r}", remedy="use tf.pad before it"
        )
    return padding.lower()


def paddings(padding: Any, where: slice) -> Any:
    """As `padding_word`; pairs of numbers for all axes are those of the spatial axes."""
    found = static(padding)
    if isinstance(found, str):
        return padding_word(found)
    return tuple((int(before), int(after)) for before, after in found[where])


def channels_last(x: Tensor, data_format: Any) -> Tensor:
    """With the channels at the end."""
    return ops.moveaxis(x, 1, -1) if is_channels_first(data_format) else x


def as_given(y: Tensor, data_format: Any) -> Tensor:
    """Back from `channels_last` to the layout of the input."""
    return ops.moveaxis(y, -1, 1) if is_channels_first(data_format) else y


def sizes_as_last(sizes: Sequence[Any], data_format: Any) -> list[Any]:
    """The sizes of all axes, as they are once the channels are at the end."""
    given = list(sizes)
    return [given[0], *given[2:], given[1]] if is_channels_first(data_format) else given
