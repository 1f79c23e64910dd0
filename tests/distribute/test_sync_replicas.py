"""SyncReplicas: steps of all workers together, with backups, ends, failures and wrong numbers."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import optimizers
from laminar.distribute import SyncReplicas
from laminar.engine.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster

from .replica_jobs import Job
from .replica_training import RATE, Worker, data, initial, reference


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"ps": 2, "worker": 3}) as found:
        yield found


def train(cluster: LocalCluster, workers: Sequence[Worker]) -> list[BaseException | None]:
    """Have all workers train, a thread each; the error of each."""
    errors: list[BaseException | None] = [None] * len(workers)

    def run(i: int, worker: Worker) -> None:
        try:
            worker.train(cluster.target(f"worker:{worker.task}"), cluster.spec)
        except BaseException as error:
            errors[i] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "it hangs"
    return errors


def weights(cluster: LocalCluster) -> tuple[Any, Any, int]:
    """The table, the matrix and the global step that the servers hold."""
    with eng.Graph().as_default():
        table, w = (x for x in initial())
        with eng.device("/job:ps/task:0"):
            step = eng.create_global_step()
            matrix = eng.Variable(w, name="w")
        with eng.device("/job:ps/task:1"):
            rows = eng.Variable(table, name="t")
        with eng.Session(cluster.target()) as session:
            found: Any = session.run([rows, matrix, step])
    return found[0], found[1], int(found[2])


def quiet(*workers: Worker, cluster: LocalCluster) -> tuple[Any, Any, int]:
    """The weights after a training without an error."""
    assert train(cluster, workers) == [None] * len(workers)
    return weights(cluster)


def assert_close(found: tuple[Any, Any, int], expected: tuple[Any, Any], steps: int) -> None:
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], rtol=2e-5, atol=1e-6)
    assert found[2] == steps


@pytest.mark.slow
def test_it_is_one_process_on_all_batches_with_the_same_bits_each_time() -> None:
    """Also where workers come in another order, and rows of the table travel as rows."""
    found = []
    for slow in (0, 1):
        with local_cluster({"ps": 2, "worker": 3}) as cluster:
            workers = [Worker(i, 3, 3, 6, sleep=0.03 * (i == slow)) for i in range(3)]
            found.append(quiet(*workers, cluster=cluster))
    assert_close(found[0], reference(3, 6), 6)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_backup_workers_are_not_waited_for(cluster: LocalCluster) -> None:
    """Two of three: the slow one's gradients come too late, and none of them is applied."""
    start = time.monotonic()
    workers = [
        Worker(i, 3, 2, 6, sleep=1.5 * (i == 2), own_steps=2 if i == 2 else None) for i in range(3)
    ]
    found = quiet(*workers, cluster=cluster)
    assert_close(found, reference(2, 6), 6)
    assert time.monotonic() - start < 6 * 1.5
    assert len(workers[2].losses) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1])
def test_a_worker_whose_data_ends_early_leaves(cluster: LocalCluster, first: int) -> None:
    """The others go on with means of their own; also where it is the chief, which ends last."""
    workers = [Worker(i, 2, 2, 6, own_steps=3 if i == first else None) for i in range(2)]
    found = quiet(*workers, cluster=cluster)
    assert [len(w.losses) for w in workers] == [3 if i == first else 6 for i in range(2)]
    table, w = reference(2, 3)
    for step in range(3, 6):
        ids, y = data(1 - first, step)
        x = table[ids]
        dy = 2 * (x @ w - y) / y.size
        d_w = x.T @ dy
        np.add.at(table, ids, -RATE * dy @ w.T)
        w = w - RATE * d_w
    assert_close(found, (table, w), 6)


def test_numbers_that_make_no_sense() -> None:
    sgd = optimizers.SGD(0.1)
    with pytest.raises(InvalidArgumentError, match="3 gradients of 2 workers, and never end"):
        SyncReplicas(sgd, 3, 2)
    with pytest.raises(InvalidArgumentError, match="number from 1 on"):
        SyncReplicas(sgd, 0)
    with pytest.raises(InvalidArgumentError, match="from 0 to 1, got 2"):
        SyncReplicas(sgd, 1, 2, replica=2)
    with pytest.raises(InvalidArgumentError, match="timeout_seconds"):
        SyncReplicas(sgd, 1, timeout_seconds=0)
    with pytest.raises(FailedPreconditionError, match="no step yet"):
        SyncReplicas(sgd, 1).make_session_run_hook(is_chief=True)
    with eng.Graph().as_default():
        w = eng.Variable(1.0)
        sync = SyncReplicas(optimizers.SGD(0.1), 1)
        with pytest.raises(InvalidArgumentError, match="number of this worker"):
            sync.minimize(w * w)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chief", "other", "told"),
    [
        (
            Worker(0, 2, 2, 3),
            Worker(1, 3, 2, 3),
            "waits for 2 of 3 gradients, the chief for 2 of 2",
        ),
        (
            Worker(0, 2, 2, 3, version=2),
            Worker(1, 2, 2, 3),
            "worker 1 gives other gradients .* of 't' float32\\[50, 4\\] by rows, 'w' float32",
        ),
    ],
    ids=["numbers", "gradients"],
)
def test_workers_that_disagree_all_end_at_once(chief: Worker, other: Worker, told: str) -> None:
    """Not after the time that they would wait for a step."""
    start = time.monotonic()
    with local_cluster({"ps": 1, "worker": 2}) as cluster:
        errors = train(cluster, [chief, other])
    assert time.monotonic() - start < 20 < chief.timeout
    assert all(isinstance(error, FailedPreconditionError) for error in errors), errors
    assert re.search(told, str(errors[1]))
    assert "worker 1 does not agree with the chief" in str(errors[0])


