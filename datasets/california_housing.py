"""California housing: the median house value of 20,640 districts, from 8 features."""

from __future__ import annotations

from laminar.engine.errors import InvalidArgumentError

from .download import KERAS_FILES, fetch
from .npz import read_npz
from .splits import Split, check_test_split, generator, shuffled, split

URL = f"{KERAS_FILES}california_housing.npz"
SHA256 = "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f"
SMALL = 600


def load_data(
    version: str = "large",
    path: str = "california_housing.npz",
    test_split: float = 0.2,
    seed: int = 113,
) -> Split:
    """House values of the census of 1990, one row per block group, downloaded on first use.

    The 8 columns describe a district's place, houses, inhabitants and their income, each in its own
    unit: bring them to one scale before training.

    Args:
        version: "large" for all rows, "small" for the first 600.
        path: name of the file in the cache folder.
        test_split: fraction to test with.
        seed: of the order of the rows.

    Returns:
        ((x_train, y_train), (x_test, y_test)): features (n, 8) and targets (n,) in dollars, about
        15,000 to 500,000, in the types of the file.

    Raises:
        InvalidArgumentError: `version` is neither, or `test_split` is outside [0, 1).
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.

    Source: R. K. Pace and R. Barry, Sparse Spatial Autoregressions, Statistics and Probability
        Letters 33, 1997.
    """
    check_test_split(test_split)
    if version not in ("large", "small"):
        raise InvalidArgumentError(
            f"california_housing: version must be 'large' or 'small', got {version!r}",
            remedy="'large' has 20,640 rows, 'small' the first 600 of them",
        )
    x, y = read_npz(fetch(path, URL, SHA256), "x", "y")
    count = len(x) if version == "large" else SMALL
    return split(*shuffled(generator(seed), x[:count], y[:count]), test_split)
