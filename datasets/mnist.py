"""MNIST: 70,000 handwritten digits of 28x28 pixels."""

from __future__ import annotations

from .download import KERAS_FILES, fetch
from .npz import read_npz
from .splits import Split

URL = f"{KERAS_FILES}mnist.npz"
SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"


def load_data(path: str = "mnist.npz") -> Split:
    """Handwritten digits, downloaded on first use (11 MB).

    Args:
        path: name of the file in the cache folder.

    Returns:
        ((x_train, y_train), (x_test, y_test)), all uint8: images (60000, 28, 28) and
        (10000, 28, 28) with values 0 (background) to 255, labels (60000,) and (10000,), 0 to 9.

    Raises:
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.

    Source: Y. LeCun, C. Cortes and C. J. C. Burges, The MNIST database of handwritten digits,
        1998; derived from data of NIST; CC BY-SA 3.0.
    """
    file = fetch(path, URL, SHA256)
    x_train, y_train, x_test, y_test = read_npz(file, "x_train", "y_train", "x_test", "y_test")
    return (x_train, y_train), (x_test, y_test)
