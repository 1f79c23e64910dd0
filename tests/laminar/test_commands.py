"""The command line: what it prints, what it computes, how it fails."""

from __future__ import annotations

import argparse
import io
import json
import re
import signal
import ssl
import subprocess
import sys
import threading
import types
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, layers
from laminar.commands import main, serving
from laminar.distribute.certs import make_authority, make_certificate
from laminar.engine import summary
from laminar.engine.compiler.target import disk_cache
from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.utils.graph_view.page import tables_of

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in its forms, and inputs."""
    folder = tmp_path_factory.mktemp("files")
    model = laminar.Sequential(
        [layers.Input((3,)), layers.Dense(2, activation="tanh", name="head")], name="net"
    )
    model.save(folder / "m.keras")
    model.export(folder / "m.laminar", verbose=False)
    model.save_weights(folder / "m.weights.h5")
    engine.Checkpoint(model=model).save(folder / "run" / "ckpt")
    np.save(folder / "x.npy", X)
    np.savez(folder / "x.npz", X)
    np.savetxt(folder / "x.csv", X, delimiter=",")
    (folder / "x.json").write_text(json.dumps(X.tolist()))
    np.save(folder / "expected.npy", model.predict(X, verbose=0))
    return folder


def ask(*arguments: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints as JSON."""
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    found = ask("info", capsys=capsys)
    assert found["version"] == laminar.version()
    assert found["devices"][0]["type"] == "cpu"
    assert found["threads"] >= 1
    assert found["packages"]["pillow"]
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"laminar +" + re.escape(laminar.version()), text)
    assert found["cache"]["folder"] in text


