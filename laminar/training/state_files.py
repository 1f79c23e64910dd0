"""The checkpoints that a training is resumed from: numbered, several kept, each whole or not there.

A state is JSON for the structure, and the arrays beside it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from laminar.engine.checkpoint import CheckpointReader, remove_checkpoint, write_checkpoint
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from laminar.engine.graph import EagerTensor
from laminar.engine.io.places import make_folder
from laminar.engine.saving import Retention, parse_json
from laminar.engine.source import warn
from laminar.engine.state import Variable

_FILE = re.compile(r"(state-\d{10})\.index(\.next)?")
_TEMPORARY = re.compile(r"\.(state-|checkpoint).*\.[0-9a-f]{16}\.tmp")
_FORMAT = 2
_STATE, _VARIABLES, _ARRAYS = "training_state", "variables/", "arrays/"


class StateFiles:
    """The checkpoints of one folder.

    Args:
        folder: made if it is not there.
        keep: how many of the newest stay.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidArgumentError(
                f"fit: resume: {os.fspath(folder)!r} is a file, expected a folder",
                remedy="name a folder, which need not be there yet",
            )
        make_folder(folder, "fit: resume")
        self._retention = Retention(keep, None)
        self._retention.recover([str(path) for path in reversed(self._prefixes())])

    def _prefixes(self) -> list[Path]:
        """The prefixes, the newest first."""
        if not self.folder.is_dir():
            return []
        names = {m[1] for p in self.folder.iterdir() if (m := _FILE.fullmatch(p.name))}
        return [self.folder / name for name in sorted(names, reverse=True)]

    def write(self, number: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint and remove the old ones."""
        self.store(number, tensors_of(state))

    def store(self, number: int, tensors: Mapping[str, Any]) -> None:
        """Write what `tensors_of` gave."""
        make_folder(self.folder, "fit: resume")  # it may be gone since
        prefix = str(self.folder / f"state-{number:010}")
        write_checkpoint(prefix, tensors.items(), "fit: resume")
        self._retention.add(prefix, folder=str(self.folder), relative=True)

    def latest(self, check: Callable[[Any], None]) -> dict[str, Any] | None:
        """The newest state that can be read and that passes `check`, None when there is none.

        One that cannot be read is passed over with a warning, as an older one will do.
        """
        self._clean()
        for prefix in self._prefixes():
            try:
                state = self._read(prefix)
                check(state)
                return state
            except (DataLossError, NotFoundError, UnimplementedError) as error:
                warn(f"fit: resume: {prefix} is passed over: {error.message}")
        return None

    def _read(self, prefix: Path) -> dict[str, Any]:
        with CheckpointReader(prefix) as reader:
            config = parse_json(_text(reader.read(_STATE)))
            arrays = _numbered(reader, _ARRAYS)
            variables = _numbered(reader, _VARIABLES)
        if not isinstance(config, dict) or config.get("format") != _FORMAT:
            raise DataLossError(f"{prefix}: it is not a state of a training")
        try:
            state = decode(config.get("state"), arrays)
        except RecursionError as cause:
            raise DataLossError(f"{prefix}: its structure is too deep") from cause
        if not isinstance(state, dict):
            raise DataLossError(f"{prefix}: it is not a state of a training")
        if variables:
            state["variables"] = variables
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
        for prefix in self._prefixes():
            remove_checkpoint(str(prefix))
        with contextlib.suppress(OSError):
            (self.folder / "checkpoint").unlink(missing_ok=True)
            self.folder.rmdir()


def tensors_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state as the tensors of a checkpoint.

    The arrays of "variables" are those that are given; of others there are copies.

    Raises:
        InvalidArgumentError: a value that a state cannot have.
    """
    rest = dict(state)
    found: dict[str, Any] = {}
    variables = rest.get("variables")
    if isinstance(variables, list) and all(isinstance(v, np.ndarray) for v in variables):
        found |= {f"{_VARIABLES}{i}": v for i, v in enumerate(rest.pop("variables"))}
    arrays: list[Any] = []
    config = {"format": _FORMAT, "state": encode(rest, arrays)}
    found |= {f"{_ARRAYS}{i}": np.array(a) for i, a in enumerate(arrays)}
    found[_STATE] = np.array(json.dumps(config, allow_nan=False).encode(), object)
    return found


def _text(value: Any) -> bytes:
    if value.dtype != object or value.ndim:
        raise DataLossError("it is not a state of a training")
    text: bytes = value.item()
    return text


def _numbered(reader: CheckpointReader, prefix: str) -> list[Any]:
    """The tensors "prefix0", "prefix1", ..."""
    found: list[Any] = []
    while (name := f"{prefix}{len(found)}") in reader:
        found.append(reader.read(name))
    return found


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
