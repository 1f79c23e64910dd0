"""The loops over data: fit, evaluate, predict, and single batches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from laminar import callbacks as callbacks_module
from laminar import config
from laminar.callbacks import BackupAndRestore
from laminar.callbacks.live_plot import LivePlot
from laminar.callbacks.timeline_events import TimelineEvents
from laminar.distribute import DataParallel
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.engine.timeline import Recording, recorded
from laminar.tree import flatten, map_structure

from ..callbacks.callback_list import CallbacksLike
from ..training.backup import make_backup
from ..training.compile_report import CompileReport
from ..training.counts import (
    check_counts,
    check_enough,
    check_frequency,
    last_of_group,
    limited,
    limited_steps,
)
from ..training.data import Data, Epochs, make_data, require_end, unpack_x_y_sample_weight
from ..training.dry_run import dry_run as run_dry
from ..training.explanation import Explanation
from ..training.fit_data import first_batches, make_validation_data, one_batch, split_data
from ..training.fit_loop import FitLoop
from ..training.logs import read_logs
from ..training.profile import Profile, profile_model
from ..training.step import Step, close_step, prepare_step
from ..training.streams import Stream
from ..training.training_steps import TrainingSteps
from ..training.worker_backup import WorkerBackup
from ..training.worker_epochs import WorkerEpochs
from ..typing import DataLike, TensorStructure, Verbose


class Trainer(TrainingSteps):
    """What a model gains by being trained: its loops over data. Abstract: models derive from it."""

    history: Any

    def fit(
        self,
        x: DataLike | None = None,
        y: TensorStructure | None = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Verbose = "auto",
        callbacks: CallbacksLike | None = None,
        validation_split: float = 0.0,
        validation_data: DataLike | None = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: TensorStructure | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
        *,
        resume: str | os.PathLike[str] | None = None,
        check: str | None = None,
        dry_run: bool = False,
        overfit_batches: int | None = None,
        plot: bool | str | os.PathLike[str] = False,
        devices: int | Sequence[str] | None = None,
    ) -> Any:
        """Train the model.

        Args:
            x: arrays (one, a list or a dict; also pandas frames), or what yields batches: a
                Dataset, a PyDataset, a generator, a DataLoader of PyTorch, any iterable.
            y: targets, for arrays.
            batch_size: examples in a step; by default 32, or the share of arrays that makes as many
                steps as are asked for.
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
            resume: a folder for the state of this training: run again after it was interrupted,
                wherever it was, `fit` goes on from there, on a CPU with the same bits.
            check: "nan" looks through each step, and names the operation, the layer and the batch
                that first gave something that is not finite.
            dry_run: whether to run only one batch of training, and one of validation, print a
                report (shapes, times, the update), and set everything back. No callback is told.
            overfit_batches: train on so many batches alone, the same ones in each epoch, to see
                whether the model can learn them at all.
            devices: how many devices share the work on each batch (or their names), from now on,
                as `compile(strategy=DataParallel(devices))` has it.
            plot: whether to show the values of the epochs as curves: in a notebook while training
                goes on, else as text at the end; or the name of a file for a picture of them.

        Returns:
            History: `.history[name]` has one value for each epoch.

        Raises:
            InvalidArgumentError: data that does not fit together, is empty or holds NaN; `devices`
                where several processes share the work.
            FailedPreconditionError: with `check`, a value that is not finite; with `resume`, a
                folder that another training has used.
            OutOfRangeError: the data ends in the first epoch, before `steps_per_epoch`. When it
                ends later, training ends with a warning.
        """
        self._laminar_require_compiled("fit")
        if devices is not None:
            if self._laminar_workers is not None:
                raise InvalidArgumentError(
                    f"fit: devices={devices!r} shares the work among devices of one process, and "
                    f"{self._laminar_workers.num_replicas} processes share it already",
                    remedy="leave devices out, or start more processes: laminar launch -n",
                )
            self._laminar_share_work(DataParallel(devices))
        check_counts(
            "fit",
            epochs="none" if epochs is None else epochs,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps,
            validation_batch_size=validation_batch_size,
            overfit_batches=overfit_batches,
        )
        check_frequency(validation_freq)
        epochs = limited("epochs", epochs, config.max_epochs())
        data = make_data(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            steps=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
            who="fit",
        )
        validation: Data | None = None
        if validation_data is not None:
            validation = make_validation_data(
                validation_data, validation_batch_size or batch_size, validation_steps
            )
        elif validation_split:
            data, validation = split_data(
                data, validation_split, steps_per_epoch, validation_batch_size, validation_steps
            )
        if overfit_batches is not None:
            data = first_batches(data, overfit_batches)
        require_end(data, limited_steps(steps_per_epoch), "fit", "steps_per_epoch")
        for_validation = limited_steps(validation_steps)
        require_end(validation, for_validation, "fit: validation_data", "validation_steps")
        passes = self._laminar_epochs("train", data, limited_steps(steps_per_epoch))
        if dry_run:
            tested = None if validation is None else self._laminar_epochs("test", validation)
            return self._laminar_dry_run(passes, tested)
        listeners = self._laminar_listeners(
            callbacks,
            verbose,
            add_history=True,
            epochs=epochs,
            steps=passes.num_steps,
        )

        if plot and (self._laminar_workers is None or self._laminar_workers.is_first):
            listeners.append(LivePlot(plot))

        def validate() -> dict[str, Any]:
            assert validation is not None, "called when there is some"
            with self._laminar_epochs("test", validation, for_validation) as batches:
                return self._laminar_evaluate(batches, listeners)

        with passes:
            FitLoop(
                self,
                passes,
                listeners,
                first=initial_epoch,
                epochs=epochs,
                validate=None if validation is None else validate,
                validation_freq=validation_freq,
                backup=self._laminar_backup(resume, listeners),
                finds_nan=_finds_nan(check),
            ).run()
        return self.history

    def _laminar_epochs(self, kind: str, data: Data, steps: int | None = None) -> Epochs:
        """The batches of a loop, for this process or for all that share the work."""
        workers = self._laminar_workers
        if workers is None:
            is_shared = self._laminar_devices is not None
            if isinstance(data, Stream) and not is_shared and self._laminar_has_own_step(kind):
                data.allow_uneven()
            return Epochs(data, steps)
        return WorkerEpochs(data, steps, kind=kind, model=self, strategy=workers)

    def _laminar_backup(self, resume: Any, listeners: Any) -> Any:
        """Where the state of a training is kept, None for nowhere."""
        workers = self._laminar_workers
        if workers is None:
            return make_backup(resume, listeners)
        backup = make_backup(resume, listeners, is_first=workers.is_first)
        kept = resume is not None or any(isinstance(c, BackupAndRestore) for c in listeners)
        return WorkerBackup(backup, workers) if kept else None

    def _laminar_dry_run(self, passes: Epochs, validation: Epochs | None) -> Any:
        history = callbacks_module.History()
        history.set_model(self)
        history.on_epoch_end(0, run_dry(self, passes, validation))
        return history

    def explain_compiles(self) -> CompileReport:
        """List what was compiled for this model's steps so far, with the reason of each.

            model.fit(x, y)
            print(model.explain_compiles())

        A step is compiled when it is first run on batches of some form. Another batch size compiles
        nothing: it uses the kernels that are loaded, and gives the same results as with
        some made for it. `fit`, `evaluate` and `predict` have the best ones for the size of their
        batches made before they begin, the first time with those of the last, shorter batch.

        Where other sizes change, such as the length of sequences, the second one met is the last
        that something is compiled for: the step is traced once more, for any. But where that does
        not work (a layer asks for the number), or makes slower steps (convolutions and pooling are
        compiled for images of one size), each has its own.

        Returns:
            CompileReport: a list of (step, event); an event has `cluster`, `reason`, `inputs`,
            `num_kernels`, `kernels` and `seconds`. Printed, a line for each.
        """
        return CompileReport(
            (name, event)
            for name, step in self._laminar_traced_steps().items()
            for event in getattr(step, "compiles", ())
        )

    def explain(self, x: TensorStructure | None = None) -> Explanation:
        """Show what the native code of this model's steps computes, kernel by kernel.

            model.fit(x, y)
            print(model.explain())

        A row has the layers and operations that a kernel is for, the functions that it computes and
        on which sizes, the bytes that it reads and writes (of each array once, as if caches held
        it), multiplications and additions (a function such as exp counts as its instructions), the
        rows and columns of a product that registers hold at once, whether threads share it, and its
        time: the median of some runs on one thread, of each kernel by itself, with some 0.5 us for
        each call, on copies of the variables and random inputs. Kernels inside of loops have no
        times of their own; loops whose end depends on data have none.

        Args:
            x: a batch of inputs: what the model computes of it is shown. None: the steps that
                `fit`, `evaluate` and `predict` have run, for the sizes that they began with.

        Returns:
            Explanation: a list of (step, table); a table has `kernels`, `num_bytes`, `flops`,
            `arena_bytes` and `seconds`, and so has each of its kernels. Printed, the tables. It is
            empty where nothing has been compiled.
        """
        steps: Mapping[str, Any] = self._laminar_traced_steps()
        if x is not None:
            (batch, _, _) = unpack_x_y_sample_weight(one_batch(x, None, None, "explain"))
            native = self.jit_compile is not False
            step = Step(lambda given: self(given, training=False), eager=False, native=native)
            step(batch)
            steps = {"call": step}
        return Explanation(
            (name, table) for name, step in steps.items() for table in getattr(step, "kernels", ())
        )

    def _laminar_traced_steps(self) -> dict[str, Any]:
        """The steps made so far, by name."""
        steps = {} if self._laminar_compiled is None else dict(self._laminar_compiled.steps)
        if self._laminar_predict_step is not None:
            steps["predict"] = self._laminar_predict_step
        return steps

    def profile(self, x: TensorStructure, training: bool = False) -> Profile:
        """Find out where the time and the memory of the model go.

            print(model.profile(x[:32]))

        Each layer is compiled and run by itself on what it gets in the model, and so is the model
        as a whole, in which layers may run together.

        Args:
            x: one batch of inputs.
            training: whether layers are called as in training.

        Returns:
            Profile: `.layers`, `.seconds`; printed, a table.
        """
        (batch, _, _) = unpack_x_y_sample_weight(one_batch(x, None, None, "profile"))
        return profile_model(self, batch, training=training)

    def evaluate(
        self,
        x: DataLike | None = None,
        y: TensorStructure | None = None,
        batch_size: int | None = None,
        verbose: Verbose = "auto",
        sample_weight: TensorStructure | None = None,
        steps: int | None = None,
        callbacks: CallbacksLike | None = None,
        return_dict: bool = False,
    ) -> Any:
        """The loss and the metrics on data.

        Args: as those of `fit`.

        Returns:
            The loss when there are no metrics, else a list in the order of `metrics_names`, or a
            dict with `return_dict`.
        """
        self._laminar_require_compiled("evaluate")
        check_counts("evaluate", steps=steps)
        data = make_data(x, y, sample_weight, batch_size=batch_size, steps=steps, who="evaluate")
        require_end(data, limited_steps(steps), "evaluate", "steps")
        passes = self._laminar_epochs("test", data, limited_steps(steps))
        listeners = self._laminar_listeners(callbacks, verbose, epochs=1, steps=passes.num_steps)
        listeners.watch(passes)
        with passes, listeners:
            logs = self._laminar_evaluate(passes, listeners)
        return self._laminar_results(logs, return_dict)

    def _laminar_results(self, logs: dict[str, Any], return_dict: bool) -> Any:
        if return_dict:
            return logs
        if len(logs) == 1:
            return next(iter(logs.values()))
        return self._laminar_values_of(logs)

    def _laminar_evaluate(self, passes: Epochs, listeners: Any) -> dict[str, Any]:
        self.reset_metrics()
        self.stop_evaluating = False
        interval = self.steps_per_execution
        listeners.on_test_begin()
        results: Any = None
        done = told = 0
        step: Step | None = None
        for batch in recorded(passes.epoch(), "evaluation"):
            if step is None:
                self._laminar_prepare(batch, training=False)
                step = self.make_test_function()
                passes.step_is_made(step, batch)
                prepare_step(step, batch, passes.batch_sizes, passes.num_steps)
            if done % interval == 0:
                listeners.on_test_batch_begin(done)
            results = step(batch)
            done += 1
            if done % interval == 0:
                told = done
                listeners.on_test_batch_end(done - 1, partial(read_logs, results))
            if self.stop_evaluating:
                break
        if done > told:  # the last, shorter group
            listeners.on_test_batch_end(last_of_group(done, interval), partial(read_logs, results))
        check_enough("evaluate", done, passes.steps, stopped=self.stop_evaluating)
        logs = read_logs(results)
        listeners.on_test_end(logs)
        return logs

    def predict(
        self,
        x: DataLike,
        batch_size: int | None = None,
        verbose: Verbose = "auto",
        steps: int | None = None,
        callbacks: CallbacksLike | None = None,
    ) -> Any:
        """The outputs for data, as NumPy arrays in the structure of the model's outputs.

        Args: as those of `fit`.
        """
        check_counts("predict", steps=steps)
        data = make_data(x, batch_size=batch_size, steps=steps, who="predict")
        require_end(data, limited_steps(steps), "predict", "steps")
        passes = self._laminar_epochs("predict", data, limited_steps(steps))
        listeners = self._laminar_listeners(callbacks, verbose, epochs=1, steps=passes.num_steps)
        listeners.watch(passes)
        self.stop_predicting = False
        step = self.make_predict_function()
        interval = self.steps_per_execution
        parts: list[Any] = []
        told = 0
        with passes, listeners:
            listeners.on_predict_begin()
            for batch in recorded(passes.epoch(), "prediction"):
                if not parts:
                    passes.step_is_made(step, batch)
                    prepare_step(step, batch, passes.batch_sizes, passes.num_steps)
                if len(parts) == told:
                    listeners.on_predict_batch_begin(told)
                parts.append(_on_host(step(batch)))
                if len(parts) - told == interval:
                    _tell_outputs(listeners, parts, told, interval)
                    told = len(parts)
                if self.stop_predicting:
                    break
            if len(parts) > told:  # the last, shorter group
                _tell_outputs(listeners, parts, told, interval)
            check_enough("predict", len(parts), passes.steps, stopped=self.stop_predicting)
            listeners.on_predict_end()
        return (
            _joined(*parts) if isinstance(parts[0], np.ndarray) else map_structure(_joined, *parts)
        )

    def _laminar_listeners(
        self,
        callbacks: CallbacksLike | None,
        verbose: Verbose,
        *,
        add_history: bool = False,
        **params: Any,
    ) -> Any:
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        level = 1 if verbose == "auto" else verbose
        if level not in (0, 1, 2):
            raise InvalidArgumentError(f"verbose must be 0, 1, 2 or 'auto', got {verbose!r}")
        if self._laminar_workers is not None and not self._laminar_workers.is_first:
            level = 0
            gathers = self._laminar_workers.keeps_pieces  # all take part in saving
            callbacks = [
                c
                for c in flatten(callbacks)
                if not getattr(c, "is_for_first", False)
                or (gathers and getattr(c, "saves_model", False))
            ]
        listeners = callbacks_module.CallbackList(
            callbacks,
            add_history=add_history,
            add_progbar=bool(level),
            model=self,
            verbose=int(level),
            **params,
        )
        if Recording.active is not None:
            listeners.append(TimelineEvents())
        return listeners

    # One batch

    def train_on_batch(
        self,
        x: TensorStructure,
        y: TensorStructure | None = None,
        sample_weight: TensorStructure | None = None,
        class_weight: Mapping[int, float] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Train on one batch; gives the loss and the metrics of this batch, as `evaluate` does."""
        self._laminar_require_compiled("train_on_batch")
        batch = one_batch(x, y, sample_weight, "train_on_batch", class_weight)
        self._laminar_prepare(batch, training=True)
        self.reset_metrics()
        step = self.make_train_function()
        try:
            return self._laminar_results(read_logs(step(batch)), return_dict)
        finally:
            close_step(step)

    def test_on_batch(
        self,
        x: TensorStructure,
        y: TensorStructure | None = None,
        sample_weight: TensorStructure | None = None,
        return_dict: bool = False,
    ) -> Any:
        """The loss and the metrics of one batch, as `evaluate` gives them."""
        self._laminar_require_compiled("test_on_batch")
        batch = one_batch(x, y, sample_weight, "test_on_batch")
        self._laminar_prepare(batch, training=False)
        self.reset_metrics()
        return self._laminar_results(read_logs(self.make_test_function()(batch)), return_dict)

    def predict_on_batch(self, x: TensorStructure) -> Any:
        """The outputs for one batch, as NumPy arrays."""
        batch = one_batch(x, None, None, "predict_on_batch")
        return _on_host(self.make_predict_function()(batch))


def _tell_outputs(listeners: Any, parts: list[Any], told: int, interval: int) -> None:
    """Tell of the outputs since `told` batches, read if somebody wants them."""
    new = parts[told:]
    listeners.on_predict_batch_end(
        last_of_group(len(parts), interval),
        lambda: {"outputs": new[0] if len(new) == 1 else map_structure(_joined, *new)},
    )


def _on_host(outputs: Any) -> Any:
    """Outputs as NumPy arrays; the common form, one tensor, without a walk over it."""
    if isinstance(outputs, EagerTensor):
        return outputs.__array__()
    return map_structure(np.asarray, outputs)


def _joined(*parts: Any) -> Any:
    return parts[0].copy() if len(parts) == 1 else np.concatenate(parts)


def _finds_nan(check: str | None) -> bool:
    if check not in (None, "nan"):
        raise InvalidArgumentError(
            f"fit: check must be None or 'nan', got {check!r}", remedy="check='nan'"
        )
    return check == "nan"
