"""CSVLogger: the values of each epoch in a table file."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.io.places import make_folder
from laminar.engine.source import warn
from laminar.paths import file_name

from .callback import Callback, Logs


class CSVLogger(Callback):
    r"""Writes a row for each epoch: its number from 0, then the values by name.

    A value that is missing in an epoch is "NA"; an array is written as "[1.0, 2.0]".

    Args:
        filename: of the table; its folder is made if it is not there.
        separator: one character.
        append: whether to go on with an existing table, under its header, or to replace it.

    Raises:
        InvalidArgumentError: `separator` is not one character.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> log = laminar.callbacks.CSVLogger("log.csv")
        >>> history = model.fit(np.ones((8, 1)), np.ones((8, 1)), callbacks=[log], verbose=0)
        >>> import pathlib
        >>> pathlib.Path("log.csv").read_text().splitlines()[0]
        'epoch,loss,val_loss'
    """

    is_for_first = True

    def __init__(
        self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False
    ) -> None:
        super().__init__()
        if not isinstance(separator, str) or len(separator) != 1:
            raise InvalidArgumentError(
                f"CSVLogger: separator must be one character, got {separator!r}",
                remedy='separator=";" or separator="\\t"',
            )
        self.filename = file_name(filename, "CSVLogger")
        self.sep = separator
        self.append = append
        self._file: TextIO | None = None
        self._keys: list[str] | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        path = Path(self.filename)
        make_folder(path.parent, "CSVLogger")
        goes_on = self.append or self.params.get("resumed", False)
        self._keys = self._header(path) if goes_on else None
        self._file = path.open("a" if goes_on else "w", newline="")

    def get_state(self) -> Mapping[str, Any]:
        return {"bytes": os.path.getsize(self.filename), "keys": self._keys}

    def set_state(self, state: Mapping[str, Any]) -> None:
        assert self._file is not None, "on_train_begin opens it"
        # Without the rows of epochs that come again.
        self._file.truncate(min(state["bytes"], os.path.getsize(self.filename)))
        self._keys = state["keys"]

    def _header(self, path: Path) -> list[str] | None:
        """The names of the values in the table that there is, None when there is none."""
        if not path.exists():
            return None
        with path.open(newline="") as file:
            row = next(csv.reader(file, delimiter=self.sep), [])
        return row[1:] or None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        assert self._file is not None, "on_train_begin opens it"
        logs = logs or {}
        writer = csv.writer(self._file, delimiter=self.sep)
        if self._keys is None:
            self._keys = sorted(logs)
            if not any(key.startswith("val_") for key in logs):
                self._keys += [f"val_{key}" for key in self._keys]  # validation may come later
            writer.writerow(["epoch", *self._keys])
        elif new := [key for key in logs if key not in self._keys]:
            warn(
                f"CSVLogger: {self.filename} has no columns for {', '.join(new)}; they are left out"
            )
        writer.writerow([epoch, *(_cell(logs.get(key, "NA")) for key in self._keys)])
        self._file.flush()

    def on_train_end(self, logs: Logs | None = None) -> None:
        self.break_off()

    def break_off(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _cell(value: Any) -> Any:
    if isinstance(value, str) or not np.ndim(value):
        return value
    # With quotes of its own, as Keras writes it.
    return f'"[{", ".join(map(str, value))}]"'
