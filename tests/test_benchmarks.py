"""The benchmarks run, on small problems and laminar alone; wrong results are found out."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks import (
    bystanders,
    fresh,
    machine,
    measurement,
    placements,
    problems,
    processes,
    report,
    rows,
    worker,
)
from benchmarks.__main__ import START_SECONDS, expected, found_frameworks, main, parse
from benchmarks.cases import ROOT
from benchmarks.foreign_load import foreign_load
from benchmarks.isa import keep_products
from benchmarks.measurement import Entry, Result
from benchmarks.processes import Framework, Worker, WorkerError
from benchmarks.report import line, notes
from benchmarks.workloads import PEERS, WORKLOADS, Judge, has_learned, is_finite, trains

TRAINING = WORKLOADS["train-mlp"]
FOLDERS = ("datasets", "distribute", "engine", "layers", "optimizers")


# Tried out, these are others once more: the same problem, of another size when it is measured.
OTHER_SIZES = {
    *("softmax-10m", "layer-norm-10m", "gelu-10m", "adam-10m"),
    *("matmul-256", "matmul-512", "matmul-1024", "matmul-2048", "conv-32", "conv-64", "conv-56x56"),
    *("train-lstm-256", "infer-mlp-256", "infer-resnet20-32", "digits-epoch", "cluster-train-512"),
}


class WorkerHere(Worker):
    """A worker without a process of its own, whose start takes longer than a small problem."""

    def __init__(
        self, framework: str, _: str, workload: str, cores: Sequence[int], *, tiny: bool, **__: Any
    ) -> None:
        case = worker.cases_of(framework, tiny)[workload](WORKLOADS[workload].problem(tiny))
        written = io.StringIO()
        worker.serve(case, tiny, io.StringIO('{"seconds": 0.0}\n'), written)
        self.replies = iter(written.getvalue().splitlines())

    def __enter__(self) -> WorkerHere:
        return self

    def __exit__(self, *_: object) -> None:
        assert not list(self.replies)

    def measure(self, seconds: float) -> dict[str, Any]:
        assert seconds == 0.0
        return self.receive()

    def receive(self) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(next(self.replies))
        return reply


def worker_of(framework: str, python: str, workload: str, *cores: Any, **options: Any) -> Worker:
    """A process only where one is needed: the tasks that these workloads start end with it."""
    is_here = not workload.startswith(("cluster", "transfer"))
    return (WorkerHere if is_here else Worker)(framework, python, workload, *cores, **options)


def once_each(
    trained: Callable[[fresh.FreshTraining, str], dict[str, Any]],
) -> Callable[[fresh.FreshTraining, str], dict[str, Any]]:
    """`trained`, for which workloads that start the same program share processes.

    One has empty caches, the next those that it has left.
    """
    reports: dict[tuple[str, str, bool], dict[str, Any]] = {}

    def shared(case: fresh.FreshTraining, folder: str) -> dict[str, Any]:
        framework, workload, *_ = case.arguments
        key = framework, fresh.TRAININGS[workload], any(Path(folder).iterdir())
        if key not in reports:
            reports[key] = trained(case, folder)
        return reports[key]

    return shared


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")  # at a worker's end
@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_smoke(
    others: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every workload runs and computes what it should."""
    monkeypatch.setattr(measurement, "Worker", worker_of)
    monkeypatch.setattr(measurement, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(fresh.FreshTraining, "trained", once_each(fresh.FreshTraining.trained))
    path = tmp_path / "results.json"
    names = [name for name in WORKLOADS if (name in OTHER_SIZES) == others]
    assert main(["--smoke", "--workload", *names, "--json", str(path)]) == 0
    results = json.loads(path.read_text())["results"]
    assert [result["workload"] for result in results] == names
    for result in results:
        (entry,) = result["entries"]
        assert entry["framework"] == "laminar"
        assert entry["error"] is None
        assert len(entry["blocks"]) == 1
        assert np.isfinite(entry["blocks"][0])
    gc.collect()  # what is left to a worker's end, ends here
    printed = capsys.readouterr().out
    assert "tiny problems" in printed
    assert all(name in printed for name in names)


@pytest.mark.slow
def test_a_step_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain", "--smoke", "--workload", "infer-mlp-256", "add"]) == 0
    printed = capsys.readouterr().out
    assert "dense1/MatMul" in printed
    assert "Gflop/s" in printed
    assert "eager a + b of 4x4; 1 thread" in printed
    assert "no native kernels" in printed


def test_foreign_processes_spin_while_a_block_runs() -> None:
    used, seconds = 0.0, 0.2
    while used <= 0.1 and seconds < 60:  # others may have the core meanwhile
        before = os.times()
        with foreign_load(machine.usable_cores()[:1], 2):
            time.sleep(seconds)
        used, seconds = os.times().children_user - before.children_user, seconds * 3
    assert used > 0.1  # of one core, between the two
    with pytest.raises(SystemExit):
        parse(["--busy", "-1"])


def test_they_end_with_a_benchmark_that_is_killed() -> None:
    program = (
        "import os, subprocess, sys; from benchmarks.foreign_load import foreign_load\n"
        "with foreign_load([int(sys.argv[1])], 1):\n"
        "    os._exit(0)"
    )
    core = str(machine.usable_cores()[0])
    # The process that spins inherits stderr: it is at its end when the last that has it has ended.
    subprocess.run(
        [sys.executable, "-c", program, core], cwd=ROOT, stderr=subprocess.PIPE, timeout=20
    )


@pytest.mark.slow
def test_another_checkout_runs_in_turns_with_this_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    for entry in ROOT.iterdir():
        if entry.name in ("benchmarks", "laminar", *FOLDERS):
            (before / entry.name).symlink_to(entry)
    arguments = ["--smoke", "--workload", "train-mlp", "--peers", "--against"]
    assert main([*arguments, str(before)]) == 0
    assert "laminar in before" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*arguments, str(tmp_path)])
    assert "is no checkout of laminar" in capsys.readouterr().err


