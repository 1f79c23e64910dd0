"""What a model does with one batch: compile, and the steps of training, testing, predicting."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from laminar import ops
from laminar.distribute.replicas import is_shared, shared_call
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from laminar.engine.functions import FuncGraph, converted_in_graph
from laminar.engine.gradients import GradientTape
from laminar.engine.late import later
from laminar.engine.ops.core.recording import paused
from laminar.layers.holding import holding
from laminar.layers.weights import trainable_changes
from laminar.naming import who
from laminar.tree import map_structure

from ..typing import TensorLike
from .async_step import AsyncTrainStep
from .compiled import Compiled
from .compiling import Compiling
from .data import unpack_x_y_sample_weight
from .logs import in_order
from .outputs import batch_size
from .step import Step, batch_spec
from .training_state import undone_on_failure
from .worker_step import WorkerStep

# It loads sessions and what they need.
_served_step = later("laminar.training.served_step", "served_step")


class TrainingSteps(Compiling):
    """What a model gains by being compiled: its steps, and the parts of them to override.

    Abstract: models derive from it.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As a layer is called; in a step that several devices share, each computes its share."""
        if is_shared():
            return shared_call(self, super().__call__, args, kwargs)
        return super().__call__(*args, **kwargs)

    # Parts of a step, to be overridden

    def train_step(self, data: Any) -> dict[str, Any]:
        """One step of training on a batch; override it for a loop of your own.

        Args:
            data: (x, y, sample_weight), as far as the data has them.

        Returns:
            The values to report, by name.
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self._laminar_tracked_loss(x, y, y_pred, sample_weight, training=True)
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights
        if variables:
            gradients = tape.gradient(scaled, variables)
            self.optimizer.apply(gradients, variables)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """One step of evaluation on a batch."""
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        self._laminar_tracked_loss(x, y, y_pred, sample_weight, training=False)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """The outputs for a batch."""
        x, _, _ = unpack_x_y_sample_weight(data)
        return self(x, training=False)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """The loss of a batch: that of `compile`, and what layers and regularizers have added.

        Raises:
            InvalidArgumentError: there is neither.
        """
        compiled = self._laminar_require_compiled("compute_loss")
        parts = []
        if compiled.loss is not None:
            loss = compiled.loss(y, y_pred, sample_weight)
            if loss is not None:
                parts.append(loss)
        parts.extend(ops.sum(ops.cast(loss, "float32")) for loss in self.losses)
        if not parts:
            raise InvalidArgumentError(
                "there is no loss to minimise: compile() got none and no layer adds one",
                remedy='compile(loss="mse") or another, or call add_loss() in a layer',
            )
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _laminar_tracked_loss(
        self,
        x: Any,
        y: Any,
        y_pred: Any,
        sample_weight: Any,
        *,
        training: bool,
    ) -> Any:
        given = {"x": x, "y": y, "y_pred": y_pred, "sample_weight": sample_weight}
        if _takes_training(type(self).compute_loss):
            given["training"] = training
        loss = self.compute_loss(**given)
        tracker = self._laminar_require_compiled("compute_loss").loss_tracker
        tracker.update_state(loss, sample_weight=batch_size(x))
        return loss

    def stateless_compute_loss(
        self,
        trainable_variables: Sequence[TensorLike],
        non_trainable_variables: Sequence[TensorLike],
        metrics_variables: Sequence[TensorLike],
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> tuple[Any, tuple[Any, Any, Any]]:
        """`compute_loss` with given values of the variables.

        Returns:
            The loss, and the values that all variables have after it: trainable, non-trainable,
            those of the metrics.
        """
        groups = (self.trainable_variables, self.non_trainable_variables, self.metrics_variables)
        values = [*trainable_variables, *non_trainable_variables, *metrics_variables]
        with holding([v for group in groups for v in group], values, who(self)):
            loss = self.compute_loss(x, y, y_pred, sample_weight, training)
            trainable, others, metrics = ([v.read_value() for v in group] for group in groups)
        return loss, (trainable, others, metrics)

    def compute_metrics(
        self,
        x: Any,
        y: Any,
        y_pred: Any,
        sample_weight: Any = None,
    ) -> dict[str, Any]:
        """Update the metrics of `compile` and of `add_metric`, and give all results by name."""
        compiled = self._laminar_require_compiled("compute_metrics")
        compiled.metrics.update_state(y, y_pred, sample_weight)
        for layer in self._laminar_flatten_layers():
            for name, value in layer._laminar_reports:
                tracker = compiled.tracker_for(layer, name)
                if tracker is not None:
                    tracker.update_state(value)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """The results of all metrics, by name."""
        results: dict[str, Any] = {}
        keys = self._laminar_metric_keys()
        for metric in self.metrics:
            result = metric.result()
            if isinstance(result, Mapping):
                results |= result
            else:
                results[keys.get(id(metric), metric.name)] = result
        return results

    def _laminar_metric_keys(self) -> dict[int, str]:
        compiled = self._laminar_compiled
        return {} if compiled is None else {id(m): k for k, m in compiled.metrics.by_key.items()}

    @property
    def metrics(self) -> list[Any]:
        """The metrics: the loss, those of `compile`, those of the layers."""
        found = [] if self._laminar_compiled is None else self._laminar_compiled.own_metrics
        for layer in self._laminar_flatten_layers():
            found += layer._laminar_own_metrics
        return list({id(metric): metric for metric in found}.values())

    @property
    def metrics_names(self) -> list[str]:
        """The names of the values that `evaluate` gives, in their order."""
        return self._laminar_names_of(self.metrics)

    def _laminar_names_of(self, metrics: list[Any]) -> list[str]:
        keys = self._laminar_metric_keys()
        return [keys.get(id(metric), metric.name) for metric in metrics]

    def _laminar_values_of(self, logs: Mapping[str, Any]) -> list[Any]:
        """Reported values in the order of `metrics_names`, others after them by name."""
        names: list[str] = []
        if type(self).metrics is TrainingSteps.metrics and self._laminar_compiled is not None:
            names = self._laminar_names_of(self._laminar_compiled.own_metrics)
        if not logs.keys() <= set(names):  # those of layers, for which all layers are asked
            names = self.metrics_names
        return in_order(logs, names)

    def reset_metrics(self) -> None:
        """Set all metrics back."""
        for metric in self.metrics:
            metric.reset_state()

    # Step functions

    def make_train_function(self, force: bool = False) -> Any:
        """The function that trains on a batch."""
        compiled = self._laminar_require_compiled("fit")
        groups = 0 if self.optimizer is None else self.optimizer._laminar_group_changes
        changes = trainable_changes(), groups
        if changes != compiled.changes:  # perhaps layers of this model have been frozen or thawed
            trained = (changes[1], *(id(v) for v in self.trainable_weights))
            if trained != compiled.trained:
                compiled.steps.pop("train", None)
            compiled.changes, compiled.trained = changes, trained
        return self._laminar_step("train", self.train_step, force)

    def make_test_function(self, force: bool = False) -> Any:
        """The function that evaluates a batch."""
        return self._laminar_step("test", self.test_step, force)

    def make_predict_function(self, force: bool = False) -> Any:
        """The function that predicts a batch."""
        if self._laminar_predict_step is None or force:
            self._laminar_predict_step = self._laminar_new_step(self.predict_step, "predict")
        return self._laminar_predict_step

    def _laminar_step(self, kind: str, step: Any, force: bool) -> Any:
        compiled = self._laminar_require_compiled("fit")
        if force or kind not in compiled.steps:
            if (servers := self._laminar_servers) is not None:
                compiled.steps[kind] = self._laminar_served_step(servers, kind, step)
            elif kind == "train" and compiled.strategy is not None and compiled.strategy.is_async:
                own = type(self).train_step is not TrainingSteps.train_step
                serial = self._laminar_new_step(step, kind)
                compiled.steps[kind] = AsyncTrainStep(self, compiled, serial, has_own_step=own)
            else:
                compiled.steps[kind] = self._laminar_new_step(step, kind)
        return compiled.steps[kind]

    def _laminar_has_own_step(self, kind: str) -> bool:
        """Whether the class says itself what a step of a kind, or the loss, is."""
        own = type(self)
        return any(
            getattr(own, name) is not getattr(TrainingSteps, name)
            for name in (f"{kind}_step", "compute_loss")
        )

    def _laminar_served_step(self, strategy: Any, kind: str, step: Any) -> Any:
        """A step on the workers of a strategy with servers; tests of one's own are made here."""
        written = getattr(type(self), step.__name__, None)
        if written is not getattr(TrainingSteps, step.__name__):
            if kind == "test":
                return self._laminar_new_step(step, kind)
            raise InvalidArgumentError(
                f"{who(self)}: training by parameter servers does not go with a train_step of its "
                "own, which does not say where the gradients end and the update begins",
                remedy="leave it to fit() to compute gradients, or use "
                "laminar.distribute.Coordinator for a loop of your own, or MultiWorker",
            )
        compiled = self._laminar_require_compiled("fit")
        return _served_step(self, compiled, strategy, kind, self._laminar_new_step(step, kind))

    def _laminar_new_step(self, step: Any, kind: str) -> Any:
        _check_form(step)

        def run(batch: Any) -> Any:
            try:
                return converted_in_graph(step)(batch)
            finally:
                self._clear_losses()  # symbols of the trace

        run.__name__ = getattr(step, "__name__", "step")
        is_stateful = any(
            getattr(layer, "stateful", False) for layer in self._laminar_flatten_layers()
        )
        workers = self._laminar_workers
        if workers is not None:
            if self.run_eagerly or is_stateful:
                what = "run_eagerly" if self.run_eagerly else "layers with a state for each example"
                raise UnimplementedError(
                    f"{who(self)}: training over processes does not go with {what}",
                    remedy="leave run_eagerly out" if self.run_eagerly else "use stateful=False",
                )
            native = self.jit_compile is not False
            return WorkerStep(self, run, kind, workers, native=native)
        return Step(
            undone_on_failure(self, run) if self.run_eagerly else run,
            eager=self.run_eagerly,
            native=self.jit_compile is not False,
            strategy=self._laminar_devices,
            one_size=is_stateful,
        )

    def _laminar_prepare(self, batch: Any, *, training: bool) -> None:
        """Make what a first batch tells how to, and a train step that keeps to the budget."""
        self._laminar_make_state(batch, training=training)
        if training and self._laminar_memory_budget is not None:
            self._laminar_memory_budget.choose(self, batch)

    def _laminar_make_state(self, batch: Any, *, training: bool) -> None:
        """Make the weights, the metrics and the optimizer's slots, from a first batch."""
        if type(self).train_step is not TrainingSteps.train_step:
            return  # made in its first trace
        compiled = self._laminar_require_compiled("fit")
        if not self.built or not compiled.metrics.built:
            self._laminar_trace_outputs(batch, compiled)
        if training and self.optimizer is None:
            raise FailedPreconditionError(
                "fit: the model was compiled without an optimizer", remedy='compile("adam", ...)'
            )
        if training and not self.optimizer.built:
            variables = self.trainable_weights
            if variables:
                self.optimizer.build(variables)

    def _laminar_known_outputs(self) -> Any:
        """Tensors of the form of the outputs, where it is known without a call; else None."""
        return None

    def _laminar_trace_outputs(self, batch: Any, compiled: Compiled) -> None:
        graph = FuncGraph("spec")
        with graph.as_default(), paused():
            symbols = map_structure(partial(_symbol, graph), batch)
            x, y, _ = unpack_x_y_sample_weight(symbols)
            known = self._laminar_known_outputs()
            if known is None:
                y_pred = self(x, training=False)
            else:
                y_pred = map_structure(partial(_symbol, graph), known)
            for layer in self._laminar_flatten_layers():
                for name, _ in layer._laminar_reports:
                    compiled.tracker_for(layer, name)
            self._clear_losses()
            # A compute_loss of one's own may hand on other outputs than those of the model.
            if compiled.loss is not None and type(self).compute_loss is TrainingSteps.compute_loss:
                compiled.loss.build(y, y_pred)
            compiled.metrics.build(y, y_pred)


def _symbol(graph: FuncGraph, value: Any) -> Any:
    return None if value is None else graph.add_argument(batch_spec(value), "data")


def _check_form(step: Any) -> None:
    """Refuse a step that takes (state, data), as Keras wants it where JAX computes."""
    required = [
        p.name
        for p in inspect.signature(step).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) > 1:
        name = getattr(step, "__name__", "step")
        raise InvalidArgumentError(
            f"{name}({', '.join(required)}) is the form for Keras on JAX, "
            f"laminar calls {name}(data)",
            remedy="take the batch alone, and compute gradients with laminar.GradientTape: "
            "variables are updated in place, no state is passed",
        )


def _takes_training(compute_loss: Any) -> bool:
    """Whether a `compute_loss` takes `training`, which it did not before Keras 3.3."""
    parameters = inspect.signature(compute_loss).parameters.values()
    return any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters)
