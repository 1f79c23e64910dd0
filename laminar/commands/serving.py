"""laminar serve: a model that answers over HTTP.

    GET  /          what it takes
    POST /predict   {"inputs": ...} -> {"outputs": ...}

`inputs` is a list of rows, or an object of those by name; `{"arguments": [...]}` has several. It
listens on this machine alone, unless it has a certificate and asks for a token.
"""

from __future__ import annotations

import argparse
import hmac
import http
import ipaddress
import json
import ssl
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import laminar
from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.engine.graph.text import spec_text
from laminar.models import Model
from laminar.tree import flatten

from .arrays import as_arrays, as_data
from .found import Found
from .opening import check_file, open_model
from .predicting import caller

_MOST_BYTES = 1 << 26  # of a question
_SECONDS = 30  # without a byte of a question
_LEAST_TOKEN = 16  # characters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", help="a .keras model, or a .laminar export")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8500, help="0 for a free one (default: 8500)")
    parser.add_argument("--endpoint", help="the function of an export, by default the first")
    parser.add_argument("--token-file", metavar="FILE", help="who asks must give what is in it")
    parser.add_argument("--certificate", metavar="FILE", help="PEM, for HTTPS")
    parser.add_argument("--key", metavar="FILE", help="PEM, of the certificate")


def run(options: argparse.Namespace) -> Found:
    """Answer until the process is ended."""
    with server(options) as found:
        host, port = found.server_address[:2]
        scheme = "https" if options.certificate else "http"
        address = f"{scheme}://{host!s}:{port}"
        told = json.dumps({"address": address}) if options.json else f"{options.file}: {address}"
        print(told, flush=True)  # at once, not at the end
        found.serve_forever()
    return Found({"address": address})


def server(options: argparse.Namespace) -> ThreadingHTTPServer:
    """A server that is bound to its address; `serve_forever()` answers.

    Raises:
        InvalidArgumentError: it would listen to others without a certificate or a token, or the
            certificate cannot be used.
        MissingFileError, DataLossError: there is no such file, or it is damaged.
    """
    token = _token(options)
    context = _tls(options)
    model = open_model(options.file)
    handler = _handler(_Service(model, options.endpoint), token)
    try:
        found = _Server((options.host, options.port), handler)
    except OverflowError as cause:
        raise InvalidArgumentError(f"the port {options.port} is none: 0 to 65535") from cause
    found.daemon_threads = True
    if context is not None:
        found.socket = context.wrap_socket(
            found.socket, server_side=True, do_handshake_on_connect=False
        )
    return found


def _tls(options: argparse.Namespace) -> ssl.SSLContext | None:
    """What HTTPS needs; None for HTTP."""
    if not options.certificate:
        if options.key:
            raise InvalidArgumentError(
                "--key has no certificate", remedy="give --certificate too, or serve HTTP without"
            )
        return None
    for path in (options.certificate, options.key or options.certificate):
        check_file(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(options.certificate, options.key)
    except ssl.SSLError as cause:
        raise InvalidArgumentError(
            f"the certificate cannot be used: {cause}",
            remedy=None if options.key else "give its key, too: --key",
        ) from cause
    return context


def _token(options: argparse.Namespace) -> bytes | None:
    token = None
    if options.token_file is not None:
        check_file(options.token_file)
        with open(options.token_file, "rb") as file:
            token = file.read(4096).strip()
        if len(token) < _LEAST_TOKEN:
            raise InvalidArgumentError(f"a token has {_LEAST_TOKEN} characters at least")
    try:
        is_own = options.host == "localhost" or ipaddress.ip_address(options.host).is_loopback
    except ValueError:
        is_own = False
    if not is_own and (token is None or not options.certificate):
        raise InvalidArgumentError(
            f"{options.host} can be reached from other machines",
            remedy="give --token-file, --certificate and --key, or leave out --host",
        )
    return token


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """One line of who went away, or did not trust the certificate; a traceback of a mistake."""
        error = sys.exception()
        if isinstance(error, OSError):
            reason = getattr(error, "reason", None) or error.strerror or error
            print(f"laminar: {client_address[0]}: no question came: {reason}", file=sys.stderr)
        else:
            super().handle_error(request, client_address)


class _Service:
    """A model as the server asks it: models one at a time, exports by all threads."""

    def __init__(self, model: Any, endpoint: str | None) -> None:
        self._call: Callable[..., Any] = caller(model, endpoint)
        self._lock = threading.Lock() if isinstance(model, Model) else None
        specs = getattr(model, "inputs", []) if isinstance(model, Model) else None
        if specs is None:
            name = endpoint or next(iter(model.endpoints))
            specs = flatten(model.endpoints[name].input_signature)
        self.about = {
            "laminar": laminar.version(),
            "takes": [spec_text(getattr(spec, "spec", spec)) for spec in specs],
        }

    def answer(self, question: Any) -> Any:
        """The answer to what JSON has said.

        Raises:
            InvalidArgumentError, DataLossError, ShapeError: it is no question, or of other inputs.
        """
        if not isinstance(question, dict) or len(question.keys() & {"inputs", "arguments"}) != 1:
            raise InvalidArgumentError('expected {"inputs": ...} or {"arguments": [...]}')
        arguments = question.get("arguments", [question.get("inputs")])
        if not isinstance(arguments, list):
            raise InvalidArgumentError("arguments: expected a list")
        arrays = [as_arrays(value, "inputs") for value in arguments]
        if self._lock is None:
            return {"outputs": as_data(self._call(*arrays))}
        with self._lock:
            return {"outputs": as_data(self._call(*arrays))}


def _handler(service: _Service, token: bytes | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SECONDS
        server_version = "laminar"
        sys_version = ""

        def do_GET(self) -> None:  # so http.server calls it
            if self._is_allowed():
                self._send(*((200, service.about) if self.path == "/" else _GONE))

        def do_POST(self) -> None:  # so http.server calls it
            if not self._is_allowed():
                return
            length = self.headers.get("Content-Length", "")
            if self.path != "/predict":
                self._send(*_GONE)
            elif not length.isascii() or not length.isdecimal():
                self._send(411, {"error": "a question says how long it is"})
            elif len(length) > 12 or int(length) > _MOST_BYTES:
                self._send(413, {"error": f"a question has {_MOST_BYTES} bytes at most"})
            else:
                self._send(*self._answer(self.rfile.read(int(length))))

        def _answer(self, data: bytes) -> tuple[int, Any]:
            try:
                return 200, service.answer(json.loads(data))
            except LaminarError as error:
                return 400, {"error": error.message}
            except (ValueError, TypeError, RecursionError) as error:
                return 400, {"error": str(error)}

        def _is_allowed(self) -> bool:
            if token is None:
                return True
            given = self.headers.get("Authorization", "").encode("latin-1", "replace")
            if hmac.compare_digest(given, b"Bearer " + token):
                return True
            problem = "the token is another" if given else "a token is asked for"
            self._send(401, {"error": f"{problem}: send the header Authorization: Bearer TOKEN"})
            return False

        def send_error(  # so http.server calls it
            self, code: int, message: str | None = None, explain: str | None = None
        ) -> None:
            self.close_connection = True
            self._send(code, {"error": message or http.HTTPStatus(code).phrase})

        def _send(self, status: int, answer: Any) -> None:
            try:
                body = json.dumps(answer, allow_nan=False).encode()
            except ValueError:
                status, body = 500, b'{"error": "the results are not finite"}'
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: who wants a log has a proxy."""

    return Handler


_GONE = 404, {"error": "there is nothing: GET / or POST /predict"}
