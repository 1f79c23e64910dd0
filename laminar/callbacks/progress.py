"""ProgbarLogger: progress of training, evaluation and prediction."""

from __future__ import annotations

from typing import Any

from laminar import metrics

from .callback import Callback, LazyLogs, Logs
from .display import Display, Flow


class ProgbarLogger(Callback):
    """Shows a bar while an epoch runs, and leaves a line for each (verbose=1).

    With verbose=2, and where the output is neither a terminal nor a notebook, there is the line
    alone; with verbose=0 nothing. The validation inside an epoch is part of its bar and line.

    Examples:
        >>> isinstance(
        ...     laminar.callbacks.ProgbarLogger(), laminar.callbacks.Callback
        ... )  # `fit` makes one
        True
    """

    reads_logs_later = True

    is_for_first = True

    def __init__(self) -> None:
        super().__init__()
        self._display: Display | None = None
        self._steps: int | None = None
        self._is_training = False
        self._flow: Flow | None = None
        self._done_before = 0

    def watch(self, flow: Flow, begin: int = 0) -> None:
        """Show of the next epoch or loop how its batches flow; `begin` of its steps are done."""
        self._flow, self._done_before = flow, begin

    @property
    def _level(self) -> int:
        level = self.params.get("verbose", 1)
        return 1 if level == "auto" else int(level)

    def _open(self, label: str) -> None:
        if self._level:
            self._display = Display(
                label,
                self._steps,
                has_bar=self._level == 1,
                flow=self._flow,
                averaged=_means(self.model),
                begin=self._done_before,
            )
        self._done_before = 0

    def _advance(self, batch: int, logs: LazyLogs) -> None:
        if self._display is not None:
            done = batch + 1  # of a last, shorter group of steps: more than there are
            self._display.advance(min(done, self._steps or done), logs)

    def _finish(self, logs: Logs | None) -> None:
        if self._display is not None:
            self._steps = self._steps or self._display.done
            self._display.finish(logs)
            self._display = None

    def hide_bar(self) -> None:
        """Take the bar away, as others are about to print."""
        if self._display is not None:
            self._display.hide_bar()

    def break_off(self) -> None:
        """End what is shown where it is, if it has not ended."""
        if self._display is not None:
            self._display.finish(note=" - interrupted")
            self._display = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._is_training = True
        self._steps = self.params.get("steps")

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        epochs = str(self.params.get("epochs", 1))
        self._open(f"Epoch {str(epoch + 1).rjust(len(epochs))}/{epochs}")

    def on_train_batch_end(self, batch: int, logs: LazyLogs = None) -> None:
        self._advance(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._finish(logs)

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._is_training = False
        self.break_off()

    def on_test_begin(self, logs: Logs | None = None) -> None:
        if self._is_training:
            self._note("validating")
        else:
            self._begin("Evaluate")

    def on_test_batch_end(self, batch: int, logs: LazyLogs = None) -> None:
        if self._is_training:
            self._note(f"validating {batch + 1}")
        else:
            self._advance(batch, logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        if not self._is_training:
            self._finish(logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._begin("Predict")

    def on_predict_batch_end(self, batch: int, logs: LazyLogs = None) -> None:
        self._advance(batch, None)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._finish(None)

    def _begin(self, label: str) -> None:
        self._steps = self.params.get("steps")
        self._open(label)

    def _note(self, text: Any) -> None:
        if self._display is not None:
            self._display.note(text)


def _means(model: Any) -> list[str]:
    """The names of the metrics that are means over the steps."""
    return [m.name for m in getattr(model, "metrics", ()) if isinstance(m, metrics.Mean)]
