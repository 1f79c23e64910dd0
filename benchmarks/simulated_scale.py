"""How training by many workers scales: sync, with backup workers, and async, simulated.

    python -m benchmarks.simulated_scale --workers 10 50 100 200 --step 2.0 --model-mb 95

A worker reads the parameters from their servers, computes, and writes its gradients there. Servers
are queues: each has a share of the parameters, and serves messages one after the other, at its
bandwidth; a worker's own link is as fast as that is. What a step takes a worker is a random time
with a long tail. All costs are put in, as measured; the defaults come near to the paper's figures.

    sync      a step ends when all gradients have been applied; the next one begins then
    backup    it ends when those of n - b workers have; late ones are thrown away
    async     a worker begins its next step at once; its gradients are as stale as there were
              updates by others meanwhile

Throughput counts the steps of workers whose gradients were applied, a second.

Sources: Abadi et al., "TensorFlow: a system for large-scale machine learning", OSDI 2016, sections
    6.2 (null steps) and 6.3 (Inception-v3: figures 7 and 8); Chen et al., "Revisiting distributed
    synchronous SGD", 2016, arXiv:1604.00981, section 3 (the tail of a step's times).
"""

from __future__ import annotations

import argparse
import heapq
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Costs:
    """What things take, as they were measured.

    Attributes:
        step_seconds: the median of the time that a worker computes in a step.
        spread: the standard deviation of its logarithm.
        stragglers: the part of steps that take `slowdown` times as long.
        slowdown: how much longer.
        model_bytes: of the parameters, and of the gradients of a step.
        servers: how many tasks have the parameters.
        bandwidth: bytes a second that a server sends, and receives at the same time.
        worker_bandwidth: the same of a worker.
        latency: seconds of a message beside that.
        apply_seconds: of a server, for applying the gradients that a worker sends it.
    """

    step_seconds: float = 1.0
    spread: float = 0.1
    stragglers: float = 0.01
    slowdown: float = 2.0
    model_bytes: float = 95e6
    servers: int = 17
    bandwidth: float = 1e9
    worker_bandwidth: float = 1.5e9
    latency: float = 9e-4
    apply_seconds: float = 7e-5


@dataclass(frozen=True)
class Outcome:
    """What a simulated training came to.

    Attributes:
        steps_per_second: of workers, those whose gradients were applied.
        step_seconds: the median time between two updates (sync), or of a worker's step (async).
        slowest_seconds: the 90th percentile of the same.
        staleness: the mean number of updates by others between reading and writing.
        dropped: the part of the gradients that came too late.
    """

    steps_per_second: float
    step_seconds: float
    slowest_seconds: float
    staleness: float = 0.0
    dropped: float = 0.0


class _Servers:
    """The servers of the parameters: each is busy until some time.

    They share all messages alike, so that one queue stands for all of them.
    """

    def __init__(self, costs: Costs) -> None:
        self._share = costs.model_bytes / costs.servers
        self._link_seconds = costs.model_bytes / costs.worker_bandwidth
        self._costs = costs
        self._sends = self._receives = 0.0  # until when

    def read(self, now: float) -> float:
        """When a worker that asks now has the parameters."""
        begin = max(now + self._costs.latency, self._sends)
        self._sends = begin + self._share / self._costs.bandwidth
        return max(self._sends, now + self._costs.latency + self._link_seconds)

    def write(self, now: float) -> float:
        """When the gradients of a worker that sends them now are applied."""
        begin = max(now + self._costs.latency, self._receives)
        self._receives = begin + self._share / self._costs.bandwidth + self._costs.apply_seconds
        return max(self._receives, now + self._costs.latency + self._link_seconds)

    def forget(self, now: float) -> None:
        """Give up what is on its way: those who sent it are told so."""
        self._sends, self._receives = min(self._sends, now), min(self._receives, now)


def _times(costs: Costs, shape: Any, rng: np.random.Generator) -> Any:
    """How long workers compute."""
    times = costs.step_seconds * np.exp(costs.spread * rng.normal(size=shape))
    return np.where(rng.uniform(size=shape) < costs.stragglers, times * costs.slowdown, times)


def synchronous(
    costs: Costs, workers: int, *, backups: int = 0, steps: int = 200, seed: int = 0
) -> Outcome:
    """Steps that end when the gradients of all but `backups` of the workers have been applied.

    Args:
        costs: what things take.
        workers: how many there are, the backups among them.
        backups: how many are not waited for.
        steps: how many are simulated.
        seed: of the random times.
    """
    times = _times(costs, (steps, workers), np.random.default_rng(seed))
    servers, now = _Servers(costs), 0.0
    taken = []
    needed = workers - backups
    for row in times:
        begin = now
        read = np.array([servers.read(begin) for _ in range(workers)])
        sent = np.sort(read + row)[:needed]  # those that are late are refused
        now = max(servers.write(at) for at in sent)
        servers.forget(now)
        taken.append(now - begin)
    return Outcome(
        steps_per_second=needed * steps / now,
        step_seconds=float(np.median(taken)),
        slowest_seconds=float(np.percentile(taken, 90)),
        dropped=backups / workers,
    )


