"""HDF5 files in memory, as h5py makes them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.saving.limits import Limits
from laminar.saving.weights import WeightsReader

h5py = pytest.importorskip("h5py")


def image(build: Callable[[Any], object], **options: Any) -> bytes:
    """The bytes of the HDF5 file that `build` fills."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", **options) as file:
        build(file)
    return buffer.getvalue()


def read_all(data: bytes, limits: Limits | None = None) -> dict[str, np.ndarray]:
    with WeightsReader(data, limits=limits) as reader:
        return {path: reader[path] for path in reader}


CHUNKED = np.random.default_rng(7).integers(-9, 9, (50, 7)).astype(np.int64)
