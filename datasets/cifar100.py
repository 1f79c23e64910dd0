"""CIFAR-100: 60,000 colour pictures of 32x32 pixels, in 100 classes of 20 groups."""

from __future__ import annotations

from laminar.engine.errors import InvalidArgumentError

from .cifar import read_batches
from .download import fetch
from .splits import Split

URL = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
SHA256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
FOLDER = "cifar-100-python"


def load_data(label_mode: str = "fine") -> Split:
    """Small colour pictures, downloaded on first use (169 MB).

    Args:
        label_mode: "fine" for the 100 classes, "coarse" for their 20 groups.

    Returns:
        ((x_train, y_train), (x_test, y_test)): images uint8 (50000, 32, 32, 3) and
        (10000, 32, 32, 3), red, green, blue, 0 to 255; labels int64 (50000, 1) and (10000, 1).

    Raises:
        InvalidArgumentError: the label mode is neither.
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.

    Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """
    if label_mode not in ("fine", "coarse"):
        raise InvalidArgumentError(
            f"cifar100: label_mode must be 'fine' or 'coarse', got {label_mode!r}",
            remedy="'fine' has 100 classes, 'coarse' has 20",
        )
    file = fetch("cifar-100-python.tar.gz", URL, SHA256)
    names = [f"{FOLDER}/train", f"{FOLDER}/test"]
    train, test = (
        (images, labels.reshape(-1, 1))
        for images, labels in read_batches(file, names, f"{label_mode}_labels".encode())
    )
    return train, test
