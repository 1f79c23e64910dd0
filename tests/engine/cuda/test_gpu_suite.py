"""The tests of tests/gpu on a GPU of NumPy: they are true before they meet one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu as measurements
from laminar.engine.devices import GpuDevice
from tests.engine.runtime.fake_gpu import one_gpu
from tests.gpu import test_hardware as hardware
from tests.gpu import test_training as training

test_a_hundred_steps = training.test_a_hundred_steps_with_foreign_arrays_between
test_a_model_trains = training.test_a_model_trains_as_on_the_cpu
test_a_session = training.test_a_session_with_a_limit
test_the_same_seed = training.test_the_same_seed_gives_the_same_bits
test_what_it_is = hardware.test_what_it_is
test_copies = hardware.test_copies_keep_the_bits
test_pinned_copies = hardware.test_copies_from_pinned_memory_run_beside_the_host
test_a_graph = hardware.test_a_graph_of_copies_runs_again_at_the_same_addresses
test_a_broken_capture = hardware.test_a_broken_capture_leaves_the_stream_usable
test_memory = hardware.test_memory_is_counted_and_given_back
test_memory_runs_out = hardware.test_memory_runs_out_with_names_and_computing_goes_on
test_wrong_indices = hardware.test_wrong_indices_are_told_when_something_is_read

pytestmark = pytest.mark.slow


@pytest.fixture
def gpu() -> Iterator[GpuDevice]:
    with one_gpu() as device:
        yield device


def test_the_measurements_run(
    gpu: GpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "gpu.json"
    arguments = ["gpu", "--small", "--output", str(output)]
    monkeypatch.setattr("sys.argv", arguments)
    measurements.main()
    found: dict[str, Any] = json.loads(output.read_text())
    assert found["device"].startswith("Fake GPU")
    for kind in ("gigabytes_per_second", "teraflops", "step_milliseconds"):
        assert found[kind]
        assert all(x > 0 for x in found[kind].values())
