"""Printing values when a graph runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import Array, Tensor, TensorSpec
from .convert import convert_to_tensor
from .registry import define, no_gradient


@define("Print", dtypes={}, stateful=True)
def print_op(*xs: TensorSpec, template: tuple[str, ...]) -> tuple[TensorSpec, ...]:
    """Write the values to the standard output, each between two texts of `template`."""
    return ()


@print_op.kernel("cpu")
def _print_kernel(*xs: Array, template: tuple[str, ...]) -> tuple[Array, ...]:
    first, *others = template
    print(first + "".join(f"{np.asarray(x)}{t}" for x, t in zip(xs, others, strict=True)), end="")
    return ()


print_op.grad(no_gradient)


def print_tensors(values: Sequence[Any], sep: str = " ", end: str = "\n") -> None:
    """Print values as `print` does; in a graph, each time that it runs.

    Args:
        values: tensors, and anything else, which is written as it is now.
        sep: what stands between two.
        end: what stands at the end.
    """
    texts, tensors = [""], []
    for place, value in enumerate(values):
        texts[-1] += sep if place else ""
        if isinstance(value, Tensor):
            tensors.append(convert_to_tensor(value))
            texts.append("")
        else:
            texts[-1] += str(value)
    texts[-1] += end
    print_op.many(*tensors, template=tuple(texts))
