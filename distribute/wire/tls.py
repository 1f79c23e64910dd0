"""TLS of sockets, from the credentials that gRPC has for its own."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from typing import Any

from laminar.engine.errors import InvalidArgumentError

from .credentials import Credentials


def server_context(credentials: Credentials) -> ssl.SSLContext:
    """How a server shows who it is, and asks who comes if both sides have certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _fill(context, credentials)
    if credentials.ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # nobody comes twice with the same keys
    return context


def client_context(credentials: Credentials) -> ssl.SSLContext:
    """How a client asks who a server is, by its name, and shows who it is itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if credentials.ca is None:
        context.load_default_certs()
    _fill(context, credentials)
    return context


def _fill(context: ssl.SSLContext, credentials: Credentials) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if credentials.ca is not None:
            context.load_verify_locations(cadata=credentials.ca.decode("ascii"))
        if credentials.cert is not None and credentials.key is not None:
            with _file(credentials.cert + b"\n" + credentials.key) as path:
                context.load_cert_chain(path, password=lambda: b"")  # nobody is asked for one
    except (ssl.SSLError, ValueError) as cause:
        raise InvalidArgumentError(f"credentials: TLS does not take them: {cause}") from cause


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[str]:
    """The path of a file in memory: what it has, a key, is never on a disk."""
    fd = os.memfd_create("laminar-credentials", os.MFD_CLOEXEC)
    try:
        os.write(fd, content)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def name_in(connection: ssl.SSLSocket) -> str | None:
    """Who the other side's certificate says it is, as calls have it; None without one."""
    shown: Any = connection.getpeercert()
    if not shown:
        return None
    names = [value for part in shown["subject"] for key, value in part if key == "commonName"]
    return f"cert:{names[0] if names else ''}"
