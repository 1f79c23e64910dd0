"""The epochs of `fit`: steps of training, validations between them, and what may interrupt both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from laminar.callbacks import CallbackList
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import warn
from laminar.engine.timeline import recorded
from laminar.optimizers import Optimizer

from . import training_state
from .arrays import nan_report
from .backup import Backup
from .counts import last_of_group
from .data import Epochs, ran_out
from .logs import read_logs
from .nan_check import NanCheck
from .step import close_step, prepare_step
from .worker_backup import WorkerBackup

Validate = Callable[[], dict[str, Any]]


class FitLoop:
    """One run of `fit`.

    Args:
        model: what is trained; it is compiled.
        passes: the batches.
        listeners: the callbacks.
        first: the number of the first epoch; `epochs` is that after the last one.
        validate: evaluates the model, None for no validation.
        validation_freq: after every so many epochs, or after those listed.
        backup: where the state is kept, None for nowhere.
        finds_nan: whether each step is looked through for what is not finite.
    """

    def __init__(
        self,
        model: Any,
        passes: Epochs,
        listeners: CallbackList,
        *,
        first: int,
        epochs: int,
        validate: Validate | None,
        validation_freq: int | Sequence[int],
        backup: Backup | WorkerBackup | None,
        finds_nan: bool,
    ) -> None:
        self._model = model
        self._passes = passes
        self._listeners = listeners
        self._first = first
        self._epochs = epochs
        self._validate = validate
        self._validation_freq = validation_freq
        self._backup = backup
        self._finds_nan = finds_nan
        self._interval = model.steps_per_execution
        self._epoch = first
        self._done = 0  # steps of the epoch
        self._logs: dict[str, Any] = {}
        self._step: Any = None

    def run(self) -> None:
        """Train; every epoch is told of to the callbacks."""
        try:
            self._run()
        except BaseException:
            if self._backup is not None:
                self._backup.interrupted()
            raise
        if self._backup is not None:
            self._backup.end()

    def _run(self) -> None:
        model, listeners = self._model, self._listeners
        model.stop_training = False
        saved = None if self._backup is None else self._backup.read()
        if saved is not None:
            listeners.set_params({**listeners.params, "resumed": True})
        with listeners:
            listeners.on_train_begin()
            if saved is not None:
                self._go_to(saved)
            while self._epoch < self._epochs and not model.stop_training:
                if not self._run_epoch(saved if self._done else None):
                    break
                self._epoch += 1
                self._done = 0
                if self._backup is not None and self._backup.is_due_at_epoch_end():
                    self._save()
            if self._backup is not None and not self._done:
                self._save()
            if _has_final_values(model.optimizer):
                model.optimizer.finalize_variable_values(model.trainable_weights)
            listeners.on_train_end(self._logs)

    def _run_epoch(self, saved: Mapping[str, Any] | None) -> bool:
        """Run an epoch, or the rest of one that was saved; False when there are no batches left."""
        model, listeners = self._model, self._listeners
        model.reset_metrics()
        listeners.watch(self._passes, self._done)
        listeners.on_epoch_begin(self._epoch)
        if saved is not None:  # after what callbacks do at the beginning of an epoch
            self._restore(saved)
        begin, waited = time.perf_counter(), self._passes.waited_seconds
        try:
            if not self._train():
                return False
        finally:
            close_step(self._step)  # also when an error ends the epoch
        waited = self._passes.waited_seconds - waited
        share = waited / (time.perf_counter() - begin)
        if self._validate is not None and _is_due(self._epoch, self._validation_freq):
            found = self._validate()
            self._logs |= {f"val_{name}": value for name, value in found.items()}
        listeners.on_epoch_end(self._epoch, self._logs)
        self._passes.epoch_is_told()
        model.history.waiting_on_data.append(share)
        return True

    def _train(self) -> bool:
        """Train on the batches of the epoch that are left; False when there are none."""
        model, listeners, passes = self._model, self._listeners, self._passes
        interval, steps = self._interval, passes.steps
        begun = done = self._done
        read: Callable[[], dict[str, Any]] = partial(dict, self._logs)
        step: Any = None
        backup = self._backup
        are_shown = listeners.sees_batches
        for batch in recorded(passes.epoch(), "step", done):
            if step is None:
                step = self._step_for(batch)
            if done % interval == 0:
                listeners.on_train_batch_begin(done)
            if are_shown:
                listeners.on_train_batch_data(done, batch)
            results = step(batch)
            done += 1
            read = partial(read_logs, results)
            if done == 1:
                self._check_first(results, batch)
            if done % interval == 0 or done == steps:
                listeners.on_train_batch_end(last_of_group(done, interval), read)
            if model.stop_training:
                break
            if backup is not None and backup.step_is_done() and self._may_save(done):
                self._done, self._logs = done, read()
                self._save()
        if done % interval and done != steps and done > begun:  # the last, shorter group
            listeners.on_train_batch_end(last_of_group(done, interval), read)
        if done < (steps or 1) and not model.stop_training:
            error = ran_out("fit", done, steps or 1)
            goes_on = done > 0 and not passes.data.ends_for_good
            if self._epoch == self._first and not goes_on:
                raise error
            warn(f"{error.message}: {'the epoch' if goes_on else 'training'} ends here")
            model.stop_training = not goes_on
        if done:
            self._logs = read()
        return done > 0

    def _step_for(self, batch: Any) -> Any:
        is_first = self._step is None
        self._model._laminar_prepare(batch, training=True)
        step = self._step = self._model.make_train_function()
        if is_first:
            self._passes.step_is_made(step, batch)
        num_steps = self._passes.num_steps if self._epoch + 1 == self._epochs else None
        prepare_step(step, batch, self._passes.batch_sizes, num_steps)
        if self._finds_nan:
            return NanCheck(self._model, step, self._epoch, self._done)
        return step

    def _check_first(self, results: Any, batch: Any) -> None:
        """When the first loss is NaN, say so if the data is why."""
        loss = results.get("loss") if isinstance(results, Mapping) else None
        if (
            self._epoch == self._first
            and loss is not None
            and np.ndim(loss) == 0
            and np.isnan(np.asarray(loss))
        ):
            report = nan_report(batch)
            if report is not None:
                raise InvalidArgumentError(
                    f"fit: {report}", remedy="fill or drop them first, as with numpy.nan_to_num"
                )

    # Resuming

    def _may_save(self, done: int) -> bool:
        """Whether the state may be written after this step: callbacks have heard of it, and the
        epoch goes on; at its end the state is written once the callbacks have heard of that."""
        return done % self._interval == 0 and done != self._passes.num_steps

    def _save(self) -> None:
        assert self._backup is not None, "asked by it"
        self._model._laminar_settle()
        self._backup.write(
            self._model,
            self._passes,
            self._listeners,
            epoch=self._epoch,
            step=self._done,
            logs=self._logs,
        )

    def _go_to(self, saved: Mapping[str, Any]) -> None:
        """Go to the place of a saved state; between two epochs, take it over at once."""
        self._epoch, self._done = int(saved["epoch"]), int(saved["step"])
        self._logs = dict(saved["logs"])
        training_state.seek(saved, self._passes, inside=self._done > 0)
        batch = self._passes.peek()
        if batch is None and not self._passes.data.ends_for_good:  # it stands at the end of a pass
            batch = self._passes.peek()
        if batch is not None:  # weights and slots have to be there before they are set
            self._model._laminar_prepare(batch, training=True)
            self._model.make_train_function().trace(batch)
        if not self._done:
            self._restore(saved)

    def _restore(self, saved: Mapping[str, Any]) -> None:
        training_state.put(saved, self._model, self._listeners.callbacks)
        if not self._passes.data.ends_for_good:  # the batch that was looked at is made again
            training_state.seek(saved, self._passes, inside=self._done > 0)


def _has_final_values(optimizer: Any) -> bool:
    """Whether the end of training changes weights: most optimizers keep no averages of them."""
    written = type(optimizer).finalize_variable_values is not Optimizer.finalize_variable_values
    return written or bool(optimizer.use_ema)


def _is_due(epoch: int, frequency: int | Sequence[int]) -> bool:
    if isinstance(frequency, int):
        return (epoch + 1) % frequency == 0
    return epoch + 1 in frequency
