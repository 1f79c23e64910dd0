"""Replicas that do not wait: how stale their gradients are, and that each is applied once."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops, optimizers
from laminar.distribute import AsyncReplicas, ClusterSpec, replica_device_setter
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster
from tests.distribute.cluster.spawned_cluster import spawned_cluster

from . import async_training
from .replica_jobs import Job


class Replica:
    """A worker's graph: w falls by 0.5 with each update, once its gate is open."""

    def __init__(self, cluster: LocalCluster, task: int) -> None:
        self.graph = eng.Graph()
        rule = replica_device_setter(cluster=cluster.spec, worker_device=f"/job:worker/task:{task}")
        with self.graph.as_default(), eng.device(rule):
            self.step = eng.get_or_create_global_step()
            self.w = eng.Variable(np.float32(100), name="w")
            self.gate = eng.FIFOQueue(-1, "float32", shapes=[()], shared_name=f"gate_{task}")
            self.open: Any = self.gate.enqueue(np.float32(1))
            loss = self.w * 0.5 * self.gate.dequeue()
            self.replicas = AsyncReplicas(optimizers.SGD(1.0, name="sgd"), most=2)
            self.train = self.replicas.minimize(loss, global_step=self.step)
            self.hook = self.replicas.make_session_run_hook(every_n_steps=2)
            self.init = eng.global_variables_initializer()
        config = eng.SessionConfig(device_filters=["/job:ps", f"/job:worker/task:{task}"])
        self.session = eng.Session(cluster.target(f"worker:{task}"), self.graph, config)

    def update(self) -> None:
        self.session.run(self.open)
        self.session.run(self.train)


@pytest.mark.slow
def test_staleness_is_the_number_of_updates_between(caplog: pytest.LogCaptureFixture) -> None:
    """The first worker has begun, and waits, while the second makes one update, or five."""
    caplog.set_level("INFO", "laminar")
    with local_cluster({"ps": 1, "worker": 2}) as cluster:
        slow, fast = (Replica(cluster, task) for task in range(2))
        try:
            slow.session.run(slow.init)
            for _ in range(15):  # long enough for native code
                slow.update()
                fast.update()
            total = 30
            for between in (1, 5):
                begun = threading.Thread(target=slow.session.run, args=(slow.train,))
                begun.start()
                time.sleep(0.3)  # it has read the counter, and waits at its gate
                for _ in range(between):
                    fast.update()
                slow.session.run(slow.open)
                begun.join(20)
                assert not begun.is_alive()
                total += between + 1
            counts, w, step = slow.session.run([slow.replicas.counts, slow.w, slow.step])
            assert counts.tolist() == [total - 2, 1, 1]  # of 0, 1, and 2 or more
            assert (w, step) == (100 - 0.5 * total, total)
            slow.hook.end(slow.session)
        finally:
            slow.session.close()
            fast.session.close()
    assert f"staleness of {total} updates: mean {3 / total:.2f}, largest 2" in caplog.text


def test_wrong_use() -> None:
    with pytest.raises(InvalidArgumentError, match="most must be"):
        AsyncReplicas(optimizers.SGD(0.1), most=0)
    with pytest.raises(FailedPreconditionError, match="no step yet"):
        AsyncReplicas(optimizers.SGD(0.1)).make_session_run_hook()