def test_summaries(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ask("summary", files / "m.keras", capsys=capsys)
    assert (model["kind"], model["name"], model["parameters"]) == ("model", "net", 8)
    assert model["layers"] == [{"name": "head", "class": "Dense", "parameters": 8}]
    export = ask("summary", files / "m.laminar", capsys=capsys)
    assert export["endpoints"] == {"serve": ["f32[?, 3]"]}
    assert (export["elements"], export["bytes"]) == (8, 32)
    weights = ask("summary", files / "m.weights.h5", capsys=capsys)
    assert {"shape": [3, 2], "dtype": "float32", "bytes": 24}.items() <= weights["arrays"][
        0
    ].items()
    for path in ("run", "run/ckpt-1", "run/ckpt-1.index"):
        found = ask("summary", files / path, capsys=capsys)
        assert found["kind"] == "checkpoint"
        sizes = {tuple(a["shape"]): a["bytes"] for a in found["arrays"]}
        assert sizes[3, 2] == 24
    for name in ("m.keras", "m.laminar", "m.weights.h5", "run"):
        assert main(["summary", str(files / name)]) == 0
        text = capsys.readouterr().out
        assert "head" in text or "3, 2" in text


def test_summaries_of_graphs_and_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with engine.Graph().as_default():
        engine.Variable(1.0, name="v")
        engine.add_to_collection("own", 3)
        engine.Saver().export_meta_graph(tmp_path / "g.meta", as_text=True)
    found = ask("summary", tmp_path / "g.meta", capsys=capsys)
    assert found["ops"]["SaveV2"] == 1
    assert found["written_by"] == "laminar"
    assert "own" in found["collections"]
    with summary.create_file_writer(tmp_path) as writer, writer.as_default():
        for step in range(3):
            summary.scalar("[bold]loss", 3.0 - step, step)
    path = writer.path
    tags = ask("summary", path, capsys=capsys)["tags"]
    assert tags == {"[bold]loss": {"records": 3, "last_step": 2, "last_value": 1.0}}
    assert ask("summary", tmp_path, capsys=capsys)["tags"] == tags  # a folder of them
    assert main(["summary", path]) == 0
    assert "[bold]loss" in capsys.readouterr().out  # no markup


READ: dict[str, Any] = {
    ".npy": np.load,
    ".csv": lambda path: np.loadtxt(path, delimiter=","),
    ".json": lambda path: json.loads(path.read_text()),
    ".npz": lambda path: np.load(path)["output_0"],
}


@pytest.mark.parametrize("model", ["m.keras", "m.laminar"])
@pytest.mark.parametrize("given", ["x.npy", "x.csv", "x.json", "x.npz"])
def test_predictions(
    model: str, given: str, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = np.load(files / "expected.npy")
    found = ask("predict", files / model, "--input", files / given, capsys=capsys)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    for ending in READ:
        out = tmp_path / f"y{ending}"
        arguments = ["predict", files / model, "--input", files / given, "--output", out]
        assert main([str(a) for a in arguments]) == 0
        np.testing.assert_allclose(READ[ending](out), expected, rtol=1e-6, atol=1e-6)


def test_predictions_of_what_is_piped_in(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = types.SimpleNamespace(buffer=io.BytesIO(json.dumps(X.tolist()).encode()))
    monkeypatch.setattr("sys.stdin", given)
    found = ask("predict", files / "m.laminar", "--input", "-", capsys=capsys)
    np.testing.assert_allclose(found, np.load(files / "expected.npy"), rtol=1e-6)


def test_pages(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with engine.Graph().as_default():
        engine.constant(1.0, name="one")
        engine.export_meta_graph(tmp_path / "g.meta")
    for path, name in (
        (files / "m.keras", "MatMul"),
        (files / "m.laminar", "MatMul"),
        (tmp_path / "g.meta", "one"),
    ):
        page = tmp_path / "page.html"
        assert ask("view", path, "--output", page, capsys=capsys) == {"page": str(page)}
        assert name in tables_of(page.read_bytes())["texts"]


def test_the_cache_is_cleared_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    disk_cache.write("ab" * 32 + ".o", b"code")
    kept = [tmp_path / "notes.txt", tmp_path / "ab" / "mine.txt", tmp_path / "other" / "x.o"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    assert ask("cache", capsys=capsys)["files"] == 1
    found = ask("cache", "--clear", capsys=capsys)
    assert (found["files"], found["bytes"]) == (1, 36)
    assert ask("cache", capsys=capsys)["files"] == 0
    assert all(path.read_text() == "mine" for path in kept)
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "gone"))
    assert ask("cache", "--clear", capsys=capsys)["files"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["summary", "gone.keras"], "there is no file 'gone.keras'"),
        (["summary", "{0}"], "has no checkpoints"),
        (["summary", "{0}/notes.txt"], "no kind that is known"),
        (["summary", "{0}/bad.keras"], "bad.keras"),
        (["predict", "{0}/notes.txt", "--input", "x.npy"], "not the name of a model"),
        (["predict", "{1}/m.keras", "--input", "{0}/notes.txt"], "expected a .npy"),
        (["predict", "{1}/m.keras", "--input", "{0}/bad.npy"], "is no .npy file"),
        (["predict", "{1}/m.keras", "--input", "{0}/bad.json"], "is not JSON"),
        (["predict", "{1}/m.keras", "--input", "{0}/none.json"], "an object without arrays"),
        (["predict", "{1}/m.laminar", "--input", "{0}/wide.json"], "expected f"),
        (["certs", "{0}/notes.txt"], "notes.txt: File exists"),
        (["predict", "{1}/m.laminar", "--input", "{1}/x.npy", "--endpoint", "no"], "no endpoint"),
        (
            ["predict", "{1}/m.keras", "--input", "{1}/x.npy", "--output", "{0}/y.txt"],
            "to write to",
        ),
        (
            ["predict", "{1}/m.keras", "--input", "{1}/x.npy", "--output", "{0}/no/y.npy"],
            "no folder",
        ),
        (["view", "{1}/x.npy"], "not the name of a model"),
        (["serve", "{1}/m.laminar", "--host", "0.0.0.0"], "reached from other machines"),
        (["serve", "{1}/m.laminar", "--port", "99999"], "the port 99999"),
    ],
)
def test_what_goes_wrong_is_one_line(
    arguments: list[str],
    message: str,
    files: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "notes.txt").write_text("a\nb")
    for name in ("bad.keras", "bad.npy", "bad.json"):
        (tmp_path / name).write_bytes(b"\x93NUMPY\n{[nothing")
    (tmp_path / "none.json").write_text("{}")
    (tmp_path / "wide.json").write_text("[[1, 2]]")
    assert main([a.format(tmp_path, files) for a in arguments]) == 1
    told = capsys.readouterr()
    assert not told.out
    assert message in told.err
    assert told.err.startswith("laminar: ")
    assert told.err.count("\n") == 1


def test_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["nothing"], ["predict", "m.keras"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert laminar.version() in capsys.readouterr().out


def test_commands_of_other_modules(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[list[str]] = []
    module: Any = types.ModuleType("laminar.distribute.launch")

    def works(argv: list[str]) -> int:
        seen.append(argv)
        return 7

    module.main = works
    monkeypatch.setitem(sys.modules, "laminar.distribute.launch", module)
    assert main(["launch", "--processes", "2", "train.py", "--json"]) == 7
    assert seen == [["--processes", "2", "train.py", "--json"]]

    def fails(argv: list[str]) -> int:
        raise InvalidArgumentError("no such\nhost")

    module.main = fails
    assert main(["launch"]) == 1
    assert capsys.readouterr().err == "laminar: no such host\n"
    monkeypatch.setitem(sys.modules, "laminar.distribute.certs", None)
    assert main(["certs"]) == 1
    assert "no command 'certs'" in capsys.readouterr().err


@pytest.mark.slow
def test_as_a_program(files: Path) -> None:
    program = [sys.executable, "-m", "laminar"]
    ended = subprocess.run(
        [*program, "summary", files / "m.laminar"], capture_output=True, text=True
    )
    assert ended.returncode == 0
    assert "f32[?, 3]" in ended.stdout
    ended = subprocess.run([*program, "summary", "gone"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_server_ends_by_ctrl_c(files: Path) -> None:
    served = ("serve", str(files / "m.laminar"), "--port", "0", "--json")
    program = [sys.executable, "-m", "laminar", *served]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        assert p.stdout is not None
        assert p.stderr is not None
        try:
            address = json.loads(p.stdout.readline())["address"]
            assert post(address, {"inputs": X.tolist()})[0] == 200
            p.send_signal(signal.SIGINT)
            assert p.wait(20) == 130
            assert not p.stderr.read()
        finally:
            p.kill()


# Serving


@contextmanager
def answering(path: Path, **options: Any) -> Iterator[str]:
    given = {"endpoint": None, "token_file": None, "certificate": None, "key": None} | options
    found = serving.server(argparse.Namespace(file=str(path), host="127.0.0.1", port=0, **given))
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    try:
        scheme = "https" if given["certificate"] else "http"
        yield f"{scheme}://127.0.0.1:{found.server_address[1]}"
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


def post(address: str, data: Any, **headers: str) -> tuple[int, Any]:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    request = urllib.request.Request(f"{address}/predict", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize("name", ["m.keras", "m.laminar"])
def test_a_server_answers(name: str, files: Path) -> None:
    expected = np.load(files / "expected.npy")
    with answering(files / name) as address:
        with urllib.request.urlopen(f"{address}/", timeout=20) as reply:
            assert json.loads(reply.read())["takes"] == ["f32[?, 3]"]
        for question in ({"inputs": X.tolist()}, {"arguments": [X.tolist()]}):
            status, found = post(address, question)
            assert status == 200
            np.testing.assert_allclose(found["outputs"], expected, rtol=1e-6, atol=1e-6)
        for bad in (b"", b"{", b"[" * 100_000, {}, {"inputs": [[1, 2]]}, {"inputs": [[1], [1, 2]]}):
            status, found = post(address, bad)
            assert status == 400
            assert found["error"]
        status, found = post(f"{address}/other", {})
        assert status == 404
        deletion = urllib.request.Request(f"{address}/", method="DELETE")
        with pytest.raises(urllib.error.HTTPError, match="501") as told:
            urllib.request.urlopen(deletion, timeout=20)
        with told.value as reply:
            assert "DELETE" in json.loads(reply.read())["error"]
        status, _ = post(address, b"", **{"Content-Length": str(1 << 40)})
        assert status == 413
        assert post(address, {"inputs": X.tolist()})[0] == 200  # it goes on


def test_a_server_asks_for_its_token(files: Path, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("correct horse battery\n")
    with answering(files / "m.laminar", token_file=str(secret)) as address:
        question = {"inputs": X.tolist()}
        assert post(address, question)[0] == 401
        status, told = post(address, question, Authorization="Bearer correct")
        assert (status, told["error"].partition(":")[0]) == (401, "the token is another")
        assert post(address, question, Authorization="Bearer correct horse battery")[0] == 200
    secret.write_text("short")
    with (
        pytest.raises(InvalidArgumentError, match="16 characters"),
        answering(files / "m.laminar", token_file=str(secret)),
    ):
        pass


def test_a_server_answers_over_https(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cryptography")
    make_authority(tmp_path)
    make_certificate(tmp_path, "server")
    pair = {"certificate": str(tmp_path / "server.pem"), "key": str(tmp_path / "server.key")}
    body = json.dumps({"inputs": X.tolist()}).encode()
    with answering(files / "m.keras", **pair) as address:
        trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        request = urllib.request.Request(f"{address}/predict", body)
        with urllib.request.urlopen(request, timeout=20, context=trusting) as reply:
            found = json.loads(reply.read())["outputs"]
        np.testing.assert_allclose(found, np.load(files / "expected.npy"), rtol=1e-6, atol=1e-6)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(address, timeout=20, context=ssl.create_default_context())
        with pytest.raises(ConnectionError):  # no HTTPS
            urllib.request.urlopen(address.replace("https", "http"), timeout=20)
        with urllib.request.urlopen(request, timeout=20, context=trusting) as reply:
            assert reply.status == 200  # it goes on
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert all(line.startswith("laminar: 127.0.0.1: no question came: ") for line in told)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"key": "{0}/token"}, "no certificate"),
        ({"certificate": "{0}/none.pem"}, r"none\.pem"),
        ({"certificate": "{0}/token"}, "cannot be used"),
        ({"certificate": "{0}/token"}, "--key"),
    ],
)
def test_certificates_that_cannot_be_used(
    given: dict[str, str], reason: str, files: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("no certificate")
    options = {name: path.format(tmp_path) for name, path in given.items()}
    with pytest.raises(LaminarError, match=reason), answering(files / "m.keras", **options):
        pass