def test_a_worker_that_fails_says_why() -> None:
    with (
        Worker("laminar", workload="train-mlp", cores=[10**6], tiny=True) as worker,
        pytest.raises(WorkerError, match="sched_setaffinity"),
    ):
        worker.receive()


def test_blas_chooses_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "512")
    variables = processes.environment(threads=2)
    assert not {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"} & set(variables)
    assert variables["OPENBLAS_NUM_THREADS"] == variables["OMP_NUM_THREADS"] == "2"


def test_all_are_kept_to_an_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_one=1")
    free = processes.environment(threads=1, isa=None)
    kept = processes.environment(threads=1, isa="avx2")
    assert "LAMINAR_ISA" not in free
    assert kept["LAMINAR_ISA"] == kept["ATEN_CPU_CAPABILITY"] == "avx2"
    assert kept["OPENBLAS_CORETYPE"] == "Haswell"
    assert kept["XLA_FLAGS"].split() == [*free["XLA_FLAGS"].split(), "--xla_cpu_max_isa=AVX2"]
    with Worker("laminar", isa="avx2") as worker:
        assert worker.receive()["workloads"]


@pytest.mark.parametrize(
    ("framework", "flags", "library", "added"),
    [
        ("jax", "--xla_cpu_max_isa=AVX2", b"..xla_cpu_experimental_ynn_fusion_type..", True),
        ("keras", "--a --xla_cpu_max_isa=AVX2", b"xla_cpu_experimental_ynn_fusion_type", True),
        ("jax", "--xla_cpu_max_isa=AVX2", b"a jaxlib without that flag", False),
        (
            "keras-tensorflow",
            "--xla_cpu_max_isa=AVX2",
            b"xla_cpu_experimental_ynn_fusion_type",
            False,
        ),
        ("jax", "--a", b"xla_cpu_experimental_ynn_fusion_type", False),
    ],
)
def test_xla_leaves_products_to_what_is_kept(
    framework: str, flags: str, library: bytes, added: bool, tmp_path: Path
) -> None:
    """A flag that a library does not know would end its process."""
    (tmp_path / "libjax_common.so").write_bytes(library)
    variables = {"XLA_FLAGS": flags}
    keep_products(framework, variables, tmp_path)
    wanted = [*flags.split(), *["--xla_cpu_experimental_ynn_fusion_type="] * added]
    assert variables["XLA_FLAGS"].split() == wanted


@pytest.mark.slow
def test_the_xla_that_is_there_takes_its_flags() -> None:
    pytest.importorskip("jax")
    with Worker("jax", workload="matmul-128", tiny=True, isa="avx2") as worker:
        assert worker.receive()["checks"]


def test_modules_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    variables = processes.environment(threads=1)
    assert "PYTHONDONTWRITEBYTECODE" not in variables
    assert Path(variables["PYTHONPYCACHEPREFIX"]).is_dir()
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    assert "PYTHONPYCACHEPREFIX" not in processes.environment(threads=1)


def test_memory_is_shown_as_memory() -> None:
    entries = [entry("laminar", [], [3 * 2.0**20]), entry("torch", [], [6 * 2.0**20])]
    result = Result(WORKLOADS["memory-resnet20"], 1, entries)
    assert "laminar 3 MiB" in line(result)
    assert result.ratio is not None
    assert result.ratio.middle == 0.5


@pytest.mark.slow
def test_cold_caches_are_empty_and_warm_ones_are_not() -> None:
    found = {}
    for name in ("first-step-mlp", "first-step-mlp-cold"):
        case = fresh.FirstStep("laminar", name, is_tiny=True)
        asked: list[int] = []
        trained = case.trained

        def noted(folder: str, trained: Any = trained, asked: list[int] = asked) -> Any:
            asked.append(len(list(Path(folder).rglob("*.o"))))
            return trained(folder)

        case.trained = noted  # type: ignore[method-assign]  # to see the folder
        case.checks()
        assert case.sample(1) > 0
        case.folder.cleanup()
        found[name] = asked
    assert found["first-step-mlp-cold"] == [0, 0]
    first, second = found["first-step-mlp"]
    assert first == 0 < second


@pytest.mark.parametrize(
    ("judge", "numbers", "complaint"),
    [
        (trains, [2.31, 2.30, 2.29], None),
        (trains, [2.31, 2.30, 2.31], "does not fall"),
        (trains, [2.9, 2.8, 2.7], "not close to ln"),
        (trains, [float("nan")] * 3, "not close to ln"),
        (is_finite, [], None),
        (is_finite, [1.0, float("inf")], "not finite"),
        (has_learned, [0.97], None),
        (has_learned, [0.1], "10.00%"),
    ],
)
def test_judges(judge: Judge, numbers: list[float], complaint: str | None) -> None:
    found = judge(numbers)
    if complaint is None:
        assert found is None
    else:
        assert complaint in str(found)


def entry(framework: str, checks: list[float], blocks: list[float]) -> Entry:
    return Entry(framework, blocks=blocks, checks=checks)


def test_another_computation_is_found_out() -> None:
    right, wrong = [2.31, 2.30, 2.29], [2.31, 2.305, 2.301]
    entries = [entry("laminar", wrong, [1.0]), entry("torch", right, [1.0])]
    entries.append(entry("jax", [loss + 1e-5 for loss in right], [1.0]))
    found = [measurement.disagreement(TRAINING, e, entries) for e in entries]
    assert "results differ" in str(found[0])
    assert found[1:] == [None, None]


def test_ratio_is_to_the_fastest_peer_that_is_right() -> None:
    entries = [
        entry("laminar", [], [2.0, 4.0, 6.0]),
        entry("torch", [], [4.0, 4.0, 4.0]),
        entry("keras", [], [5.0, 5.0, 5.0]),
        entry("jax", [], [1.0, 1.0, 1.0]),
    ]
    entries[3].error = "results differ"
    result = Result(TRAINING, 1, entries)
    assert result.best_peer is entries[1]
    assert result.ratio == measurement.Spread(1.0, 0.75, 1.25)
    assert "jax wrong" in line(result)
    assert "train-mlp, jax: results differ" in notes([result], {})
    entries[0].error = "results differ"
    assert result.ratio is None


def test_torch_on_amd_is_remarked_upon() -> None:
    result = Result(TRAINING, 1, [entry("laminar", [], [1.0]), entry("torch", [], [1.0])])
    assert any("MKL" in note for note in notes([result], {"vendor": "AuthenticAMD"}))
    assert not notes([result], {"vendor": "GenuineIntel"})


def test_a_framework_that_fails_is_reported() -> None:
    broken = Framework("laminar", sys.executable, frozenset(), {})
    result = measurement.measure(TRAINING, [broken], [10**6], seconds=0.1, tiny=True)
    assert not result.entries[0].is_valid
    assert "sched_setaffinity" in str(result.entries[0].error)


def test_resnet_20_has_its_layers() -> None:
    """He et al., 2016, table 6: 0.27 million weights, here with the two projections."""
    problem = problems.resnet(32, 3, batch=1, batches=1)
    convolutions = [w[0] for w in problem.weights.values() if w[0].ndim == 4]
    main_path = [kernel for kernel in convolutions if kernel.shape[0] == 3]
    assert len(main_path) + 1 == 20
    assert len(convolutions) - len(main_path) == 2
    trainable = sum(sum(a.size for a in arrays[:2]) for arrays in problem.weights.values())
    assert trainable == pytest.approx(0.27e6, rel=0.02)


def test_peers_that_are_not_there_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "python"
    nowhere.write_text("#!/bin/sh\necho nothing is installed >&2\nexit 1\n")
    nowhere.chmod(0o755)
    pythons = dict.fromkeys(PEERS, str(nowhere))
    (found,) = found_frameworks(None, pythons, None, None, Console())
    assert found.name == "laminar"
    printed = capsys.readouterr().out
    assert all(f"without {peer}: nothing is installed" in printed for peer in PEERS)
    with pytest.raises(SystemExit, match="torch: nothing is installed"):
        list(found_frameworks(["torch"], pythons, None, None, Console()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seconds", "0"], "--seconds: must be more than 0"),
        (["--seconds", "nan"], "--seconds: must be more than 0"),
        (["--threads", "0"], "--threads: from 1 to "),
        (["--json", "nowhere/found.json"], "--json: there is no folder nowhere"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(arguments)
    assert message in capsys.readouterr().err


def test_names_and_titles_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    told = capsys.readouterr().out
    assert all(f"\n{name} " in told for name in WORKLOADS)


def test_it_says_how_long_it_takes() -> None:
    frameworks = [
        Framework("laminar", "", frozenset(["add", "train-mlp"]), {}),
        Framework("torch", "", frozenset(["train-mlp"]), {}),
    ]
    plan = [(WORKLOADS[name], threads) for name in ("add", "train-mlp") for threads in (1, 2)]
    text = expected(plan, frameworks, seconds=3.0 * 60 - START_SECONDS)
    assert text.startswith("4 workloads on laminar, torch: about 18 minutes")  # 6 turns of 3


def test_rounds_in_which_others_run_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of two frameworks in turns: those of the first two rounds are slow, and left out."""
    blocks: dict[str, Iterator[float]] = {}

    class Told(Worker):
        def __init__(self, framework: str, *_: Any, **__: Any) -> None:
            self.framework = framework
            blocks[framework] = iter([9.0, 8.0, *(float(i) for i in range(1, 100))])

        def __exit__(self, *_: object) -> None:
            pass

        def receive(self) -> dict[str, Any]:
            return {"checks": [2.3, 2.2, 2.1]}

        def measure(self, seconds: float) -> dict[str, Any]:
            return {"seconds": next(blocks[self.framework]), "peak_bytes": 1}

    class Disturbance:
        left: int

        def __init__(self, cores: Sequence[int]) -> None:
            assert list(cores) == [0]

        def are_busy(self) -> bool:
            Disturbance.left -= 1
            return Disturbance.left >= 0

    monkeypatch.setattr(measurement, "Worker", Told)
    monkeypatch.setattr(measurement, "Bystanders", Disturbance)
    monkeypatch.setattr(measurement, "PAUSE_SECONDS", 0.0)
    pair = [Framework(name, "", frozenset(), {}) for name in ("laminar", "torch")]
    Disturbance.left = 2
    result = measurement.measure(TRAINING, pair, [0], seconds=1.0, tiny=False)
    assert [entry.blocks for entry in result.entries] == [[1.0, 2.0, 3.0, 4.0]] * 2
    assert not result.is_disturbed
    Disturbance.left = 10**6
    monkeypatch.setattr(measurement, "PATIENCE", 0.0)
    result = measurement.measure(TRAINING, pair, [0], seconds=1.0, tiny=False)
    assert result.entries[0].blocks == [9.0, 8.0, 1.0]
    assert result.is_disturbed
    assert any("other processes ran" in note for note in notes([result], {}))
    assert report.as_json(result)["is_disturbed"]


def test_the_time_of_others_is_what_cores_took_less_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = os.sysconf("SC_CLK_TCK")

    def process(number: int, parent: int, *times: int) -> None:
        (tmp_path / str(number)).mkdir()
        between = " ".join("0" * 9)
        (tmp_path / str(number) / "stat").write_text(
            f"{number} (a) b) S {parent} {between} {' '.join(map(str, times))} 0"
        )

    monkeypatch.setattr(bystanders, "PROCESSES", tmp_path)
    assert bystanders.foreign_seconds([0]) == 0.0  # where nothing is told
    # user (with guests), nice, system, idle, waiting, two kinds of interrupts, stolen, guests
    lines = [
        "cpu 0 0 0 0 0 0 0 0 0 0",
        "cpu0 900 20 50 7 7 3 2 25 800 0",
        "cpu1 5 0 0 9 9 0 0 0 0 0",
    ]
    (tmp_path / "stat").write_text("\n".join([*lines, "intr 1 2 3"]))
    process(os.getpid(), 1, 100, 10, 5, 5)
    process(777_777, os.getpid(), 200, 0, 0, 0)
    process(888_888, 777_777, 0, 80, 0, 0)
    process(999_999, 1, 5000, 0, 0, 0)
    assert bystanders.foreign_seconds([0]) == (1000 - 400) / ticks
    assert bystanders.foreign_seconds([0, 1]) == (1005 - 400) / ticks


def test_what_is_written_tells_where_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    arguments = ["--smoke", "--workload", "conv-stride-2", "--seconds", "2", "--json", str(path)]
    assert main(arguments) == 0
    written = json.loads(path.read_text())
    assert written["options"]["seconds"] == 2
    assert written["options"]["threads"] == [1]
    assert written["options"]["python"] == {"laminar": sys.executable}
    assert written["options"]["begun"].endswith("+00:00")
    assert written["notes"] == report.notes([], written["machine"])
    assert set(written["frameworks"]["laminar"]) == {"laminar", "numpy", "llvmlite", "python"}


def test_the_commit_is_told_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert machine.commit() == {}
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        person = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *person, *command], cwd=tmp_path, check=True)
    assert len(machine.commit()["commit"]) == 40


def test_a_core_of_its_own_for_each_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logical cores 0 and 1 share a physical one, 2 and 3 another."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(machine, "_first_sibling", lambda core: core - core % 2)
    assert machine.usable_cores() == [0, 2, 1, 3]


def test_a_result_is_compared_from_end_to_end() -> None:
    y = np.arange(40.0).reshape(4, 10)
    wrong = y.copy()
    wrong[-1, -1] = 0
    between = y.copy()
    between[2] = 0
    assert rows.ends(y) not in (rows.ends(wrong), rows.ends(between))


@pytest.mark.slow
def test_placements(capsys: pytest.CaptureFixture[str]) -> None:
    assert placements.main(["--units", "2", "--devices", "2", "--steps", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["priority", "simulated", "learned"]
    assert lines[0].endswith("on 1 of 2 devices")
    assert placements.main(["--random", "1", "--devices", "2", "--steps", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["random", "priority", "simulated", "learned"]
