"""Servers: their life, what they refuse, what their services do when asked by hand."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from laminar import engine as eng
from laminar.distribute import ClusterSpec, Server, connect_to_cluster
from laminar.distribute.cluster.messages import WIRE_VERSION, messages
from laminar.distribute.cluster.peers import RemotePeer
from laminar.distribute.server import main, parse_cluster
from laminar.distribute.wire import Channels, Keepalive
from laminar.distribute.wire.keepalive import channel_options
from laminar.engine import errors
from laminar.engine.graph.exchange import export_graph
from laminar.engine.ops.io.files import matching_files, read_file

from .local_cluster import LocalCluster, free_addresses, local_cluster, op_of

# The life of a server


def test_a_local_server() -> None:
    with Server.create_local_server() as server:
        assert server.target.startswith("grpc://localhost:")
        assert server.server_def.job_name == "local"
        assert repr(server).startswith("<server of /job:local/task:0")
        with eng.Graph().as_default(), eng.Session(server.target) as session:
            assert session.run(eng.constant(2) + 3) == 5


def test_a_port_that_was_free_is_in_the_definition() -> None:
    """With the port that was asked for, 0, nobody could reach the server."""
    with Server({"worker": ["localhost:0"]}) as worker:
        (address,) = worker.server_def.cluster["worker"]
        assert f"grpc://{address}" == worker.target
        with connect_to_cluster(worker.server_def.cluster), eng.device("/job:worker/task:0"):
            assert (eng.constant([2.0]) * 3.0).numpy() == [6.0]
    jobs = {"worker": {3: "localhost:0", 5: "localhost:0"}}
    with Server(jobs, "worker", 5) as sparse:
        at = sparse.target.removeprefix("grpc://")
        assert sparse.server_def.cluster == {"worker": {3: "localhost:0", 5: at}}
        config = eng.SessionConfig(device_filters=["/job:worker/task:5"])
        with eng.Graph().as_default(), eng.Session(sparse.target, config=config) as session:
            assert session.run(eng.constant(2) + 3) == 5


def options_of_haste(keepalive: Keepalive) -> list[tuple[str, int]]:
    """To connect may take 0.1 s."""
    return [*(dict(channel_options(keepalive)) | {"grpc.min_reconnect_backoff_ms": 100}).items()]


def test_states(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server({"local": free_addresses(1)}, start=False)
    config = eng.SessionConfig(operation_timeout_in_ms=300)
    with monkeypatch.context() as patch:
        patch.setattr("laminar.distribute.wire.channels.channel_options", options_of_haste)
        with pytest.raises(errors.LaminarError):  # it answers nobody yet
            eng.Session(server.target, graph=eng.Graph(), config=config)
    server.start()
    server.start()
    eng.Session(server.target, graph=eng.Graph()).close()
    joined = threading.Thread(target=server.join)
    joined.start()
    joined.join(0.1)
    assert joined.is_alive()
    server.stop()
    joined.join(10)
    assert not joined.is_alive()
    server.stop()
    server.join()
    with pytest.raises(errors.FailedPreconditionError, match="was stopped"):
        server.start()


def test_joining_one_that_was_not_started_stops_it() -> None:
    server = Server({"local": free_addresses(1)}, start=False)
    server.join()
    with pytest.raises(errors.FailedPreconditionError):
        server.start()


def test_one_that_was_not_started_gives_up_its_port() -> None:
    (address,) = free_addresses(1)
    for end in (Server.stop, Server.join):
        end(Server({"local": [address]}, start=False))
        with Server({"local": [address]}) as server:
            assert server.target == f"grpc://{address}"


def test_nothing_is_left_of_a_server() -> None:
    before = set(threading.enumerate())
    with local_cluster({"worker": 2}) as cluster, eng.Graph().as_default():
        with eng.device("/job:worker/task:1"):
            y = eng.constant(1) + 1
        session = eng.Session(cluster.target())
        session.run(y)
        session.close()
    left = [t for t in set(threading.enumerate()) - before if t.is_alive()]
    assert [t.name for t in left if t.name != "partition"] == []  # these are kept for a while


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (({"worker": ["localhost:0"]}, "ps", 0), errors.InvalidArgumentError, "no task 0 of job"),
        (({"worker": ["localhost:0"]}, "worker", 1), errors.InvalidArgumentError, "no task 1"),
        (({"a": ["h:1"], "b": ["h:2"]},), errors.InvalidArgumentError, "say which job"),
        (({"a": ["h:1", "h:2"]},), errors.InvalidArgumentError, "say which task"),
        (({"a": ["0.0.0.0:0"]},), errors.PermissionDeniedError, "credentials"),
        (({"a": ["localhost:0"]}, None, None, "smoke"), errors.NotFoundError, "protocol"),
    ],
)
def test_what_is_no_server(arguments: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        Server(*arguments)


def test_a_port_has_one_server() -> None:
    cluster = ClusterSpec({"worker": free_addresses(1)})
    with Server(cluster), pytest.raises(errors.AlreadyExistsError, match="listens there"):
        Server(cluster)


def test_settings_are_checked() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="lease_seconds"):
        Server({"a": ["localhost:0"]}, lease_seconds=0)
    with pytest.raises(errors.InvalidArgumentError, match="is no folder"):
        Server({"a": ["localhost:0"]}, roots=["/no/such/folder"])
    with pytest.raises(errors.InvalidArgumentError, match="list of folders"):
        Server({"a": ["localhost:0"]}, roots="/tmp")


def test_nobody_answers() -> None:
    (address,) = free_addresses(1)
    with pytest.raises(errors.UnavailableError, match=address):
        eng.Session(f"grpc://{address}", graph=eng.Graph())
    with pytest.raises(errors.PermissionDeniedError, match="credentials"):
        eng.Session("grpc://192.0.2.1:1", graph=eng.Graph())


def test_a_server_under_another_tasks_address() -> None:
    a, b = free_addresses(2)
    cluster = {"worker": [a, b]}
    with (
        Server(cluster, "worker", 0) as first,
        Server({"worker": [b]}, "worker", 0),
        pytest.raises(errors.AbortedError, match="is /job:worker/task:0"),
    ):
        eng.Session(first.target, graph=eng.Graph())


# What its program takes


def test_clusters_as_text() -> None:
    assert parse_cluster("worker=a:1, b:2;ps=c:3") == {"worker": ["a:1", "b:2"], "ps": ["c:3"]}
    assert parse_cluster('{"worker": {"1": "a:1"}}') == {"worker": {1: "a:1"}}
    for text in ("worker", "a=x:1;a=y:2", "{"):
        with pytest.raises(errors.InvalidArgumentError):
            parse_cluster(text)


def test_the_program_says_what_is_wrong(capsys: Any) -> None:
    assert main(["--cluster", "worker=localhost:0", "--job", "ps"]) == 1
    assert "no task 0 of job 'ps'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_program_has_a_help() -> None:
    command = [sys.executable, "-m", "laminar.distribute.server", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--allow-insecure-network" in done.stdout


# The services by themselves


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Any:
    return tmp_path_factory.mktemp("roots")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[LocalCluster]:
    with local_cluster({"worker": 2}, roots=[folder]) as found:
        yield found


@pytest.fixture
def channels() -> Iterator[Channels]:
    with Channels() as found:
        yield found


def peer(cluster: LocalCluster, channels: Channels, service: str) -> RemotePeer:
    address = cluster.target("worker:1").removeprefix("grpc://")
    return RemotePeer(channels, address, f"laminar.{service}")


def test_a_worker_asked_by_hand(cluster: LocalCluster, channels: Channels) -> None:
    worker, m = peer(cluster, channels, "WorkerService"), messages()

    def call(method: str, request: Any, values: Any = ()) -> Any:
        return worker.call(method, request, values, timeout_seconds=20)

    status = call("GetStatus", m.GetStatusRequest()).message
    assert [d.name for d in status.device] == ["/job:worker/task:1/device:cpu:0"]
    session = m.CreateWorkerSessionRequest(
        session_handle="mine", lease_seconds=60, wire_version=WIRE_VERSION
    )
    session.config.placement, session.config.jit_compile = "priority", "auto"
    call("CreateWorkerSession", session)
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [None], name="x")
        y = op_of(eng.identity(x * 2.0, name="y"))
    request = m.RegisterGraphRequest(session_handle="mine")
    part = request.part.add(device="/job:worker/task:1/device:cpu:0", fetch=["y:0"])
    part.graph.CopyFrom(export_graph(graph).message)
    part.feed.add(index=0, tensor="x:0")
    handle = call("RegisterGraph", request).message.graph_handle
    assert y.name == "y"
    assert len(handle) == 16
    run = m.RunGraphRequest(session_handle="mine", graph_handle=handle, step_id=7)
    x_value = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(call("RunGraph", run, [x_value]).values[0], x_value * 2)
    with pytest.raises(errors.AbortedError, match="twice"):  # at most once
        call("RunGraph", run, [x_value])
    call("CleanupGraph", m.CleanupGraphRequest(session_handle="mine", step_id=[7]))
    with pytest.raises(errors.AbortedError, match="is over"):
        call("RunGraph", run, [x_value])
    run.step_id, run.incarnation = 8, 5
    with pytest.raises(errors.AbortedError, match="was restarted"):
        call("RunGraph", run, [x_value])
    run.incarnation = status.incarnation
    for values, kind in (
        ([], errors.InvalidArgumentError),
        ([x_value, x_value], errors.InvalidArgumentError),
        ([x_value.astype("float64")], errors.DTypeError),
        ([x_value.reshape(1, 3)], errors.ShapeError),
    ):
        with pytest.raises(kind):
            call("RunGraph", run, values)
    call("DeregisterGraph", m.DeregisterGraphRequest(session_handle="mine", graph_handle=handle))
    run.step_id = 9
    for method, again in (
        ("RunGraph", run),
        ("DeregisterGraph", m.DeregisterGraphRequest(session_handle="mine", graph_handle=handle)),
    ):
        with pytest.raises(errors.AbortedError, match="has no graph"):
            call(method, again)
    call("DeleteWorkerSession", m.DeleteWorkerSessionRequest(session_handle="mine"))
    with pytest.raises(errors.AbortedError, match="does not know the session"):
        call("RegisterGraph", request)


def test_a_master_asked_by_hand(cluster: LocalCluster, channels: Channels) -> None:
    master, m = peer(cluster, channels, "MasterService"), messages()

    def call(method: str, request: Any, values: Any = ()) -> Any:
        return master.call(method, request, values, timeout_seconds=20)

    with eng.Graph().as_default() as graph:
        eng.placeholder("float32", [], name="x")
    create = m.CreateSessionRequest(wire_version=WIRE_VERSION, graph=export_graph(graph).message)
    made = call("CreateSession", create).message
    other = call("CreateSession", create).message
    assert made.session_handle != other.session_handle
    with graph.as_default():
        before = len(graph.operations)
        eng.identity(graph.get_tensor_by_name("x:0") * 2.0, name="y")
    more = m.ExtendSessionRequest(
        session_handle=made.session_handle,
        graph=export_graph(graph, graph.operations[before:]).message,
        current_graph_version=made.graph_version,
    )
    version = call("ExtendSession", more).message.new_graph_version
    assert version > made.graph_version
    with pytest.raises(errors.FailedPreconditionError, match="version"):
        call("ExtendSession", more)
    more.current_graph_version = version
    with pytest.raises(errors.InvalidArgumentError, match="send new nodes only"):
        call("ExtendSession", more)
    run = m.RunStepRequest(
        session_handle=made.session_handle, feed=["x:0"], fetch=["y:0"], request_id=11
    )
    reply = call("RunStep", run, [np.float32(4)])
    assert reply.values[0] == 8
    assert list(reply.message.fetch) == ["y:0"]
    with pytest.raises(errors.AlreadyExistsError, match="was asked for before"):
        call("RunStep", run, [np.float32(4)])
    for changes, kind in (
        ({"request_id": 0}, errors.InvalidArgumentError),
        ({"request_id": 12, "fetch": ["z:0"]}, errors.NotFoundError),
        ({"request_id": 13, "fetch": ["y:7"]}, errors.NotFoundError),
        ({"request_id": 14, "feed": ["y"]}, errors.InvalidArgumentError),
        ({"request_id": 15, "feed": []}, errors.InvalidArgumentError),
        ({"request_id": 16, "session_handle": "unknown"}, errors.AbortedError),
    ):
        wrong = m.RunStepRequest(session_handle=made.session_handle, feed=["x:0"], fetch=["y:0"])
        for name, value in changes.items():
            if isinstance(value, list):
                del getattr(wrong, name)[:]
                getattr(wrong, name).extend(value)
            else:
                setattr(wrong, name, value)
        with pytest.raises(kind):
            call("RunStep", wrong, [np.float32(4)])
    for handle in (made.session_handle, other.session_handle):
        call("CloseSession", m.CloseSessionRequest(session_handle=handle))
    with pytest.raises(errors.AbortedError, match="session closed"):
        call("CloseSession", m.CloseSessionRequest(session_handle=made.session_handle))


def test_another_version_is_refused(cluster: LocalCluster, channels: Channels) -> None:
    master, worker = (peer(cluster, channels, f"{s}Service") for s in ("Master", "Worker"))
    with pytest.raises(errors.FailedPreconditionError, match=f"version {WIRE_VERSION}.* in 99"):
        master.call(
            "CreateSession", messages().CreateSessionRequest(wire_version=99), timeout_seconds=20
        )
    with pytest.raises(errors.FailedPreconditionError, match=f"version {WIRE_VERSION}.* in 99"):
        worker.call(
            "CreateWorkerSession",
            messages().CreateWorkerSessionRequest(session_handle="x", wire_version=99),
            timeout_seconds=20,
        )


# Files


def test_files_outside_of_the_roots_are_out_of_bounds(
    cluster: LocalCluster, folder: Path, tmp_path: Path
) -> None:
    (folder / "inside.txt").write_text("inside")
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (folder / "link.txt").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        name = eng.placeholder("string", [])
        with eng.device("/job:worker/task:1"):
            content = read_file(name)
            names = matching_files(name)
            v = eng.Variable(np.float32(1), name="v")
            saver = eng.Saver([v])
        assert session.run(content, {name: str(folder / "inside.txt").encode()}) == b"inside"
        for path in (
            secret,
            folder / "link.txt",
            folder / "up" / "secret.txt",
            folder / ".." / "elsewhere",
            Path("/etc/passwd"),
        ):
            with pytest.raises(errors.PermissionDeniedError, match="roots"):
                session.run(content, {name: str(path).encode()})
        with pytest.raises(errors.PermissionDeniedError, match="roots"):
            session.run(names, {name: b"/etc/*"})
        assert list(session.run(names, {name: str(folder / "in*.txt").encode()})) == [
            str(folder / "inside.txt").encode()
        ]
        session.run(v.initializer)
        with pytest.raises(errors.PermissionDeniedError, match="roots"):
            saver.save(session, str(tmp_path / "model"))
        saver.save(session, str(folder / "model"))
        session.run(op_of(v.assign_add(np.float32(1))))
        saver.restore(session, str(folder / "model"))
        assert session.run(v.value) == 1
    assert not list(tmp_path.glob("model*"))


# Configs


def test_the_server_has_a_config_for_sessions_without_one() -> None:
    config = eng.SessionConfig(device_count={"cpu": 2}, operation_timeout_in_ms=200)
    with (
        Server.create_local_server(config) as server,
        eng.Graph().as_default(),
        eng.Session(server.target) as session,
    ):
        assert [d.name[-5:] for d in session.list_devices()] == ["cpu:0", "cpu:1"]
        with eng.device("/cpu:1"):
            item = eng.FIFOQueue(1, "float32", shapes=[()]).dequeue()
        with pytest.raises(errors.DeadlineExceededError):
            session.run(item)


@pytest.mark.parametrize(
    "changes",
    [
        {"device_count": {"cpu": 2}},
        {"memory_limit_bytes": {"cpu": 1000}},
        {"allow_growth": False},
        {"lossy_transfers": lambda *_: True},
        {"device_filters": ["/job:nobody"]},
        {"placement": "learned"},
    ],
)
def test_configs_that_a_cluster_does_not_take(cluster: LocalCluster, changes: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        eng.Session(cluster.target(), graph=eng.Graph(), config=eng.SessionConfig(**changes))


def test_soft_placement(cluster: LocalCluster) -> None:
    with eng.Graph().as_default():
        with eng.device("/job:worker/task:7"):
            y = eng.constant(1) + 1
        with (
            eng.Session(cluster.target()) as session,
            pytest.raises(errors.InvalidArgumentError, match="/job:worker/task:7"),
        ):
            session.run(y)
        config = eng.SessionConfig(allow_soft_placement=True)
        with eng.Session(cluster.target(), config=config) as session:
            assert session.run(y) == 2


@pytest.mark.parametrize("kind", ["gpu:0", "cpu:3"])
def test_soft_placement_stays_on_the_task(cluster: LocalCluster, kind: str) -> None:
    """As TensorFlow's: the type and the index of the device give way, the task does not."""
    config = eng.SessionConfig(allow_soft_placement=True)
    for name, change in (("worker:0", "initializer"), ("worker:1", "value")):
        with eng.Graph().as_default(), eng.Session(cluster.target(name), config=config) as session:
            with eng.device(f"/job:worker/task:1/{kind}"):
                shared = eng.Variable(np.float32(3), name=f"soft_{kind[:3]}")
            metadata = eng.RunMetadata()
            found = session.run(
                getattr(shared, change), options=eng.RunOptions(trace=True), run_metadata=metadata
            )
            assert {s.device for s in metadata.step_stats} == {"/job:worker/task:1/device:cpu:0"}
    assert found == 3  # both sessions have one variable


