"""Writing weights: what is refused, and what a failure leaves behind."""

from __future__ import annotations

import errno
import resource
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar.engine.errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from laminar.saving.weights import WeightsReader, WeightsWriter, write_weights

pytest.importorskip("h5py")


@pytest.mark.parametrize(
    ("path", "variables", "error"),
    [
        ("layers/../x", [1.0], InvalidArgumentError),
        ("/layers", [1.0], InvalidArgumentError),
        ("layers//x", [1.0], InvalidArgumentError),
        ("layers/x\0", [1.0], InvalidArgumentError),
        ("layers/x", {"a/b": 1.0}, InvalidArgumentError),
        ("layers/x", {"": 1.0}, InvalidArgumentError),
        ("layers/x", [np.array([None])], DTypeError),
        ("layers/x", ["text"], DTypeError),
        ("layers/x", [np.zeros(2, complex)], DTypeError),
        ("layers/x", [np.zeros(2, np.longdouble)], DTypeError),
        ("layers/x", [np.zeros(2, ml_dtypes.float8_e4m3fn)], DTypeError),
        ("layers/first", [1.0], AlreadyExistsError),
    ],
)
def test_refused_writing(path: str, variables: Any, error: type[Exception], tmp_path: Path) -> None:
    target = tmp_path / "m.weights.h5"
    target.write_bytes(b"what was there")

    def write() -> None:
        with WeightsWriter(target) as writer:
            writer.write("layers/first", [np.zeros(2)])
            writer.write(path, variables)

    with pytest.raises(error):
        write()
    assert target.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [target]


def test_full_disk_leaves_the_earlier_file(tmp_path: Path) -> None:
    target = tmp_path / "m.weights.h5"
    target.write_bytes(b"what was there")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(ResourceExhaustedError, match="File too large") as caught:
            write_weights(target, {"x": [np.zeros(1 << 20)]})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.EFBIG
    assert target.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [target]


def test_writing_follows_a_link_and_keeps_the_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.weights.h5", tmp_path / "link.weights.h5"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_weights(link, {"x": [np.ones(2)]})
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    with WeightsReader(real) as reader:
        np.testing.assert_array_equal(reader["x/vars/0"], [1, 1])
