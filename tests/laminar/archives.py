"""An archive, and what is in one."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from laminar.saving.archive import Limits, open_archive, write_archive

CONFIG = {"class_name": "Sequential", "config": {"name": "ä", "layers": [None, 1, 0.5, True]}}
METADATA = {"keras_version": "3.15.1"}
WEIGHTS: dict[str, Any] = {
    "layers/dense": [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(4).astype(ml_dtypes.bfloat16),
    ],
    "optimizer": [np.asarray(5, np.int32)],
}


def read_all(path: Path, limits: Limits | None = None) -> dict[str, Any]:
    """Everything in an archive."""
    with open_archive(path, limits=limits) as archive:
        found: dict[str, Any] = {"config": archive.config, "metadata": archive.metadata}
        found["assets"] = {name: archive.asset(name) for name in archive.assets}
        with archive.weights() as weights:
            found["weights"] = {
                key: (weights[key].dtype, weights[key].tobytes()) for key in weights
            }
        archive.verify()
    return found


def write_good(path: Path) -> Path:
    """A file with nothing wrong."""
    assets = {"layers/string_lookup/vocabulary.txt": b"one\ntwo"}
    names = {"layers/dense": "dense", "optimizer": "adam"}
    write_archive(path, CONFIG, METADATA, WEIGHTS, names=names, assets=assets)
    return path


def entries(path: Path) -> list[tuple[zipfile.ZipInfo, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(entry, archive.read(entry)) for entry in archive.infolist()]


def rewritten(path: Path, change: Callable[[zipfile.ZipFile], object]) -> Path:
    """The archive with what `change` adds to it."""
    with zipfile.ZipFile(path, "a") as archive:
        change(archive)
    return path
