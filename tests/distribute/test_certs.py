from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from laminar import commands
from laminar.distribute import certs
from laminar.engine.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    MissingFileError,
    UnimplementedError,
)

x509 = pytest.importorskip("cryptography.x509")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("certs")
    certs.make_authority(home)
    certs.make_certificate(home, "worker-0", ["localhost", "127.0.0.1", "::1"], days=3)
    certs.make_token(home)
    return home


def test_secrets_are_for_their_owner_alone(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    secret = {name for name, mode in modes.items() if mode == 0o600}
    assert secret == {"ca.key", "worker-0.key", "token"}
    assert set(modes) - secret == {"ca.pem", "worker-0.pem"}
    assert len((folder / "token").read_text().strip()) == 43


def test_certificates_say_who_and_where_and_how_long(folder: Path) -> None:
    ca = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    found = x509.load_pem_x509_certificate((folder / "worker-0.pem").read_bytes())
    found.verify_directly_issued_by(ca)
    hosts = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert hosts.get_values_for_type(x509.DNSName) == ["localhost"]
    addresses = hosts.get_values_for_type(x509.IPAddress)
    assert [str(a) for a in addresses] == ["127.0.0.1", "::1"]
    assert found.subject.rfc4514_string() == "CN=worker-0"
    for certificate, is_authority in ((ca, True), (found, False)):
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        assert basic.ca is is_authority
    assert (found.not_valid_after_utc - found.not_valid_before_utc).days == 3


def test_openssl_agrees(folder: Path) -> None:
    command = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "worker-0.pem"]
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no program openssl")
    assert run.stdout == "worker-0.pem: OK\n", run.stderr


def test_what_is_wrong_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(AlreadyExistsError, match="ca.pem is there already"):
        certs.make_authority(folder)
    with pytest.raises(AlreadyExistsError, match="worker-0.pem is there already"):
        certs.make_certificate(folder, "worker-0")
    with pytest.raises(AlreadyExistsError, match="token is there already"):
        certs.make_token(folder)
    with pytest.raises(MissingFileError, match="no authority"):
        certs.make_certificate(tmp_path, "x")
    for name in ("ca", "token", "", "../x", "a b", "a/b", "é"):
        with pytest.raises(InvalidArgumentError, match="name is letters"):
            certs.make_certificate(folder, name)
    with pytest.raises(InvalidArgumentError, match="neither a host"):
        certs.make_certificate(folder, "x", ["é"])
    with pytest.raises(InvalidArgumentError, match="days: 0"):
        certs.make_certificate(folder, "x", days=0)
    (tmp_path / "ca.pem").write_text("x")
    (tmp_path / "ca.key").write_text("x")
    with pytest.raises(InvalidArgumentError, match="damaged"):
        certs.make_certificate(tmp_path, "x")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    with pytest.raises(UnimplementedError, match=r"pip install laminar\[certs\]"):
        certs.make_authority(tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "new"
    assert commands.main(["certs", str(home), "--names", "a", "b"]) == 0
    names = {"ca.pem", "ca.key", "a.pem", "a.key", "b.pem", "b.key", "token"}
    assert {path.name for path in home.iterdir()} == names
    before = (home / "ca.pem").read_bytes()
    assert certs.main([str(home), "--names", "c"]) == 0  # of the same authority
    assert (home / "ca.pem").read_bytes() == before
    assert certs.main([str(home), "--names", "a"]) == 1
    assert "a.pem is there already" in capsys.readouterr().err
