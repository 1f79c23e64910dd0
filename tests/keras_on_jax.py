"""Tests that compare with a Keras that trains, run in a process beside this one.

Keras has one backend in a process. Its NumPy backend compiles nothing, so it is what tests compare
with, but it does not train; a test that needs that has the mark `keras_on_jax`. The tests of a file
that have it run together in a second process, in which Keras is on JAX and which the next file
uses, too (conftest.py gives these files to one worker); each has its own result here. With
KERAS_BACKEND=jax all run in one process.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import pytest

MARK = "keras_on_jax"
ROOT = Path(__file__).resolve().parents[1]
_OPTIONS = ("-n0", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT))

_processes: list[subprocess.Popen[str]] = []  # the one that runs, if one does
_results: dict[str, tuple[str, str]] = {}  # how a test has ended, and why


def goes_there(item: pytest.Item) -> bool:
    """Whether a test runs in the other process."""
    return MARK in item.keywords and os.environ.get("KERAS_BACKEND") != "jax"


def has_tests(file: Path) -> bool:
    """Whether tests of a file may run in the other process."""
    return f"mark.{MARK}" in file.read_text()


def check(item: pytest.Item) -> None:
    """Fail, or be skipped, as the test does there."""
    if item.nodeid not in _results:
        beside = [x for x in item.session.items if x.path == item.path and goes_there(x)]
        options = ["--exhaustive"] if item.config.getoption("exhaustive") else []
        _results.update(_asked([*options, *(x.nodeid for x in beside)]))
    how, why = _results.get(item.nodeid, ("failed", "the process that runs it has ended"))
    if how == "skipped":
        pytest.skip(why)
    if how == "failed":
        pytest.fail(why, pytrace=False)


def close() -> None:
    """End the other process."""
    while _processes:
        with _processes.pop() as process:
            assert process.stdin is not None
            process.stdin.close()


def _asked(arguments: list[str]) -> dict[str, tuple[str, str]]:
    if not _processes:
        hidden = {"PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"}
        environment = {k: v for k, v in os.environ.items() if k not in hidden}
        process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name if __spec__ else "tests.keras_on_jax"],
            cwd=ROOT,
            env={**environment, "KERAS_BACKEND": "jax"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        _processes.append(process)
    (process,) = _processes
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(arguments) + "\n")
        process.stdin.flush()
    reply = process.stdout.readline()
    return {name: (how, why) for name, how, why in json.loads(reply)} if reply else {}


class _Results:
    """How tests end: of set-up, call and end of a test the first that does not pass tells."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        how, _ = self.found.get(report.nodeid, ("passed", ""))
        if how == "passed":
            skipped = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.found[report.nodeid] = (report.outcome, skipped or report.longreprtext)


def _serve(requests: IO[str], replies: IO[str]) -> None:
    for line in requests:
        results = _Results()
        with tempfile.TemporaryDirectory(prefix="keras-") as folder:
            temporary = f"--basetemp={folder}/tests"
            pytest.main([*_OPTIONS, temporary, *json.loads(line)], plugins=[results])
        found = [(name, how, why) for name, (how, why) in results.found.items()]
        replies.write(json.dumps(found) + "\n")
        replies.flush()


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what pytest prints is no answer
        _serve(sys.stdin, answers)
