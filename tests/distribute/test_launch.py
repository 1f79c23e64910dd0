"""`laminar launch`: a script for one process, unchanged; restarts, logs, exit codes, no orphans."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.distribute import launch
from tests.distribute.mpi_runs import WAIT, environment, needs_mpi

SCRIPT = Path(__file__).with_name("launched_training.py")


def start(folder: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "laminar.distribute.launch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(folder),
        start_new_session=True,
    )


def launched(*arguments: str) -> tuple[int, str]:
    with tempfile.TemporaryDirectory(prefix="mpi-") as folder:
        process = start(folder, *arguments)
        try:
            text, _ = process.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"it hangs: {process.communicate()[0]}")
    return process.returncode, text


@pytest.fixture
def short_folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="mpi-", ignore_cleanup_errors=True) as folder:
        yield folder


def weights(path: Path) -> list[Any]:
    with np.load(path) as file:
        return [file[name] for name in file.files]


@needs_mpi
@pytest.mark.slow
def test_a_script_is_unchanged(tmp_path: Path) -> None:
    """Its own arguments, one line for each epoch, logs by rank, one checkpoint."""
    logs = tmp_path / "logs"
    code, text = launched("-n", "2", "--logs", str(logs), str(SCRIPT), str(tmp_path))
    assert code == 0, text
    assert len(re.findall(r"^Epoch \d/4 - 8/8", text, re.MULTILINE)) == 4
    first, second = (weights(tmp_path / f"weights-{r}.npz") for r in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    saved = laminar.saving.load_model(tmp_path / "model.keras").get_weights()
    for a, b in zip(saved, first, strict=True):
        np.testing.assert_array_equal(a, b)
    texts = [(logs / f"worker-{r}.log").read_text() for r in range(2)]
    for rank, log in enumerate(texts):
        assert f"worker {rank} has ['{tmp_path}']" in log
    assert "Epoch 4/4" in texts[0]
    assert "Epoch" not in texts[1]


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["element"]])
def test_a_killed_worker_and_a_restart_end_with_the_same_bits(
    how: list[str], tmp_path: Path
) -> None:
    found = []
    for way in ("whole", "resumed"):
        folder = tmp_path / way
        folder.mkdir()
        code, text = launched("-n", "2", "--restarts", "2", str(SCRIPT), str(folder), way, *how)
        assert code == 0, text
        assert ("restart 1 of 2" in text) == (way == "resumed")
        assert "restart 2 of 2" not in text
        found.append(weights(folder / "weights-0.npz"))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@needs_mpi
@pytest.mark.slow
def test_restarts_are_bounded_and_the_exit_code_is_the_scripts(tmp_path: Path) -> None:
    code, text = launched("-n", "2", "--restarts", "1", str(SCRIPT), str(tmp_path), "wrong")
    assert code == 1, text
    assert text.count("restart 1 of 1") == 1
    assert "they have been restarted 1 times, which is all" in text
    assert "ValueError: it ends badly" in text
    assert re.search(r"^\[1\] ValueError: it ends badly", text, re.MULTILINE)


@needs_mpi
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes that end with another: Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(number: signal.Signals, tmp_path: Path, short_folder: str) -> None:
    process = start(short_folder, "-n", "2", str(SCRIPT), str(tmp_path), "slow")
    files = [tmp_path / f"pid-{r}" for r in range(2)]
    end = time.monotonic() + WAIT
    while not all(f.exists() and f.read_text() for f in files):
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    pids = [int(f.read_text()) for f in files]
    process.send_signal(number)
    process.communicate(timeout=WAIT)
    expected = -number if number == signal.SIGKILL else 128 + number
    assert process.returncode == expected
    end = time.monotonic() + 10
    while any(_is_alive(pid) for pid in pids):
        assert time.monotonic() < end, "a worker is left"
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-n", "0", "x.py"], "expected a whole number from 1 on, got '0'"),
        (["-n", "two", "x.py"], "expected a whole number from 1 on, got 'two'"),
        (["-n", "2", "nothing.py"], "there is no file 'nothing.py'"),
        (["train.py"], "-n/--workers"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        launch.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_launcher_restarts_so_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third run succeeds; another one gives up before."""
    monkeypatch.setattr(launch, "_PAUSE_SECONDS", 0.0)
    count = tmp_path / "count"
    program = (
        f"import pathlib; p = pathlib.Path({str(count)!r}); n = len(p.read_text()); "
        f"p.write_text('x' * (n + 1)); raise SystemExit(0 if n == 2 else 7)"
    )
    for restarts, code, runs in ((2, 0, 3), (1, 7, 2)):
        count.write_text("")
        said: list[str] = []
        launcher = launch.Launcher([sys.executable, "-S", "-c", program], restarts, said.append)
        assert launcher.run() == code
        assert len(count.read_text()) == runs
        assert said[0] == "the workers ended with exit code 7"
