"""One HTTP transfer: what a file still lacks is asked for and appended to it.

Loaded by `download` on first use: this module owns urllib and tqdm.
"""

from __future__ import annotations

import re
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, BinaryIO, Final, NoReturn
from urllib.error import HTTPError
from urllib.request import (
    BaseHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types

TIMEOUT_SECONDS: Final = 30.0
CHUNK_BYTES: Final = 1 << 18
MAX_BYTES: Final = 1 << 36
_PASSING_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class TransferError(Exception):
    """The bytes did not come.

    Args:
        reason: what went wrong.
        is_final: asking again cannot help.
    """

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


class _Redirects(HTTPRedirectHandler):
    """Follows to http and https alone, and never from https to http."""

    def redirect_request(
        self,
        req: Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> Request | None:
        if not newurl.startswith(("https:", "http:") if req.type == "http" else "https:"):
            fp.close()
            raise TransferError(f"redirected to {newurl}, which is refused", is_final=True)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> OpenerDirector:
    """Like `urllib.request.build_opener`, without ftp:, file: and data:."""
    opener = OpenerDirector()
    handlers: list[BaseHandler] = [
        ProxyHandler(),
        HTTPHandler(),
        HTTPSHandler(),
        _Redirects(),
        HTTPErrorProcessor(),
        HTTPDefaultErrorHandler(),
        UnknownHandler(),
    ]
    for handler in handlers:
        opener.add_handler(handler)
    return opener


class Transfer:
    """Brings `file` to the length of what lies at `url`, in as many runs as it takes.

    `entity` is the strong ETag under which the bytes in `file` were sent, or None: a later run
    asks for the rest of that same entity, so that two versions are never spliced.
    """

    def __init__(self, url: str, file: BinaryIO, *, label: str) -> None:
        self.url = url
        self.file = file
        self.label = label
        self.entity: str | None = None

    def run(self) -> None:
        """Ask once for what is missing and write it.

        Raises:
            TransferError: the connection failed or ended early; what came is in the file.
            OSError: the file cannot be written.
        """
        size = self.file.seek(0, 2)
        headers = {"User-Agent": "laminar", "Accept-Encoding": "identity"}
        if size:
            headers["Range"] = f"bytes={size}-"
            if self.entity:
                headers["If-Range"] = self.entity
        try:
            response = _opener().open(Request(self.url, headers=headers), timeout=TIMEOUT_SECONDS)
        except HTTPError as error:
            with error:
                if error.code == 416 and size:
                    self.check_complete(size, error.headers.get("Content-Range", ""))
                    return
                reason = f"the server answered {error.code} {error.reason}"
                raise TransferError(reason, is_final=error.code not in _PASSING_STATUS) from error
        except (OSError, HTTPException) as error:  # URLError is an OSError
            raise TransferError(str(getattr(error, "reason", error))) from error
        with response:
            self.receive(response, size)

    def check_complete(self, size: int, content_range: str) -> None:
        """Nothing lies beyond our last byte: either we have all, or not of this file."""
        if content_range.strip() != f"bytes */{size}":
            self.start_again("the part that is there is not of this file")

    def receive(self, response: HTTPResponse, size: int) -> None:
        total = None
        if response.status == 206:
            found = re.fullmatch(
                r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip()
            )
            if found is None or int(found[1]) != size:
                self.start_again("the server sent another range than was asked for")
            total = None if found[2] == "*" else int(found[2])
        elif response.status == 200:
            size = 0
            self.file.truncate(0)
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
        else:
            raise TransferError(f"the server answered {response.status}", is_final=True)
        entity = response.headers.get("ETag", "")
        self.entity = entity if entity.startswith('"') else None
        self.write(response, size, total)

    def write(self, response: HTTPResponse, size: int, total: int | None) -> None:
        with tqdm(
            total=total,
            initial=size,
            desc=self.label,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            disable=None,  # silent where standard error is not a terminal
        ) as progress:
            while True:
                try:
                    chunk = response.read(CHUNK_BYTES)
                except (OSError, HTTPException) as error:
                    raise TransferError(f"the connection broke after {size} bytes") from error
                if not chunk:
                    break
                self.file.write(chunk)
                size += len(chunk)
                progress.update(len(chunk))
                if size > (MAX_BYTES if total is None else total):
                    reason = f"more than {total or MAX_BYTES} bytes were sent"
                    raise TransferError(reason, is_final=True)
        if total is not None and size < total:
            raise TransferError(f"the connection ended after {size} of {total} bytes")

    def start_again(self, reason: str) -> NoReturn:
        self.file.truncate(0)
        self.entity = None
        raise TransferError(reason)
