"""The simulation of training by many workers: laws of queues, and the paper's figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulated_scale import (
    Costs,
    asynchronous,
    best_backups,
    main,
    synchronous,
)

EVEN = Costs(step_seconds=1.0, spread=0.0, stragglers=0.0)
NULL = Costs(step_seconds=0.0, spread=0.0, stragglers=0.0, servers=16)


@pytest.mark.parametrize(
    ("megabytes", "one", "hundred"), [(0, 1.8e-3, 8.8e-3), (100, 0.147, 0.613), (1000, 1.01, 7.16)]
)
def test_null_steps_take_what_the_paper_measured(
    megabytes: float, one: float, hundred: float
) -> None:
    """Abadi et al., 2016, section 6.2: steps that compute nothing, 16 servers, 1, 100 workers."""
    costs = replace(NULL, model_bytes=megabytes * 1e6)
    assert synchronous(costs, 1, steps=20).step_seconds == pytest.approx(one, rel=0.35)
    assert synchronous(costs, 100, steps=20).step_seconds == pytest.approx(hundred, rel=0.2)


def test_a_step_is_its_parts() -> None:
    """A worker alone: two messages on its link, two latencies, one step, one update."""
    link = EVEN.model_bytes / EVEN.worker_bandwidth
    expected = 2 * link + 2 * EVEN.latency + 1.0
    assert synchronous(EVEN, 1).step_seconds == pytest.approx(expected)
    assert asynchronous(EVEN, 1).step_seconds == pytest.approx(expected)
    assert asynchronous(EVEN, 1).staleness == 0


def test_servers_bound_all_ways_to_train() -> None:
    """Servers receive no more than their bandwidth allows, however many workers there are."""
    each = EVEN.model_bytes / EVEN.servers / EVEN.bandwidth + EVEN.apply_seconds
    for workers in (10, 100, 1000):
        for found in (synchronous(EVEN, workers, steps=20), asynchronous(EVEN, workers, steps=20)):
            assert found.steps_per_second <= 1 / each * 1.001
    assert asynchronous(EVEN, 1000, steps=20).steps_per_second > 0.95 / each


def test_the_slowest_of_many_sets_the_pace_of_synchronous_steps() -> None:
    """With free messages, a step takes the largest of n random times: for 1 % of stragglers, that
    a step has none among 100 is 0.99**100 = 37 %."""
    free = Costs(
        spread=0.0, stragglers=0.01, slowdown=3.0, model_bytes=0, latency=0, apply_seconds=0
    )
    found = synchronous(free, 100, steps=2000)
    share = 1 - 0.99**100
    assert found.steps_per_second == pytest.approx(100 / (1 + 2 * share), rel=0.03)
    assert asynchronous(free, 100).steps_per_second == pytest.approx(100 / 1.02, rel=0.03)


def test_a_few_backup_workers_pay() -> None:
    """Section 6.3: of 50 workers, each backup makes a step shorter, the first ones most."""
    costs = Costs(step_seconds=1.7, spread=0.08, stragglers=0.015)
    steps = [synchronous(costs, 50 + b, backups=b, steps=400).step_seconds for b in range(6)]
    assert all(np.diff(steps) < 0)
    assert steps[0] - steps[1] > 5 * (steps[1] - steps[2])
    assert 1 <= best_backups(costs, 50, 6) <= 4


@pytest.mark.parametrize(("workers", "speedup"), [(8, 7.3), (64, 58.0)])
def test_what_was_reported_lies_between_waiting_and_not(workers: int, speedup: float) -> None:
    """TensorFlow 1.0's announcement, 2017: Inception-v3 on 8 GPUs, and on 64 of several machines,
    without saying how far workers waited for each other."""
    alone = asynchronous(Costs(), 1).steps_per_second
    waiting = synchronous(Costs(), workers).steps_per_second / alone
    assert waiting < speedup < asynchronous(Costs(), workers).steps_per_second / alone


def test_staleness_is_that_of_all_others() -> None:
    """Workers of one speed: between a worker's two ends, each of the others has one update."""
    found = asynchronous(replace(EVEN, spread=0.05), 50)
    assert found.staleness == pytest.approx(49, rel=0.1)


def test_the_same_seed_gives_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        assert main(["--workers", "10", "1000", "--step", "0.5"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 3


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--workers", "0"])
    assert "must be above 0" in capsys.readouterr().err
