"""AsyncReplicas: workers that do not wait for each other, and how old their gradients are.

Every worker applies its gradients when it has them. How many updates of others came between its
reading of the step counter, at the begin of a step, and its own update is the gradient's staleness;
it is counted beside the global step, for all workers together.

Source: Dean et al., "Large scale distributed deep networks", 2012, section 4.1; "TensorFlow:
    Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015, arXiv:1603.04467,
    section 7.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from laminar.engine import (
    Session,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    Variable,
    control_dependencies,
    get_or_create_global_step,
    group,
    scatter_add,
)
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.graph import Operation
from laminar.engine.ops.core.registry import lookup
from laminar.engine.state.update_placement import beside

_log = logging.getLogger("laminar")


class AsyncReplicas:
    """An optimizer that counts how stale the gradients are that it applies.

        replicas = AsyncReplicas(optimizers.SGD(0.1))
        train = replicas.minimize(loss, global_step=engine.get_or_create_global_step())
        hooks = [replicas.make_session_run_hook(every_n_steps=100)]

    Args:
        optimizer: what applies gradients.
        most: gradients that are older than so many updates are counted as such.
        name: of the counts.

    Attributes:
        counts: a variable, int64[most + 1]: how many updates had each staleness.

    Raises:
        InvalidArgumentError: `most` is no number from 1 on.

    Examples:
        >>> with engine.Graph().as_default():
        ...     replicas = laminar.distribute.AsyncReplicas(laminar.optimizers.SGD(0.1), most=3)
        ...     w = engine.Variable(1.0)
        ...     train = replicas.minimize(w * w)
        ...     with engine.Session() as session:
        ...         session.run(engine.global_variables_initializer())
        ...         session.run(train)
        ...         session.run(replicas.counts)
        array([1, 0, 0, 0])
    """

    def __init__(self, optimizer: Any, most: int = 1000, name: str = "async_replicas") -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InvalidArgumentError(
                f"AsyncReplicas: most must be a number from 1 on, got {most!r}"
            )
        self._optimizer, self._most, self._name = optimizer, most, name
        self._counts: Variable | None = None

    @property
    def counts(self) -> Variable:
        """How many updates had each staleness."""
        if self._counts is None:
            raise FailedPreconditionError(
                "AsyncReplicas: there is no step yet", remedy="call minimize or apply_gradients"
            )
        return self._counts

    def compute_gradients(self, *arguments: Any, **options: Any) -> Any:
        """That of the optimizer."""
        return self._optimizer.compute_gradients(*arguments, **options)

    def minimize(
        self, loss: Any, var_list: Any = None, *, global_step: Variable | None = None
    ) -> Operation:
        """`compute_gradients`, then `apply_gradients`."""
        return self.apply_gradients(self.compute_gradients(loss, var_list=var_list), global_step)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
    ) -> Operation:
        """Apply gradients, count the step, and count how stale they were."""
        step = get_or_create_global_step() if global_step is None else global_step
        with beside(step):
            self._counts = Variable(
                np.zeros(self._most + 1, np.int64), trainable=False, name=f"{self._name}/staleness"
            )
            begun = step.as_tensor()
        applied = self._optimizer.apply_gradients(grads_and_vars, global_step=step)
        with beside(step), control_dependencies(applied.control_inputs or [applied]):
            others = step.read_value() - begun - 1
            stale = lookup("Minimum")(
                lookup("Maximum")(others, others * 0), others * 0 + self._most
            )
            counted = scatter_add(self._counts, stale, np.int64(1))
        return group(applied, counted, name=self._name)

    def make_session_run_hook(self, every_n_steps: int = 100) -> SessionRunHook:
        """A hook that logs the mean and the largest staleness now and then, and at the end."""
        return _StalenessHook(self.counts, every_n_steps)


class _StalenessHook(SessionRunHook):
    def __init__(self, counts: Variable, every: int) -> None:
        self._counts, self._every, self._runs = counts, every, 0

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._runs += 1
        if self._runs % self._every == 0:
            self._tell(run_context.session)

    def end(self, session: Session) -> None:
        self._tell(session)

    def _tell(self, session: Any) -> None:
        counts = np.asarray(session.run(self._counts))
        total = counts.sum()
        if total:
            mean = float((counts * np.arange(len(counts))).sum() / total)
            _log.info(
                "staleness of %d updates: mean %.2f, largest %d",
                total,
                mean,
                int(np.flatnonzero(counts)[-1]),
            )
