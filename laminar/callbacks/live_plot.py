"""LivePlot: the curves of a training, while it goes on."""

from __future__ import annotations

import os
from pathlib import Path

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.io.places import make_folder
from laminar.utils.plotting import draw, has_matplotlib, sparklines

from .bars import is_notebook
from .callback import Callback, Logs
from .display import say
from .notebook_picture import NotebookPicture


class LivePlot(Callback):
    """Shows the values of the epochs as curves: what `fit(plot=...)` adds.

    In a notebook the picture is drawn anew after each epoch; elsewhere, or without matplotlib,
    the curves are printed as text when training has ended.

    Args:
        target: True, or the name of a file, where the picture is written after each epoch.

    Raises:
        InvalidArgumentError: something else.
        UnimplementedError: a file is named, and matplotlib is not installed.
    """

    is_for_first = True

    def __init__(self, target: bool | str | os.PathLike[str] = True) -> None:
        super().__init__()
        if target is not True and not isinstance(target, str | os.PathLike):
            raise InvalidArgumentError(
                f"fit: plot must be True or the name of a file, got {target!r}",
                remedy='plot=True, or plot="curves.png"',
            )
        self._path = None if target is True else Path(target)
        if self._path is not None and not has_matplotlib():
            draw([], {})  # says what is missing
        self._shown = NotebookPicture()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self._path is not None:
            make_folder(self._path.parent, "fit: plot")
            self._path.write_bytes(self._picture())
        elif is_notebook() and has_matplotlib():
            self._shown.show(self._picture())

    def on_train_end(self, logs: Logs | None = None) -> None:
        if not self._shown.is_shown and self.model.history.history:
            say(sparklines(self.model.history.history))

    def _picture(self) -> bytes:
        history = self.model.history
        return draw(history.epoch, history.history, self.model.name)
