"""Fashion-MNIST: 70,000 pictures of clothes of 28x28 pixels, in 10 classes."""

from __future__ import annotations

import gzip
import struct
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laminar.engine.errors import DataLossError

from .download import KERAS_FILES, cache_folder, fetch
from .splits import Split

URL = KERAS_FILES
SHA256 = {
    "train-images-idx3-ubyte.gz": (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
    ),
    "train-labels-idx1-ubyte.gz": (
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
    ),
    "t10k-images-idx3-ubyte.gz": (
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
    ),
}
MAX_BYTES = 1 << 28


def load_data() -> Split:
    """Pictures of clothes, downloaded on first use (31 MB); a harder MNIST.

    Classes 0 to 9: T-shirt/top, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag, ankle
    boot.

    Returns:
        ((x_train, y_train), (x_test, y_test)), all uint8: images (60000, 28, 28) and
        (10000, 28, 28), labels (60000,) and (10000,).

    Raises:
        UnavailableError, DataLossError: a file cannot be downloaded, or is not the right one.

    Source: H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, 2017, arXiv:1708.07747; MIT licence.
    """
    # MNIST's files have the same names: they get a folder of their own.
    folder = cache_folder() / "fashion-mnist"
    x_train, y_train, x_test, y_test = (
        read_idx(fetch(name, URL + name, digest, folder=folder)) for name, digest in SHA256.items()
    )
    return (x_train, y_train), (x_test, y_test)


def read_idx(path: Path) -> NDArray[Any]:
    """The array of bytes in a gzipped IDX file.

    Format: two zero bytes, the element type (8: unsigned byte), the number of axes; the extents as
    big-endian 32-bit integers; the elements.
    """
    try:
        with gzip.open(path) as file:
            data = bytearray(file.read(MAX_BYTES))
        zeros, kind, num_axes = struct.unpack_from(">HBB", data)
        shape = struct.unpack_from(f">{num_axes}I", data, 4)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise _not_idx(path, str(error)) from error
    start = 4 + 4 * num_axes
    if (zeros, kind) != (0, 8) or len(data) - start != prod(shape):
        raise _not_idx(path, f"shape {shape} does not fit its {len(data)} bytes")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _not_idx(path: Path, why: str) -> DataLossError:
    return DataLossError(
        f"{path}: expected a gzipped IDX file of bytes: {why}",
        remedy="remove the file, so that it is downloaded again",
    )
