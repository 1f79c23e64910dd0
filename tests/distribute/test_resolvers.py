"""What the environments of engines say of a cluster: recorded variables, and wrong ones."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.distribute import ClusterSpec
from laminar.distribute.resolvers import (
    DaskResolver,
    KubeflowResolver,
    KubernetesResolver,
    MPIResolver,
    RayResolver,
    SlurmResolver,
    SparkResolver,
    TFConfigResolver,
    TorchrunResolver,
    resolve,
)
from laminar.distribute.resolvers.host_list import counts_of, hosts_of
from laminar.distribute.resolvers.mpi import mpi_place
from laminar.engine.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
)

TF_CONFIG: dict[str, Any] = {
    "cluster": {"chief": ["c:1"], "ps": ["p:1"], "worker": ["w0:1", "w1:1"]},
    "task": {"type": "worker", "index": 1},
    "environment": "cloud",
}
SLURM = {
    "SLURM_PROCID": "4",
    "SLURM_NTASKS": "5",
    "SLURM_LOCALID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "node[08-09],gpu1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
    "SLURM_RESTART_COUNT": "3",
}
TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "1",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RESTART_COUNT": "2",
}
KUBEFLOW = {
    "PET_NNODES": "3",
    "PET_NODE_RANK": "2",
    "PET_NPROC_PER_NODE": "auto",
    "PET_MASTER_ADDR": "train-node-0-0.train",
    "PET_MASTER_PORT": "29400",
}
KUBERNETES = {"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1"}


def place(resolver: Any) -> tuple[Any, str, int]:
    return resolver.cluster_spec().as_dict(), resolver.task_type, resolver.task_id


def test_tf_config() -> None:
    resolver = TFConfigResolver({"TF_CONFIG": json.dumps(TF_CONFIG)})
    assert place(resolver) == (TF_CONFIG["cluster"], "worker", 1)
    assert resolver.cluster_spec() == ClusterSpec(TF_CONFIG["cluster"])
    assert repr(resolver) == "<TFConfigResolver /job:worker/task:1>"


def test_tf_config_of_an_evaluator_and_with_an_index_as_text() -> None:
    """Kubeflow's TFJob writes such ones."""
    for task, expected in (
        ({"type": "evaluator", "index": 0}, ("evaluator", 0)),
        ({"type": "worker", "index": "1"}, ("worker", 1)),
        ({"type": "chief"}, ("chief", 0)),
    ):
        resolver = TFConfigResolver({"TF_CONFIG": json.dumps({**TF_CONFIG, "task": task})})
        assert place(resolver)[1:] == expected


