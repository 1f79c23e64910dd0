"""RemoteMonitor: what a server receives."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from laminar.callbacks import RemoteMonitor
from laminar.engine.errors import InvalidArgumentError

from .conftest import Run


class Server(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[str, Any, str]] = []
        self.status = 200

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.received.append((self.path, self.headers, body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


LOGS = {"loss": np.float32(0.5), "bad": float("nan"), "many": np.arange(2), "name": "a"}
SENT = {"epoch": 0, "loss": 0.5, "bad": None, "many": [0, 1], "name": "a"}


def test_a_form(server: Server, run: Run) -> None:
    run(RemoteMonitor(server.root), [LOGS])
    ((path, headers, body),) = server.received
    assert path == "/publish/epoch/end/"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert json.loads(urllib.parse.parse_qs(body)["data"][0]) == SENT


def test_json(server: Server, run: Run) -> None:
    monitor = RemoteMonitor(server.root, "/x", headers={"X-Token": "t"}, send_as_json=True)
    run(monitor, [LOGS, {"loss": 1.0}])
    (first, second) = server.received
    assert first[0] == "/x"
    assert first[1]["X-Token"] == "t"
    assert first[1]["Content-Type"] == "application/json"
    assert json.loads(first[2]) == SENT
    assert json.loads(second[2]) == {"epoch": 1, "loss": 1.0}


def test_a_failure_is_only_a_warning(server: Server, run: Run) -> None:
    server.status = 500
    with pytest.warns(UserWarning, match="reach RemoteMonitor root server at .*: HTTP Error 500"):
        run(RemoteMonitor(server.root), [LOGS])
    with pytest.warns(UserWarning, match="Could not reach"):
        run(RemoteMonitor("http://127.0.0.1:9"), [LOGS])


def test_other_addresses_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="must begin with http:// or https://, got"):
        RemoteMonitor("file:///etc/passwd")
