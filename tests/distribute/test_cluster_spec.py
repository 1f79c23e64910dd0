"""ClusterSpec: what it takes, what it tells, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.distribute import ClusterSpec
from laminar.engine.errors import DataLossError, InvalidArgumentError

CLUSTER = {"worker": ["w0:1", "w1:2", "w2:3"], "ps": ["ps0:4", "ps1:5"]}
SPARSE = {"worker": {1: "w1:2", 7: "w7:3"}, "ps": ["ps0:4"]}


def test_what_it_tells() -> None:
    spec = ClusterSpec(CLUSTER)
    assert spec.jobs == ["ps", "worker"]
    assert [spec.num_tasks(job) for job in spec.jobs] == [2, 3]
    assert spec.task_indices("worker") == [0, 1, 2]
    assert spec.task_address("worker", 2) == "w2:3"
    assert spec.job_tasks("ps") == ["ps0:4", "ps1:5"]
    assert spec.as_dict() == CLUSTER
    assert spec
    assert not ClusterSpec({})


def test_tasks_may_have_gaps() -> None:
    spec = ClusterSpec(SPARSE)
    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("worker") == [1, 7]
    assert spec.task_address("worker", 7) == "w7:3"
    assert spec.job_tasks("worker") == [None, "w1:2", *[None] * 5, "w7:3"]
    assert spec.as_dict() == SPARSE


@pytest.mark.parametrize("cluster", [CLUSTER, SPARSE, {}], ids=["dense", "sparse", "empty"])
def test_round_trips(cluster: Any) -> None:
    spec = ClusterSpec(cluster)
    message = spec.as_cluster_def()
    for form in (spec, spec.as_dict(), message, message.SerializeToString()):
        assert ClusterSpec(form) == spec
        assert hash(ClusterSpec(form)) == hash(spec)
    assert repr(spec) == f"ClusterSpec({spec.as_dict()!r})"
    assert spec != ClusterSpec({"worker": ["elsewhere:1"]})
    assert spec != cluster


def test_what_it_was_made_of_may_change() -> None:
    tasks = ["w0:1"]
    spec = ClusterSpec({"worker": tasks})
    tasks.append("w1:2")
    found = spec.as_dict()["worker"]
    assert isinstance(found, list)
    found.append("w2:3")
    assert spec.job_tasks("worker") == ["w0:1"]


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (["w0:1"], "expected jobs"),
        (3, "expected jobs"),
        ({"": ["w0:1"]}, "not the name of a job"),
        ({"a/b": ["w0:1"]}, "not the name of a job"),
        ({1: ["w0:1"], "a": []}, "not the name of a job"),
        ({"worker": "w0:1"}, "expected the addresses"),
        ({"worker": {-1: "w0:1"}}, "not the index"),
        ({"worker": {True: "w0:1"}}, "not the index"),
        ({"worker": {"0": "w0:1"}}, "not the index"),
        ({"worker": {1 << 31: "w0:1"}}, "not the index"),
        ({"worker": [None]}, "not an address"),
        ({"worker": ["w0"]}, "not an address"),
        ({"worker": ["w0:70000"]}, "not an address"),
        ({"worker": ["grpc://w0:1"]}, "not an address"),
        ({"worker": ["w0:1", "w0:1"]}, "/job:worker/task:0 and /job:worker/task:1 have one"),
        ({"worker": ["w0:1"], "ps": ["w0:1"]}, "/job:ps/task:0 and /job:worker/task:0 have one"),
    ],
)
def test_what_it_refuses(cluster: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        ClusterSpec(cluster)


def test_any_free_port_may_be_asked_for_twice() -> None:
    assert ClusterSpec({"worker": ["localhost:0", "localhost:0"]}).num_tasks("worker") == 2
    assert ClusterSpec({"worker": ["[::1]:0"]}).task_address("worker", 0) == "[::1]:0"


def test_two_jobs_of_one_name() -> None:
    message = ClusterSpec({"a": ["h:1"]}).as_cluster_def()
    message.job.add(name="a")
    with pytest.raises(InvalidArgumentError, match="two jobs 'a'"):
        ClusterSpec(message)


@pytest.mark.parametrize("method", ["num_tasks", "task_indices", "job_tasks"])
def test_unknown_jobs_and_tasks(method: str) -> None:
    spec = ClusterSpec(CLUSTER)
    with pytest.raises(ValueError, match="no job 'chief'"):
        getattr(spec, method)("chief")
    with pytest.raises(ValueError, match="no job 'chief'"):
        spec.task_address("chief", 0)
    with pytest.raises(ValueError, match="has no task 3"):
        spec.task_address("worker", 3)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        spec = ClusterSpec(data)
    except (DataLossError, InvalidArgumentError):
        return
    assert ClusterSpec(spec.as_cluster_def()) == spec


def test_what_is_of_another_kind_is_a_type_error() -> None:
    for wrong in (3, {"worker": 3}, {"worker": {"first": "w0:1"}}):
        with pytest.raises(TypeError) as caught:
            ClusterSpec(wrong)
        assert isinstance(caught.value, ValueError)
