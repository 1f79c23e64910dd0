"""SwapEMAWeights: evaluate with the averages that the optimizer keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import FailedPreconditionError

from .callback import Callback, Logs
from .learning_rates import rated


class SwapEMAWeights(Callback):
    """Puts the moving averages of the weights in place for evaluation and prediction.

    The weights and the averages, which an optimizer with `use_ema=True` keeps, change places, and
    change back afterwards.

    Args:
        swap_on_epoch: whether the averages stay in place from the end of an epoch to the beginning
            of the next one, so that callbacks that come after this one save them.

    Raises:
        FailedPreconditionError: the optimizer keeps no averages.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile(laminar.optimizers.SGD(0.1, use_ema=True), "mse")
        >>> swap = laminar.callbacks.SwapEMAWeights()
        >>> history = model.fit(np.ones((8, 1)), np.ones((8, 1)), callbacks=[swap], verbose=0)
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        super().__init__()
        self.swap_on_epoch = swap_on_epoch

    def _optimizers(self) -> list[Any]:
        """The optimizers with averages, checked anew: a model may be compiled again."""
        found = [] if self.model.optimizer is None else rated(self.model)
        found = [optimizer for optimizer in found if optimizer.use_ema]
        if not found:
            raise FailedPreconditionError(
                "SwapEMAWeights: the optimizer keeps no averages of the weights",
                remedy="make it with use_ema=True, as Adam(use_ema=True), and compile with it",
            )
        return found

    def get_state(self) -> Mapping[str, Any]:
        return {"in_place": self._optimizers()[0]._laminar_averages_in_place}

    def set_state(self, state: Mapping[str, Any]) -> None:
        # The variables, which stand as they stood, are set by themselves.
        for optimizer in self._optimizers():
            optimizer._laminar_averages_in_place = bool(state["in_place"])

    def _put_averages(self, in_place: bool) -> None:
        for optimizer in self._optimizers():
            optimizer.swap_averages(in_place)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._put_averages(False)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._put_averages(False)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._put_averages(True)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._put_averages(False)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._put_averages(True)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._put_averages(False)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._put_averages(True)
