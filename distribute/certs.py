"""A certificate authority for tests, and certificates and a token for the tasks of a cluster.

    laminar certs certs --names worker ps client --hosts 127.0.0.1 host-1

makes a folder `certs` with the authority (ca.pem, and ca.key, which signs), a certificate and a key
for each name (worker.pem, worker.key), and a token. Each task gets ca.pem, its own two files, and
the token if one is used. It needs the package cryptography: `pip install laminar[certs]`.

What it makes is for tests and small clusters of one's own: nobody can take back a certificate, it
ends after its days. Keys and the token are files that their owner alone may read.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import ipaddress
import os
import secrets
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from laminar.engine.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    LaminarError,
    MissingFileError,
    UnimplementedError,
)
from laminar.typing import PathLike

_AUTHORITY, _TOKEN = "ca", "token"
_EARLIER = datetime.timedelta(hours=1)  # for clocks that are late
_MOST_DAYS = 3650


def make_authority(folder: PathLike, days: int = 365) -> Path:
    """Make an authority: `ca.pem`, which all tasks trust, and `ca.key`, which signs.

    Args:
        folder: is made unless it is there.
        days: for which it counts.

    Raises:
        AlreadyExistsError: there is one.
        UnimplementedError: the package cryptography is not installed.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    lib = _Library()
    key = lib.new_key()
    name = lib.name("laminar test authority")
    usage = lib.x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    builder = lib.builder(name, name, key, days, key)
    builder = builder.add_extension(lib.x509.BasicConstraints(ca=True, path_length=0), True)
    builder = builder.add_extension(usage, True)
    return lib.write(home, _AUTHORITY, builder.sign(key, lib.hashes.SHA256()), key)


def make_certificate(
    folder: PathLike, name: str, hosts: Sequence[str] = ("localhost", "127.0.0.1"), days: int = 30
) -> Path:
    """Make a certificate of a task, `NAME.pem` with `NAME.key`, signed by the folder's authority.

    Args:
        folder: where an authority is.
        name: of who shows it: what servers know a client by.
        hosts: names and addresses at which it serves.
        days: for which it counts.

    Raises:
        AlreadyExistsError: there is one of that name.
        InvalidArgumentError: the name is none that a file can have.
        MissingFileError: there is no authority.
        UnimplementedError: the package cryptography is not installed.
    """
    home = Path(folder)
    if not (name.isascii() and name.replace("-", "").replace("_", "").isalnum()) or name in (
        *(_AUTHORITY, _TOKEN),
    ):
        raise InvalidArgumentError(
            f"a certificate's name is letters, digits, '-' and '_', and not ca or token: {name!r}"
        )
    lib = _Library()
    authority, authority_key = lib.read(home)
    key = lib.new_key()
    extended = lib.extended_usages
    uses = [extended.SERVER_AUTH, extended.CLIENT_AUTH]
    builder = lib.builder(lib.name(name), authority.subject, key, days, authority_key)
    for extension, is_critical in (
        (lib.x509.BasicConstraints(ca=False, path_length=None), True),
        (lib.x509.SubjectAlternativeName([lib.host(host) for host in hosts]), False),
        (lib.x509.ExtendedKeyUsage(uses), False),
    ):
        builder = builder.add_extension(extension, is_critical)
    return lib.write(home, name, builder.sign(authority_key, lib.hashes.SHA256()), key)


def make_token(folder: PathLike) -> Path:
    """Make a file `token` of 256 random bits.

    Raises:
        AlreadyExistsError: there is one.
    """
    path = Path(folder) / _TOKEN
    _write(path, secrets.token_urlsafe(32).encode() + b"\n", is_secret=True)
    return path


