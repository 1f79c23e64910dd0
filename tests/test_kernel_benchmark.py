"""The measurement of kernels runs, and compares results."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks import kernels, low_bits


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_smoke(threads: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--only", "32 x 128 x 10 n", "--seconds", "0", "--threads", threads]
    assert kernels.main(options) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"vectors of \d+ bits, kept to nothing", title)
    assert [line.split("  ")[0] for line in lines] == ["32 x 128 x 10 nn", "32 x 128 x 10 nt"]
    for line in lines:
        assert re.search(r"laminar +\d+\.\d  numpy +\d+\.\d.*ratio \d+\.\d\d$", line)


def test_a_wrong_result_is_found_out() -> None:
    good, bad = np.ones(4), np.array([1.0, 1.0, 1.1, 1.0])
    case = kernels.Case("sum", 1.0, {"laminar": lambda: None}, lambda: kernels.off(bad, good))
    with pytest.raises(SystemExit, match=r"sum: laminar's result is off by 1.0e-01"):
        kernels.measure(case, 0.0)


def test_layers_in_few_bits() -> None:
    runs = low_bits.runs_of(2, 16)
    assert set(low_bits.MODES) <= set(runs)
    expected = np.asarray(runs["float32"]())
    assert expected.shape == (2, 16)
    found = low_bits.measure(runs, 3)
    assert found["float32"][1] == 1
    assert all(seconds > 0 and ratio > 0 for seconds, ratio in found.values())
