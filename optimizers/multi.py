"""Several optimizers, each for a part of the model's variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from laminar.engine.errors import InvalidArgumentError, UnimplementedError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from .loss_scale import LossScaleOptimizer
from .optimizer import Optimizer


class OptimizerMap:
    """Which optimizer a variable has: that whose pattern its path matches as a whole.

        OptimizerMap(SGD(), {".*encoder/.*": Adam()})

    It reads like a dict: `map["encoder/dense/kernel"]` is the optimizer for that path; a key that
    is the path itself goes before patterns.

    Args:
        default_optimizer: for variables that no pattern matches.
        optimizer_map: optimizers by pattern.

    Raises:
        InvalidArgumentError: something else than an optimizer, or one that holds others.

    Examples:
        >>> rates = laminar.optimizers.OptimizerMap(laminar.optimizers.SGD(0.1))
        >>> rates["embedding/.*"] = laminar.optimizers.Adagrad(0.5)
        >>> type(rates["embedding/table"]).__name__, type(rates["dense/kernel"]).__name__
        ('Adagrad', 'SGD')
    """

    def __init__(
        self, default_optimizer: Optimizer, optimizer_map: Mapping[str, Optimizer] | None = None
    ) -> None:
        self.default_optimizer = _single(default_optimizer, "OptimizerMap: default_optimizer")
        self._optimizer_map: dict[str, Optimizer] = {}
        if optimizer_map is not None and not isinstance(optimizer_map, Mapping):
            raise InvalidArgumentError(
                f"OptimizerMap: optimizer_map must be a dict, got {optimizer_map!r}"
            )
        for pattern, optimizer in (optimizer_map or {}).items():
            self[pattern] = optimizer

    def __setitem__(self, pattern: str, optimizer: Optimizer) -> None:
        if not isinstance(pattern, str):
            raise InvalidArgumentError(f"OptimizerMap: a key must be a string, got {pattern!r}")
        if pattern in self._optimizer_map:
            raise InvalidArgumentError(
                f"OptimizerMap: {pattern!r} has an optimizer: {self._optimizer_map[pattern].name}",
                remedy="delete it first",
            )
        self._optimizer_map[pattern] = _single(optimizer, f"OptimizerMap: {pattern!r}")

    def __getitem__(self, path: str) -> Optimizer:
        if path in self._optimizer_map:
            return self._optimizer_map[path]
        fits = [pattern for pattern in self._optimizer_map if re.fullmatch(pattern, path)]
        if len(fits) > 1:
            raise InvalidArgumentError(
                f"OptimizerMap: {len(fits)} patterns match {path!r}: {', '.join(map(repr, fits))}",
                remedy="make them exclude each other, or give the path itself as a key",
            )
        return self._optimizer_map[fits[0]] if fits else self.default_optimizer

    def __delitem__(self, pattern: str) -> None:
        del self._optimizer_map[pattern]

    def __len__(self) -> int:
        return len(self._optimizer_map)

    def __iter__(self) -> Iterator[str]:
        return iter(self._optimizer_map)

    def __contains__(self, pattern: object) -> bool:
        return pattern in self._optimizer_map

    def keys(self) -> Iterable[str]:
        """The patterns."""
        return self._optimizer_map.keys()

    def values(self) -> Iterable[Optimizer]:
        """The optimizers of the patterns, without the default."""
        return self._optimizer_map.values()

    def items(self) -> Iterable[tuple[str, Optimizer]]:
        """The patterns with their optimizers."""
        return self._optimizer_map.items()

    def __call__(self, variable: Variable) -> Optimizer:
        """The optimizer of a variable."""
        return self[variable.path]

    def get_config(self) -> dict[str, Any]:
        """The arguments as data."""
        return {
            "default_optimizer": serialize_keras_object(self.default_optimizer),
            "optimizer_map": serialize_keras_object(self._optimizer_map),
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> OptimizerMap:
        """The map that `get_config` described."""
        return cls(**deserialize_keras_object(dict(config), custom_objects))


class MultiOptimizer(Optimizer):
    """Leaves each variable to an optimizer of its own; see `optimizers` for those.

    It has no learning rate: they have. What else `Optimizer` does (weight decay, clipping,
    averages, accumulation), they do, each for its variables.

    Args:
        optimizer_map: an `OptimizerMap`, a function that gives the optimizer of a variable, or one
            optimizer for all.
        loss_scale_factor: see `Optimizer`; it takes the place of those of the optimizers.
        name: by default made of the class name.

    Raises:
        InvalidArgumentError: a variable gets something else than an optimizer, or one that holds
            others.

    Examples:
        >>> v, w = laminar.Variable([1.0], name="v"), laminar.Variable([1.0], name="w")
        >>> rates = laminar.optimizers.OptimizerMap(laminar.optimizers.SGD(0.1))
        >>> rates["w"] = laminar.optimizers.SGD(0.5)
        >>> optimizer = laminar.optimizers.MultiOptimizer(rates)
        >>> optimizer.apply([ops.array([1.0]), ops.array([1.0])], [v, w])
        >>> v.numpy(), w.numpy()
        (array([0.9], dtype=float32), array([0.5], dtype=float32))
    """

    def __init__(
        self,
        optimizer_map: OptimizerMap | Callable[[Variable], Optimizer] | Optimizer,
        loss_scale_factor: float | None = None,
        name: str | None = None,
    ) -> None:
        if isinstance(optimizer_map, Optimizer):
            optimizer_map = OptimizerMap(_single(optimizer_map, "MultiOptimizer: optimizer_map"))
        if not callable(optimizer_map):
            raise InvalidArgumentError(
                f"MultiOptimizer: expected an OptimizerMap, a function or an optimizer, "
                f"got {optimizer_map!r}"
            )
        # _laminar_parts[i] holds the optimizers, _laminar_part_of[id(v)] the place of that of v
        self._laminar_parts: list[Optimizer] = []
        self._laminar_part_of: dict[int, int] = {}
        super().__init__(0.0, loss_scale_factor=loss_scale_factor, name=name)
        self._laminar_map = optimizer_map
        if isinstance(optimizer_map, OptimizerMap):
            for optimizer in (*optimizer_map.values(), optimizer_map.default_optimizer):
                self._laminar_part(optimizer)

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers: those of the map, with the default last, and what else a function gave
        when this one was built."""
        return list(self._laminar_parts)

    def _laminar_part(self, optimizer: Optimizer) -> int:
        for place, known in enumerate(self._laminar_parts):
            if known is optimizer:
                return place
        optimizer.loss_scale_factor = self.loss_scale_factor
        self._laminar_parts.append(optimizer)
        return len(self._laminar_parts) - 1

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        for v in variables:
            optimizer = _single(self._laminar_map(v), f"MultiOptimizer: {v.path!r}")
            self._laminar_part_of[id(v)] = self._laminar_part(optimizer)
        for optimizer, own in self._laminar_shares(variables, variables):
            optimizer.build([v for _, v in own])
        super().build(variables)

    def _laminar_shares(
        self, values: Sequence[Any], variables: Sequence[Variable]
    ) -> list[tuple[Optimizer, list[tuple[Any, Variable]]]]:
        """The optimizers that have some of the variables, with these and what belongs to them."""
        shares: list[list[tuple[Any, Variable]]] = [[] for _ in self._laminar_parts]
        for value, v in zip(values, variables, strict=True):
            shares[self._laminar_part_of[id(v)]].append((value, v))
        pairs = zip(self._laminar_parts, shares, strict=True)
        return [(optimizer, own) for optimizer, own in pairs if own]

    @property
    def variables(self) -> list[Variable]:
        """Its own variables, then those of the optimizers."""
        return [*super().variables, *(v for part in self._laminar_parts for v in part.variables)]

    @property
    def loss_scale_factor(self) -> float | None:
        """See `Optimizer`; setting it sets that of the optimizers."""
        return self._laminar_scale

    @loss_scale_factor.setter
    def loss_scale_factor(self, value: float | None) -> None:
        self._laminar_scale = value
        for optimizer in self._laminar_parts:
            optimizer.loss_scale_factor = value

    @property
    def learning_rate(self) -> NoReturn:
        """None of its own: AttributeError."""
        raise AttributeError(
            f"{self.name} has no learning rate: read and set those of its optimizers "
            f"({', '.join(part.name for part in self._laminar_parts)})"
        )

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        _ = self.learning_rate

    def _laminar_updates_rows(self, variable: Variable) -> bool:
        part = self._laminar_parts[self._laminar_part_of[id(variable)]]
        return part._laminar_updates_rows(variable)

    def _laminar_apply(self, grads: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        for optimizer, own in self._laminar_shares(grads, variables):
            optimizer._laminar_apply([g for g, _ in own], [v for _, v in own])
        self.assign_add(self._iterations, 1)

    def groups(self, factors: Mapping[Any, float]) -> None:
        """Refuse: UnimplementedError. An optimizer of one's own does what a factor would."""
        raise UnimplementedError(
            f"{self.name}: groups() is not for several optimizers",
            remedy="give the variables an optimizer with another learning rate",
        )

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        given = list(var_list)
        for optimizer, own in self._laminar_shares(given, given):
            optimizer.finalize_variable_values([v for _, v in own])

    def get_config(self) -> dict[str, Any]:
        return {
            "optimizer_map": serialize_keras_object(self._laminar_map),
            "loss_scale_factor": self.loss_scale_factor,
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> MultiOptimizer:
        """The optimizer that `get_config` described."""
        found = deserialize_keras_object(config["optimizer_map"], custom_objects)
        return cls(**{**config, "optimizer_map": found})


def _single(optimizer: Any, what: str) -> Optimizer:
    """The optimizer itself; InvalidArgumentError for anything else, and for one of several."""
    if not isinstance(optimizer, Optimizer):
        raise InvalidArgumentError(f"{what} must be an optimizer, got {optimizer!r}")
    if isinstance(optimizer, LossScaleOptimizer | MultiOptimizer):
        raise InvalidArgumentError(
            f"{what} cannot be a {type(optimizer).__name__}",
            remedy="put the MultiOptimizer into the LossScaleOptimizer"
            if isinstance(optimizer, LossScaleOptimizer)
            else "put its optimizers into this one",
        )
    return optimizer
