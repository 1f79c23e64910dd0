"""The benchmark of a second process: what it prints, and what it refuses."""

from __future__ import annotations

import pytest

from benchmarks.scaling import main


@pytest.mark.slow  # three processes that import laminar and train
def test_it_compares_one_process_with_two(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mpi4py")
    assert main(["--tiny", "--seconds", "0", "--batch", "4"]) == 0
    assert "times as fast" in capfd.readouterr().out


def test_a_batch_that_cannot_be_halved_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for batch in ("3", "0"):
        with pytest.raises(SystemExit):
            main(["--batch", batch])
        assert "an even number from 2 on" in capsys.readouterr().err
