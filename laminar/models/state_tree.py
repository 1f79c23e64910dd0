"""The variables of a model as nested dicts by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import (
    InvalidArgumentError,
    NotFoundError,
)

from .trainer import Trainer


class StateTrees(Trainer):
    """The part of `Model` that gives and takes all variables at once."""

    def get_state_tree(self, value_format: str = "backend_tensor") -> dict[str, Any]:
        """All variables as nested dicts by path: trainable, non-trainable, optimizer, metrics."""
        if value_format not in ("backend_tensor", "numpy_array"):
            raise InvalidArgumentError(
                f"get_state_tree: value_format must be backend_tensor or numpy_array, "
                f"got {value_format!r}"
            )
        groups = self._laminar_state_groups()
        as_numpy = value_format == "numpy_array"
        return {
            key: _nest({v.path: v.numpy() if as_numpy else v.read_value() for v in variables})
            for key, variables in groups.items()
        }

    def set_state_tree(self, state_tree: Mapping[str, Any]) -> None:
        """Set the variables from what `get_state_tree` gave; unknown paths are refused."""
        for key, variables in self._laminar_state_groups().items():
            if key in state_tree:
                values = _unnest(state_tree[key])
                by_path = {v.path: v for v in variables}
                for path, value in values.items():
                    if path not in by_path:
                        raise NotFoundError(f"set_state_tree: no variable has the path {path!r}")
                    by_path[path].assign(value)

    def _laminar_state_groups(self) -> dict[str, list[Any]]:
        optimizer = self.optimizer
        return {
            "trainable_variables": self.trainable_variables,
            "non_trainable_variables": self.non_trainable_variables,
            "optimizer_variables": [] if optimizer is None else list(optimizer.variables),
            "metrics_variables": self.metrics_variables,
        }


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        level = tree
        for parent in parents:
            level = level.setdefault(parent, {})
        level[name] = value
    return tree


def _unnest(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            flat |= _unnest(value, path + "/")
        else:
            flat[path] = value
    return flat
