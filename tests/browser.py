"""A headless Chromium for tests that look at pages; they are skipped where there is none."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1400,900",
)
_SECONDS = 30


class Browser:
    """A page in Chromium, by the protocol of WebDriver."""

    def __init__(self, address: str, session: str) -> None:
        self._address, self._session = address, session

    def open(self, path: Path) -> None:
        """Open a file, and wait until it says that it is ready."""
        self.go(path)
        self.wait("document.body.dataset.ready === 'yes'")

    def go(self, path: Path) -> None:
        """Open a file."""
        self._ask("POST", "url", {"url": path.resolve().as_uri()})

    def wait(self, condition: str) -> None:
        """Wait until an expression holds."""
        deadline = time.monotonic() + _SECONDS
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < deadline, f"{condition} does not come true"
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """What a function with this body returns."""
        return self._ask("POST", "execute/sync", {"script": script, "args": []})

    def screenshot(self, path: Path) -> Path:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", "screenshot")))
        return path

    def colours(self, path: Path) -> int:
        """How many colours the page has below its head: one that shows nothing has few.

        Args:
            path: where the picture is kept.
        """
        image = pytest.importorskip("PIL.Image")
        with image.open(self.screenshot(path)) as picture:
            part = picture.convert("RGB").crop((0, 60, picture.width, picture.height - 200))
        return len(part.getcolors(1 << 20) or ())

    def resize(self, width: int, height: int) -> None:
        """Show the page as a screen of this size does."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        command = "Emulation.setDeviceMetricsOverride"
        self._ask("POST", "goog/cdp/execute", {"cmd": command, "params": size})

    def errors(self) -> list[str]:
        """What the console has told of errors since it was asked last."""
        found = self._ask("POST", "se/log", {"type": "browser"})
        return [row["message"] for row in found if row["level"] == "SEVERE"]

    def _ask(self, method: str, what: str, body: Any = None) -> Any:
        return _request(method, f"{self._address}/session/{self._session}/{what}", body)


def _request(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
            return json.loads(reply.read())["value"]
    except urllib.error.HTTPError as error:
        with error:
            told = json.loads(error.read())["value"]
        raise AssertionError(f"{told['error']}: {told['message'][:500]}") from None


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in a folder.

    The test is skipped where Chromium and its driver are not installed.
    """
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("Chromium and ChromeDriver are not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address)
        options = {"binary": program, "args": [*_FLAGS, f"--user-data-dir={folder}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        told = _request("POST", f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})
        try:
            yield Browser(address, told["sessionId"])
        finally:
            _request("DELETE", f"{address}/session/{told['sessionId']}")
    finally:
        process.terminate()
        process.wait()


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            _request("GET", f"{address}/status")
        except (OSError, AssertionError):
            assert time.monotonic() < deadline, "ChromeDriver does not start"
            time.sleep(0.05)
        else:
            return
