"""Who may speak with whom: certificates, a token, and where a server may listen without either.

A task that anybody can reach runs what anybody sends, so an address outside of this machine takes
credentials with which each side knows the other: certificates on both sides (mutual TLS), or TLS
and a token that both keep secret.
"""

from __future__ import annotations

import ipaddress
import os
import stat
from dataclasses import dataclass, field

from laminar.engine.errors import InvalidArgumentError, MissingFileError, PermissionDeniedError
from laminar.typing import PathLike

_LEAST_TOKEN = 16  # characters; `laminar certs` makes 43


@dataclass(frozen=True)
class Credentials:
    """Certificates and a token, each of which may be left out.

    Args:
        ca: certificates of the authorities that sign those of the others, in PEM.
        cert, key: this task's own certificate and its key, in PEM.
        token: a secret that all tasks of a cluster, and its clients, share.

    Raises:
        InvalidArgumentError: a certificate without its key, a short token, or nothing at all.

    Examples:
        >>> credentials = laminar.distribute.Credentials(
        ...     token="a secret of sixteen letters or more"
        ... )
        >>> credentials.ca is None
        True
    """

    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise InvalidArgumentError("credentials: a certificate and its key come together")
        if not (self.ca or self.cert or self.token):
            raise InvalidArgumentError("credentials: neither certificates nor a token are given")
        if self.token is not None and not (
            isinstance(self.token, str)
            and len(self.token) >= _LEAST_TOKEN
            and self.token.isascii()
            and self.token.isprintable()
        ):
            raise InvalidArgumentError(
                f"credentials: the token is not {_LEAST_TOKEN} or more printable ASCII characters",
                remedy="make one with secrets.token_urlsafe(32)",
            )

    @classmethod
    def from_files(
        cls,
        *,
        ca: PathLike | None = None,
        cert: PathLike | None = None,
        key: PathLike | None = None,
        token_file: PathLike | None = None,
    ) -> Credentials:
        """Credentials in files; those of the key and the token are for their owner alone.

        Raises:
            PermissionDeniedError: others than the owner may read the key or the token.
            MissingFileError: there is no such file.
        """
        token = _secret(token_file)
        return cls(
            _contents(ca),
            _contents(cert),
            _secret(key),
            None if token is None else token.decode("ascii", "replace").strip(),
        )

    @property
    def has_tls(self) -> bool:
        """Whether what is sent is encrypted."""
        return self.ca is not None or self.cert is not None

    @property
    def is_mutual(self) -> bool:
        """Whether both sides show certificates."""
        return self.ca is not None and self.cert is not None

    @property
    def serves_networks(self) -> bool:
        """Whether they are enough to be reached from other machines."""
        return self.is_mutual or (self.has_tls and self.token is not None)


def _contents(path: PathLike | None) -> bytes | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise MissingFileError(f"credentials: there is no file {os.fspath(path)}") from None


def _secret(path: PathLike | None) -> bytes | None:
    found = _contents(path)
    if path is not None and os.name == "posix":
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o077:
            raise PermissionDeniedError(
                f"credentials: others than its owner may use {os.fspath(path)} (mode {mode:04o})",
                remedy=f"chmod 600 {os.fspath(path)}",
            )
    return found


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[ipv6]:port".

    Raises:
        InvalidArgumentError: it is no address.
    """
    if isinstance(address, str) and address.isascii() and address.isprintable():
        host, colon, port = address.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            host = ""
        if (
            colon
            and host
            and port.isdecimal()
            and int(port) < 1 << 16
            and not set(host) & set(" /")
        ):
            return host, int(port)
    raise InvalidArgumentError(
        f'expected an address such as "127.0.0.1:2222" or "[::1]:2222", got {address!r}'
    )


def is_loopback(host: str) -> bool:
    """Whether a host's name or number leads nowhere but to this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_address(
    address: str, credentials: Credentials | None, allow_insecure_network: bool = False
) -> tuple[str, int]:
    """Host and port of an address that may be used with these credentials.

    Args:
        address: "host:port", to listen at or to connect to.
        credentials: None for none.
        allow_insecure_network: whether others on the network may read and send what they like.

    Raises:
        InvalidArgumentError: it is no address.
        PermissionDeniedError: it is not of this machine, and the credentials are not enough.
    """
    host, port = split_address(address)
    enough = credentials is not None and credentials.serves_networks
    if not (enough or is_loopback(host) or allow_insecure_network):
        found = "there are none" if credentials is None else "these are not enough"
        raise PermissionDeniedError(
            f"{address} can be reached from other machines, which takes credentials, and {found}",
            remedy="give ca, cert and key (mutual TLS; `laminar certs` makes "
            "some for tests), or a certificate and a token; or listen at 127.0.0.1",
        )
    return host, port
