"""ProgbarLogger: progress on the terminal or in a notebook, with tqdm."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .callback import Callback, Logs


class ProgbarLogger(Callback):
    """A bar for each epoch (verbose=1), or a line for each (verbose=2).

    The bar shows the batches done, the time to go and the values so far, and ends as one line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._bar: Any = None
        self._in_training = False
        self._epoch = 0

    @property
    def _level(self) -> int:
        return int(self.params.get("verbose", 1))

    def _open(self, total: int | None, label: str) -> None:
        self._close()
        if self._level == 1:
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=total,
                desc=label,
                unit="batch",
                file=sys.stdout,
                dynamic_ncols=True,
                leave=True,
                mininterval=0.1,
            )

    def _advance(self, logs: Logs | None) -> None:
        if self._bar is not None:
            done = self._bar.n + 1
            if done % _REFRESH == 0 or done == self._bar.total:
                self._bar.set_postfix_str(format_logs(logs), refresh=False)
            self._bar.update(1)

    def _close(self, logs: Logs | None = None) -> None:
        if self._bar is None:
            return
        if logs:
            self._bar.set_postfix_str(format_logs(logs), refresh=False)
        if self._bar.total is None:
            self._bar.total = self._bar.n
        self._bar.refresh()
        self._bar.close()
        self._bar = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._in_training = True

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch = epoch
        epochs = self.params.get("epochs", 1)
        self._open(self.params.get("steps"), f"Epoch {epoch + 1}/{epochs}")

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._advance(logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._close(logs)
        if self._level == 2:
            print(f"Epoch {epoch + 1}/{self.params.get('epochs', 1)} - {format_logs(logs)}")

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._close()
        self._in_training = False

    def on_test_begin(self, logs: Logs | None = None) -> None:
        if not self._in_training:
            self._open(self.params.get("steps"), "Evaluate")

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if not self._in_training:
            self._advance(logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        if self._in_training:
            return
        self._close(logs)
        if self._level == 2:
            print(f"Evaluate - {format_logs(logs)}")

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._open(self.params.get("steps"), "Predict")

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._advance(None)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._close()


# Writing the values out takes longer than a small step: not each one is shown.
_REFRESH = 8


def format_logs(logs: Logs | None) -> str:
    """The values as "loss=0.123, accuracy=0.987"."""
    return ", ".join(f"{name}={_short(value)}" for name, value in (logs or {}).items())


def _short(value: Any) -> str:
    array = np.asarray(value)
    if array.size == 1:
        number = float(array.reshape(()))
        return f"{number:.4f}" if number == 0 or 1e-3 <= abs(number) < 1e5 else f"{number:.3e}"
    return np.array2string(array, precision=4, threshold=4)
