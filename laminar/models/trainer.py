"""The training loop: compile, fit, evaluate, predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar import callbacks as callbacks_module
from laminar import metrics as metrics_module
from laminar import ops, optimizers
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.functions import FuncGraph
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Tensor
from laminar.engine.ops.recording import paused
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import flatten, map_structure

from .compiling import CompiledLoss, CompiledMetrics
from .data import (
    ArrayData,
    IterableData,
    class_weights,
    make_data,
    nan_report,
    ran_out,
    unpack_x_y_sample_weight,
)
from .step import Step, batch_spec

Data = ArrayData | IterableData


class Compiled:
    """What `compile` was given, and what has been made of it.

    Attributes:
        config: the arguments, for saving.
        loss_tracker: the mean of the loss.
        steps: the step functions made so far, by kind.
        trained: ids of the variables that the train step was traced for.
    """

    def __init__(self, config: dict[str, Any], output_names: Sequence[str]) -> None:
        self.config = config
        self.loss = (
            None
            if config["loss"] is None
            else CompiledLoss(config["loss"], config["loss_weights"], output_names)
        )
        self.metrics = CompiledMetrics(config["metrics"], config["weighted_metrics"], output_names)
        self.loss_tracker = metrics_module.Mean(name="loss")
        self.steps: dict[str, Step] = {}
        self.trained: tuple[int, ...] = ()

    @property
    def all_metrics(self) -> list[Any]:
        """The loss tracker, the trackers of the outputs, and the metrics."""
        trackers = [] if self.loss is None else [t for t in self.loss.trackers if t is not None]
        return [self.loss_tracker, *trackers, *self.metrics.metrics]


class Trainer:
    """What a model gains by being trained: compile, fit, evaluate, predict, and their parts."""

    optimizer: Any
    _compiled: Compiled | None

    def __init__(self) -> None:
        object.__setattr__(self, "optimizer", None)
        object.__setattr__(self, "_compiled", None)
        object.__setattr__(self, "_train_state", None)
        self.stop_training = False
        self._predict_step: Step | None = None

    # Compiling

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Say how the model is trained.

        Args:
            optimizer: name or object.
            loss: name, object or function; a list or dict for several outputs; None when the
                model adds its own losses.
            loss_weights: a factor for each loss.
            metrics: what to report, without sample weights.
            weighted_metrics: what to report, with sample weights.
            run_eagerly: run steps op by op, for debugging.
            steps_per_execution: batches between two looks at callbacks.
            jit_compile: whether steps are compiled to native code where that is possible.
            auto_scale_loss: whether a loss-scaling optimizer is used under mixed_float16.

        Raises:
            InvalidArgumentError: an unknown name, or an argument of the wrong kind.
        """
        if isinstance(steps_per_execution, bool) or steps_per_execution < 1:
            raise InvalidArgumentError(
                f"compile: steps_per_execution must be at least 1, got {steps_per_execution!r}"
            )
        found = optimizers.get(optimizer)
        if not isinstance(found, optimizers.Optimizer):
            raise InvalidArgumentError(f"compile: {optimizer!r} is not an optimizer")
        if (
            auto_scale_loss
            and getattr(self, "dtype_policy", None) is not None
            and self.dtype_policy.name == "mixed_float16"  # type: ignore[attr-defined]  # a layer
            and not isinstance(found, optimizers.LossScaleOptimizer)
        ):
            found = optimizers.LossScaleOptimizer(found, name="loss_scale_optimizer")
        config = {
            "optimizer": found,
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
            "run_eagerly": run_eagerly,
            "steps_per_execution": steps_per_execution,
            "jit_compile": jit_compile,
        }
        self.optimizer = found
        self.stop_training = False
        self._compiled = Compiled(config, self.output_names)  # type: ignore[attr-defined]  # a model
        self._compiled_eagerly_checked(loss, metrics, weighted_metrics)

    def _compiled_eagerly_checked(self, loss: Any, metrics: Any, weighted: Any) -> None:
        """Unknown names are errors here, not in the middle of the first step."""
        from .compiling import get_loss

        for entry in flatten(loss):
            if entry is not None:
                get_loss(entry)
        for entry in [*flatten(metrics), *flatten(weighted)]:
            if isinstance(entry, str) and entry.lower() not in _SHAPED_METRICS:
                metrics_module.get(entry)

    @property
    def compiled(self) -> bool:
        """Whether `compile` has been called."""
        return self._compiled is not None

    @property
    def run_eagerly(self) -> bool:
        """Whether steps run op by op."""
        return self._compiled is not None and bool(self._compiled.config["run_eagerly"])

    @property
    def jit_compile(self) -> Any:
        """Whether steps are compiled to native code."""
        return None if self._compiled is None else self._compiled.config["jit_compile"]

    def _require_compiled(self, who: str) -> Compiled:
        if self._compiled is None:
            raise FailedPreconditionError(
                f"{who}: the model has not been compiled",
                remedy='call model.compile(optimizer="adam", loss=...) first',
            )
        return self._compiled

    def get_compile_config(self) -> dict[str, Any] | None:
        """The arguments of `compile` as data, None when it was not called."""
        if self._compiled is None:
            return None
        config = dict(self._compiled.config)
        return {key: serialize_keras_object(value) for key, value in config.items()}

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compile with what `get_compile_config` gave."""
        known = {k: deserialize_keras_object(v) for k, v in config.items() if k in _COMPILE_KEYS}
        known["jit_compile"] = "auto"
        known["run_eagerly"] = bool(known.get("run_eagerly"))
        known["steps_per_execution"] = int(known.get("steps_per_execution") or 1)
        self.compile(**known)
        if getattr(self, "built", False) and self.trainable_variables:  # type: ignore[attr-defined]  # a layer
            self.optimizer.build(self.trainable_variables)  # type: ignore[attr-defined]  # a layer

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
            y_pred = self(x, training=True)  # type: ignore[operator]  # a layer
            loss = self.compute_loss(
                x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )
            self._track_loss(loss, x)
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights  # type: ignore[attr-defined]  # a layer
        if variables:
            gradients = tape.gradient(scaled, variables)
            self.optimizer.apply(gradients, variables)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """One step of evaluation on a batch."""
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)  # type: ignore[operator]  # a layer
        loss = self.compute_loss(
            x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False
        )
        self._track_loss(loss, x)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """The outputs for a batch."""
        x, _, _ = unpack_x_y_sample_weight(data)
        return self(x, training=False)  # type: ignore[operator]  # a layer

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
        compiled = self._require_compiled("compute_loss")
        parts = []
        if compiled.loss is not None:
            loss = compiled.loss(y, y_pred, sample_weight)
            if loss is not None:
                parts.append(loss)
        parts.extend(ops.sum(ops.cast(loss, "float32")) for loss in self.losses)  # type: ignore[attr-defined]  # a layer
        if not parts:
            raise InvalidArgumentError(
                "there is no loss to minimise: compile() got none and no layer adds one",
                remedy='compile(loss="mse") or another, or call add_loss() in a layer',
            )
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Update the metrics of `compile`, and give all results by name."""
        compiled = self._require_compiled("compute_metrics")
        compiled.metrics.update(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def _track_loss(self, loss: Any, x: Any) -> None:
        size = ops.shape(flatten(x)[0])[0]
        compiled = self._require_compiled("fit")
        compiled.loss_tracker.update_state(loss, sample_weight=size)

    def get_metrics_result(self) -> dict[str, Any]:
        """The results of all metrics, by name."""
        results: dict[str, Any] = {}
        compiled = self._compiled
        keys = {} if compiled is None else {id(m): key for key, m in compiled.metrics.keys}
        for metric in self.metrics:
            result = metric.result()
            if isinstance(result, Mapping):
                results |= result
            else:
                results[keys.get(id(metric), metric.name)] = result
        return results

    @property
    def metrics(self) -> list[Any]:
        """The metrics: the loss, those of `compile`, those of the layers."""
        own = [] if self._compiled is None else self._compiled.all_metrics
        layers = [m for layer in self.flatten_layers() for m in layer._own_metrics]  # type: ignore[attr-defined]  # a layer
        found = {id(m): m for m in [*own, *layers] if not isinstance(m, Trainer)}
        return list(found.values())

    @property
    def metrics_names(self) -> list[str]:
        """The names of the metrics."""
        return [m.name for m in self.metrics]

    def reset_metrics(self) -> None:
        """Set all metrics back."""
        for metric in self.metrics:
            metric.reset_state()

    # Step functions

    def make_train_function(self, force: bool = False) -> Step:
        """The function that trains on a batch."""
        compiled = self._require_compiled("fit")
        trained = tuple(id(v) for v in self.trainable_weights)  # type: ignore[attr-defined]  # a layer
        if trained != compiled.trained:  # layers have been frozen or thawed
            compiled.steps.pop("train", None)
            compiled.trained = trained
        return self._step("train", self.train_step, force)

    def make_test_function(self, force: bool = False) -> Step:
        """The function that evaluates a batch."""
        return self._step("test", self.test_step, force)

    def make_predict_function(self, force: bool = False) -> Step:
        """The function that predicts a batch."""
        if self._predict_step is None or force:
            self._predict_step = Step(self.predict_step, eager=self.run_eagerly)
        return self._predict_step

    def _step(self, kind: str, step: Any, force: bool) -> Step:
        compiled = self._require_compiled("fit")
        if force or kind not in compiled.steps:
            compiled.steps[kind] = Step(step, eager=self.run_eagerly)
        return compiled.steps[kind]

    def _prepare(self, batch: Any, *, training: bool) -> None:
        """Make the weights, the metrics and the optimizer's slots, from a first batch."""
        compiled = self._require_compiled("fit")
        needs = not self.built or not compiled.metrics.built  # type: ignore[attr-defined]  # a layer
        if needs and type(self).train_step is Trainer.train_step:
            self._trace_outputs(batch, compiled)
        if training and type(self).train_step is Trainer.train_step:
            variables = self.trainable_weights  # type: ignore[attr-defined]  # a layer
            if variables and not self.optimizer.built:
                self.optimizer.build(variables)

    def _trace_outputs(self, batch: Any, compiled: Compiled) -> None:
        graph = FuncGraph("spec")
        with graph.as_default(), paused():
            symbols = map_structure(
                lambda t: None if t is None else graph.add_argument(batch_spec(t), "data"), batch
            )
            x, y, _ = unpack_x_y_sample_weight(symbols)
            y_pred = self(x, training=False)  # type: ignore[operator]  # a layer
            self._clear_losses()  # type: ignore[attr-defined]  # a layer
            if compiled.loss is not None:
                compiled.loss.build(y_pred)
            compiled.metrics.build(y, y_pred)

    # Loops

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
    ) -> Any:
        """Train the model.

        Args:
            x: arrays (one, a list or a dict), or an iterable of batches.
            y: targets, for arrays.
            batch_size: examples in a step, 32 by default.
            epochs: number of the last epoch.
            verbose: 0 silent, 1 a bar, 2 a line for each epoch; "auto" is 1.
            callbacks: objects that are told of each batch and epoch.
            validation_split: last part of the arrays, kept for validation.
            validation_data: (x, y), (x, y, sample_weight) or an iterable of batches.
            shuffle: whether arrays are taken in another order in each epoch.
            class_weight: a weight for each class.
            sample_weight: a weight for each example.
            initial_epoch: epochs done before.
            steps_per_epoch: batches in an epoch; by default until the data ends.
            validation_steps: batches of a validation.
            validation_batch_size: by default `batch_size`.
            validation_freq: validate after every so many epochs, or after those listed.

        Returns:
            History: `.history[name]` has one value for each epoch.

        Raises:
            InvalidArgumentError: data that does not fit together, is empty or holds NaN.
        """
        self._require_compiled("fit")
        _check_counts(epochs=epochs, initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch)
        data = make_data(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            shuffle=shuffle,
            class_weight=class_weight,
            who="fit",
        )
        if validation_split:
            if not isinstance(data, ArrayData) or not 0 < validation_split < 1:
                raise InvalidArgumentError(
                    f"fit: validation_split must be between 0 and 1 and needs arrays, "
                    f"got {validation_split!r}",
                    remedy="use validation_data= for other data",
                )
            data, kept = data.split(validation_split)
            validation: Data | None = kept
            kept.shuffle = False
            if validation_batch_size:
                kept.batch_size = validation_batch_size
        else:
            validation = self._validation(validation_data, validation_batch_size or batch_size)
        listeners = self._listeners(
            callbacks,
            verbose,
            add_history=True,
            epochs=epochs,
            steps=steps_per_epoch or data.num_batches,
        )
        self.stop_training = False
        listeners.on_train_begin()
        logs: dict[str, Any] = {}
        try:
            for epoch in range(initial_epoch, epochs):
                self.reset_metrics()
                listeners.on_epoch_begin(epoch)
                logs = self._train_epoch(data, steps_per_epoch, listeners, epoch)
                if validation is not None and _is_due(epoch, validation_freq):
                    found = self._evaluate(validation, validation_steps, listeners)
                    logs |= {f"val_{name}": value for name, value in found.items()}
                listeners.on_epoch_end(epoch, logs)
                if self.stop_training:
                    break
        finally:
            listeners.on_train_end(logs)
        return self.history  # type: ignore[attr-defined]  # set by the History callback

    def _train_epoch(
        self, data: Data, steps: int | None, listeners: Any, epoch: int
    ) -> dict[str, Any]:
        compiled = self._require_compiled("fit")
        interval = compiled.config["steps_per_execution"]
        logs: dict[str, Any] = {}
        results: Any = None
        done = 0
        step: Step | None = None
        for batch in data:
            if step is None:
                self._prepare(batch, training=True)
                step = self.make_train_function()
            if done % interval == 0:
                listeners.on_train_batch_begin(done)
            results = step(batch)
            done += 1
            if done == 1 and epoch == 0:
                _check_first(results, batch)
            if done % interval == 0 or done == steps:
                logs = read_logs(results)
                listeners.on_train_batch_end(done - 1, logs)
            if done == steps or self.stop_training:
                break
        if not done:
            raise ran_out("fit", 0, steps or 1)
        if done % interval and done != steps:  # the last, shorter group
            listeners.on_train_batch_end(done - 1, read_logs(results))
        if steps is not None and done < steps and not self.stop_training:
            raise ran_out("fit", done, steps)
        return read_logs(results)

    def _validation(self, data: Any, batch_size: int | None) -> Data | None:
        if data is None:
            return None
        if isinstance(data, list | tuple):
            x, y, weight = unpack_x_y_sample_weight(tuple(data))
            return make_data(x, y, weight, batch_size=batch_size, who="fit: validation_data")
        return make_data(data, who="fit: validation_data")

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """The loss and the metrics on data.

        Args: as those of `fit`.

        Returns:
            The loss when there are no metrics, else a list in the order of `metrics_names`, or a
            dict with `return_dict`.
        """
        self._require_compiled("evaluate")
        data = make_data(x, y, sample_weight, batch_size=batch_size, who="evaluate")
        listeners = self._listeners(callbacks, verbose, epochs=1, steps=steps or data.num_batches)
        with listeners:
            logs = self._evaluate(data, steps, listeners)
        if return_dict:
            return logs
        values = list(logs.values())
        return values[0] if len(values) == 1 else values

    def _evaluate(self, data: Data, steps: int | None, listeners: Any) -> dict[str, Any]:
        self.reset_metrics()
        listeners.on_test_begin()
        results: Any = None
        done = 0
        step: Step | None = None
        for batch in data:
            if step is None:
                self._prepare(batch, training=False)
                step = self.make_test_function()
            listeners.on_test_batch_begin(done)
            results = step(batch)
            listeners.on_test_batch_end(done, read_logs(results))
            done += 1
            if done == steps:
                break
        if not done:
            raise ran_out("evaluate", 0, steps or 1)
        logs = read_logs(results)
        listeners.on_test_end(logs)
        return logs

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The outputs for data, as NumPy arrays in the structure of the model's outputs.

        Args: as those of `fit`.
        """
        data = make_data(x, batch_size=batch_size, who="predict")
        listeners = self._listeners(callbacks, verbose, epochs=1, steps=steps or data.num_batches)
        step = self.make_predict_function()
        parts: list[Any] = []
        with listeners:
            listeners.on_predict_begin()
            for batch in data:
                done = len(parts)
                listeners.on_predict_batch_begin(done)
                outputs = map_structure(np.asarray, step(batch))
                parts.append(outputs)
                listeners.on_predict_batch_end(done, {"outputs": outputs})
                if len(parts) == steps:
                    break
            listeners.on_predict_end()
        if not parts:
            raise ran_out("predict", 0, steps or 1)
        return map_structure(_joined, *parts) if parts else parts

    def _listeners(
        self, callbacks: Any, verbose: Any, *, add_history: bool = False, **params: Any
    ) -> Any:
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        level = 1 if verbose == "auto" else verbose
        if level not in (0, 1, 2, True, False):
            raise InvalidArgumentError(f"verbose must be 0, 1, 2 or 'auto', got {verbose!r}")
        return callbacks_module.CallbackList(
            callbacks,
            add_history=add_history,
            add_progbar=bool(level),
            model=self,
            verbose=int(level),
            **params,
        )

    # One batch

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Mapping[int, float] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Train on one batch; the metrics go on from the batches before."""
        self._require_compiled("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise InvalidArgumentError(
                    "train_on_batch: give class_weight or sample_weight, not both"
                )
            sample_weight = class_weights(y, class_weight, "train_on_batch")
        batch = self._one_batch(x, y, sample_weight, "train_on_batch")
        self._prepare(batch, training=True)
        return _results(self.make_train_function()(batch), return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Evaluate one batch; the metrics go on from the batches before."""
        self._require_compiled("test_on_batch")
        batch = self._one_batch(x, y, sample_weight, "test_on_batch")
        self._prepare(batch, training=False)
        return _results(self.make_test_function()(batch), return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as NumPy arrays."""
        batch = self._one_batch(x, None, None, "predict_on_batch")
        outputs = self.make_predict_function()(batch)
        return map_structure(lambda t: t.numpy() if isinstance(t, Tensor) else t, outputs)

    def _one_batch(self, x: Any, y: Any, sample_weight: Any, who: str) -> Any:
        data = ArrayData(x, y, sample_weight, who=who)
        data.batch_size = data.size
        return next(iter(data))


_COMPILE_KEYS = (
    "optimizer",
    "loss",
    "loss_weights",
    "metrics",
    "weighted_metrics",
    "run_eagerly",
    "steps_per_execution",
    "jit_compile",
)
_SHAPED_METRICS = ("accuracy", "acc", "crossentropy", "ce")


def read_logs(results: Any) -> dict[str, Any]:
    """The values to report as Python numbers (arrays stay arrays)."""
    if not isinstance(results, Mapping):
        raise InvalidArgumentError(
            f"train_step and test_step return a dict of values to report, got {type(results)}",
            remedy='return {"loss": loss}',
        )
    return {str(name): _number(value) for name, value in results.items()}


def _number(value: Any) -> Any:
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _results(results: Any, return_dict: bool) -> Any:
    logs = read_logs(results)
    if return_dict:
        return logs
    values = list(logs.values())
    return values[0] if len(values) == 1 else values


def _joined(*parts: Any) -> Any:
    return parts[0].copy() if len(parts) == 1 else np.concatenate(parts)


def _is_due(epoch: int, frequency: int | Sequence[int]) -> bool:
    if isinstance(frequency, int):
        return (epoch + 1) % frequency == 0
    return epoch + 1 in frequency


def _check_first(results: Any, batch: Any) -> None:
    """When the first loss is NaN, say so if the data is why."""
    loss = results.get("loss") if isinstance(results, Mapping) else None
    if loss is not None and np.asarray(loss).ndim == 0 and np.isnan(np.asarray(loss)):
        report = nan_report(batch)
        if report is not None:
            raise InvalidArgumentError(
                f"fit: {report}", remedy="fill or drop them first, as with numpy.nan_to_num"
            )


def _check_counts(**counts: Any) -> None:
    for name, value in counts.items():
        least = 0 if name == "initial_epoch" else 1
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least
        ):
            raise InvalidArgumentError(
                f"fit: {name} must be a whole number of at least {least}, got {value!r}"
            )