@pytest.mark.slow
def test_a_worker_with_another_shape_and_a_worker_that_does_not_come(
    cluster: LocalCluster,
) -> None:
    """The one has the error of shapes; the other one, what it waits for."""
    workers = [Worker(0, 2, 2, 3, timeout=2), Worker(1, 2, 2, 3, version=3)]
    found: dict[int, BaseException | None] = {}

    def run(i: int) -> None:
        found[i] = train(cluster, workers[i : i + 1])[0]

    chief = threading.Thread(target=run, args=(0,))
    chief.start()
    time.sleep(1)  # it has made its variables, and waits
    run(1)
    chief.join()
    waiting, wrong = found[0], found[1]
    assert isinstance(wrong, InvalidArgumentError), wrong
    assert "variable 'w' is float32[4, 1] here, and float32[4, 2]" in str(wrong)
    assert isinstance(waiting, DeadlineExceededError), waiting
    text = "worker 0 has waited 2 s for step 0 to end: 1 of 2 gradients have come"
    assert text in str(waiting)


# Processes that are killed


def job_of(folder: Path, steps: int, timeout: float = 60.0) -> Job:
    """A training of two workers."""
    told = {"total": 2, "required": 2, "steps": steps, "sleep": 0.05, "timeout": timeout}
    return Job(folder, "tests.distribute.replica_training", told)


def wait_for(job: Job, task: int, done: int) -> None:
    """Until a worker says that it has done so many steps."""
    while job.lines(task, 1)[0].split()[-1] != str(done):
        pass


def finish(job: Job) -> tuple[Any, Any, int]:
    """The weights at the end."""
    job.finish()
    newest = eng.latest_checkpoint(str(job.folder))
    assert newest is not None
    found = [eng.load_variable(newest, name) for name in ("t", "w", "global_step")]
    return found[0], found[1], int(found[2])


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ps", "0", "1"])
def test_a_training_that_loses_a_process_ends_with_the_same_bits(
    tmp_path: Path, victim: str
) -> None:
    """SIGKILL of the server, of the chief and of a worker, in the middle of a training."""
    steps = 10
    job = job_of(tmp_path / "hit", steps)
    try:
        wait_for(job, 0 if victim != "0" else 1, 4)
        job.kill(victim)
        found = finish(job)
    finally:
        job.close()
    with local_cluster({"ps": 2, "worker": 2}) as cluster:
        expected = quiet(*(Worker(i, 2, 2, steps) for i in range(2)), cluster=cluster)
    assert_close(found, reference(2, steps), steps)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_chief_that_does_not_come_again_is_an_error_of_the_others(tmp_path: Path) -> None:
    job = job_of(tmp_path / "hit", 1000, timeout=2)
    try:
        wait_for(job, 1, 3)
        job.workers[0].kill()
        job.workers[1].communicate(timeout=30)
        assert job.workers[1].returncode == 1
        log = job.log(1)
    finally:
        job.close()
    assert re.search(
        r"DeadlineExceededError: SyncReplicas: worker 1 has waited 2 s for step \d+ to end", log
    )


@pytest.mark.slow
def test_a_worker_that_is_stopped_is_waited_for_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    """SIGSTOP, and SIGCONT after a second."""
    steps = 10
    job = job_of(tmp_path / "hit", steps)
    try:
        wait_for(job, 0, 3)
        job.workers[1].send_signal(signal.SIGSTOP)
        time.sleep(1)
        job.workers[1].send_signal(signal.SIGCONT)
        found = finish(job)
    finally:
        job.close()
    with local_cluster({"ps": 2, "worker": 2}) as cluster:
        expected = quiet(*(Worker(i, 2, 2, steps) for i in range(2)), cluster=cluster)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
