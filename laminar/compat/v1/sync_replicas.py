"""`tf.train.SyncReplicasOptimizer`: the steps of all workers are one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from laminar import engine
from laminar.distribute import SyncReplicas
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Operation

from .adapting import in_graph
from .optimizers import Optimizer


class SyncReplicasOptimizer(Optimizer):
    """An optimizer whose step is that of all workers together; see `distribute.SyncReplicas`.

    The number of a worker is the task of its device, `replica_device_setter(worker_device=...)`.

    Args:
        opt: what applies the means of the gradients.
        replicas_to_aggregate: how many gradients a step waits for.
        total_num_replicas: how many workers there are, by default as many.
        variable_averages, variables_to_average: an ExponentialMovingAverage, and the variables
            whose averages follow each step.
        use_locking: accepted: an update is one step in any case.
        name: of the queues and accumulators, by which the workers share them.

    Raises:
        InvalidArgumentError: more replicas to aggregate than there are, or one of the two about
            averages alone.
    """

    def __init__(
        self,
        opt: Any,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Sequence[engine.Variable] | None = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        if (variable_averages is None) != (variables_to_average is None):
            raise InvalidArgumentError(
                "SyncReplicasOptimizer: variable_averages and variables_to_average go together"
            )
        self._opt = opt
        applied = opt
        if variable_averages is not None:
            applied = _Averaging(opt, variable_averages, variables_to_average)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        replica = 0 if total == 1 else None
        self._sync = SyncReplicas(applied, replicas_to_aggregate, total, replica, name)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, engine.Variable]]:
        """That of the optimizer."""
        found: list[tuple[Any, engine.Variable]] = self._opt.compute_gradients(*args, **kwargs)
        return found

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, engine.Variable]],
        global_step: engine.Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """The step of a worker: it gives its gradients, and waits until the step is done.

        Raises:
            ValueError: there is no `global_step`, by which gradients of other steps are told.
        """
        if global_step is None:
            raise ValueError("SyncReplicasOptimizer: give global_step, which counts the steps")
        with in_graph():
            return self._sync.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, var: engine.Variable, name: str) -> engine.Variable | None:
        """What the optimizer keeps of that name for a variable."""
        found: engine.Variable | None = self._opt.get_slot(var, name)
        return found

    def get_slot_names(self) -> list[str]:
        """The names of what the optimizer keeps for variables."""
        return list(self._opt.get_slot_names())

    def variables(self) -> list[engine.Variable]:
        """All that the optimizer keeps."""
        return list(self._opt.variables())

    # What runs it

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> Any:
        """The hook of each worker's monitored session.

        Args:
            is_chief: whether it is the chief's.
            num_tokens: accepted: tokens only wake workers, and a step counter says when to go on.
        """
        with in_graph():
            return self._sync.make_session_run_hook(is_chief)

    def get_chief_queue_runner(self) -> engine.QueueRunner:
        """What takes means, applies them and wakes the workers, on the chief."""
        return self._sync.get_chief_queue_runner()

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Wakes each worker once; for `num_tokens` see `make_session_run_hook`."""
        return self._sync.get_init_tokens_op()

    @property
    def chief_init_op(self) -> Operation:
        """What the chief runs before the first step."""
        return self._sync.chief_init_op

    @property
    def local_step_init_op(self) -> Operation:
        """What another worker runs before the first step."""
        return self._sync.local_step_init_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """The names of the variables that the chief has not initialized yet."""
        with in_graph():
            return engine.report_uninitialized_variables(engine.global_variables())


class _Averaging:
    """An optimizer after whose steps the averages of variables follow."""

    def __init__(self, opt: Any, averages: Any, averaged: Any) -> None:
        self._opt, self._averages, self._averaged = opt, averages, averaged

    def apply_gradients(self, pairs: Any, global_step: engine.Variable) -> Operation:
        """The step of the optimizer, and then of the averages."""
        applied = self._opt.apply_gradients(pairs, global_step=global_step)
        with engine.control_dependencies([applied]):
            found: Operation = self._averages.apply(self._averaged)
        return found
