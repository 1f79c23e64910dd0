"""LaminarTrainer on a local Ray: a process is killed, all start again, to the same bits."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.distribute import LaminarTrainer
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from tests.distribute.ray_training import training

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray")
    pytest.importorskip("ray.train")
    os.environ["RAY_TRAIN_V2_ENABLED"] = "1"
    environment = {"env_vars": {"PYTHONPATH": str(ROOT)}}
    found.init(
        num_cpus=4,
        object_store_memory=100 << 20,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env=environment,
    )
    yield found
    found.shutdown()


@pytest.mark.slow  # groups of three processes, of which one is started twice
@pytest.mark.parametrize("victim", ["worker1", "ps0", "worker0"])
def test_a_process_is_killed(ray: Any, tmp_path: Path, victim: str) -> None:
    found = []
    for name in (None, victim):
        folder = tmp_path / str(name)
        folder.mkdir()
        trainer = LaminarTrainer(
            training,
            train_loop_config={"folder": str(folder), "victim": name},
            scaling_config=ray.train.ScalingConfig(num_workers=3),
            run_config=ray.train.RunConfig(
                storage_path=str(tmp_path / "ray"),
                failure_config=ray.train.FailureConfig(max_failures=1),
            ),
        )
        result = trainer.fit()
        assert result.error is None
        assert result.return_value["loss"] > 0
        assert (folder / "killed").exists() == (name is not None)
        with np.load(folder / "weights.npz") as weights:
            found.append([weights[key] for key in weights.files])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a function"):
        LaminarTrainer("train.py")  # type: ignore[arg-type]  # what is tested
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(FailedPreconditionError, match=r"needs Ray Train(.|\n)*laminar\[ray\]"):
        LaminarTrainer(print)
    fake = types.ModuleType("ray")
    fake.train = types.SimpleNamespace(  # type: ignore[attr-defined]  # as much as is asked for
        ScalingConfig=lambda num_workers: types.SimpleNamespace(num_workers=num_workers)
    )
    monkeypatch.setitem(sys.modules, "ray", fake)
    for servers in (0, 2, True):
        with pytest.raises(InvalidArgumentError, match="of 2 processes at least one is a server"):
            LaminarTrainer(print, num_servers=servers)