def asynchronous(costs: Costs, workers: int, *, steps: int = 200, seed: int = 0) -> Outcome:
    """Workers that do not wait for each other.

    Args:
        costs: what things take.
        workers: how many there are.
        steps: of each worker, on average.
        seed: of the random times.
    """
    rng = np.random.default_rng(seed)
    servers = _Servers(costs)
    # What comes next: when, who, and what it does: it asks for parameters, or sends gradients.
    events = [(0.0, worker, True) for worker in range(workers)]
    begun, version, updates = np.zeros(workers), np.zeros(workers, int), 0
    taken, stale = [], []
    now = 0.0
    total = steps * workers
    pool = iter(_times(costs, total + workers, rng))
    while updates < total:
        at, worker, asks = heapq.heappop(events)
        if asks:
            begun[worker], version[worker] = at, updates
            done = servers.read(at) + float(next(pool))
            heapq.heappush(events, (done, worker, False))
        else:
            now = servers.write(at)
            stale.append(updates - version[worker])
            updates += 1
            taken.append(now - begun[worker])
            heapq.heappush(events, (now, worker, True))
    return Outcome(
        steps_per_second=updates / now,
        step_seconds=float(np.median(taken)),
        slowest_seconds=float(np.percentile(taken, 90)),
        staleness=float(np.mean(stale)),
    )


def best_backups(costs: Costs, workers: int, most: int, seed: int = 0) -> int:
    """How many backup workers, added to `workers`, give the most for what they cost.

    That is the speed of a step divided by the workers that are paid for, relative to none.
    """
    plain = synchronous(costs, workers, seed=seed).step_seconds

    def gain(b: int) -> float:
        step = synchronous(costs, workers + b, backups=b, seed=seed).step_seconds
        return plain / step * workers / (workers + b)

    return max(range(most + 1), key=gain)


def table(costs: Costs, counts: Sequence[int], seed: int = 0) -> list[list[str]]:
    """A row for each number of workers."""
    rows = []
    for n in counts:
        backups = max(1, round(0.05 * n))
        sync = synchronous(costs, n, seed=seed)
        backed = synchronous(costs, n + backups, backups=backups, seed=seed)
        free = asynchronous(costs, n, steps=50, seed=seed)
        rows.append(
            [
                f"{n}",
                f"{sync.steps_per_second:.1f}",
                f"{sync.step_seconds:.2f} / {sync.slowest_seconds:.2f}",
                f"{backed.steps_per_second:.1f} (+{backups})",
                f"{backed.step_seconds:.2f} / {backed.slowest_seconds:.2f}",
                f"{free.steps_per_second:.1f}",
                f"{free.step_seconds:.2f} / {free.slowest_seconds:.2f}",
                f"{free.staleness:.0f}",
            ]
        )
    return rows


HEAD = [
    "workers",
    "sync: steps/s",
    "step, p50 / p90 s",
    "backup: steps/s",
    "step, p50 / p90 s",
    "async: steps/s",
    "step, p50 / p90 s",
    "staleness",
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser("python -m benchmarks.simulated_scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    default = Costs()
    parser.add_argument("--workers", nargs="+", type=int, default=[10, 25, 50, 100, 200, 500, 1000])
    parser.add_argument("--step", type=float, default=default.step_seconds, help="seconds, median")
    parser.add_argument("--spread", type=float, default=default.spread)
    parser.add_argument("--stragglers", type=float, default=default.stragglers)
    parser.add_argument("--slowdown", type=float, default=default.slowdown)
    parser.add_argument("--model-mb", type=float, default=default.model_bytes / 1e6)
    parser.add_argument("--servers", type=int, default=default.servers)
    parser.add_argument("--mb-per-second", type=float, default=default.bandwidth / 1e6)
    parser.add_argument(
        "--worker-mb-per-second", type=float, default=default.worker_bandwidth / 1e6
    )
    parser.add_argument("--latency-us", type=float, default=default.latency * 1e6)
    parser.add_argument("--apply-us", type=float, default=default.apply_seconds * 1e6)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    speeds = (given.mb_per_second, given.worker_mb_per_second)
    if min(given.workers) < 1 or given.servers < 1 or min(speeds) <= 0 or given.step < 0:
        parser.error("workers, servers and bandwidths must be above 0, the step not below")
    costs = replace(
        default,
        step_seconds=given.step,
        spread=given.spread,
        stragglers=given.stragglers,
        slowdown=given.slowdown,
        model_bytes=given.model_mb * 1e6,
        servers=given.servers,
        bandwidth=given.mb_per_second * 1e6,
        worker_bandwidth=given.worker_mb_per_second * 1e6,
        latency=given.latency_us / 1e6,
        apply_seconds=given.apply_us / 1e6,
    )
    rows = [HEAD, *table(costs, given.workers, given.seed)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
