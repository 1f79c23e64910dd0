"""What a server does not take on, and from whom."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.distribute import Credentials, certs
from laminar.distribute.cluster import discovery, master, messages, worker
from laminar.distribute.cluster.peers import RemotePeer
from laminar.distribute.wire import Channels
from laminar.engine import errors

from .local_cluster import local_cluster


def test_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    with local_cluster({"worker": 1}) as cluster:
        monkeypatch.setattr(master, "_MOST_SESSIONS", 2)
        sessions = [eng.Session(cluster.target(), graph=eng.Graph()) for _ in range(2)]
        with pytest.raises(errors.ResourceExhaustedError, match="2 sessions"):
            eng.Session(cluster.target(), graph=eng.Graph())
        sessions.pop().close()
        monkeypatch.setattr(worker, "_MOST_SESSIONS", 1)
        with pytest.raises(errors.ResourceExhaustedError, match="1 sessions"):
            eng.Session(cluster.target(), graph=eng.Graph())
        sessions.pop().close()
        eng.Session(cluster.target(), graph=eng.Graph()).close()


def test_graphs_and_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        local_cluster({"worker": 1}) as cluster,
        eng.Graph().as_default(),
        eng.Session(cluster.target()) as session,
    ):
        x: Any = eng.constant(np.float32(1))
        assert session.run(x + 1.0) == 2
        monkeypatch.setattr(worker, "_MOST_GRAPHS", 1)
        with pytest.raises(errors.ResourceExhaustedError, match="1 graphs"):
            session.run(x + 2.0)
        monkeypatch.setattr(messages, "_MOST_NODES", 10)
        for _ in range(5):
            x = x + 1.0
        with pytest.raises(errors.ResourceExhaustedError, match="nodes"):
            session.run(x)


def test_waiting_for_a_task_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(discovery, "_TELL_SECONDS", 0.1)
    with local_cluster({"worker": 2}) as cluster:
        cluster.servers["worker:1"].stop()
        config = eng.SessionConfig(operation_timeout_in_ms=500)
        with (
            caplog.at_level(logging.WARNING, "laminar.distribute"),
            pytest.raises(errors.UnavailableError, match="start these tasks"),
        ):
            eng.Session(cluster.target(), graph=eng.Graph(), config=config)
    told = "CreateSession still waiting for response from worker: /job:worker/task:1"
    assert caplog.messages.count(told) >= 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("cryptography")
    folder = tmp_path_factory.mktemp("certificates")
    certs.make_authority(folder)
    for name in ("server", "client", "stranger"):
        certs.make_certificate(folder, name)
    return folder


def of(folder: Path, name: str) -> Credentials:
    return Credentials.from_files(
        ca=folder / "ca.pem", cert=folder / f"{name}.pem", key=folder / f"{name}.key"
    )


def test_a_cluster_with_certificates(folder: Path) -> None:
    with (
        local_cluster({"worker": 2}, credentials=of(folder, "server")) as cluster,
        eng.Graph().as_default(),
    ):
        with eng.device("/job:worker/task:1"):
            y = eng.constant(np.arange(3.0)) * 2.0
        config = eng.SessionConfig(credentials=of(folder, "client"), rpc_for_inprocess_master=True)
        with eng.Session(cluster.target(), config=config) as session:
            np.testing.assert_array_equal(session.run(y), [0, 2, 4])
            engine: Any = session._engine
            # Who knows the handle of a session, and is another, may not use it.
            address = cluster.target().removeprefix("grpc://")
            with Channels(of(folder, "stranger")) as channels:
                peer = RemotePeer(channels, address, "laminar.MasterService")
                request = messages.messages().ListDevicesRequest(session_handle=engine._handle)
                with pytest.raises(errors.PermissionDeniedError, match="another client"):
                    peer.call("ListDevices", request, timeout_seconds=20)
        plain = eng.SessionConfig(rpc_for_inprocess_master=True)
        with pytest.raises(errors.UnavailableError):
            eng.Session(cluster.target(), config=plain)
