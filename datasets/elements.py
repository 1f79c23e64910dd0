"""Elements of a data set: structures of NumPy arrays, numbers and byte strings.

Texts are `bytes`, as in string tensors. None may stand for a part that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import EagerTensor, TensorSpec
from laminar.engine.ops.core.arrays import to_array
from laminar.tree import flatten, flatten_with_path, is_nested, map_structure, pack_sequence_as


def packer(structure: Any) -> Callable[[list[Any]], Any]:
    """What puts leaves, as flattened, into the form of `structure`."""
    if not is_nested(structure):
        return _only
    if type(structure) is tuple and not any(map(is_nested, structure)):
        return tuple
    return lambda leaves: pack_sequence_as(structure, leaves)


def _only(leaves: list[Any]) -> Any:
    return leaves[0]


def as_element(value: Any) -> Any:
    """What a user's function or generator gave, as an element; a list is an array."""
    kind = type(value)
    if kind is np.ndarray or kind is bytes or isinstance(value, np.generic) or value is None:
        return value
    if isinstance(value, EagerTensor):
        return value.value
    if isinstance(value, dict):
        return {key: as_element(part) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = [as_element(part) for part in value]
        return kind(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "as_numpy_iterator"):  # a data set: `window` and `flat_map` have such
        return value
    return to_array(value, copy=False)[0]


def as_tensors(element: Any) -> Any:
    """An element as the user gets it: of tensors."""
    if isinstance(element, tuple) and not hasattr(element, "_fields"):
        return tuple([as_tensors(part) for part in element])
    if is_nested(element):
        return map_structure(as_tensors, element)
    return as_tensor(element)


def as_tensor(leaf: Any) -> Any:
    """A leaf of an element as a tensor."""
    if type(leaf) is np.ndarray and leaf.dtype.kind not in "OSU":  # text is kept as bytes
        return EagerTensor(leaf)
    if leaf is None or hasattr(leaf, "as_numpy_iterator"):
        return leaf
    return EagerTensor(*to_array(leaf))


def spec_of(element: Any) -> Any:
    """The specs of an element: those of its own shapes."""
    return map_structure(_spec_of_leaf, element)


def _spec_of_leaf(leaf: Any) -> Any:
    if leaf is None or hasattr(leaf, "as_numpy_iterator"):
        return leaf
    array, dtype = to_array(leaf, copy=False)
    return TensorSpec(array.shape, dtype)


def with_batch(spec: Any, size: int | None) -> Any:
    """The specs of batches of such elements."""

    def batched(leaf: Any) -> Any:
        return TensorSpec((size, *leaf.shape), leaf.dtype) if isinstance(leaf, TensorSpec) else leaf

    return map_structure(batched, spec)


def without_batch(spec: Any) -> Any:
    """The specs of the rows of batches."""

    def row(leaf: Any) -> Any:
        return TensorSpec(leaf.shape[1:], leaf.dtype) if isinstance(leaf, TensorSpec) else leaf

    return map_structure(row, spec)


def stack(elements: Sequence[Any], who: str) -> Any:
    """Elements of one form as a batch.

    Raises:
        ShapeError: the shapes of two elements differ.
        InvalidArgumentError: their structures differ.
    """
    first = elements[0]
    if not is_nested(first):
        return stack_leaves(elements, who)
    if type(first) is tuple and not any(map(is_nested, first)):
        if any(type(e) is not tuple or len(e) != len(first) for e in elements):
            raise InvalidArgumentError(f"{who}: the elements of a batch have different structures")
        return tuple([stack_leaves(leaves, who) for leaves in zip(*elements, strict=True)])
    columns = zip(*map(flatten, elements), strict=True)
    return pack_sequence_as(first, [stack_leaves(leaves, who) for leaves in columns])


def stack_leaves(leaves: Sequence[Any], who: str) -> Any:
    """Values of one shape along a new first axis."""
    first = leaves[0]
    if isinstance(first, bytes) or (isinstance(first, np.ndarray) and first.dtype == object):
        out = np.empty((len(leaves), *np.shape(first)), object)
        for i, leaf in enumerate(leaves):
            out[i] = leaf
        return out
    if first is None:
        return None
    try:
        if isinstance(first, np.ndarray) and first.ndim:
            return np.stack(leaves)
        return np.array(leaves)
    except ValueError as cause:
        shapes = list(dict.fromkeys(np.shape(leaf) for leaf in leaves))
        raise ShapeError(
            f"{who}: the elements of a batch must have one shape, got {shapes[0]} and {shapes[1:]}",
            remedy="use padded_batch, or bring them to one shape with map",
        ) from cause


def rows_of(batch: Any, who: str) -> list[Any]:
    """The elements of a batch.

    Raises:
        InvalidArgumentError: an array has no rows, or the numbers of rows differ.
    """
    sizes = {
        np.shape(leaf)[:1]: path for path, leaf in flatten_with_path(batch) if leaf is not None
    }
    if len(sizes) != 1 or () in sizes:
        raise InvalidArgumentError(
            f"{who}: expected arrays with the same number of rows, got {spec_of(batch)}",
            remedy="pair each example with its label: (x, y)",
        )
    leaves, pack = flatten(batch), packer(batch)
    (count,) = next(iter(sizes))
    return [pack([None if a is None else a[i] for a in leaves]) for i in range(count)]