def test_values_of_this_process_do_not_travel(cluster: LocalCluster) -> None:
    v = eng.Variable(np.float32(3))
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        y = v.value * 2.0
        with pytest.raises(errors.InvalidArgumentError, match="does not travel"):
            session.run(y)


def test_python_functions_do_not_travel(cluster: LocalCluster) -> None:
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        y = eng.py_function(lambda: np.float32(1), [], "float32")
        with pytest.raises(errors.InvalidArgumentError, match="Python function"):
            session.run(y)


def test_a_session_whose_lease_ran_out_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It did not restart, and nobody closed it."""
    monkeypatch.setattr("laminar.distribute.cluster.keeper.Keeper.add", lambda *_: None)
    with local_cluster({"worker": 2}, lease_seconds=0.4) as found:
        graph = eng.Graph()
        with graph.as_default():
            one = eng.constant(1.0)
        config = eng.SessionConfig(rpc_for_inprocess_master=True)
        with eng.Session(found.target(), graph=graph, config=config) as session:
            assert session.run(one) == 1.0
            time.sleep(1.0)
            with pytest.raises(
                errors.AbortedError, match="nothing was heard of its client for 0.4"
            ) as caught:
                session.run(one)
        assert "lease_seconds" in (caught.value.remedy or "")
        # A worker that has heard nothing of the master says so, too.
        worker, session = found.worker("worker:1"), eng.Session(found.target(), graph=graph)
        handle = next(iter(worker.graphs))
        worker._sessions[handle].lease_seconds = 0.0
        monkeypatch.setattr(type(worker), "_heartbeat", worker.service["GetStatus"])
        time.sleep(0.05)
        worker.sweep()
        with pytest.raises(errors.AbortedError, match="nothing was heard of its master"):
            worker._session(handle, "local")
        session.close()


def test_keepalive_of_a_server_is_that_of_all_its_connections() -> None:
    quick = Keepalive(0.5, 0.25)
    with Server({"a": ["localhost:0"]}, keepalive=quick, allow_insecure_network=True) as server:
        channels = cast(Any, server.made)._channels
        assert channels.keepalive == channels.twin().keepalive == quick
    with pytest.raises(errors.InvalidArgumentError, match="time_seconds"):
        Server({"a": ["localhost:0"]}, keepalive=Keepalive(0.0))
    with pytest.raises(errors.InvalidArgumentError, match=r"a Keepalive, got 10\.0"):
        Server({"a": ["localhost:0"]}, keepalive=cast(Any, 10.0))