class _Library:
    """The parts of the package cryptography that are used."""

    def __init__(self) -> None:
        try:
            self.x509 = importlib.import_module("cryptography.x509")
            self.names = importlib.import_module("cryptography.x509.oid").NameOID
            self.extended_usages = importlib.import_module(
                "cryptography.x509.oid"
            ).ExtendedKeyUsageOID
            self.hashes = importlib.import_module("cryptography.hazmat.primitives.hashes")
            self.curves = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ec")
            self.formats = importlib.import_module("cryptography.hazmat.primitives.serialization")
        except ImportError as cause:
            raise UnimplementedError(
                "certificates are made with the package cryptography, which is not installed",
                remedy="pip install laminar[certs]",
            ) from cause

    def new_key(self) -> Any:
        return self.curves.generate_private_key(self.curves.SECP256R1())

    def name(self, text: str) -> Any:
        return self.x509.Name([self.x509.NameAttribute(self.names.COMMON_NAME, text)])

    def host(self, host: str) -> Any:
        try:
            return self.x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            pass
        try:
            return self.x509.DNSName(host)
        except ValueError:
            raise InvalidArgumentError(
                f"{host!r} is neither a host's name nor its address"
            ) from None

    def builder(self, subject: Any, issuer: Any, key: Any, days: int, signing_key: Any) -> Any:
        if not 1 <= days <= _MOST_DAYS:
            raise InvalidArgumentError(f"a certificate counts for 1 to {_MOST_DAYS} days: {days}")
        now = datetime.datetime.now(datetime.UTC)
        own = self.x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        signer = self.x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key())
        return (
            self.x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(self.x509.random_serial_number())
            .not_valid_before(now - _EARLIER)
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(own, False)
            .add_extension(signer, False)
        )

    def read(self, home: Path) -> tuple[Any, Any]:
        """The authority of a folder, and its key."""
        try:
            certificate = (home / f"{_AUTHORITY}.pem").read_bytes()
            key = (home / f"{_AUTHORITY}.key").read_bytes()
        except FileNotFoundError:
            raise MissingFileError(
                f"{home} has no authority (ca.pem and ca.key)", remedy="make_authority makes one"
            ) from None
        try:
            return (
                self.x509.load_pem_x509_certificate(certificate),
                self.formats.load_pem_private_key(key, None),
            )
        except ValueError as cause:
            raise InvalidArgumentError(f"the authority in {home} is damaged: {cause}") from None

    def write(self, home: Path, name: str, certificate: Any, key: Any) -> Path:
        pem = self.formats.Encoding.PEM
        path = home / f"{name}.pem"
        if path.exists():
            raise _there(path)
        private = key.private_bytes(
            pem, self.formats.PrivateFormat.PKCS8, self.formats.NoEncryption()
        )
        _write(home / f"{name}.key", private, is_secret=True)
        _write(path, certificate.public_bytes(pem), is_secret=False)
        return path


def _there(path: Path) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{path} is there already", remedy="remove it, or take another folder"
    )


def _write(path: Path, content: bytes, *, is_secret: bool) -> None:
    try:
        mode = 0o600 if is_secret else 0o644
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise _there(path) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _wrapped(text: str) -> str:
    """The paragraphs of a text as wide as the terminal; what is indented stays."""
    width = shutil.get_terminal_size().columns - 2
    parts = (p if p.startswith(" ") else textwrap.fill(p, width) for p in text.split("\n\n"))
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing in a folder; gives the exit status."""
    parser = argparse.ArgumentParser(
        "laminar certs",
        description=_wrapped(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("folder", type=Path)
    add("--names", nargs="+", default=["server", "client"], help="of tasks; by default %(default)s")
    add("--hosts", nargs="+", default=["localhost", "127.0.0.1", "::1"], help="where they serve")
    add("--days", type=int, default=30, help="for which certificates count")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    try:
        made = []
        if not (folder / f"{_AUTHORITY}.pem").exists():
            made.append(make_authority(folder, max(options.days, 365)))
        if not (folder / _TOKEN).exists():
            made.append(make_token(folder))
        made += [make_certificate(folder, n, options.hosts, options.days) for n in options.names]
    except LaminarError as error:
        remedy = f" ({error.remedy})" if error.remedy else ""
        print(f"laminar: {error.message}{remedy}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"laminar: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    print("\n".join(map(str, made)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
