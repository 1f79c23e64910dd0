from __future__ import annotations

import datetime
import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from laminar.distribute import certs
from laminar.distribute.wire import (
    Call,
    Channels,
    Credentials,
    TensorClient,
    TensorService,
    check_address,
    is_loopback,
    make_server,
    split_address,
)
from laminar.engine.errors import (
    InvalidArgumentError,
    LaminarError,
    MissingFileError,
    PermissionDeniedError,
    UnavailableError,
)
from tests.distribute.wire.harness import (
    QUICK,
    SECONDS,
    TASK,
    WAYS,
    Table,
    nothing_is_left,
    reached,
    receive,
    served,
)

TOKEN = "x" * 40


class Files(NamedTuple):
    """Certificates of two authorities, and one that has ended."""

    server: Credentials
    client: Credentials
    other: Credentials
    ended: Credentials
    folder: Path

    def of(self, **changes: Any) -> Credentials:
        """Those of the client, but for what is given."""
        own = {"ca": self.client.ca, "cert": self.client.cert, "key": self.client.key}
        return Credentials(**(own | changes))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    pytest.importorskip("cryptography")
    home, other = (tmp_path_factory.mktemp(name) for name in ("ours", "theirs"))
    for folder in (home, other):
        certs.make_authority(folder)
        for name in ("server", "client"):
            certs.make_certificate(folder, name)

    def read(folder: Path, name: str) -> Credentials:
        return Credentials.from_files(
            ca=folder / "ca.pem", cert=folder / f"{name}.pem", key=folder / f"{name}.key"
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certs, "_EARLIER", datetime.timedelta(days=5))
        patch.setattr(certs._Library, "builder", ended_builder(certs._Library.builder))
        certs.make_certificate(home, "ended")
    x509 = importlib.import_module("cryptography.x509")
    ended = x509.load_pem_x509_certificate((home / "ended.pem").read_bytes())
    assert ended.not_valid_after_utc < datetime.datetime.now(datetime.UTC)
    return Files(
        *(read(home, "server"), read(home, "client"), read(other, "client")),
        *(read(home, "ended"), home),
    )


def ended_builder(builder: Any) -> Any:
    """Certificates that have ended yesterday."""

    def build(*args: Any) -> Any:
        found = builder(*args)
        yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
        found._not_valid_after = yesterday.replace(tzinfo=None)
        return found

    return build


CALLS: list[str] = []


def note(request: bytes, call: Call) -> bytes:
    CALLS.append(call.identity)
    return request


def call(address: str, credentials: Credentials | None) -> bytes:
    with Channels(credentials, keepalive=QUICK) as channels:
        return channels.unary(address, "a.B/Note", b"x", 5.0)


def test_both_sides_show_certificates(files: Files) -> None:
    CALLS.clear()
    with nothing_is_left(), served({"a.B/Note": note}, credentials=files.server) as server:
        assert call(server.address, files.client) == b"x"
        assert CALLS == ["cert:client"]


def strangers(files: Files) -> dict[str, Credentials | None]:
    return {
        "plaintext": None,
        "token alone": Credentials(token=TOKEN),
        "no certificate": Credentials(ca=files.client.ca),
        "another authority": files.other,
        "their authority, our certificate": files.of(ca=files.other.ca),
        "our authority, their certificate": files.of(cert=files.other.cert, key=files.other.key),
        "ended": files.ended,
    }


def test_strangers_get_nothing(files: Files) -> None:
    CALLS.clear()
    with served({"a.B/Note": note}, credentials=files.server) as server:
        for credentials in strangers(files).values():
            with pytest.raises(UnavailableError, match="127"):
                call(server.address, credentials)
        assert CALLS == []
        assert call(server.address, files.client) == b"x"  # the server is alive


def test_a_server_of_another_authority_is_not_spoken_to(files: Files) -> None:
    CALLS.clear()
    refused = pytest.raises(UnavailableError)
    with served({"a.B/Note": note}, credentials=files.other) as server, refused:
        call(server.address, files.client)
    with served({"a.B/Note": note}) as server, refused:
        call(server.address, files.client)  # it does not encrypt
    assert CALLS == []


def test_the_name_in_a_certificate_is_looked_at(files: Files) -> None:
    """Our authority's certificate for another host does not serve."""
    folder = files.folder
    if not (folder / "elsewhere.pem").exists():
        certs.make_certificate(folder, "elsewhere", ["host.example"])
    elsewhere = Credentials.from_files(
        ca=folder / "ca.pem", cert=folder / "elsewhere.pem", key=folder / "elsewhere.key"
    )
    refused = pytest.raises(UnavailableError)
    with served({"a.B/Note": note}, credentials=elsewhere) as server, refused:
        call(server.address, files.client)


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_tokens(files: Files, is_encrypted: bool) -> None:
    CALLS.clear()
    own: dict[str, Any] = {"cert": files.server.cert, "key": files.server.key}
    ca: dict[str, Any] = {"ca": files.client.ca}
    if not is_encrypted:
        own, ca = {}, {}
    with served({"a.B/Note": note}, credentials=Credentials(token=TOKEN, **own)) as server:
        assert call(server.address, Credentials(token=TOKEN, **ca)) == b"x"
        (identity,) = CALLS
        assert identity.startswith("token:")
        assert TOKEN not in identity
        wrong = [Credentials(token="y" * 40, **ca), Credentials(**ca) if ca else None]
        for credentials in wrong:
            with pytest.raises(PermissionDeniedError, match="no token, or not that"):
                call(server.address, credentials)
        assert [identity] == CALLS


