"""ModelCheckpoint: save the model, or its weights, while it is trained."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.engine.io.places import make_folder
from laminar.engine.saving import BackgroundWriter
from laminar.engine.source import warn
from laminar.paths import file_name

from .callback import Logs
from .checks import check_whole
from .display import say
from .monitor import MonitorCallback


class ModelCheckpoint(MonitorCallback):
    """Saves the model, or its weights, after each epoch or after so many batches.

    Args:
        filepath: ends in ".keras", or in ".weights.h5" or ".ckpt" with `save_weights_only`; what
            ends in ".ckpt" is the prefix of a checkpoint in TensorFlow's format, written beside the
            steps that follow and whole when training ends. It may name values in braces:
            "{epoch:02d}-{val_loss:.2f}.keras" (epochs from 1, and "{batch}" with a number as
            `save_freq`). Its folder is made if it is not there.
        monitor: name of the value in the logs that says which model is the best.
        verbose: 1 to print when something is saved, or not.
        save_best_only: whether to save only when the value is better than any before.
        save_weights_only: whether to save the weights (`model.save_weights`) or all of the model
            (`model.save`).
        mode: "min" where less is better, "max" where more is, "auto" to find out.
        save_freq: "epoch", or the number of batches after which to save.
        initial_value_threshold: with `save_best_only`, only save what is better than this.

    Attributes:
        best: the best value so far; it stays from one `fit` to the next, and in a training that is
            resumed, with `fit(resume=...)` or `BackupAndRestore`. A new process begins without one.

    Raises:
        InvalidArgumentError: another kind of file, or an argument out of range.
        NotFoundError: `filepath` names a value that is not logged.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> keep = laminar.callbacks.ModelCheckpoint(
        ...     "best.keras", monitor="loss", save_best_only=True
        ... )
        >>> history = model.fit(np.ones((8, 1)), np.ones((8, 1)), callbacks=[keep], verbose=0)
        >>> laminar.saving.load_model("best.keras").output_shape
        (None, 1)
    """

    reads_logs_later = True

    is_for_first = True
    saves_model = True

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: int | str = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode, initial_value_threshold)
        self.filepath = file_name(filepath, "ModelCheckpoint")
        self.verbose = verbose
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self.save_freq = save_freq
        ending = ".weights.h5" if save_weights_only else ".keras"
        self._is_checkpoint = save_weights_only and self.filepath.endswith(".ckpt")
        self._writer = BackgroundWriter()
        if not self.filepath.endswith(ending) and not self._is_checkpoint:
            other = self.filepath.endswith(".weights.h5")
            raise InvalidArgumentError(
                f"ModelCheckpoint: with save_weights_only={save_weights_only} the file must end "
                f"in {ending}, got {self.filepath!r}",
                remedy="pass save_weights_only=True" if other else f"name it 'model{ending}'",
            )
        if save_freq != "epoch":
            if isinstance(save_freq, str):
                raise InvalidArgumentError(
                    f"ModelCheckpoint: save_freq must be 'epoch' or a number of batches, "
                    f"got {save_freq!r}",
                    remedy="save_freq='epoch'",
                )
            check_whole(self.who, 1, save_freq=save_freq)
        self._epoch = 0
        self._last_batch = -1
        self._batches_since_saving = 0

    def get_state(self) -> Mapping[str, Any]:
        return {
            "best": self.best,
            "last_batch": self._last_batch,
            "batches_since_saving": self._batches_since_saving,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.best = state["best"]
        self._last_batch = state["last_batch"]
        self._batches_since_saving = state["batches_since_saving"]

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch = epoch
        self._last_batch = -1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if isinstance(self.save_freq, str):
            return
        self._batches_since_saving += batch - self._last_batch  # some are told of together
        self._last_batch = batch
        if self._batches_since_saving >= self.save_freq:
            self._batches_since_saving = 0
            settle = getattr(self.model, "_laminar_settle", None)  # those of laminar's own class
            if settle is not None:
                settle()
            self._save(self._epoch, batch, logs() if callable(logs) else logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.save_freq == "epoch":
            self._save(epoch, None, logs or {})

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._writer.wait()

    def _save(self, epoch: int, batch: int | None, logs: Logs) -> None:
        path = self._path(epoch, batch, logs)
        if not self._is_wanted(epoch, logs, path):
            return
        if os.path.isdir(path):
            raise InvalidArgumentError(
                f"ModelCheckpoint: {path} is a folder, expected the name of a file",
                remedy="remove the folder, or choose another filepath",
            )
        make_folder(os.path.dirname(path) or ".", "ModelCheckpoint")
        if self._is_checkpoint:
            self.model.save_weights(path, overwrite=True, background=self._writer)
        elif self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)
        self._report(epoch, f"finished saving model to {path}")

    def _path(self, epoch: int, batch: int | None, logs: Logs) -> str:
        values = {"epoch": epoch + 1} | ({} if batch is None else {"batch": batch + 1}) | logs
        try:
            return self.filepath.format(**values)
        except KeyError as cause:
            raise NotFoundError(
                f"ModelCheckpoint: the filepath {self.filepath!r} names {cause}, which is not "
                f"among the values {', '.join(values)}",
                remedy="name one of these in the braces",
            ) from cause
        except (ValueError, IndexError, TypeError, AttributeError) as cause:
            raise InvalidArgumentError(
                f"ModelCheckpoint: the filepath {self.filepath!r} cannot be filled in: {cause}",
                remedy="write braces as in '{epoch:02d}-{val_loss:.2f}.keras'",
            ) from cause

    def _is_wanted(self, epoch: int, logs: Logs, path: str) -> bool:
        """Whether to save now; a value that cannot be compared is no reason to lose the model."""
        if not self.save_best_only:
            self._report(epoch, f"saving model to {path}")
            return True
        if np.size(logs.get(self.monitor, 0)) != 1:
            warn(
                f"ModelCheckpoint: {self.monitor!r} is not one number, so nothing says which "
                f"model is best; each one is saved"
            )
            return True
        value = self.get_monitor_value(logs)
        if value is None:
            return True
        best = "None" if self.best is None else f"{self.best:.5f}"
        if not self.is_improvement(value, self.best):
            self._report(epoch, f"{self.monitor} did not improve from {best}")
            return False
        self._report(
            epoch, f"{self.monitor} improved from {best} to {value:.5f}, saving model to {path}"
        )
        self.best = value
        return True

    def _report(self, epoch: int, text: str) -> None:
        if self.verbose:
            say(f"Epoch {epoch + 1}: {text}")
