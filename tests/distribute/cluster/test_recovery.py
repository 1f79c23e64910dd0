"""What becomes of sessions when tasks are killed, stopped and started again: errors with names
instead of hangs, and training that goes on from its checkpoint.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine import errors

from .local_cluster import LocalCluster, local_cluster, op_of
from .spawned_cluster import SpawnedCluster, spawned_cluster

LOST = (errors.AbortedError, errors.UnavailableError)


def in_time(seconds: float, work: Callable[[], Any]) -> Any:
    """What `work` gives, which may not take longer."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append((work(), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, f"it hangs for more than {seconds} s"
    value, error = found[0]
    if error is not None:
        raise error
    return value


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"worker": 2, "ps": 1}, lease_seconds=2.0) as found:
        yield found


def add_on(task: str) -> Any:
    with eng.device(task):
        return eng.constant(np.float32(1)) + 2.0


def test_a_task_that_was_restarted_aborts_with_its_name(cluster: LocalCluster) -> None:
    with eng.Graph().as_default():
        y = add_on("/job:ps/task:0")
        with eng.Session(cluster.target()) as session:
            assert session.run(y) == 3
            cluster.restart("ps:0")
            with pytest.raises(LOST, match="/job:ps/task:0"):
                in_time(20, lambda: session.run(y))
            with pytest.raises(LOST, match="/job:ps/task:0"):
                in_time(20, lambda: session.run(y))
        with eng.Session(cluster.target()) as session:
            assert session.run(y) == 3


def test_a_task_that_is_gone_is_unavailable(cluster: LocalCluster) -> None:
    with eng.Graph().as_default():
        y = add_on("/job:ps/task:0")
        with eng.Session(cluster.target()) as session:
            session.run(y)
            cluster.servers["ps:0"].stop()
            with pytest.raises(errors.UnavailableError, match="/job:ps/task:0"):
                in_time(20, lambda: session.run(y))


def test_a_step_that_waits_ends_when_another_task_goes(cluster: LocalCluster) -> None:
    with eng.Graph().as_default():
        with eng.device("/job:worker/task:1"):
            item = eng.FIFOQueue(1, "float32", shapes=[()]).dequeue()
        with eng.device("/job:ps/task:0"):
            y = item + 1.0
        with eng.Session(cluster.target()) as session:

            def stop() -> None:
                while not len(cluster.worker("worker:1").steps):
                    time.sleep(0.01)
                cluster.servers["ps:0"].stop()

            thread = threading.Thread(target=stop)
            thread.start()
            with pytest.raises(errors.LaminarError):
                in_time(20, lambda: session.run(y))
            thread.join()
            # Nobody waits on the task that lives.
            deadline = time.monotonic() + 10
            while len(cluster.worker("worker:1").steps) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not len(cluster.worker("worker:1").steps)


def test_a_master_that_was_restarted(cluster: LocalCluster) -> None:
    config = eng.SessionConfig(rpc_for_inprocess_master=True)
    with eng.Graph().as_default():
        y = add_on("/job:ps/task:0")
        with eng.Session(cluster.target("worker:1"), config=config) as session:
            session.run(y)
            cluster.restart("worker:1")
            with pytest.raises(LOST, match="/job:worker/task:1"):
                in_time(20, lambda: session.run(y))


def test_sessions_of_silent_clients_end(cluster: LocalCluster) -> None:
    """The client goes without a word: master and workers forget its session."""
    from laminar.distribute.cluster.keeper import KEEPER

    config = eng.SessionConfig(rpc_for_inprocess_master=True)
    with eng.Graph().as_default():
        y = add_on("/job:ps/task:0")
        session = eng.Session(cluster.target(), config=config)
        session.run(y)
        time.sleep(2.5)  # longer than the lease: it is kept
        assert session.run(y) == 3
        engine: Any = session._engine
        KEEPER.remove(engine)
        deadline = time.monotonic() + 15
        while cluster.worker("ps:0").graphs and time.monotonic() < deadline:
            time.sleep(0.05)
        assert cluster.worker("ps:0").graphs == {}
        with pytest.raises(errors.AbortedError, match="nothing was heard of its client for 2 s"):
            session.run(y)
        session.close()


def test_waiting_for_tasks_that_do_not_come_ends_and_names_them(cluster: LocalCluster) -> None:
    cluster.servers["ps:0"].stop()
    config = eng.SessionConfig(operation_timeout_in_ms=600)
    with pytest.raises(errors.UnavailableError, match="/job:ps/task:0"):
        in_time(20, lambda: eng.Session(cluster.target(), graph=eng.Graph(), config=config))
    filters = eng.SessionConfig(device_filters=["/job:worker"])
    with eng.Session(cluster.target(), graph=eng.Graph(), config=filters) as session:
        assert len(session.list_devices()) == 2


def build_training() -> Any:
    """A step of training: variables on the parameter server, the gradient on a worker."""
    step = eng.get_or_create_global_step()
    with eng.device("/job:ps/task:0"):
        w = eng.Variable(np.ones((2, 2), np.float32), name="w")
    with eng.device("/job:worker/task:0"):
        x = ops.cast(step.value, "float32") * 0.1
        loss = ops.sum(ops.square(w.value - x))
    dw: Any = eng.gradients(loss, [w])[0]
    train = op_of(w.assign_sub(0.05 * dw))
    with eng.get_default_graph().control_dependencies([train]):
        count = op_of(step.assign_add(1))
    return eng.group(train, count)


