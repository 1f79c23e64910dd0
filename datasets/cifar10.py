"""CIFAR-10: 60,000 colour pictures of 32x32 pixels, in 10 classes."""

from __future__ import annotations

import numpy as np

from .cifar import read_batches
from .download import fetch
from .splits import Split

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
SHA256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
FOLDER = "cifar-10-batches-py"


def load_data() -> Split:
    """Small colour pictures, downloaded on first use (170 MB).

    Classes 0 to 9: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck.

    Returns:
        ((x_train, y_train), (x_test, y_test)), all uint8: images (50000, 32, 32, 3) and
        (10000, 32, 32, 3), red, green, blue, 0 to 255; labels (50000, 1) and (10000, 1).

    Raises:
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.

    Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """
    file = fetch("cifar-10-python.tar.gz", URL, SHA256)
    names = [f"{FOLDER}/data_batch_{number}" for number in range(1, 6)]
    *train, (x_test, y_test) = read_batches(file, [*names, f"{FOLDER}/test_batch"], b"labels")
    x_train = np.concatenate([images for images, _ in train])
    y_train = np.concatenate([labels for _, labels in train])
    return (
        (x_train, y_train.astype(np.uint8).reshape(-1, 1)),
        (x_test, y_test.astype(np.uint8).reshape(-1, 1)),
    )
