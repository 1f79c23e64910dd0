"""Averages of values that change, as `tf.train` keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.graph import building, get_default_graph
from laminar.engine.ops.core.registry import lookup
from laminar.engine.state import GraphKeys

from .adapting import in_graph
from .values import tensor
from .variable_class import named


class ExponentialMovingAverage:
    """Averages of variables or tensors: a = decay * a + (1 - decay) * value.

    Args:
        decay: near 1.
        num_updates: a count t; then the decay is at most (1 + t) / (10 + t).
        zero_debias: divide the averages of tensors, which begin at 0, by 1 - decay**t for the t-th
            value.
        name: ends the names of the averages.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates, self.name = decay, num_updates, name
        self._zero_debias = zero_debias
        self._biased: dict[int, tuple[engine.Variable, engine.Variable]] = {}
        self._averages: dict[int, engine.Variable] = {}

    def apply(self, var_list: Sequence[Any] | None = None) -> Any:
        """The operation that takes the values of now into the averages, which it makes."""
        with in_graph():
            found = engine.trainable_variables() if var_list is None else list(var_list)
            with engine.control_dependencies(None):
                for value in found:
                    self._make(value)
            decay = tensor(self._decay, "float32")
            if self._num_updates is not None:
                t = lookup("Cast")(tensor(self._num_updates), dtype="float32")
                decay = lookup("Minimum")(decay, (1 + t) / (10 + t))
            updates = []
            for value in found:
                average = self._averages[id(value)]
                keep = lookup("Cast")(decay, dtype=average.dtype)
                if id(value) in self._biased:
                    updates.append(self._debiased(average, value, keep))
                    continue
                updates.append(average.assign_sub((1 - keep) * (average - tensor(value))))
            return engine.group(*updates, name=self.name) if building() is not None else None

    def _make(self, value: Any) -> None:
        if id(value) in self._averages:
            return
        is_variable = isinstance(value, engine.Variable)
        begin = value.initialized_value() if is_variable else _zeros_like(tensor(value))
        name = value.path if is_variable else value.op.name
        with engine.name_scope(None):
            own = f"{name}/{self.name}"
            self._averages[id(value)] = named(engine.Variable(begin, trainable=False, name=own))
            if self._zero_debias and not is_variable:
                self._biased[id(value)] = (
                    engine.Variable(begin, trainable=False, name=f"{own}/biased"),
                    engine.Variable(0.0, trainable=False, name=f"{own}/local_step"),
                )
        if is_variable and building() is not None:
            get_default_graph().root.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)

    def _debiased(self, average: engine.Variable, value: Any, keep: Any) -> Any:
        biased, steps = self._biased[id(value)]
        sums = biased.assign_sub((1 - keep) * (biased - tensor(value)))
        count = lookup("Cast")(steps.assign_add(1.0), dtype=average.dtype)
        return average.assign(sums / (1 - lookup("Pow")(keep, count)))

    def average(self, var: Any) -> engine.Variable | None:
        """The average of a variable or tensor, None where there is none."""
        return self._averages.get(id(var))

    def average_name(self, var: Any) -> str:
        """The name of the average of a variable."""
        return f"{var.path if isinstance(var, engine.Variable) else var.op.name}/{self.name}"

    def variables_to_restore(
        self, moving_avg_variables: Sequence[Any] | None = None
    ) -> dict[str, Any]:
        """By the names of averages, the variables that take their values when restored.

        These are the trainable ones and those that averages were asked for, or those given; the
        others are there by their own names. The averages need not be part of this graph.
        """
        averaged = moving_avg_variables
        if averaged is None:
            key = GraphKeys.MOVING_AVERAGE_VARIABLES
            averaged = [*engine.trainable_variables(), *engine.get_collection(key)]
        names = {self.average_name(v): v for v in averaged}
        own = {id(v) for v in averaged}
        others = {v.path: v for v in engine.global_variables() if id(v) not in own}
        return {**others, **names}


def _zeros_like(x: Any) -> Any:
    """Zeros, which need not wait for the tensor where its shape is known."""
    if x.shape.rank is not None and x.shape.is_fully_defined:
        return np.zeros(tuple(x.shape), x.dtype.numpy)
    return lookup("ZerosLike")(x)
