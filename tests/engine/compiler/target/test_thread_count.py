"""The number of threads follows what the process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laminar.engine.compiler.target import thread_count
from laminar.engine.compiler.target.thread_count import available_cores


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Control groups of a process that may run on 8 cores; `own` says which are its own."""
    monkeypatch.setattr(thread_count, "_GROUPS", tmp_path)
    monkeypatch.setattr(thread_count, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


def limit(folder: Path, text: str, name: str = "cpu.max") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_without_groups_it_is_the_affinity(groups: Path) -> None:
    assert available_cores() == 8


def test_a_quota_counts_also_of_a_group_around(groups: Path) -> None:
    (groups / "own").write_text("0::/service/worker\n")
    limit(groups / "service" / "worker", "max 100000\n")
    assert available_cores() == 8
    limit(groups / "service", "250000 100000\n")
    assert available_cores() == 3
    limit(groups / "service" / "worker", "50000 100000\n")
    assert available_cores() == 1


def test_the_first_version_of_groups(groups: Path) -> None:
    (groups / "own").write_text("9:name=systemd:/\n4:cpu,cpuacct:/box\n3:memory:/box\n")
    limit(groups / "memory" / "box", "1 1")
    limit(groups / "cpu" / "box", "-1\n", "cpu.cfs_quota_us")
    limit(groups / "cpu" / "box", "100000\n", "cpu.cfs_period_us")
    assert available_cores() == 8
    limit(groups / "cpu" / "box", "400000\n", "cpu.cfs_quota_us")
    assert available_cores() == 4


def test_what_cannot_be_read_is_no_limit(groups: Path) -> None:
    (groups / "own").write_text("0::/strange\n")
    limit(groups / "strange", "what\n")
    assert available_cores() == 8
