"""Masters and workers asked by plain stubs of gRPC, which know the published messages alone."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from laminar import engine as eng
from laminar.distribute.proto import control_pb2
from laminar.distribute.wire import Channels, decode_many, encode_many
from laminar.distribute.wire.quiet_grpc import grpc
from laminar.engine import RunOptions
from laminar.engine.errors import DataLossError
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster
from tests.distribute.wire.harness import SECONDS

messages: Any = control_pb2


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"worker": 2}) as found:
        yield found


class Stub:
    """The methods of a service, as the code that protoc generates has them."""

    def __init__(self, channel: Any, service: str) -> None:
        for method in messages.DESCRIPTOR.services_by_name[service].methods:
            call = channel.unary_unary(
                f"/{method.containing_service.full_name}/{method.name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=getattr(messages, method.output_type.name).FromString,
            )
            setattr(self, method.name, call)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@pytest.fixture
def channel(cluster: LocalCluster) -> Iterator[Any]:
    with grpc.insecure_channel(cluster.target().removeprefix("grpc://")) as found:
        yield found


def written_graph() -> Any:
    """A GraphDef that came as text."""
    graph = eng.Graph()
    with graph.as_default():
        x = eng.placeholder("float32", [2], name="x")
        with eng.device("/job:worker/task:1"):
            doubled = x + x
        _ = eng.identity(doubled * x, name="y")
    text = text_format.MessageToString(graph.as_graph_def().message)
    empty = messages.CreateSessionRequest().graph
    return text_format.Parse(text, empty)


def test_a_graph_is_run(cluster: LocalCluster, channel: Any) -> None:
    master = Stub(channel, "MasterService")
    made = master.CreateSession(messages.CreateSessionRequest(wire_version=1))
    handle = made.session_handle
    master.ExtendSession(
        messages.ExtendSessionRequest(
            session_handle=handle, graph=written_graph(), current_graph_version=made.graph_version
        )
    )
    x = np.array([1.5, -2.0], "float32")
    request = messages.RunStepRequest(
        session_handle=handle,
        feed=["x:0"],
        fetch=["y:0"],
        request_id=7,
        tensors=encode_many([("", x)]),
    )
    reply = master.RunStep(request)
    (frame,) = decode_many(reply.tensors)
    np.testing.assert_array_equal(frame.value, [4.5, 8.0])
    with pytest.raises(grpc.RpcError) as caught:
        master.RunStep(request)
    error: Any = caught.value
    assert error.code() is grpc.StatusCode.ALREADY_EXISTS
    assert "asked for before" in error.details()
    master.CloseSession(messages.CloseSessionRequest(session_handle=handle))


@pytest.mark.parametrize("is_partial", [False, True])
def test_feeds_that_are_none_are_refused_by_their_names(channel: Any, is_partial: bool) -> None:
    master = Stub(channel, "MasterService")
    made = master.CreateSession(
        messages.CreateSessionRequest(wire_version=1, graph=written_graph())
    )
    handle = made.session_handle
    x = np.array([1.5, -2.0], "float32")
    for feed, values, said in (
        (["x:0"], [x.astype("int32")], "x:0 is float32, fed int32"),
        (["x:0"], [np.ones((3,), "float32")], r"x:0 is float32\[2\], fed \[3\]"),
        (["x:0", "x:0"], [x, x], "x:0 is fed twice"),
    ):
        request = messages.RunStepRequest(
            session_handle=handle, feed=feed, fetch=["y:0"], request_id=secrets.randbits(60) + 1
        )
        request.tensors = encode_many([("", value) for value in values])
        if is_partial:
            setup = messages.PartialRunSetupRequest(
                session_handle=handle, feed=["x:0"], fetch=["y:0"]
            )
            request.partial_run_handle = master.PartialRunSetup(setup).partial_run_handle
        with pytest.raises(grpc.RpcError) as caught:
            master.RunStep(request)
        error: Any = caught.value
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert re.match(said, error.details())
    master.CloseSession(messages.CloseSessionRequest(session_handle=handle))


def test_a_worker_tells_of_itself(channel: Any) -> None:
    worker = Stub(channel, "WorkerService")
    status = worker.GetStatus(messages.GetStatusRequest())  # a message without any bytes
    assert status.task == "/job:worker/task:0"
    assert [d.device_type for d in status.device] == ["cpu"]
    beat = worker.Heartbeat(messages.HeartbeatRequest(session_handle=["none"]))
    assert (beat.incarnation, list(beat.unknown)) == (status.incarnation, ["none"])


def test_the_devices_of_all_tasks_are_listed_without_a_session(channel: Any) -> None:
    listed = Stub(channel, "MasterService").ListDevices(messages.ListDevicesRequest()).device
    assert [d.name for d in listed] == [f"/job:worker/task:{i}/device:cpu:0" for i in (0, 1)]
    assert all(d.incarnation for d in listed)


def test_the_log_has_the_calls_of_the_master_in_the_same_process(
    cluster: LocalCluster, channel: Any
) -> None:
    worker = Stub(channel, "WorkerService")
    graph = eng.Graph()
    with graph.as_default():
        with eng.device("/job:worker/task:1"):
            there = eng.constant([1.0]) * 2.0
        with eng.device("/job:worker/task:0"):
            y = there + 1.0
    with eng.Session(cluster.target(), graph=graph) as session:
        worker.Logging(messages.LoggingRequest(record=True))
        for _ in range(3):
            assert session.run(y) == [3.0]
        calls = list(worker.Logging(messages.LoggingRequest(record=False)).call)
    assert sum(c.method == "RegisterGraph" for c in calls) == 1
    steps = [c.step_id for c in calls if c.method == "RunGraph"]
    assert len(set(steps)) == len(steps) == 3
    assert min(steps) >= 1 << 56


def test_steps_of_all_sessions_are_traced(cluster: LocalCluster, channel: Any) -> None:
    worker = Stub(channel, "WorkerService")

    def tracing(record: bool) -> list[Any]:
        return list(worker.Tracing(messages.TracingRequest(record=record)).step)

    graph = eng.Graph()
    with graph.as_default():
        with eng.device("/job:worker/task:1"):
            x = eng.placeholder("float32", [2], name="x")
            there = x * x
        with eng.device("/job:worker/task:0"):
            y = eng.identity(there + x, name="sum")
    feeds = {x: np.ones(2, "float32")}
    with eng.Session(cluster.target("worker:1"), graph=graph) as session:
        session.run(y, feeds)
        assert tracing(True) == []
        session.run(y, feeds)
        session.run(y, feeds, RunOptions(timeout_in_ms=60_000))
        steps = tracing(False)
        session.run(y, feeds)
        assert tracing(False) == []
    assert len({step.step_id for step in steps}) == 2
    for step in steps:
        by_device = {d.device: {n.type for n in d.node} for d in step.step_stats}
        assert "Add" in by_device["/job:worker/task:0/device:cpu:0"]
        assert by_device["/job:worker/task:0/transfers"] == {"RecvTensor"}
        assert not any("task:1" in device for device in by_device)


def test_a_damaged_call_of_ones_own_is_not_taken_for_a_plain_one(cluster: LocalCluster) -> None:
    address = cluster.target().removeprefix("grpc://")
    good = messages.GetStatusRequest().SerializeToString()
    with Channels() as channels, pytest.raises(DataLossError):
        channels.call(
            address, "unary_unary", "laminar.WorkerService/GetStatus", b"\x09" + good, SECONDS
        )
