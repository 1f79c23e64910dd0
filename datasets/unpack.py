"""The parts of a batch: x, (x, y) or (x, y, sample_weight)."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import InvalidArgumentError


def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """The parts of a batch, None for those it does not have.

    Args:
        data: x, (x,), (x, y) or (x, y, sample_weight); a list counts as a tuple.

    Returns:
        (x, y, sample_weight).

    Raises:
        InvalidArgumentError: more than three parts.

    Examples:
        >>> laminar.utils.unpack_x_y_sample_weight(("x", "y"))
        ('x', 'y', None)
    """
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise InvalidArgumentError(
            f"a batch is x, (x, y) or (x, y, sample_weight), got {len(data)} parts",
            remedy="put several inputs into a list or dict: ([x1, x2], y)",
        )
    x, y, sample_weight = (*data, None, None)[:3]
    return x, y, sample_weight


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """The parts of a batch as a tuple, without the trailing None.

    Args:
        x: inputs, of any structure.
        y: targets.
        sample_weight: of the examples.

    Returns:
        (x, y, sample_weight) or (x, y); without y it is x, in a tuple where x is a list or tuple
        itself.

    Examples:
        >>> laminar.utils.pack_x_y_sample_weight("x", "y")
        ('x', 'y')
    """
    if y is None:
        return (x,) if isinstance(x, list | tuple) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)