def test_environments_are_read_again() -> None:
    environ = {"TF_CONFIG": json.dumps(TF_CONFIG)}
    resolver = TFConfigResolver(environ)
    before = resolver.incarnation()
    cluster = {**TF_CONFIG["cluster"], "worker": ["w0:1", "new:2"]}
    environ["TF_CONFIG"] = json.dumps({**TF_CONFIG, "cluster": cluster})
    assert resolver.cluster_spec().task_address("worker", 1) == "w1:1"
    resolver.refresh()
    assert resolver.cluster_spec().task_address("worker", 1) == "new:2"
    assert resolver.incarnation() == before  # it is the same process


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it has no 'cluster'"),
        ('{"cluster": {}}', "it has no 'task'"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"index": 0}}', "its task is"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}}', "its task"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}', "no task 1"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}', "no job 'ps'"),
        ('{"cluster": {"worker": ["a"]}, "task": {"type": "worker"}}', "not an address"),
    ],
)
def test_wrong_tf_configs(text: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        TFConfigResolver({"TF_CONFIG": text})


def test_slurm() -> None:
    resolver = SlurmResolver(environ=SLURM)
    addresses = ["node08:8888", "node08:8889", "node09:8888", "node09:8889", "gpu1:8888"]
    assert place(resolver) == ({"worker": addresses}, "worker", 4)
    assert resolver.restarts == 3
    resolver = SlurmResolver({"ps": 1, "worker": 4}, port=1000, environ=SLURM)
    assert place(resolver)[1:] == ("worker", 3)
    assert resolver.cluster_spec().job_tasks("ps") == ["node08:1000"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"SLURM_PROCID": "5"}, "task 5 of 5 does not fit"),
        ({"SLURM_NTASKS": "6"}, "task 4 of 6 does not fit"),
        ({"SLURM_STEP_TASKS_PER_NODE": "5"}, "does not fit"),
        ({"SLURM_STEP_TASKS_PER_NODE": "x"}, "no list of numbers"),
        ({"SLURM_STEP_NODELIST": "node[8-"}, "no list of hosts"),
        ({"SLURM_PROCID": "-1"}, "SLURM_PROCID must be a whole number"),
        ({"SLURM_PROCID": "1", "SLURM_LOCALID": "0"}, "tasks are not dealt out by hosts"),
    ],
)
def test_wrong_slurm_steps(change: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        SlurmResolver(environ={**SLURM, **change})


def test_too_many_jobs() -> None:
    with pytest.raises(InvalidArgumentError, match="are 3 tasks, and there are 5 processes"):
        SlurmResolver({"ps": 1, "worker": 2}, environ=SLURM)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("a,b.c-d", ["a", "b.c-d"]),
        ("n[1-3,7],x", ["n1", "n2", "n3", "n7", "x"]),
        ("n[008-010]", ["n008", "n009", "n010"]),
        ("r[1-2]n[0,5].eu", ["r1n0.eu", "r1n5.eu", "r2n0.eu", "r2n5.eu"]),
        ("[1-2]", ["1", "2"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
    ],
)
def test_lists_of_hosts(text: str, hosts: list[str]) -> None:
    assert hosts_of(text) == hosts


@pytest.mark.parametrize(
    "text",
    ["", ",", "a,,b", "a[", "a]", "a[]", "a[1-]", "a[3-1]", "a[[1]]", "a[x]", "a[1-2", "é[²]"],
)
def test_what_is_no_list_of_hosts(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no list of hosts"):
        hosts_of(text)


@pytest.mark.parametrize("text", ["a[0-99999999]", "a[0-9999]b[0-9999]"])
def test_lists_that_would_fill_memory(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        hosts_of(text)
    with pytest.raises(InvalidArgumentError):
        counts_of("1(x99999999)")


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=5))
def test_ranges_are_their_numbers(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{a}-{a + n}" if n else str(a) for a, n in ranges)
    expected = [f"h{k}" for a, n in ranges for k in range(a, a + n + 1)]
    assert hosts_of(f"h[{text}]") == expected


@given(st.text("a1[]-,( x)", max_size=12))
def test_any_text_is_a_list_or_an_error(text: str) -> None:
    for parse in (hosts_of, counts_of):
        with contextlib.suppress(InvalidArgumentError):
            assert parse(text)


def test_kubernetes() -> None:
    resolver = KubernetesResolver(3, "workers", {"ps": 1, "worker": 2}, environ=KUBERNETES)
    cluster = {
        "ps": ["train-0.workers:8888"],
        "worker": [f"train-{i}.workers:8888" for i in (1, 2)],
    }
    assert place(resolver) == (cluster, "worker", 0)


@pytest.mark.parametrize(
    "change", [{"JOB_COMPLETION_INDEX": "3"}, {"HOSTNAME": "train-2"}, {"HOSTNAME": "laptop"}]
)
def test_what_is_no_pod_of_the_job(change: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a name that ends in its index"):
        KubernetesResolver(3, "workers", environ={**KUBERNETES, **change})


def test_kubeflow() -> None:
    hosts = [f"train-node-0-{i}.train:29400" for i in range(3)]
    assert place(KubeflowResolver(environ=KUBEFLOW)) == ({"worker": hosts}, "worker", 2)
    one = {**KUBEFLOW, "PET_NNODES": "1", "PET_NODE_RANK": "0", "PET_MASTER_ADDR": "localhost"}
    assert place(KubeflowResolver(environ=one)) == ({"worker": ["localhost:29400"]}, "worker", 0)
    with pytest.raises(InvalidArgumentError, match="pod 0 of a JobSet"):
        KubeflowResolver(environ={**KUBEFLOW, "PET_MASTER_ADDR": "10.0.0.1"})


def test_torchrun() -> None:
    resolver = TorchrunResolver(["node0", "::1"], environ=TORCHRUN)
    addresses = ["node0:29501", "node0:29502", "[::1]:29501", "[::1]:29502"]
    assert place(resolver) == ({"worker": addresses}, "worker", 3)
    assert resolver.restarts == 2
    with pytest.raises(InvalidArgumentError, match="name the hosts"):
        TorchrunResolver(environ=TORCHRUN)
    alone = {**TORCHRUN, "LOCAL_WORLD_SIZE": "4"}
    assert place(TorchrunResolver(environ=alone))[0]["worker"][3] == "node0:29504"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (TFConfigResolver, "TF_CONFIG"),
        (lambda e: SlurmResolver(environ=e), "SLURM_PROCID"),
        (lambda e: TorchrunResolver(environ=e), "RANK"),
        (lambda e: KubeflowResolver(environ=e), "PET_NODE_RANK"),
        (lambda e: KubernetesResolver(2, "w", environ=e), "JOB_COMPLETION_INDEX"),
    ],
)
def test_missing_variables_are_named(make: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(NotFoundError, match=f"the environment variable {name} is not set"):
        make({})


def test_places_of_mpi() -> None:
    """Open MPI's variables, and those of MPICH and Intel MPI."""
    open_mpi = {f"OMPI_COMM_WORLD_{k}": v for k, v in zip(("RANK", "SIZE"), "24", strict=True)}
    local = {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert mpi_place({**open_mpi, **local}) == (2, 4, 0, 2)
    assert mpi_place({"PMI_RANK": "1", "PMI_SIZE": "2"}) == (1, 2, 1, 2)
    assert mpi_place({"RANK": "1"}) is None
    with pytest.raises(NotFoundError, match="not started by mpirun"):
        MPIResolver(environ={})


def test_resolve_knows_environments() -> None:
    tf_config = {"TF_CONFIG": json.dumps(TF_CONFIG)}
    assert isinstance(resolve(environ={**SLURM, **tf_config}), TFConfigResolver)
    assert isinstance(resolve(environ=SLURM), SlurmResolver)
    assert isinstance(resolve(environ=KUBEFLOW), KubeflowResolver)
    alone = {**SLURM, **TORCHRUN, "LOCAL_WORLD_SIZE": "4"}
    assert isinstance(resolve(environ=alone), TorchrunResolver)
    assert resolve({"ps": 1, "worker": 4}, SLURM).task_id == 3
    with pytest.raises(NotFoundError, match="no environment variable tells of a cluster"):
        resolve(environ={"HOME": "/"})


# Engines that are not there: what is asked of them, and what they answer.


def test_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class BarrierTaskContext:
        @classmethod
        def get(cls) -> Any:
            return cls()

        def allGather(self, message: str) -> list[str]:  # noqa: N802  # Spark's name
            asked.append(message)
            return ["10.0.0.1:5", message, "10.0.0.2:6"]

        def partitionId(self) -> int:  # noqa: N802  # Spark's name
            return 1

        def attemptNumber(self) -> int:  # noqa: N802  # Spark's name
            return 2

    module = types.SimpleNamespace(BarrierTaskContext=BarrierTaskContext)
    monkeypatch.setitem(sys.modules, "pyspark", module)
    monkeypatch.setattr(socket, "gethostbyname", lambda name: "127.0.0.1")
    resolver = SparkResolver()
    assert place(resolver) == ({"worker": ["10.0.0.1:5", asked[0], "10.0.0.2:6"]}, "worker", 1)
    assert asked[0].startswith("127.0.0.1:")
    assert resolver.restarts == 2
    BarrierTaskContext.get = classmethod(lambda cls: None)  # type: ignore[assignment, method-assign]  # of a double
    with pytest.raises(FailedPreconditionError, match="no task of a barrier stage"):
        SparkResolver()


def test_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = types.SimpleNamespace(address="tcp://10.0.0.2:41")
    module = types.SimpleNamespace(get_worker=lambda: worker)
    monkeypatch.setitem(sys.modules, "distributed", module)
    workers = ["tcp://10.0.0.1:40", "tcp://10.0.0.2:41"]
    assert place(DaskResolver(workers)) == (
        {"worker": ["10.0.0.1:8888", "10.0.0.2:8889"]},
        "worker",
        1,
    )
    assert place(DaskResolver(workers, workers[0]))[1:] == ("worker", 0)
    with pytest.raises(FailedPreconditionError, match=r"is none of tcp://10\.0\.0\.1:40"):
        DaskResolver(workers[:1])


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (SparkResolver, "pyspark"),
        (lambda: DaskResolver(["a"]), "distributed"),
        (lambda: RayResolver(0, 1), "ray"),
    ],
)
def test_missing_packages(
    make: Callable[[], Any], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LaminarError, match=r"needs") as error:
        make()
    assert f"pip install {package}" in str(error.value)


def test_ray_in_a_cluster_of_its_own() -> None:
    """Two tasks find each other; one that waits for a third says so in time."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:

        @ray.remote  # type: ignore[untyped-decorator, unused-ignore]  # it may not be installed
        def task(rank: int, size: int, name: str) -> Any:
            resolver = RayResolver(rank, size, name, timeout_seconds=20 if size == 2 else 1)
            return place(resolver)

        found = ray.get([task.remote(rank, 2, "two") for rank in range(2)])
        assert found[0][0] == found[1][0]
        assert [f[1:] for f in found] == [("worker", 0), ("worker", 1)]
        assert len(set(found[0][0]["worker"])) == 2
        with pytest.raises(DeadlineExceededError, match=r"tasks \[1, 2\] of 'three'"):
            ray.get(task.remote(0, 3, "three"))
    finally:
        ray.shutdown()
