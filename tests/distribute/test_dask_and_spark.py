"""Trainings on a local Dask and a local Spark: a process is killed, and it goes on.

They are the trainings of Ray's tests (ray_training.py); the bits are the same in all engines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.distribute import train_on_dask, train_on_spark
from laminar.distribute.engine_group import task_configs
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from tests.distribute.ray_training import training

ROOT = str(Path(__file__).resolve().parents[2])
PATHS = os.pathsep.join([ROOT, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATHS)
        with (
            distributed.LocalCluster(
                n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATHS)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        context = pyspark.SparkContext("local[3]", "laminar")
        yield context
        context.stop()


def folders(tmp_path: Path, run: Callable[[dict[str, Any]], Any], victim: str) -> list[list[Any]]:
    """The weights of a clean run, and of one in which a process is killed."""
    found = []
    for name in (None, victim):
        folder = tmp_path / str(name)
        folder.mkdir()
        assert run({"folder": str(folder), "victim": name})["loss"] > 0
        assert (folder / "killed").exists() == (name is not None)
        with np.load(folder / "weights.npz") as weights:
            found.append([weights[key] for key in weights.files])
    return found


@pytest.mark.slow  # processes are started again
@pytest.mark.filterwarnings("ignore:train_on_dask. the training failed and is restarted")
@pytest.mark.parametrize("victim", ["worker1", "ps0", "worker0"])
def test_dask(dask: Any, tmp_path: Path, victim: str) -> None:
    def run(config: dict[str, Any]) -> Any:
        return train_on_dask(dask, training, config=config, num_processes=3, max_restarts=1)

    clean, killed = folders(tmp_path, run, victim)
    for a, b in zip(clean, killed, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow  # a JVM, and processes that are started again
@pytest.mark.filterwarnings("ignore:train_on_spark. the training failed and is restarted")
@pytest.mark.parametrize("victim", ["worker1", "worker0"])
def test_spark(spark: Any, tmp_path: Path, victim: str) -> None:
    def run(config: dict[str, Any]) -> Any:
        return train_on_spark(spark, training, config=config, num_processes=3, max_restarts=1)

    clean, killed = folders(tmp_path, run, victim)
    for a, b in zip(clean, killed, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_error_of_the_function_is_that_of_the_call(dask: Any) -> None:
    def fails() -> None:
        raise ValueError("no such file")

    with pytest.raises(ValueError, match="no such file"):
        train_on_dask(dask, fails, num_processes=2)
    with pytest.raises(InvalidArgumentError, match="of 1 processes at least one is a server"):
        train_on_dask(dask, fails, num_processes=1)


def test_the_first_process_leads_and_the_last_ones_serve() -> None:
    texts = task_configs([("a", 1), ("b", 2), ("a", 3)], 1)
    cluster = '{"cluster": {"worker": ["a:1", "b:2"], "ps": ["a:3"]}, "task": '
    assert [text.removeprefix(cluster) for text in texts] == [
        '{"type": "worker", "index": 0}}',
        '{"type": "worker", "index": 1}}',
        '{"type": "ps", "index": 0}}',
    ]
    assert '"127.0.0.1:2"' in task_configs([("a", 1), ("a", 2)], 1)[0]


@pytest.mark.parametrize(
    ("start", "module", "extra"),
    [(train_on_dask, "distributed", "dask"), (train_on_spark, "pyspark", "spark")],
)
def test_what_is_refused(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., Any], module: str, extra: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected a function that trains, got 'x.py'"):
        start(None, "x.py")
    for restarts in (-1, True, 0.5):
        with pytest.raises(InvalidArgumentError, match="max_restarts must be a whole number"):
            start(None, print, max_restarts=restarts)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FailedPreconditionError, match=rf"needs(.|\n)*laminar\[{extra}\]"):
        start(None, print)