@pytest.mark.slow
def test_each_gradient_is_applied_at_most_once_when_a_worker_is_killed() -> None:
    """SIGKILL in the middle of steps: the other goes on, and the counts agree with the ledger."""
    with spawned_cluster({"ps": 1, "worker": 2}) as cluster:

        def build(task: int) -> tuple[eng.Graph, Any, Any, Any]:
            graph = eng.Graph()
            rule = replica_device_setter(
                cluster=cluster.spec, worker_device=f"/job:worker/task:{task}"
            )
            with graph.as_default(), eng.device(rule):
                step = eng.get_or_create_global_step()
                w = eng.Variable(np.zeros(4000, np.float32), name="ledger")
                i = eng.placeholder("int64", [1])
                loss = ops.sum(-ops.take(w, i, axis=0))  # an update adds 1 to a row
                train = optimizers.SGD(1.0, name="sgd").minimize(loss, global_step=step)
                init = eng.global_variables_initializer()
            return graph, i, train, (init, w, step)

        def session(task: int, graph: eng.Graph) -> eng.Session:
            seen = ["/job:ps", f"/job:worker/task:{task}"]
            config = eng.SessionConfig(device_filters=seen, operation_timeout_in_ms=10_000)
            return eng.Session(cluster.target(f"worker:{task}"), graph, config)

        steady, doomed = build(0), build(1)
        first = session(0, steady[0])
        first.run(steady[3][0])
        lost: list[BaseException] = []
        applied: list[int] = []

        def run() -> None:
            with session(1, doomed[0]) as own:
                for i in range(2000, 4000):
                    try:
                        own.run(doomed[2], {doomed[1]: [i]})
                    except eng.errors.LaminarError as error:
                        lost.append(error)
                        return
                    applied.append(i)

        thread = threading.Thread(target=run)
        thread.start()
        while len(applied) < 20:
            time.sleep(0.01)
        cluster.kill("worker:1")
        thread.join(30)
        assert lost, "it goes on without its worker"
        for i in range(30):
            first.run(steady[2], {steady[1]: [i]})
        ledger, step = first.run(list(steady[3][1:]))
        first.close()
    assert set(np.unique(ledger)) <= {0, 1}
    assert ledger[:30].all()
    assert ledger[applied].all()
    assert ledger.sum() == step
    assert len(applied) + 30 <= step <= len(applied) + 31


# Trainings of which processes are killed and stopped


def job_of(folder: Path, steps: int, lease: float = 5) -> Job:
    """A training of two workers."""
    return Job(folder, "tests.distribute.async_training", {"steps": steps, "lease": lease}, lease)


def ledger_of(job: Job) -> tuple[Any, int, int]:
    """The ledger, the global step, and how many updates have been counted, as the server has it."""
    with eng.Graph().as_default():
        step, ledger, replicas, _, _ = async_training.build(ClusterSpec(job.spec), 0)
        config = eng.SessionConfig(device_filters=["/job:ps"])
        with eng.Session(job.cluster.target("ps:0"), config=config) as session:
            found: Any = session.run([ledger, step, replicas.counts])
    return found[0], int(found[1]), int(found[2].sum())


def numbers(text: str) -> list[int]:
    return [int(line) for line in text.split()]


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ps", pytest.param("0", marks=pytest.mark.exhaustive)])
def test_each_gradient_is_applied_at_most_once_when_the_server_or_the_chief_is_killed(
    tmp_path: Path, victim: str
) -> None:
    """SIGKILL: training goes on from the checkpoint; what was applied since is all that is lost."""
    job = job_of(tmp_path / "hit", 150)
    try:
        before = [numbers("".join(job.lines(i, 30))) for i in range(2)]
        before[0] += numbers(job.kill(victim, start=1))
        after = [numbers(text) for text in job.finish()]
        ledger, step, _ = ledger_of(job)
    finally:
        job.close()
    assert set(np.unique(ledger)) == {0, 1}
    assert step >= 150
    assert all(ledger[found[-10:]].all() for found in after), "what was told is not there"
    told = [i for found in (*before, *after) for i in found]
    assert len(told) == len(set(told))
    lost = len(told) - int(ledger[told].sum())
    assert lost < 60, "it began anew"
    assert ledger.sum() >= 150 - 10


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 2.0], ids=["shorter than its lease", "longer"])
def test_each_gradient_is_applied_once_when_a_worker_is_stopped(
    tmp_path: Path, seconds: float
) -> None:
    """SIGSTOP and SIGCONT: the other one does not wait; what comes late counts once, or not."""
    job = job_of(tmp_path / "hit", 100_000, lease=1)
    try:
        told = [numbers("".join(job.lines(i, 20))) for i in range(2)]
        job.workers[1].send_signal(signal.SIGSTOP)
        told[0] += numbers("".join(job.lines(0, 10)))
        time.sleep(seconds)
        job.workers[1].send_signal(signal.SIGCONT)
        told[1] += numbers("".join(job.lines(1, 10)))
        (job.folder / "stop").touch()
        told += [numbers(text) for text in job.finish()]
        ledger, step, counted = ledger_of(job)
    finally:
        job.close()
    assert set(np.unique(ledger)) == {0, 1}
    assert all(ledger[found].all() for found in told), "what was told is not there"
    assert ledger.sum() == step == counted
