"""The files that a training is resumed from: numbered, several kept, each whole or not there.

A file is an archive of the kind that models are saved in, read by the same guarded reader: JSON for
the structure, and the arrays beside it.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.engine.source import warn
from laminar.engine.state import Variable
from laminar.paths import make_folder

_NAME = re.compile(r"state-(\d{10})\.ckpt")
_TEMPORARY = re.compile(r"\.state-\d{10}\.ckpt\.[0-9a-f]{16}\.tmp")
_FORMAT = 1


class StateFiles:
    """The files of one folder.

    Args:
        folder: made if it is not there.
        keep: how many of the newest files stay.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3) -> None:
        self.folder = Path(folder)
        self._keep = keep
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidArgumentError(
                f"fit: resume: {os.fspath(folder)!r} is a file, expected a folder",
                remedy="name a folder, which need not be there yet",
            )
        make_folder(folder, "fit: resume")

    def _paths(self) -> list[Path]:
        """The files, the newest first."""
        if not self.folder.is_dir():
            return []
        return sorted((p for p in self.folder.iterdir() if _NAME.fullmatch(p.name)), reverse=True)

    def write(self, number: int, state: Mapping[str, Any]) -> None:
        """Write a file and remove the old ones."""
        from laminar.saving.archive import write_archive  # it imports this room

        make_folder(self.folder, "fit: resume")  # it may be gone since
        arrays: list[Any] = []
        config = {"training_state": _FORMAT, "state": encode(state, arrays)}
        path = self.folder / f"state-{number:010}.ckpt"
        write_archive(path, config, {}, {"arrays": arrays})
        for old in self._paths()[self._keep :]:
            old.unlink(missing_ok=True)

    def latest(self, check: Callable[[Any], None]) -> dict[str, Any] | None:
        """The newest state that can be read and that passes `check`, None when there is none.

        A file that cannot be read is passed over with a warning, as an older one will do.
        """
        self._clean()
        for path in self._paths():
            try:
                state = self._read(path)
                check(state)
                return state
            except DataLossError as error:
                warn(f"fit: resume: {path} is passed over: {error.message}")
        return None

    def _read(self, path: Path) -> dict[str, Any]:
        from laminar.saving.archive import open_archive  # it imports this room

        with open_archive(path) as archive, archive.weights() as weights:
            config = archive.config
            if config.get("training_state") != _FORMAT or "state" not in config:
                raise DataLossError(f"{path}: it is not a state of a training")
            arrays = list(weights.variables("arrays").values())
            state = decode(config["state"], arrays)
        if not isinstance(state, dict):
            raise DataLossError(f"{path}: it is not a state of a training")
        return state

    def _clean(self) -> None:
        """Remove what a process left that was killed while it wrote."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if _TEMPORARY.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def delete(self) -> None:
        """Remove all files, and the folder if nothing else is in it."""
        self._clean()
        for path in self._paths():
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def encode(value: Any, arrays: list[Any]) -> Any:
    """A structure of values as JSON; arrays are put into `arrays`, and their places into the JSON.

    Raises:
        InvalidArgumentError: a value of another kind.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"__number__": repr(value)}
    if isinstance(value, np.ndarray | EagerTensor | Variable):
        arrays.append(np.asarray(value))
        return {"__array__": len(arrays) - 1}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: encode(part, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [encode(part, arrays) for part in value]
    raise InvalidArgumentError(
        f"fit: resume: a state holds {value!r:.80} of type {type(value).__name__}",
        remedy="let get_state() give None, bool, numbers, strings, arrays, and lists and dicts "
        "of these with strings as keys",
    )


def decode(value: Any, arrays: list[Any]) -> Any:
    """What `encode` was given, with lists in the place of tuples."""
    if isinstance(value, list):
        return [decode(part, arrays) for part in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"__array__"}:
        place = value["__array__"]
        if not isinstance(place, int) or not 0 <= place < len(arrays):
            raise DataLossError(f"a state names array {place!r}, of {len(arrays)}")
        return arrays[place]
    if value.keys() == {"__number__"}:
        if value["__number__"] not in ("nan", "inf", "-inf"):
            raise DataLossError(f"a state holds the number {value['__number__']!r:.40}")
        return float(value["__number__"])
    return {key: decode(part, arrays) for key, part in value.items()}
