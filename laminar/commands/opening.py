"""Files of models opened for a command, by their names."""

from __future__ import annotations

import os
from typing import Any

from laminar.engine.errors import InvalidArgumentError, MissingFileError

MODELS = (".keras", ".h5", ".hdf5")
WEIGHTS = (".weights.h5", ".safetensors")
EXPORTS = (".laminar",)


def check_file(path: str) -> None:
    """MissingFileError where there is no such file."""
    if not os.path.exists(path):
        raise MissingFileError(f"there is no file {path!r}")


def open_model(path: str) -> Any:
    """A model, or an exported file, which can be called.

    Raises:
        MissingFileError: there is no such file.
        InvalidArgumentError: its name does not say that it is one.
        DataLossError: it is damaged.
    """
    check_file(path)
    if path.endswith(EXPORTS):
        from laminar import export  # what the command does not need is not loaded

        return export.load(path)
    if path.endswith(MODELS) and not path.endswith(WEIGHTS):
        from laminar import saving  # what the command does not need is not loaded

        return saving.load_model(path, compile=False)
    raise InvalidArgumentError(
        f"{path!r} is not the name of a model", remedy="give a .keras or .laminar file"
    )
