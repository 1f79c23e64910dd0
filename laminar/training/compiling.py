"""What `compile` tells a model, and how its steps are run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from laminar import optimizers
from laminar.distribute import DataParallel, MultiWorker, ParameterServer
from laminar.distribute.multi_worker import default_strategy
from laminar.distribution import distribution
from laminar.engine.devices import prepare_compilers
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.source import warn
from laminar.layers.layer import Layer
from laminar.layers.open_property import open_property
from laminar.naming import who
from laminar.optimizers import OptimizerLike
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from .compiled import Compiled
from .compiled_loss import LossesLike, check_loss, check_loss_weights
from .compiled_metrics import MetricsLike, check_metrics
from .memory_budget import MemoryBudget
from .memory_budget import memory_budget as chosen_budget
from .step import Step
from .training_state import variables_of

_COMPILE_KEYS = (
    "optimizer",
    "loss",
    "loss_weights",
    "metrics",
    "weighted_metrics",
    "run_eagerly",
    "steps_per_execution",
    "jit_compile",
    "remat",
    "memory_budget",
)


# How steps are run, until somebody says otherwise.
_RUNNING = {"run_eagerly": False, "steps_per_execution": 1, "jit_compile": "auto"}


def _check_running(who: str, given: Mapping[str, Any]) -> None:
    """InvalidArgumentError for a value that `steps_per_execution` or `jit_compile` cannot have."""
    steps = given.get("steps_per_execution", 1)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InvalidArgumentError(f"{who}: steps_per_execution must be at least 1, got {steps!r}")
    native = given.get("jit_compile")
    if not (native is None or native == "auto" or isinstance(native, bool)):
        raise InvalidArgumentError(
            f"{who}: jit_compile must be True, False or 'auto', got {native!r}",
            remedy="leave it out, or jit_compile=False to run operation by operation",
        )


class Compiling(Layer):
    """The part of a model that deals with `compile`. Abstract.

    Attributes:
        optimizer: what updates the weights, None before `compile`.
        stop_training: set it to end `fit` after the current batch; `stop_evaluating` and
            `stop_predicting` do the same in `evaluate` and `predict`.
    """

    _laminar_untracked = Layer._laminar_untracked | {"loss"}

    def __init__(self, **kwargs: Any) -> None:
        if not self._laminar_is_made:  # a class that is a layer too may call both constructors
            super().__init__(**kwargs)
        self.optimizer: Any = None
        self.stop_training = False
        self.stop_evaluating = False
        self.stop_predicting = False
        self._laminar_compiled: Compiled | None = None
        self._laminar_predict_step: Step | None = None
        self._laminar_running: dict[str, Any] = dict(_RUNNING)
        self._laminar_memory_budget: MemoryBudget | None = None

    @property
    def _laminar_output_names(self) -> list[str]:
        """The names of the outputs, as far as they are known: keys for losses and metrics."""
        return []

    def compile(
        self,
        optimizer: OptimizerLike | None = "rmsprop",
        loss: LossesLike | None = None,
        loss_weights: float | Sequence[float] | Mapping[str, float] | None = None,
        metrics: MetricsLike | None = None,
        weighted_metrics: MetricsLike | None = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | Literal["auto"] = "auto",
        auto_scale_loss: bool = True,
        *,
        strategy: DataParallel | MultiWorker | ParameterServer | None = None,
        remat: Literal["auto"] | None = None,
        memory_budget: int | None = None,
    ) -> None:
        """Say how the model is trained.

        Args:
            optimizer: name or object; None for a model that is only evaluated.
            loss: name, object or function; a list or dict for several outputs; None when the
                model adds its own losses.
            loss_weights: a factor for each loss.
            metrics: what to report, without sample weights.
            weighted_metrics: what to report, with sample weights.
            run_eagerly: run steps op by op, for debugging.
            steps_per_execution: batches between two looks at callbacks.
            jit_compile: whether steps are compiled to native code where that is possible.
            auto_scale_loss: whether a loss-scaling optimizer is used under mixed_float16.
            strategy: which devices share the work, a `laminar.distribute.DataParallel`, or which
                processes, a `laminar.distribute.MultiWorker` or a
                `laminar.distribute.ParameterServer`.
            remat: "auto": as much of a Sequential or functional model is computed again in the
                backward pass as it takes for a compiled training step to keep to `memory_budget`.
                The values stay the same. `RematScope` and `laminar.remat` choose by hand.
            memory_budget: bytes for the intermediate values of a training step.

        Raises:
            InvalidArgumentError: an unknown name, or an argument of the wrong kind.
        """
        running = {
            "run_eagerly": run_eagerly,
            "steps_per_execution": steps_per_execution,
            "jit_compile": jit_compile,
        }
        _check_running("compile", running)
        budget = chosen_budget(remat, memory_budget)
        found = None if optimizer is None else optimizers.get(optimizer)
        if not isinstance(found, optimizers.Optimizer | None):
            raise InvalidArgumentError(f"compile: {optimizer!r} is not an optimizer")
        check_loss(loss)
        check_loss_weights(loss_weights)
        check_metrics(metrics)
        check_metrics(weighted_metrics)
        config = {
            "optimizer": found,
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
        }
        scales = auto_scale_loss and self.dtype_policy.name == "mixed_float16"
        if found is not None and scales and not isinstance(found, optimizers.LossScaleOptimizer):
            found = optimizers.LossScaleOptimizer(found, name="loss_scale_optimizer")
        self.optimizer = found
        if loss is not None:
            self.loss = loss
        self.stop_training = False
        self._laminar_predict_step = None
        self._laminar_running = running
        self._laminar_memory_budget = budget
        self._laminar_keep_all()
        self._laminar_compiled = Compiled(config, self._laminar_output_names)
        shared = distribution()
        if strategy is None:
            strategy = default_strategy() if shared is None else shared.strategy
        self._laminar_share_work(strategy)
        if jit_compile is not False and not run_eagerly:
            prepare_compilers()

    def _laminar_keep_all(self) -> None:
        """Compute nothing again that a network of layers gives, until a budget asks for it."""

    def _laminar_share_work(
        self, strategy: DataParallel | MultiWorker | ParameterServer | None
    ) -> None:
        """Let a strategy say which devices, or which processes, share the work."""
        known = DataParallel | MultiWorker | ParameterServer
        if strategy is not None and not isinstance(strategy, known):
            raise InvalidArgumentError(
                f"compile: strategy must be a laminar.distribute.DataParallel, MultiWorker or "
                f"ParameterServer, got {strategy!r}"
            )
        compiled = self._laminar_require_compiled("strategy")
        compiled.strategy = strategy
        compiled.steps.clear()
        self._laminar_predict_step = None

    @property
    def _laminar_devices(self) -> DataParallel | None:
        """The devices of this process that share the work, None where no strategy says so."""
        strategy = None if self._laminar_compiled is None else self._laminar_compiled.strategy
        return strategy if isinstance(strategy, DataParallel) else None

    @property
    def _laminar_workers(self) -> MultiWorker | None:
        """The processes that share the work, None for no others."""
        strategy = None if self._laminar_compiled is None else self._laminar_compiled.strategy
        return strategy if isinstance(strategy, MultiWorker) and strategy.shares_batches else None

    @property
    def _laminar_servers(self) -> ParameterServer | None:
        """The strategy with servers that keep the weights, None for none."""
        strategy = None if self._laminar_compiled is None else self._laminar_compiled.strategy
        return strategy if isinstance(strategy, ParameterServer) and not strategy.is_alone else None

    def _laminar_settle(self) -> None:
        """Have the weights here, up to date, in the middle of an epoch."""
        steps = {} if self._laminar_compiled is None else self._laminar_compiled.steps
        settle = getattr(steps.get("train"), "settle", None)
        if settle is not None:
            settle()

    def _laminar_writing(self) -> AbstractContextManager[bool]:
        """While the model is written to a file; gives whether this process is to write it."""
        workers = self._laminar_workers
        return nullcontext(True) if workers is None else workers.writing(variables_of(self))

    def _laminar_forget_steps(self) -> None:
        """Trace the steps anew when they are needed: the layers are not what they were."""
        self._laminar_predict_step = None
        if self._laminar_compiled is not None:
            self._laminar_compiled.steps.clear()

    def _laminar_not_copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {**super()._laminar_not_copied(memo), "_laminar_predict_step": None}

    @open_property
    def compiled(self) -> bool:
        """Whether `compile` has been called."""
        return self._laminar_compiled is not None

    @property
    def run_eagerly(self) -> bool:
        """Whether steps run op by op; may be set at any time."""
        return bool(self._laminar_running["run_eagerly"])

    @run_eagerly.setter
    def run_eagerly(self, value: bool) -> None:
        self._laminar_run_otherwise("run_eagerly", value)

    @property
    def jit_compile(self) -> Any:
        """Whether steps are compiled to native code; may be set at any time."""
        return self._laminar_running["jit_compile"]

    @jit_compile.setter
    def jit_compile(self, value: bool | Literal["auto"]) -> None:
        self._laminar_run_otherwise("jit_compile", value)

    @property
    def steps_per_execution(self) -> int:
        """Batches between two looks at callbacks; may be set at any time."""
        return int(self._laminar_running["steps_per_execution"])

    @steps_per_execution.setter
    def steps_per_execution(self, value: int) -> None:
        self._laminar_run_otherwise("steps_per_execution", value)

    def _laminar_run_otherwise(self, name: str, value: Any) -> None:
        _check_running(name, {name: value})
        self._laminar_running = self._laminar_running | {name: value}
        self._laminar_forget_steps()

    def _laminar_require_compiled(self, who: str) -> Compiled:
        if self._laminar_compiled is None:
            raise FailedPreconditionError(
                f"{who}: the model has not been compiled",
                remedy='call model.compile(optimizer="adam", loss=...) first',
            )
        return self._laminar_compiled

    def get_compile_config(self) -> dict[str, Any] | None:
        """The arguments of `compile` as data, None when it was not called.

        None too, with a warning, when they cannot be written, as a lambda cannot.
        """
        if self._laminar_compiled is None:
            return None
        config = self._laminar_compiled.config | self._laminar_running
        if (budget := self._laminar_memory_budget) is not None:  # Keras does not know these
            config |= {"remat": "auto", "memory_budget": budget.num_bytes}
        try:
            return {key: serialize_keras_object(v) for key, v in config.items()}
        except InvalidArgumentError as cause:
            warn(f"{who(self)} is saved without what compile() was told: {cause.message}")
            return None

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compile with what `get_compile_config` gave.

        A class with a `compile` of its own is left uncompiled, with a warning.
        """
        if type(self).compile is not Compiling.compile and (
            type(self).compile_from_config is Compiling.compile_from_config
        ):
            warn(
                "`compile()` was not called as part of model loading because the model's "
                f"`compile()` method is custom: that of {type(self).__name__}; call it, or write "
                "get_compile_config() and compile_from_config()"
            )
            return
        known = {k: deserialize_keras_object(v) for k, v in config.items() if k in _COMPILE_KEYS}
        known["jit_compile"] = "auto"
        known["run_eagerly"] = bool(known.get("run_eagerly"))
        known["steps_per_execution"] = int(known.get("steps_per_execution") or 1)
        self.compile(**known)
        if self.optimizer is not None and self.built and self.trainable_variables:
            self.optimizer.build(self.trainable_variables)
