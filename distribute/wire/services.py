"""What answers calls: who is let in, how a handler sees a call, and how errors are sent."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from laminar.engine.errors import InternalError, LaminarError, Origin, PermissionDeniedError

from . import statuses
from .credentials import Credentials
from .doors import Door
from .quiet_grpc import grpc

_log = logging.getLogger(__name__)

LOOPBACK = "loopback"  # the identity of those who show nothing
_BEARER = "Bearer "
_DIGITS = 16  # of a token's digest, in an identity

# Of the envelope of a request, what gRPC knows of the call, and who calls: the answer's envelope.
Answer: TypeAlias = Callable[[bytes, Any, str], bytes]


class Call:
    """What a handler is told besides the bytes.

    Attributes:
        identity: who calls: "cert:" and the name in the certificate, "token:" and a digest of the
            token, or "loopback".
        method: "package.Service/Method".
    """

    __slots__ = ("_context", "identity", "method")

    def __init__(self, context: Any, identity: str, method: str) -> None:
        self._context, self.identity, self.method = context, identity, method

    @property
    def peer(self) -> str:
        """The address of the other side, in gRPC's form."""
        return str(self._context.peer())

    def time_remaining(self) -> float | None:
        """Seconds until the caller's deadline; None where there is none."""
        found = self._context.time_remaining()
        return None if found is None else max(float(found), 0.0)

    def is_active(self) -> bool:
        """Whether the caller still waits."""
        return bool(self._context.is_active())

    def on_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` run, once, when the call has ended, was cancelled or is cut off."""
        if not self._context.add_callback(callback):
            callback()


Handler = Callable[[bytes, Call], bytes]


class Gate:
    """Who is let in.

    Args:
        credentials: of the server; None lets in everybody.
    """

    def __init__(self, credentials: Credentials | None) -> None:
        token = None if credentials is None else credentials.token
        self._digest = None if token is None else _digest_of(token)
        self._asks_certificate = credentials is not None and credentials.is_mutual

    def identify(self, context: Any) -> str:
        """Who makes a call.

        Raises:
            PermissionDeniedError: they have no token, or another one.
        """
        identity = LOOPBACK
        if self._digest is not None:
            shown = dict(context.invocation_metadata()).get("authorization", "")
            given = _digest_of(str(shown).removeprefix(_BEARER))
            if not secrets.compare_digest(given, self._digest):
                raise PermissionDeniedError(
                    "the call has no token, or not that of this cluster",
                    remedy="give Credentials(token=...) with the token that its servers have",
                )
            identity = f"token:{self._digest[:_DIGITS]}"
        if self._asks_certificate:
            names = context.auth_context().get("x509_common_name", [b""])
            identity = f"cert:{names[0].decode('utf-8', 'replace')}"
        return identity


def _digest_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class Guard:
    """Serves the calls of gRPC with functions that know nothing of it.

    Args:
        gate: says who calls.
        task: of the server, for errors.
        door: where those who were let in may come over sockets.
    """

    def __init__(self, gate: Gate, task: str, door: Door) -> None:
        self._gate, self._task = gate, task
        self.door = door

    def identify(self, context: Any) -> str:
        """Who makes a call; see `Gate.identify`."""
        return self._gate.identify(context)

    @contextlib.contextmanager
    def errors_sent(self, context: Any, method: str) -> Iterator[None]:
        """A block whose errors end the call, and are raised again by who made it."""
        try:
            yield
        except LaminarError as error:
            self._abort(context, error)
        except Exception as cause:
            if not context.is_active():
                raise  # gRPC's own: the caller has gone
            _log.exception("%s failed", method)
            self._abort(context, InternalError(f"{method}: {type(cause).__name__}: {cause}"))

    def _abort(self, context: Any, error: LaminarError) -> None:
        if self._task:
            statuses.with_origin(error, Origin(self._task))
        context.set_trailing_metadata(((statuses.METADATA_KEY, statuses.to_bytes(error)),))
        details = error.message.partition("\n")[0][:200]
        context.abort(grpc.StatusCode[statuses.status_of(error)], details)


class Service:
    """Methods that are streams; see `TensorService`."""

    def streams(self, guard: Guard) -> Mapping[str, Any]:
        """By their names, the handlers of gRPC."""
        raise NotImplementedError

    def close(self) -> None:
        """End all streams."""
        raise NotImplementedError
