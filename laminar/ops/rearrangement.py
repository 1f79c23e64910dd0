"""`rearrange`: axes named in a pattern, split, moved and joined."""

from __future__ import annotations

import math
import re
from typing import Any

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.axes import transpose
from laminar.engine.ops.array.shape import dims_of, reshape
from laminar.engine.ops.math.arithmetic import floor_divide, multiply

from ..typing import TensorLike
from .arguments import tensor as as_tensor
from .recording import public

__all__ = ["rearrange"]

_ATOM = re.compile(r"\(([\w\s]*)\)|(\w+)")


def _groups(side: str, pattern: str) -> list[list[str]]:
    """The axes of one side of a pattern: each a list of the names that it is made of."""
    groups = [
        match[1].split() if match[2] is None else [match[2]] for match in _ATOM.finditer(side)
    ]
    if _ATOM.sub("", side).strip():
        raise InvalidArgumentError(
            f"rearrange: expected names and groups of names, as 'b h w c -> b (h w) c', "
            f"got {pattern!r}"
        )
    return groups


@public
def rearrange(tensor: TensorLike, pattern: str, **axes_lengths: int) -> Tensor:
    """`tensor` with its axes split, moved and joined, as the pattern says.

    Args:
        tensor: any tensor.
        pattern: names of the axes before and after "->"; names in parentheses make up one axis,
            the last of them running fastest: "b (h two) w -> b h (w two)".
        **axes_lengths: sizes of names in parentheses on the left, all but one of each group.

    Raises:
        InvalidArgumentError: a malformed pattern, or names that are not the same on both sides.
        ShapeError: the pattern does not fit the tensor.

    Examples:
        >>> ops.rearrange(np.arange(4).reshape(2, 2), "h w -> (w h)")
        Tensor([0, 2, 1, 3], shape=(4,), dtype=int64)
    """
    x = as_tensor(tensor)
    left, arrow, right = pattern.partition("->")
    before, after = _groups(left, pattern), _groups(right, pattern)
    names = [name for group in before for name in group]
    wanted = [name for group in after for name in group]
    if not arrow or len(set(names)) != len(names) or sorted(names) != sorted(wanted):
        raise InvalidArgumentError(
            f"rearrange: both sides of the pattern must have the same names, each once; "
            f"got {pattern!r}",
            remedy="write '()' for an axis of size 1",
        )
    if x.shape.rank != len(before):
        raise ShapeError(
            f"rearrange: the pattern {pattern!r} has {len(before)} axes, the tensor is {x.spec}"
        )
    sizes = _sizes(x, before, axes_lengths, pattern)
    x = reshape(x, [sizes[name] for name in names])
    x = transpose(x, [names.index(name) for name in wanted])
    return reshape(x, [_product([sizes[name] for name in group]) for group in after])


def _sizes(
    x: Tensor, groups: list[list[str]], given: dict[str, int], pattern: str
) -> dict[str, Any]:
    """The size of each name: an int, or a scalar tensor where it is known at run time only."""
    shape, dims = dims_of(x)
    sizes: dict[str, Any] = {}
    for group, known in zip(groups, shape, strict=True):
        total = dims.pop(0) if known is None else known
        open_names = [name for name in group if name not in given]
        part = math.prod(int(given[name]) for name in group if name in given)
        if len(open_names) > 1 or (known is not None and (known % part if part else known)):
            raise ShapeError(
                f"rearrange: an axis of size {'?' if known is None else known} cannot be split "
                f"into ({' '.join(group)}) of {pattern!r}, with {given}",
                remedy="give the sizes of all but one of its names",
            )
        if not open_names and known is not None and known != part:
            raise ShapeError(
                f"rearrange: ({' '.join(group)}) has size {part}, the axis of {x.spec} has {known}"
            )
        sizes.update({name: int(given[name]) for name in group if name in given})
        for name in open_names:
            if known is None:
                sizes[name] = total if part == 1 else floor_divide(total, as_tensor(part))
            else:
                sizes[name] = known // part if part else 0
    return sizes


def _product(sizes: list[Any]) -> Any:
    found: Any = 1
    for size in sizes:
        if isinstance(found, int) and isinstance(size, int):
            found *= size
        else:
            found = multiply(as_tensor(found), as_tensor(size))
    return found
