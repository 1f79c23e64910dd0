from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laminar.datasets import digits
from laminar.engine.errors import DataLossError, MissingFileError


def test_types_and_sizes() -> None:
    (x_train, y_train), (x_test, y_test) = digits.load_data()
    assert x_train.shape == (1437, 8, 8)
    assert y_train.shape == (1437,)
    assert x_test.shape == (360, 8, 8)
    assert y_test.shape == (360,)
    assert {a.dtype for a in (x_train, y_train, x_test, y_test)} == {np.dtype(np.uint8)}
    assert x_train.min() == 0
    assert x_train.max() == 16


def test_is_the_published_data() -> None:
    (x_train, y_train), (x_test, y_test) = digits.load_data()
    # optdigits.names: images per class of the testing set.
    counts = np.bincount(np.concatenate([y_train, y_test]))
    assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.bincount(y_test).tolist() == [36] * 10
    # The first line of optdigits.tes is a 0; the first image of a class is a test image.
    assert y_test[0] == 0
    assert x_test[0].tolist() == [
        [0, 0, 5, 13, 9, 1, 0, 0],
        [0, 0, 13, 15, 10, 15, 5, 0],
        [0, 3, 15, 2, 0, 11, 8, 0],
        [0, 4, 12, 0, 0, 8, 8, 0],
        [0, 5, 8, 0, 0, 9, 8, 0],
        [0, 4, 11, 0, 1, 12, 7, 0],
        [0, 2, 14, 5, 10, 12, 0, 0],
        [0, 0, 6, 13, 10, 0, 0, 0],
    ]


def test_split_shares_no_image_and_can_be_learnt() -> None:
    (x_train, y_train), (x_test, y_test) = digits.load_data()
    assert not {x.tobytes() for x in x_train} & {x.tobytes() for x in x_test}
    train = x_train.reshape(-1, 64).astype(float)
    test = x_test.reshape(-1, 64).astype(float)
    distances = (test**2).sum(1)[:, None] - 2 * test @ train.T + (train**2).sum(1)
    nearest = y_train[np.argsort(distances, axis=1, kind="stable")[:, :3]]
    votes = (nearest[:, :, None] == np.arange(10)).sum(1)
    assert 0.97 < np.mean(votes.argmax(1) == y_test) < 0.995


def test_same_each_time_and_writable() -> None:
    first, second = digits.load_data(), digits.load_data()
    first[0][0][0] = 0
    assert second[0][0][0].any()
    np.testing.assert_array_equal(first[1][1], second[1][1])


def test_altered_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "digits.npz"
    copy.write_bytes(digits.FILE.read_bytes() + b"x")
    monkeypatch.setattr(digits, "FILE", copy)
    with pytest.raises(DataLossError, match="SHA-256"):
        digits.load_data()
    copy.unlink()
    with pytest.raises(MissingFileError):
        digits.load_data()


def test_attribution_lies_beside_the_file() -> None:
    text = digits.FILE.with_name("DIGITS.md").read_text("utf-8")
    for part in ("Alpaydin", "Kaynak", "10.24432/C50P49", "CC BY 4.0", "scikit-learn"):
        assert part in text
