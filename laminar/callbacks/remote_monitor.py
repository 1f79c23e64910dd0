"""RemoteMonitor: sends the values of each epoch to a server."""

from __future__ import annotations

import json
import math
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import warn

from .callback import Callback, Logs

_TIMEOUT_SECONDS = 5.0


class RemoteMonitor(Callback):
    """Sends the number and the values of each epoch by HTTP POST; a failure is only a warning.

    Args:
        root: of the server's address, with http or https.
        path: of the page that takes the values.
        field: name of the form's field that has the JSON.
        headers: of the request.
        send_as_json: whether to send JSON alone, not a form with a field of JSON.

    Raises:
        InvalidArgumentError: the address is none of http or https.

    Examples:
        >>> laminar.callbacks.RemoteMonitor(root="http://localhost:9000").path
        '/publish/epoch/end/'
    """

    is_for_first = True

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: Mapping[str, str] | None = None,
        send_as_json: bool = False,
    ) -> None:
        super().__init__()
        if urllib.parse.urlsplit(root).scheme not in ("http", "https"):
            raise InvalidArgumentError(
                f"RemoteMonitor: root must begin with http:// or https://, got {root!r}",
                remedy='root="http://localhost:9000"',
            )
        self.root = root
        self.path = path
        self.field = field
        self.headers = headers
        self.send_as_json = send_as_json

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        values = {"epoch": epoch} | {name: _plain(v) for name, v in (logs or {}).items()}
        text = json.dumps(values)
        if self.send_as_json:
            body, kind = text.encode(), "application/json"
        else:
            body = urllib.parse.urlencode({self.field: text}).encode()
            kind = "application/x-www-form-urlencoded"
        request = urllib.request.Request(
            self.root + self.path, body, {"Content-Type": kind, **(self.headers or {})}
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS):
                pass
        except (OSError, ValueError) as error:
            warn(f"Could not reach RemoteMonitor root server at {self.root + self.path}: {error}")


def _plain(value: Any) -> Any:
    """A value as JSON has it; a number that is not finite has no place there."""
    if isinstance(value, str):
        return value
    found = np.asarray(value).tolist()
    return None if isinstance(found, float) and not math.isfinite(found) else found
