"""Nested structures: lists, tuples, named tuples and dicts of anything else (the leaves)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .errors import InvalidArgumentError

Path = tuple[Any, ...]
_CONTAINERS = (list, tuple, dict)


def is_nested(structure: Any) -> bool:
    """Whether `structure` is a container rather than a leaf.

    Examples:
        >>> laminar.tree.is_nested([1]), laminar.tree.is_nested("text")
        (True, False)
    """
    return isinstance(structure, _CONTAINERS) and not hasattr(structure, "is_compatible_with")


def children(x: Any) -> list[tuple[Any, Any]]:
    """The keys and values of a container in order; dicts by sorted key."""
    if isinstance(x, dict):
        try:
            return [(key, x[key]) for key in sorted(x)]
        except TypeError:  # keys of mixed types keep their order
            return list(x.items())
    return list(enumerate(x))


def flatten(structure: Any) -> list[Any]:
    """The leaves of `structure` in order; dicts by sorted key.

    Examples:
        >>> laminar.tree.flatten({"b": [2, 3], "a": 1})
        [1, 2, 3]
    """
    if not is_nested(structure):
        return [structure]
    return [leaf for _, child in children(structure) for leaf in flatten(child)]


def flatten_with_path(structure: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """The leaves of `structure` in order, each with the keys that lead to it.

    Args:
        structure: dicts, lists and tuples in each other; anything else is a leaf.
        path: what stands before all keys.

    Examples:
        >>> laminar.tree.flatten_with_path({"b": [2, 3], "a": 1})
        [(('a',), 1), (('b', 0), 2), (('b', 1), 3)]
    """
    if not is_nested(structure):
        return [(path, structure)]
    return [
        leaf
        for key, child in children(structure)
        for leaf in flatten_with_path(child, (*path, key))
    ]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The leaves `flat_sequence` in the structure of `structure`.

    Args:
        structure: says the form; its leaves do not matter.
        flat_sequence: the leaves in the order in which `flatten` gives them: dicts by sorted keys.

    Raises:
        InvalidArgumentError: the numbers of leaves differ.

    Examples:
        >>> laminar.tree.pack_sequence_as({"a": 0, "b": [0]}, [1, 2])
        {'a': 1, 'b': [2]}
    """
    expected = len(flatten(structure))
    if expected != len(flat_sequence):
        raise InvalidArgumentError(f"the structure has {expected} leaves, got {len(flat_sequence)}")
    return _pack(structure, iter(flat_sequence))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    return rebuild(structure, [_pack(child, leaves) for _, child in children(structure)])


def rebuild(structure: Any, values: Sequence[Any]) -> Any:
    """A container like `structure` that holds `values`, in the order of `children`."""
    if isinstance(structure, dict):
        by_key = dict(zip((key for key, _ in children(structure)), values, strict=True))
        items = [(key, by_key[key]) for key in structure]
        if isinstance(structure, defaultdict):
            return defaultdict(structure.default_factory, items)
        return type(structure)(items)
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*values)
    return list(values) if isinstance(structure, list) else tuple(values)


def map_structure(fn: Callable[..., Any], *structures: Any) -> Any:
    """Apply `fn` to the leaves of structures of one form; the result has that form."""
    first = structures[0]
    for other in structures[1:]:
        assert_same_structure(first, other)
    if not is_nested(first):
        return fn(*structures)
    flat = [flatten(s) for s in structures]
    return pack_sequence_as(first, [fn(*leaves) for leaves in zip(*flat, strict=True)])


def assert_same_structure(a: Any, b: Any) -> None:
    """InvalidArgumentError unless `a` and `b` nest in the same way."""
    if is_nested(a) != is_nested(b):
        raise InvalidArgumentError(f"the structures differ: {_form(a)} against {_form(b)}")
    if not is_nested(a):
        return
    if isinstance(a, Mapping) != isinstance(b, Mapping) or len(a) != len(b):
        raise InvalidArgumentError(f"the structures differ: {_form(a)} against {_form(b)}")
    for (key, child), (other_key, other) in zip(children(a), children(b), strict=True):
        if key != other_key:
            raise InvalidArgumentError(f"the structures differ: {_form(a)} against {_form(b)}")
        assert_same_structure(child, other)


def _form(x: Any) -> str:
    if isinstance(x, dict):
        return f"a dict of {sorted(map(str, x))}"
    return f"a {type(x).__name__} of {len(x)}" if is_nested(x) else f"a {type(x).__name__}"
