"""The examples and the README do what they say, with less training."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import laminar

ROOT = Path(__file__).resolve().parents[1]


def load(path: Path) -> ModuleType:
    """The module of an example, which stands in no package."""
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examples() -> list[Path]:
    return sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", examples(), ids=lambda path: path.name)
def test_every_example_is_run_here(path: Path) -> None:
    assert callable(globals().get(f"test_{path.stem}")), f"add test_{path.stem} to this file"
    assert f"python examples/{path.name}" in path.read_text(), "the docstring says how to run it"


def test_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One epoch is better than chance (10 %) by far, and what it prints is what it saved."""
    digits = load(ROOT / "examples" / "digits.py")
    accuracy = digits.main(["--epochs", "1", "--folder", str(tmp_path)])
    assert 0.5 < accuracy <= 1
    assert f"test accuracy {accuracy:.2%}" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["digits.keras"]
    model = laminar.saving.load_model(tmp_path / "digits.keras")
    _, (x, y) = digits.load()
    found = float(np.mean(model.predict(x, verbose=0).argmax(axis=-1) == y))
    assert found == pytest.approx(accuracy)


@pytest.mark.slow
def test_train_cluster(tmp_path: Path) -> None:
    """The parameter server is another process, the two workers share this one."""
    found = [socket.create_server(("localhost", 0)) for _ in range(3)]
    ps, *workers = (f"localhost:{s.getsockname()[1]}" for s in found)
    for s in found:
        s.close()
    path = ROOT / "examples" / "train_cluster.py"
    shared = ["--ps", ps, "--workers", ",".join(workers), "--folder", str(tmp_path)]
    example, right = load(path), dict[int, float]()

    def work(task: int) -> None:
        options = ["--job", "worker", "--task", str(task), "--steps", "300", *shared]
        right[task] = example.main(options)

    server = subprocess.Popen(
        [sys.executable, str(path), "--job", "ps", *shared],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        try:
            assert server.stdout is not None
            assert "parameter server is at" in server.stdout.readline()
            other = threading.Thread(target=work, args=(1,), daemon=True)
            other.start()
            work(0)
            other.join(60)
        finally:
            server.kill()
    assert set(right) == {0, 1}
    assert min(right.values()) > 0.8


README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def shortened(fit: Callable[..., Any]) -> Callable[..., Any]:
    """`fit` of two epochs."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return fit(*args, **{**kwargs, "epochs": 2})

    return run


def run_block(number: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(laminar.Model, "fit", shortened(laminar.Model.fit))
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(BLOCKS[number], f"README.md, block {number + 1}", "exec"), names)
    return names


def test_several_devices(capsys: pytest.CaptureFixture[str]) -> None:
    one, two, alone = load(ROOT / "examples" / "several_devices.py").main(["--epochs", "2"])
    assert two == pytest.approx(one, rel=1e-4)
    assert alone == pytest.approx(one, rel=0.2)
    printed = capsys.readouterr().out
    assert "4 steps at once, each of shape (16, 64)" in printed
    for i in range(3):
        assert f"device:cpu:{i}: pinned to /device:cpu:{i}" in printed


@pytest.mark.slow
def test_lstm_stack(capsys: pytest.CaptureFixture[str]) -> None:
    example = load(ROOT / "examples" / "lstm_stack.py")
    start, one, three, together = example.main([])
    assert one < start / 2
    assert three == pytest.approx(one, rel=1e-9)
    assert together < start / 2
    printed = capsys.readouterr().out
    for i in range(3):
        assert f"layer {i}: " in printed
        assert f"matrix products on cpu:{i}" in printed


def test_readme_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    laminar.set_random_seed(0)
    names = run_block(0, monkeypatch, tmp_path)
    assert "'accuracy':" in capsys.readouterr().out
    assert (tmp_path / "digits.keras").exists()
    x, y = names["x_test"], names["y_test"]
    assert names["model"].evaluate(x, y, verbose=0)[1] > 0.5


def test_readme_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    laminar.set_random_seed(0)
    names = run_block(1, monkeypatch, tmp_path)
    losses = [float(text) for text in capsys.readouterr().out.strip(" []\n").split(",")]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert names["step"].trace_count == 2  # the first trace makes the weights


def test_readme_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_block(2, monkeypatch, tmp_path)
    printed = re.sub(r"\s+", "", capsys.readouterr().out)
    assert "'y':array([[6.,6.]]" in printed
    assert "'dw':array([[1.,1.],[2.,2.],[3.,3.]]" in printed


def test_readme_watched_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_block(3, monkeypatch, tmp_path)
    path, value = capsys.readouterr().out.split()
    assert path.endswith("model.ckpt-50")
    assert float(value) == pytest.approx(5 * 0.8**50, rel=1e-4)


def test_readme_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_block(4, monkeypatch, tmp_path)
    printed = capsys.readouterr().out
    assert printed.startswith("[3. 6.]")
    assert "/job:worker/task:0/device:cpu:0" in printed


def run(name: str, *arguments: str) -> Any:
    """What `main` of an example gives."""
    return load(ROOT / "examples" / f"{name}.py").main(list(arguments))


@pytest.mark.parametrize("network", ["softmax", "deep", "tuned", "cnn", "large"])
def test_digits_as_graph(network: str) -> None:
    accuracy = run("digits_as_graph", network, "--steps", "200")
    assert accuracy > (0.6 if network == "deep" else 0.9)


@pytest.mark.parametrize(
    "network", ["softmax", "deep", "tuned", "cnn", pytest.param("large", marks=pytest.mark.slow)]
)
def test_digits_with_layers(network: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = ["--dashboard", str(page)] if network == "large" else []
    if shown:
        pytest.importorskip("matplotlib")
    accuracy = run("digits_with_layers", network, "--epochs", "15", *shown)
    assert accuracy > (0.6 if network == "deep" else 0.85)
    assert page.exists() == bool(shown)


@pytest.mark.slow
def test_gpt(capsys: pytest.CaptureFixture[str]) -> None:
    """Under the entropy of single letters, about 3.1 nats."""
    assert run("gpt", "--epochs", "1") < 3.1
    assert "You may" in capsys.readouterr().out


def test_gan() -> None:
    """The mean image of what is generated is nearer to that of digits than grey is."""
    found = run("gan", "--epochs", "20")
    assert found["distance"] < 0.2
    assert np.isfinite([*found["critic_loss"], *found["generator_loss"]]).all()


@pytest.mark.parametrize("loss", ["nce", "softmax"])
def test_word_vectors(loss: str) -> None:
    assert run("word_vectors", "--steps", "1500", "--loss", loss) > 0.9


@pytest.mark.slow
def test_lstm_language_model() -> None:
    first, last = run("lstm_language_model", "--epochs", "6")
    assert last < first * 0.8


@pytest.mark.slow
def test_translation() -> None:
    try:
        assert run("translation", "--epochs", "8") > 0.9
    finally:
        laminar.engine.set_device_count(None)


@pytest.mark.slow
def test_cifar10() -> None:
    assert run("cifar10", "--epochs", "3") > 0.7


@pytest.mark.slow
def test_time_series() -> None:
    """Better than last week's values, and most of the truth is in the band."""
    error, naive, within = run("time_series", "--epochs", "3")
    assert error < naive
    assert 0.5 < within < 0.98


def test_text_classifier() -> None:
    assert run("text_classifier", "--epochs", "4") > 0.95


def test_tabular() -> None:
    assert run("tabular", "--epochs", "10") > 0.85


@pytest.mark.slow
def test_transfer() -> None:
    found, untrained = run("transfer", "--epochs", "4")
    assert found > untrained + 0.15


def test_reinforcement() -> None:
    first, last = run("reinforcement", "--episodes", "400")
    assert last > 3 * first


def test_serve_http() -> None:
    assert run("serve_http", "--once") > 0.9


def test_extending() -> None:
    found = run("extending")
    assert found["losses"][-1] < 0.1 * found["losses"][0]
    assert "Neg" not in found["ran"]
    assert "Relu" in found["ran"]
    assert found["brought_bytes"] == 2 * 3 * 4


def test_every_block_of_the_readme_is_run() -> None:
    assert len(BLOCKS) == 5


def test_readme_names_files_that_exist() -> None:
    named = set(re.findall(r"`((?:[\w-]+/)*[\w-]+(?:\.\w+|/))`", README))
    links = set(re.findall(r"\]\((?!http)([^)#]+)\)", README))
    paths = {n for n in named if "/" in n} | links
    assert {"benchmarks/", "ARCHITECTURE.md", "engine/"} <= paths
    missing = sorted(path for path in paths if not (ROOT / path).exists())
    assert not missing


def test_the_command_of_the_readme_runs_an_example() -> None:
    named = re.findall(r"python (examples/\w+\.py)", README)
    assert named
    assert all((ROOT / path).is_file() for path in named)