def train_to(
    target: str, folder: Path, last: int, disturb: Callable[[int], None] | None = None
) -> Any:
    """The weights after `last` steps, with a checkpoint after every third."""
    with eng.Graph().as_default():
        train = build_training()
        hooks = [eng.StopAtStepHook(last_step=last)]
        saver = eng.CheckpointSaverHook(str(folder), save_steps=3)
        done = 0
        with eng.MonitoredTrainingSession(
            master=target,
            checkpoint_dir=str(folder),
            hooks=[*hooks, saver],
            save_checkpoint_secs=None,
            save_checkpoint_steps=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                if disturb is not None:
                    disturb(done)
                session.run(train)
                done += 1
    with eng.Graph().as_default():
        newest = eng.latest_checkpoint(str(folder))
        assert newest is not None
        return eng.load_variable(newest, "w")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_training_survives_tasks_that_come_and_go(tmp_path: Path, seed: int) -> None:
    """Tasks are restarted at any time, also in the middle of a step: the bits stay the same."""
    rng = random.Random(seed)
    with local_cluster({"worker": 2, "ps": 1}, lease_seconds=4.0, roots=[tmp_path]) as cluster:
        clean, hit = tmp_path / "clean", tmp_path / "hit"
        expected = in_time(60, lambda: train_to(cluster.target("worker:1"), clean, 8))
        cluster.restart("ps:0")
        ended = threading.Event()
        restarted: list[str] = []

        def restart() -> None:
            for _ in range(rng.randint(1, 3)):
                if ended.wait(rng.uniform(0.0, 0.4)):
                    return
                restarted.append(rng.choice(["ps:0", "worker:0"]))
                cluster.restart(restarted[-1])

        thread = threading.Thread(target=restart)
        thread.start()

        def disturb(done: int) -> None:
            time.sleep(0.03)  # a run takes long enough to be hit
            if done == 6:  # what hooks do at the end is not done again
                ended.set()
                thread.join(60)

        try:
            found = in_time(100, lambda: train_to(cluster.target("worker:1"), hit, 8, disturb))
        finally:
            ended.set()
            thread.join(60)
    np.testing.assert_array_equal(found, expected, err_msg=str(restarted))


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ps:0", "worker:0"])
def test_training_survives_a_kill_and_ends_with_the_same_bits(tmp_path: Path, victim: str) -> None:
    with spawned_cluster({"worker": 2, "ps": 1}, ["--root", str(tmp_path)]) as cluster:
        clean, hit = tmp_path / "clean", tmp_path / "hit"
        expected = in_time(60, lambda: train_to(cluster.target("worker:1"), clean, 10))
        cluster.kill("ps:0")
        cluster.start("ps:0")
        once: list[int] = []

        def disturb(done: int) -> None:
            if done == 5 and not once:
                once.append(done)
                cluster.kill(victim)
                cluster.start(victim)

        found = in_time(90, lambda: train_to(cluster.target("worker:1"), hit, 10, disturb))
    np.testing.assert_array_equal(found, expected)
    assert once


@pytest.fixture(scope="module")
def processes(tmp_path_factory: Any) -> Iterator[SpawnedCluster]:
    with spawned_cluster({"worker": 2, "ps": 1}, ["--lease-seconds", "3"]) as found:
        yield found


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_step(processes: SpawnedCluster) -> None:
    with eng.Graph().as_default():
        with eng.device("/job:worker/task:1"):
            item = eng.FIFOQueue(1, "float32", shapes=[()]).dequeue()
        with eng.device("/job:ps/task:0"):
            y = item + 1.0
            z = eng.constant(np.float32(2)) * 2.0
        with eng.Session(processes.target("worker:0")) as session:
            threading.Timer(0.5, processes.kill, ["worker:1"]).start()
            start = time.monotonic()
            with pytest.raises(LOST, match="/job:worker/task:1"):
                in_time(30, lambda: session.run(y))
            assert time.monotonic() - start < 10
            assert session.run(z) == 4  # what does not need it goes on
        processes.start("worker:1")
        with eng.Session(processes.target("worker:0")) as session:
            assert session.run(add_on("/job:worker/task:1")) == 3


@pytest.mark.slow
def test_a_worker_that_is_stopped_is_noticed(processes: SpawnedCluster) -> None:
    """SIGSTOP: its sockets are open, it answers nothing."""
    with eng.Graph().as_default():
        y = add_on("/job:worker/task:1")
        with eng.Session(processes.target("worker:0")) as session:
            session.run(y)
            processes.kill("worker:1", signal.SIGSTOP)
            try:
                with pytest.raises(LOST, match="/job:worker/task:1"):
                    in_time(40, lambda: session.run(y))
            finally:
                processes.kill("worker:1", signal.SIGCONT)


@pytest.mark.slow
def test_what_a_stopped_task_does_late_is_taken_back() -> None:
    """Its share of a step arrives, the step fails, and only then does the task go on."""
    with spawned_cluster({"worker": 2}) as processes, eng.Graph().as_default():
        with eng.device("/job:worker/task:1"):
            w = eng.Variable(np.float32(1), name="late")
            update = op_of(w.assign_add(np.float32(1)))
            read = w.value
        with eng.Session(processes.target("worker:0")) as session:
            session.run(w.initializer)
            session.run(update)
            processes.kill("worker:1", signal.SIGSTOP)
            options = eng.RunOptions(timeout_in_ms=300)
            try:
                with pytest.raises(errors.DeadlineExceededError):
                    in_time(40, lambda: session.run(update, options=options))
            finally:
                processes.kill("worker:1", signal.SIGCONT)
            assert in_time(20, lambda: session.run(read)) == 2


@pytest.mark.slow
def test_a_server_that_is_told_to_end(processes: SpawnedCluster) -> None:
    processes.kill("ps:0", signal.SIGTERM)
    assert processes.processes["ps:0"].returncode == 0
    processes.start("ps:0")