def test_tensors_are_given_to_nobody_else(files: Files) -> None:
    values = {"short": np.arange(3), "long": np.arange(300_000)}
    table = Table(values)
    service = TensorService(table.receive, task=TASK)
    with nothing_is_left(), served(service=service, credentials=files.server) as server:
        for way in WAYS:
            with reached(way), Channels(files.client) as channels:
                client = TensorClient(channels, has_sockets=way != "grpc")
                for key, value in values.items():
                    found = receive(client, server.address, key).value()
                    np.testing.assert_array_equal(found, value)
                del found
                client.close()
        asked = len(table.asked)
        for credentials in strangers(files).values():
            with Channels(credentials, keepalive=QUICK) as channels:
                client = TensorClient(channels)
                with pytest.raises(LaminarError):
                    receive(client, server.address, "short", timeout_seconds=5.0).value()
                client.close()
        assert len(table.asked) == asked


def test_files_of_secrets(files: Files, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    for mode in (0o644, 0o640, 0o620, 0o601):
        token.chmod(mode)
        with pytest.raises(PermissionDeniedError, match=f"mode {mode:04o}.*\n.*\n.*chmod 600"):
            Credentials.from_files(token_file=token)
    token.chmod(0o600)
    assert Credentials.from_files(token_file=token).token == TOKEN
    with pytest.raises(MissingFileError, match="there is no file"):
        Credentials.from_files(ca=tmp_path / "missing")
    shown = repr(files.of(token=TOKEN))
    assert TOKEN not in shown
    assert "PRIVATE" not in shown


def test_credentials_that_are_none() -> None:
    for wrong in (
        *({}, {"cert": b"x"}, {"key": b"x", "ca": b"y"}, {"token": "short"}),
        *({"token": "x" * 15 + "\n"}, {"token": "é" * 20}, {"token": b"x" * 20}),
    ):
        with pytest.raises(InvalidArgumentError, match="credentials: "):
            Credentials(**wrong)
    with pytest.raises(InvalidArgumentError, match="a certificate of its own"):
        make_server({}, "127.0.0.1:0", Credentials(ca=b"x"))
    with pytest.raises(InvalidArgumentError, match="cannot listen"):
        make_server({}, "127.0.0.1:0", Credentials(cert=b"no", key=b"no"))


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.168.1.5:2222", "host:1"])
def test_networks_take_credentials(address: str) -> None:
    pair: dict[str, Any] = {"cert": b"c", "key": b"k"}
    for few in (*(None, Credentials(token=TOKEN), Credentials(ca=b"a"), Credentials(**pair)),):
        with pytest.raises(PermissionDeniedError, match="can be reached from other machines"):
            check_address(address, few)
        assert check_address(address, few, allow_insecure_network=True)
    for enough in (
        *(Credentials(ca=b"a", **pair), Credentials(token=TOKEN, **pair)),
        Credentials(token=TOKEN, ca=b"a"),
    ):
        assert check_address(address, enough) == split_address(address)
    with pytest.raises(PermissionDeniedError):
        make_server({}, address)
    with Channels() as channels, pytest.raises(PermissionDeniedError):
        channels.unary(address, "a.B/C", b"", SECONDS)


def test_insecure_networks_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    make_server({}, "0.0.0.0:0", allow_insecure_network=True, task=TASK).stop()
    assert f"{TASK} serves whoever reaches 0.0.0.0:0, without credentials" in caplog.text


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:1", ("localhost", 1)),
        ("127.8.9.1:65535", ("127.8.9.1", 65535)),
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_loopback(address: str, expected: tuple[str, int]) -> None:
    assert check_address(address, None) == expected
    assert is_loopback(expected[0])


@pytest.mark.parametrize(
    "address",
    [
        *("", ":", "host", "host:", ":1", "host:x", "host:65536", "host:-1", "::1:1", "[::1]"),
        *("a b:1", "host:1\n", "http://host:1", "hé:1", "unix:/tmp/x:1", "127.0.0.1:٣"),
    ],
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected an address"):
        check_address(address, None)


@pytest.mark.parametrize("host", ["localhost.evil.com", "127.0.0.1.evil.com", "0", "0x7f.1", ""])
def test_what_only_looks_like_loopback(host: str) -> None:
    assert not is_loopback(host)
