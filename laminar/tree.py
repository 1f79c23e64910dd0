"""Nested structures of lists, tuples, named tuples and dicts, under Keras's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.tree import assert_same_structure as _assert_same_structure
from laminar.engine.tree import flatten as flatten
from laminar.engine.tree import flatten_with_path as flatten_with_path
from laminar.engine.tree import is_nested as is_nested
from laminar.engine.tree import map_structure as _map_structure
from laminar.engine.tree import pack_sequence_as as pack_sequence_as


class MAP_TO_NONE:  # noqa: N801  # Keras's name
    """What the function of `traverse` returns to put None in the place of a part.

    Examples:
        >>> laminar.tree.traverse(lambda x: laminar.tree.MAP_TO_NONE if x == 2 else None, [1, 2])
        [1, None]
    """


def assert_same_structure(a: Any, b: Any, check_types: Any = None) -> None:
    """InvalidArgumentError unless `a` and `b` nest in the same way; `check_types` is ignored.

    Examples:
        >>> laminar.tree.assert_same_structure({"a": 1}, {"b": 1})
        Traceback (most recent call last):
            ...
        laminar.engine.errors.InvalidArgumentError: the structures differ: a dict of ...
    """
    _assert_same_structure(a, b)


def assert_same_paths(a: Any, b: Any) -> None:
    """InvalidArgumentError unless the leaves of `a` and `b` have the same paths.

    Examples:
        >>> laminar.tree.assert_same_paths({"a": [1, 2]}, {"a": (3, 4)})
    """
    paths = [{path for path, _ in flatten_with_path(x)} for x in (a, b)]
    if paths[0] != paths[1]:
        differing = sorted(map(str, paths[0] ^ paths[1]))
        raise InvalidArgumentError(
            f"the structures have different paths; in one only: {', '.join(differing)}"
        )


def map_structure(func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True) -> Any:
    """Apply `func` to the leaves of structures of one form; the result has that form.

    Args:
        func: takes one leaf of each structure.
        structures: at least one.
        none_is_leaf: whether None is passed to `func`, or stays None.

    Examples:
        >>> laminar.tree.map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
        {'a': [11, 22]}
    """
    if not structures:
        raise InvalidArgumentError("map_structure: expected at least one structure, got none")
    if none_is_leaf:
        return _map_structure(func, *structures)

    def on_values(*leaves: Any) -> Any:
        return None if all(leaf is None for leaf in leaves) else func(*leaves)

    return _map_structure(on_values, *structures)


def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """Apply `func` to the parts of structures that stand at the leaves of `shallow_structure`.

    Examples:
        >>> laminar.tree.map_structure_up_to([0, 0], len, [[1, 2, 3], [4]])
        [3, 1]
    """
    if not is_nested(shallow_structure):
        return func(*structures)
    keys = [path for path, _ in flatten_with_path(shallow_structure)]
    found = [func(*(_at(s, path) for s in structures)) for path in keys]
    return pack_sequence_as(shallow_structure, found)


def _at(structure: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            structure = structure[key]
        except (KeyError, IndexError, TypeError) as cause:
            raise InvalidArgumentError(
                f"map_structure_up_to: a structure has nothing at {path}"
            ) from cause
    return structure


def map_shape_structure(func: Callable[[tuple[Any, ...]], Any], structure: Any) -> Any:
    """Apply `func` to the shapes in a structure: tuples and lists of whole numbers and None.

    Examples:
        >>> laminar.tree.map_shape_structure(len, {"a": (None, 3), "b": (2,)})
        {'a': 2, 'b': 1}
    """
    if _is_shape(structure):
        return func(tuple(structure))
    if isinstance(structure, list | tuple):
        return type(structure)(map_shape_structure(func, s) for s in structure)
    if isinstance(structure, dict):
        return {key: map_shape_structure(func, s) for key, s in structure.items()}
    raise InvalidArgumentError(f"map_shape_structure: expected shapes, got {structure!r}")


def _is_shape(x: Any) -> bool:
    return isinstance(x, list | tuple) and all(d is None or isinstance(d, int) for d in x)


def lists_to_tuples(structure: Any) -> Any:
    """The structure with each list made a tuple.

    Examples:
        >>> laminar.tree.lists_to_tuples({"a": [1, [2]]})
        {'a': (1, (2,))}
    """

    def convert(part: Any) -> Any:
        return tuple(lists_to_tuples(p) for p in part) if isinstance(part, list) else None

    return traverse(convert, structure)


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """Replace parts of a structure, containers and leaves alike.

    Args:
        func: takes a part; returns what to put there, MAP_TO_NONE for None, or None to leave it
            (with `top_down`, to go on with its children).
        structure: any nested structure.
        top_down: whether a container is visited before its children, or after.

    Examples:
        >>> laminar.tree.traverse(lambda x: x * 10 if isinstance(x, int) else None, [1, (2, 3)])
        [10, (20, 30)]
    """
    if top_down:
        found = func(structure)
        if found is not None:
            return None if found is MAP_TO_NONE else found
    if is_nested(structure):
        structure = _with_children(structure, lambda child: traverse(func, child, top_down))
    if top_down:
        return structure
    found = func(structure)
    if found is None:
        return structure
    return None if found is MAP_TO_NONE else found


def _with_children(structure: Any, fn: Callable[[Any], Any]) -> Any:
    if isinstance(structure, dict):
        return type(structure)((key, fn(child)) for key, child in structure.items())
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(fn(child) for child in structure))
    return type(structure)(fn(child) for child in structure)
