"""One of the processes that scaling.py starts: trains a network, on one core.

python -m benchmarks.scaling_task FRAMEWORK RANK SIZE '{"batch": 64, ...}'
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from . import problems
from .machine import usable_cores

STEPS = 4  # in a round


def problem_of(batch: int, *, tiny: bool) -> problems.Problem:
    """The network, and images for a round."""
    if tiny:
        return problems.resnet(8, 1, batch, STEPS)
    return problems.resnet(32, 3, batch, STEPS)


def laminar_rounds(problem: problems.Problem, size: int, seconds: float) -> list[float]:
    """The seconds of a step, for each round of `fit`."""
    import laminar
    from laminar.engine.compiler.native.threads import set_threads

    from .frameworks import keras_networks

    set_threads(1)
    strategy = laminar.distribute.MultiWorker() if size > 1 else None
    model = keras_networks.build(laminar, keras_networks.resnet, problem)
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(laminar.optimizers.SGD(0.01, momentum=0.9), loss, strategy=strategy)
    found: list[float] = []

    class Timed(laminar.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            self.end = time.perf_counter() + seconds

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.begin = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            now = time.perf_counter()
            found.append((now - self.begin) / STEPS)
            self.model.stop_training = now > self.end  # the workers agree on that

    given = {"batch_size": problem.batch, "shuffle": False, "verbose": 0}
    model.fit(problem.x, problem.y, **given, epochs=2)  # compiles
    model.fit(problem.x, problem.y, **given, epochs=10_000, callbacks=[Timed()])
    return found


def torch_rounds(problem: problems.Problem, rank: int, size: int, seconds: float) -> list[float]:
    """The same of DistributedDataParallel over gloo; each process has its part of each batch."""
    import torch
    from torch.nn import functional

    from .frameworks import in_torch

    torch.set_num_threads(1)
    net = in_torch.build(in_torch.resnet, problem)
    if size > 1:
        torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    x, y = in_torch.tensor(problem.x), torch.from_numpy(problem.y).long()
    own = problem.batch // size

    def one_round() -> float:
        begin = time.perf_counter()
        for step in range(STEPS):
            first = step * problem.batch + rank * own
            optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(net(x[first : first + own]), y[first : first + own]).backward()
            optimizer.step()
        return (time.perf_counter() - begin) / STEPS

    one_round()
    one_round()
    found, end = [], time.perf_counter() + seconds
    goes_on = torch.ones(1)
    while goes_on:
        found.append(one_round())
        goes_on = torch.tensor([float(time.perf_counter() < end)])
        if size > 1:
            torch.distributed.all_reduce(goes_on, torch.distributed.ReduceOp.MIN)
    return found


def main() -> None:
    """Train, and print the seconds of a step, by round, as JSON."""
    framework, rank_text, size_text, text = sys.argv[1:]
    told = json.loads(text)
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", rank_text))
    size = int(size_text)
    cores = sorted(usable_cores())
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    problem = problem_of(told["batch"], tiny=told["tiny"])
    if framework == "torch":
        found = torch_rounds(problem, rank, size, told["seconds"])
    else:
        found = laminar_rounds(problem, size, told["seconds"])
    if rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
