"""Models as bytes: a `.keras` archive in memory."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from .model import load_model, save_model


def archived(model: Any) -> bytes:
    """The `.keras` file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        save_model(model, path)
        with open(path, "rb") as file:
            return file.read()


def unarchived(data: bytes) -> Any:
    """The model in the bytes of a `.keras` file: as `load_model`, nothing in them is run."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        with open(path, "wb") as file:
            file.write(data)
        return load_model(path)
