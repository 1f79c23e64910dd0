"""LaminarTrainer: a training by parameter servers on the workers of Ray Train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from laminar.engine.errors import FailedPreconditionError

from .engine_group import Loop, check_function, check_servers


class LaminarTrainer:
    """Ray Train starts the processes of a training, and starts all of them again if one fails.

        def train(config):  # in each process
            strategy = laminar.distribute.ParameterServer(synchronous=True)
            model = ...
            model.compile("adam", "mse", strategy=strategy)
            history = model.fit(x, y, epochs=5, resume=config["folder"])
            return {"loss": history.history["loss"][-1]}

        trainer = LaminarTrainer(
            train,
            train_loop_config={"folder": "/shared/run"},
            scaling_config=ray.train.ScalingConfig(num_workers=4),
            run_config=ray.train.RunConfig(failure_config=ray.train.FailureConfig(max_failures=2)),
        )
        print(trainer.fit().return_value)

    The last processes are servers, the others workers; the first one leads, and what its function
    returns is the `return_value` of the result. In the others the function does not get beyond
    `ParameterServer()`. After a failure `fit(resume=...)` goes on, with the same bits if the
    training is synchronous; the folder is one that each machine reaches.

    Args:
        train_loop_per_worker: the function, of no argument, or of `train_loop_config`.
        train_loop_config: what it is given.
        num_servers: how many of the processes are servers.
        scaling_config: of Ray Train: how many processes, and what each of them needs.
        run_config: of Ray Train: how often they start again, where results go.

    Raises:
        FailedPreconditionError: Ray Train is missing.
        InvalidArgumentError: no server, or no process is left to be a worker.

    Examples:
        >>> laminar.distribute.LaminarTrainer("train.py")
        Traceback (most recent call last):
        laminar.engine.errors.InvalidArgumentError: LaminarTrainer: expected a function ...
    """

    def __init__(
        self,
        train_loop_per_worker: Callable[..., Any],
        *,
        train_loop_config: Mapping[str, Any] | None = None,
        num_servers: int = 1,
        scaling_config: Any = None,
        run_config: Any = None,
    ) -> None:
        check_function("LaminarTrainer", train_loop_per_worker)
        try:
            from ray import train
        except ImportError as cause:
            raise FailedPreconditionError(
                f"LaminarTrainer needs Ray Train: {cause}", remedy="pip install 'laminar[ray]'"
            ) from cause
        self._scaling = scaling_config or train.ScalingConfig(num_workers=2)
        size = self._scaling.num_workers
        check_servers(
            "LaminarTrainer",
            num_servers,
            size,
            "ScalingConfig counts the servers, too",
        )
        self._loop, self._servers = train_loop_per_worker, num_servers
        self._loop_config = None if train_loop_config is None else dict(train_loop_config)
        self._run_config = run_config

    def fit(self) -> Any:
        """Train; gives Ray Train's `Result`, or raises its error once all failures are spent."""
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

        from .ray_train import LaminarConfig

        trainer = DataParallelTrainer(
            Loop(self._loop, self._loop_config),
            backend_config=LaminarConfig(self._servers),
            scaling_config=self._scaling,
            run_config=self._run_config,
        )
        return trainer.fit()
