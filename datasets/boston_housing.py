"""Boston housing: the median house value of 506 towns, from 13 features."""

from __future__ import annotations

from .download import KERAS_FILES, fetch
from .npz import read_npz
from .splits import Split, check_test_split, generator, shuffled, split

URL = f"{KERAS_FILES}boston_housing.npz"
SHA256 = "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5"


def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Split:
    """House values around Boston in the 1970s, downloaded on first use.

    One of its columns, B, is built on the assumption that racial segregation raises the price of
    houses. Prefer `california_housing`, unless such assumptions are what you study.

    Args:
        path: name of the file in the cache folder.
        test_split: fraction to test with.
        seed: of the order of the rows.

    Returns:
        ((x_train, y_train), (x_test, y_test)), float64: features (404, 13) and (102, 13), targets
        (404,) and (102,) in thousands of dollars, 5 to 50.

    Raises:
        InvalidArgumentError: `test_split` is outside [0, 1).
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.

    Source: D. Harrison and D. L. Rubinfeld, Hedonic housing prices and the demand for clean air,
        Journal of Environmental Economics and Management 5, 1978.
    """
    check_test_split(test_split)
    x, y = read_npz(fetch(path, URL, SHA256), "x", "y")
    return split(*shuffled(generator(seed), x, y), test_split)
