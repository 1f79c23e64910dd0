"""A web server on this machine, whose faults a test writes down beforehand; threads that end."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ..conftest import names_of_threads_left


class Site(ThreadingHTTPServer):
    """`served`: path -> body. `script`: what the next requests get. `asked`: Range of each."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.served: dict[str, bytes] = {}
        self.script: list[str] = []
        self.asked: list[str | None] = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name is http.server's
        assert isinstance(self.server, Site)
        site = self.server
        site.asked.append(self.headers["Range"])
        action, _, argument = (site.script.pop(0) if site.script else "serve").partition(" ")
        body = site.served.get(self.path.lstrip("/"))
        if action == "status" or body is None:
            self.send_error(int(argument or 404))
            return
        if action == "redirect":
            self.send_response(302)
            self.send_header("Location", argument)
            self.end_headers()
            return
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        start = self.start(body, etag) if action != "ignore-range" else 0
        if start > len(body) or (start == len(body) and start):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            shift = 1 if action == "shift-range" else 0
            self.send_header("Content-Range", f"bytes {start + shift}-{len(body) - 1}/{len(body)}")
        if action == "no-length":
            body += b"x" * 1000
        else:
            self.send_header("Content-Length", str(len(body) - start))
        self.send_header("ETag", etag)
        self.end_headers()
        end = (start + len(body)) // 2 if action == "drop" else len(body)
        self.wfile.write(body[start:end])

    def start(self, body: bytes, etag: str) -> int:
        found = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        is_same = self.headers["If-Range"] in (None, etag)
        return int(found[1]) if found and is_same else 0

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    monkeypatch.setenv("LAMINAR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("laminar.datasets.download.BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr("laminar.datasets.download.LOCK_POLL_SECONDS", 0.001)
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.005,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def base_url(site: Site) -> str:
    return f"http://127.0.0.1:{site.server_port}/"


@pytest.fixture
def served(site: Site) -> dict[str, bytes]:
    return site.served


@pytest.fixture
def script(site: Site) -> list[str]:
    return site.script


@pytest.fixture
def asked(site: Site) -> list[str | None]:
    return site.asked


@pytest.fixture
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert not names_of_threads_left(before)
