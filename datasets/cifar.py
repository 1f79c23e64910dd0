"""What CIFAR-10 and CIFAR-100 share: pickled batches of rows of 3072 bytes in a tar archive.

The batches are read out of the archive, whose digest `fetch` has checked, at each call: nothing
unpacked lies around to be altered. They are pickles of Python 2, read as plain data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from laminar.engine.errors import DataLossError

from .archive import members
from .pickle_reader import read_pickle

MAX_BATCH_BYTES: Final = 1 << 28


def read_batches(
    path: Path, names: list[str], label_key: bytes
) -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Images (n, 32, 32, 3) and labels (n,) of the batches of these names, in the order of `names`.

    Raises:
        DataLossError: a batch is missing, damaged, or not what CIFAR's batches are.
    """
    wanted = set(names)
    found: dict[str, tuple[NDArray[np.uint8], NDArray[np.int64]]] = {}
    for member in members(path):
        name = str(member.name)
        if name not in wanted or member.is_folder:
            continue
        if member.num_bytes > MAX_BATCH_BYTES:
            raise _damaged(path, f"{name} has {member.num_bytes} bytes")
        batch = read_pickle(b"".join(member.chunks()), source=f"{path}: {name}")
        found[name] = _images(path, name, batch, label_key)
    if missing := sorted(wanted - found.keys()):
        raise _damaged(path, f"{', '.join(missing)} is missing")
    return [found[name] for name in names]


def _images(
    path: Path, name: str, batch: Any, label_key: bytes
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A row holds the red, then the green, then the blue plane, each row by row."""
    rows = batch.get(b"data") if isinstance(batch, dict) else None
    labels = batch.get(label_key) if isinstance(batch, dict) else None
    if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8 or rows.shape[1:] != (3072,):
        raise _damaged(path, f"{name} has no rows of 3072 bytes")
    if (
        not isinstance(labels, list)
        or len(labels) != len(rows)
        or not all(type(label) is int and 0 <= label < 256 for label in labels)
    ):
        raise _damaged(path, f"{name} has no {label_key.decode()} for its {len(rows)} images")
    images = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.array(labels, dtype=np.int64)


def _damaged(path: Path, why: str) -> DataLossError:
    return DataLossError(
        f"{path}: expected an archive of CIFAR batches, but {why}",
        remedy="remove the file, so that it is downloaded again",
    )
