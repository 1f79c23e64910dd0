"""Room on the disk for a file."""

import errno
import os
from pathlib import Path

import pytest

from laminar.engine.io import reserving
from laminar.engine.io.reserving import begin_writing, reserve

SIZE = 1 << 21


def test_the_size_stays(tmp_path: Path) -> None:
    with open(tmp_path / "f", "wb") as file:
        reserve(file, SIZE)
        status = os.fstat(file.fileno())
        assert status.st_size == 0
        assert status.st_blocks * 512 >= SIZE or not status.st_blocks  # where it can be done
        file.write(b"abc")
    assert (tmp_path / "f").read_bytes() == b"abc"


def test_no_room_is_an_error_and_no_way_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "f", "wb") as file:
        for code, fails in ((errno.ENOSPC, True), (errno.EOPNOTSUPP, False)):
            monkeypatch.setattr(reserving, "_fallocate", lambda: lambda *_: -1)
            monkeypatch.setattr("ctypes.get_errno", lambda code=code: code)
            if fails:
                with pytest.raises(OSError, match=os.strerror(code)):
                    reserve(file, SIZE)
            else:
                reserve(file, SIZE)
        monkeypatch.setattr(reserving, "_fallocate", lambda: None)
        reserve(file, SIZE)


def test_writing_that_begins_early_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "f", "wb", buffering=0) as file:
        file.write(b"abc" * SIZE)
        begin_writing(file, 0, SIZE)
        begin_writing(file, 10 * SIZE, SIZE)  # there is nothing
        monkeypatch.setattr(reserving, "_sync_file_range", lambda: None)
        begin_writing(file, 0, SIZE)
    assert (tmp_path / "f").read_bytes() == b"abc" * SIZE
