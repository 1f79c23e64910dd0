"""The outputs of a model by name, and what the user gives for each: losses, targets, weights."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.tree import flatten, flatten_with_path, is_nested, map_structure

from ..typing import TensorStructure


class Outputs:
    """How the outputs of a model nest, and what they are called.

    Args:
        y_pred: the outputs.
        known: the names of the model's output layers, as far as they are known.

    Attributes:
        names: one for each output, in the order of `flatten`: the keys of a dict, the output
            layers, or numbers.
        layer_names: the names of the output layers, one for each output, or what stands for them.
        form: how the outputs nest, with None in their places.
        are_numbered: whether nobody named the outputs: losses and metrics go by their own names.
    """

    def __init__(self, y_pred: TensorStructure, known: Sequence[str]) -> None:
        self.names = _names(y_pred, known)
        self.layer_names = list(known) if len(known) == len(self.names) else self.names
        self.form = map_structure(lambda _: None, y_pred)
        self.are_numbered = (
            not isinstance(y_pred, Mapping) and len(known) != len(self.names) and not self._is_deep
        )

    def split(self, value: Any, what: str, *, same_for_all: bool = False) -> list[Any]:
        """What `value` means for each output: by position, by name, or nested as the outputs are.

        Args:
            value: None, one thing, a list, or a dict, which may leave outputs out.
            what: what it is, for errors.
            same_for_all: whether one thing is meant for every output.

        Raises:
            InvalidArgumentError: a list of another length, or a name that no output has.
        """
        names = self.names
        if value is None:
            return [None] * len(names)
        if isinstance(value, Mapping) and all(key in names for key in value):
            return [value.get(name) for name in names]
        if isinstance(value, list | tuple) and len(value) == len(names) and not self._is_deep:
            return list(value)
        if self._is_deep and isinstance(value, dict | list | tuple):
            return list(_spread(self.form, value, what, same_for_all=same_for_all))
        if isinstance(value, Mapping):
            unknown = ", ".join(repr(key) for key in value if key not in names)
            raise InvalidArgumentError(
                f"{what}: no output is named {unknown}; the outputs are {', '.join(names)}",
                remedy="use the names of the output layers",
            )
        if isinstance(value, list | tuple):
            raise InvalidArgumentError(
                f"{what}: expected {len(names)} entries, one for each output "
                f"({', '.join(names)}), got {len(value)}"
            )
        if len(names) == 1 or same_for_all:
            return [value] * len(names)
        raise InvalidArgumentError(
            f"{what}: the model has {len(names)} outputs ({', '.join(names)}), got one entry",
            remedy="pass a list or a dict with one entry for each output",
        )

    @property
    def _is_deep(self) -> bool:
        return is_nested(self.form) and any(map(is_nested, _values(self.form)))


def _values(container: Any) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else list(container)


def _spread(form: Any, value: Any, what: str, *, same_for_all: bool) -> Iterator[Any]:
    """The parts of `value` at the leaves of `form`; None where a dict leaves one out."""
    if value is None or not is_nested(form) or (same_for_all and not is_nested(value)):
        yield from [value] * len(flatten(form))
        return
    if isinstance(form, dict):
        if not isinstance(value, Mapping) or not set(value) <= set(form):
            raise InvalidArgumentError(
                f"{what}: expected a dict with keys of {sorted(form)}, as the outputs are, "
                f"got {value!r:.80}"
            )
        for key in sorted(form):
            yield from _spread(form[key], value.get(key), what, same_for_all=same_for_all)
        return
    if not isinstance(value, list | tuple) or len(value) != len(form):
        raise InvalidArgumentError(
            f"{what}: expected a list of {len(form)}, as the outputs are, got {value!r:.80}"
        )
    for inner, part in zip(form, value, strict=True):
        yield from _spread(inner, part, what, same_for_all=same_for_all)


def _names(y_pred: TensorStructure, known: Sequence[str]) -> list[str]:
    paths = [path for path, _ in flatten_with_path(y_pred)]
    if isinstance(y_pred, Mapping) and all(len(path) == 1 for path in paths):
        return [str(key) for (key,) in paths]
    if len(known) == len(paths):  # a layer called twice gives two outputs of one name
        return [f"{name}_{i}" if known.count(name) > 1 else name for i, name in enumerate(known)]
    return [f"output_{i + 1}" for i in range(len(paths))]


def check_arguments(entry: Any, kind: str) -> None:
    """Check that a function given to `compile` as a loss or metric takes what it will be given.

    Raises:
        InvalidArgumentError: it cannot be called with the targets and the outputs.
    """
    if not isinstance(entry, FunctionType):
        return
    takes = inspect.signature(entry)
    try:
        takes.bind(None, None)
    except TypeError as cause:
        raise InvalidArgumentError(
            f"compile: a {kind} is a function of (y_true, y_pred), {entry.__name__!r} takes {takes}"
        ) from cause


def batch_size(x: TensorStructure) -> Any:
    """How many examples a batch has: the size of its first array, a tensor if it is unknown."""
    return ops.shape(next(leaf for leaf in flatten(x) if leaf is not None))[0]
