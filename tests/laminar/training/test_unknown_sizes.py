"""Batches of sizes that nobody knows beforehand: after the first, none waits for a compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import laminar
from laminar.engine.compiler.native import cluster_kernel

from .changing_sizes import MODELS, batches, dense, made

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(
    not cluster_kernel.is_offered(), reason="there is no native code here"
)


CASES = [
    *(f"{name}-6" for name in MODELS),
    *("convolutional-1", "residual-1", "transformed-1", "transformed-64"),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What became of each case, in a process of its own with an empty cache."""
    folder = tmp_path_factory.mktemp("caches")
    done = subprocess.run(
        [sys.executable, "-m", "tests.laminar.training.changing_sizes", str(folder), *CASES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, str] = json.loads(done.stdout)
    return results


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_compiled_after_the_first_step(case: str, found: dict[str, str]) -> None:
    """Nothing is in the cache, and results have the bits of a plan made for their size."""
    assert found[case] == "nothing is compiled"


def test_a_loop_over_known_batches_is_not_limited_to_loaded_code() -> None:
    model = made(dense)
    sizes = [5, 40]
    for x, y in batches(model, sizes):
        model.train_on_batch(x, y)
    (cluster,) = clusters(model)
    assert {key[0][0] for key, _ in cluster._of_loaded_code} <= {40}
    ((x, y),) = batches(model, [120])
    model.fit(x, y, batch_size=40, verbose=0)
    assert not cluster._of_loaded_code


def test_the_last_batch_of_other_data_uses_loaded_code() -> None:
    model = made(dense)
    ((x, y),) = batches(model, [100])
    model.fit(x, y, batch_size=40, verbose=0)
    (cluster,) = clusters(model)
    assert not cluster._of_loaded_code
    assert {key[0][0] for key, _ in cluster._plans} == {40, 20}
    model.fit(x[:57], y[:57], batch_size=40, verbose=0)
    assert {key[0][0] for key, _ in cluster._of_loaded_code} <= {
        17
    }  # all that is best may be loaded
    assert len(cluster.events) == 1


def clusters(model: laminar.Model) -> list[cluster_kernel.NativeCluster]:
    """Those of the training step."""
    assert model._laminar_compiled is not None
    concretes = model._laminar_compiled.steps["train"]._concrete.values()
    return [body.native for concrete in concretes for body in concrete.clusters]
