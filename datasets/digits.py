"""The UCI handwritten digits: 1,797 images of 8x8 pixels, shipped with the package."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Final

import numpy as np

from laminar.engine.errors import DataLossError, MissingFileError

from .splits import Split

FILE: Final = Path(__file__).with_name("digits.npz")
SHA256: Final = "b2dab7b501728c22e9119ad76740b2e17c77a231e42d1e592380d90886f1a05e"
TEST_IMAGES_PER_CLASS: Final = 36


def load_data() -> Split:
    """Handwritten digits of 13 people, for trying things out without a download.

    The split is fixed: of each digit, 36 images evenly spaced through the file are for testing,
    the rest for training. Nearest neighbours (k = 3) reach 98.6 % and multinomial logistic
    regression 96.9 % on it.

    Returns:
        ((x_train, y_train), (x_test, y_test)), all uint8: images (1437, 8, 8) and (360, 8, 8) with
        values 0 (white) to 16 (black), labels (1437,) and (360,) with values 0 to 9.

    Raises:
        MissingFileError, DataLossError: the installed file is not there, or was altered.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
        Learning Repository, 1998, doi:10.24432/C50P49, CC BY 4.0; the part meant for testing.
    """
    try:
        stored = FILE.read_bytes()
    except FileNotFoundError as error:
        raise MissingFileError(
            f"digits: the installed package has no {FILE}", remedy="install laminar again"
        ) from error
    found = hashlib.sha256(stored).hexdigest()
    if found != SHA256:
        raise DataLossError(
            f"digits: {FILE} has SHA-256 {found}, expected {SHA256}", remedy="install laminar again"
        )
    with np.load(io.BytesIO(stored), allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    is_test = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        (places,) = np.nonzero(labels == digit)
        chosen = np.arange(TEST_IMAGES_PER_CLASS) * len(places) // TEST_IMAGES_PER_CLASS
        is_test[places[chosen]] = True
    return (images[~is_test], labels[~is_test]), (images[is_test], labels[is_test])
