"""The loops over data: fit, evaluate, predict, and single batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar import callbacks as callbacks_module
from laminar import config
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import warn
from laminar.tree import map_structure

from .arrays import nan_report
from .data import ArrayData, Batch, Data, Passes, make_data, ran_out, unpack_x_y_sample_weight
from .logs import in_order, read_logs
from .step import Step
from .training_steps import TrainingSteps


class Trainer(TrainingSteps):
    """What a model gains by being trained: its loops over data. Abstract: models derive from it."""

    history: Any

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
            validation_data: (x, y), (x, y, sample_weight) or an iterable of batches; it goes
                before `validation_split`.
            shuffle: whether arrays are taken in another order in each epoch.
            class_weight: a weight for each class.
            sample_weight: a weight for each example.
            initial_epoch: epochs done before.
            steps_per_epoch: batches in an epoch, each going on where the one before ended; by
                default until the data ends.
            validation_steps: batches of a validation.
            validation_batch_size: by default `batch_size`.
            validation_freq: validate after every so many epochs, or after those listed.

        Returns:
            History: `.history[name]` has one value for each epoch.

        Raises:
            InvalidArgumentError: data that does not fit together, is empty or holds NaN.
            OutOfRangeError: the data ends in the first epoch, before `steps_per_epoch`. When it
                ends later, training ends with a warning.
        """
        self._require_compiled("fit")
        _check_counts(epochs=epochs, initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch)
        epochs = _limited("epochs", epochs, config.max_epochs())
        data = make_data(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            shuffle=shuffle,
            class_weight=class_weight,
            who="fit",
        )
        validation: Data | None = None
        if validation_data is not None:
            validation = _validation(validation_data, validation_batch_size or batch_size)
        elif validation_split:
            data, validation = _split(data, validation_split, validation_batch_size)
        passes = Passes(data, _limited_steps(steps_per_epoch))
        listeners = self._listeners(
            callbacks, verbose, add_history=True, epochs=epochs, steps=passes.num_steps
        )
        self.stop_training = False
        logs: dict[str, Any] = {}
        with listeners:
            listeners.on_train_begin()
            for epoch in range(initial_epoch, epochs):
                self.reset_metrics()
                listeners.on_epoch_begin(epoch)
                found = self._train_epoch(passes, listeners, is_first=epoch == initial_epoch)
                if found is None:
                    break
                logs = found
                if validation is not None and _is_due(epoch, validation_freq):
                    steps = _limited_steps(validation_steps)
                    found = self._evaluate(Passes(validation, steps), listeners)
                    logs = logs | {f"val_{name}": value for name, value in found.items()}
                listeners.on_epoch_end(epoch, logs)
                if self.stop_training:
                    break
            self.optimizer.finalize_variable_values(self.trainable_weights)
            listeners.on_train_end(logs)
        return self.history

    def _train_epoch(
        self, passes: Passes, listeners: Any, *, is_first: bool
    ) -> dict[str, Any] | None:
        """Train on the batches of an epoch; None when there are none left."""
        interval = self._require_compiled("fit").config["steps_per_execution"]
        results: Any = None
        done = 0
        step: Step | None = None
        for batch in passes.epoch():
            if step is None:
                self._prepare(batch, training=True)
                step = self.make_train_function()
            if done % interval == 0:
                listeners.on_train_batch_begin(done)
            results = step(batch)
            done += 1
            if done == 1 and is_first:
                _check_first(results, batch)
            if done % interval == 0 or done == passes.steps:
                listeners.on_train_batch_end(done - 1, read_logs(results))
            if self.stop_training:
                break
        if done % interval and done != passes.steps:  # the last, shorter group
            listeners.on_train_batch_end(done - 1, read_logs(results))
        if done < (passes.steps or 1) and not self.stop_training:
            error = ran_out("fit", done, passes.steps or 1)
            if is_first:
                raise error
            warn(f"{error.message}: training ends here")
            self.stop_training = True
        return read_logs(results) if done else None

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
        passes = Passes(data, _limited_steps(steps))
        listeners = self._listeners(callbacks, verbose, epochs=1, steps=passes.num_steps)
        with listeners:
            logs = self._evaluate(passes, listeners)
        return self._results(logs, return_dict)

    def _results(self, logs: dict[str, Any], return_dict: bool) -> Any:
        if return_dict:
            return logs
        if len(logs) == 1:
            return next(iter(logs.values()))
        return in_order(logs, self.metrics_names)

    def _evaluate(self, passes: Passes, listeners: Any) -> dict[str, Any]:
        self.reset_metrics()
        self.stop_evaluating = False
        listeners.on_test_begin()
        results: Any = None
        done = 0
        step: Step | None = None
        for batch in passes.epoch():
            if step is None:
                self._prepare(batch, training=False)
                step = self.make_test_function()
            listeners.on_test_batch_begin(done)
            results = step(batch)
            listeners.on_test_batch_end(done, read_logs(results))
            done += 1
            if self.stop_evaluating:
                break
        _check_enough("evaluate", done, passes.steps, stopped=self.stop_evaluating)
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
        passes = Passes(data, _limited_steps(steps))
        listeners = self._listeners(callbacks, verbose, epochs=1, steps=passes.num_steps)
        self.stop_predicting = False
        step = self.make_predict_function()
        parts: list[Any] = []
        with listeners:
            listeners.on_predict_begin()
            for batch in passes.epoch():
                done = len(parts)
                listeners.on_predict_batch_begin(done)
                outputs = map_structure(np.asarray, step(batch))
                parts.append(outputs)
                listeners.on_predict_batch_end(done, {"outputs": outputs})
                if self.stop_predicting:
                    break
            _check_enough("predict", len(parts), passes.steps, stopped=self.stop_predicting)
            listeners.on_predict_end()
        return map_structure(_joined, *parts)

    def _listeners(
        self, callbacks: Any, verbose: Any, *, add_history: bool = False, **params: Any
    ) -> Any:
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        level = 1 if verbose == "auto" else verbose
        if level not in (0, 1, 2):
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
        """Train on one batch; gives the loss and the metrics of this batch, as `evaluate` does."""
        self._require_compiled("train_on_batch")
        batch = _one_batch(x, y, sample_weight, "train_on_batch", class_weight)
        self._prepare(batch, training=True)
        self.reset_metrics()
        return self._results(read_logs(self.make_train_function()(batch)), return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """The loss and the metrics of one batch, as `evaluate` gives them."""
        self._require_compiled("test_on_batch")
        batch = _one_batch(x, y, sample_weight, "test_on_batch")
        self._prepare(batch, training=False)
        self.reset_metrics()
        return self._results(read_logs(self.make_test_function()(batch)), return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as NumPy arrays."""
        batch = _one_batch(x, None, None, "predict_on_batch")
        return map_structure(np.asarray, self.make_predict_function()(batch))


def _one_batch(
    x: Any,
    y: Any,
    sample_weight: Any,
    who: str,
    class_weight: Mapping[int, float] | None = None,
) -> Batch:
    data = ArrayData(x, y, sample_weight, class_weight=class_weight, who=who)
    data.batch_size = data.size
    return next(iter(data))


def _validation(data: Any, batch_size: int | None) -> Data:
    who = "fit: validation_data"
    if isinstance(data, list | tuple):
        x, y, weight = unpack_x_y_sample_weight(tuple(data))
        return make_data(x, y, weight, batch_size=batch_size, who=who)
    return make_data(data, who=who)


def _split(data: Data, fraction: float, batch_size: int | None) -> tuple[Data, Data]:
    if not isinstance(data, ArrayData) or not 0 < fraction < 1:
        raise InvalidArgumentError(
            f"fit: validation_split must be between 0 and 1 and needs arrays, got {fraction!r}",
            remedy="use validation_data= for other data",
        )
    first, kept = data.split(fraction)
    kept.shuffle = False
    kept.batch_size = batch_size or kept.batch_size
    return first, kept


def _limited(what: str, count: int, most: int | None) -> int:
    """`count`, or less when a limit for trying scripts out says so."""
    if most is None or count <= most:
        return count
    warn(f"{what} is limited to {most}, as set in laminar.config")
    return most


def _limited_steps(steps: int | None) -> int | None:
    most = config.max_steps_per_epoch()
    if most is None:
        return steps
    return most if steps is None else _limited("steps_per_epoch", steps, most)


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


def _check_enough(who: str, done: int, steps: int | None, *, stopped: bool) -> None:
    """An error when there was no data, a warning when there was less than asked for."""
    if done >= (steps or 1) or (done and stopped):
        return
    error = ran_out(who, done, steps or 1)
    if not done:
        raise error
    warn(error.message)


def _check_counts(**counts: Any) -> None:
    for name, value in counts.items():
        least = 0 if name == "initial_epoch" else 1
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least
        ):
            raise InvalidArgumentError(
                f"fit: {name} must be a whole number of at least {least}, got {value!r}"
            )
