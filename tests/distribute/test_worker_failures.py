"""Workers that go wrong: one clear error in each of them, in time, and no process is left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.distribute.mpi_runs import needs_mpi, run

pytestmark = [needs_mpi, pytest.mark.slow]

# What all workers say.
SAME = {
    "shapes": r"InvalidArgumentError: the workers' batches differ in structure, shapes or types: "
    r"worker 0: \(float32\[n, 4\], int64\[n\]\); worker 1: \(float32\[n, 3\], int64\[n\]\)",
    "lengths": r"FailedPreconditionError: the workers differ in what they do: worker 0: train, "
    r"3 batches of 10 examples; worker 1: train, 3 batches of 10 or 9 examples",
    "contents": r"InvalidArgumentError: the workers' data differ: the first batches have the same "
    r"shapes and other values",
    "weights": r"FailedPreconditionError: the workers differ in their variables: worker 0: "
    r"sequential\w*/dense\w*/kernel float32\[4, 3\].*worker 1: [\w/]*kernel float32\[4, 4\]",
    "programs": r"FailedPreconditionError: the workers differ in the graph of a step: "
    r"worker 0: \d+ operations, crc \w+; worker 1: \d+ operations, crc \w+",
    "places": r"FailedPreconditionError: the workers differ in what they do: worker 0: train, "
    r"3 batches of 10 examples; worker 1: test, 3 batches of 10 examples",
    "own_places": r"FailedPreconditionError: the workers are not at the same place of the program: "
    r"worker 0: train step \d+, worker 1: test step \d+",
    "apart": r"InternalError: the workers' weights have come apart",
}
# What worker 1 says, and what the others do.
APART = {
    "data": (
        r"ValueError: the disk of worker 1 is full",
        r"AbortedError: worker 1 of 3 failed: ValueError: the disk of worker 1 is full",
    ),
    "leaves": (r"no error", r"AbortedError: worker 1 of 3 has ended, and this one waits for it"),
    "late": (
        r"AbortedError: worker \d of 3 has waited 2 s, and this one comes too late",
        r"DeadlineExceededError: worker \d of 3 has waited 2 s for a record of worker 1",
    ),
}


def said(case: str, folder: Path, *options: str) -> list[str]:
    code, text = run(3, "failing_workers.py", case, str(folder), options=options)
    assert code != 0, text
    return [path.read_text() for path in sorted(folder.glob("*.txt"))]


@pytest.fixture(scope="module")
def disagreements(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the workers say in one case after the other: they can go on after an error of all."""
    folder = tmp_path_factory.mktemp("disagreements")
    code, text = run(3, "failing_workers.py", ",".join([*SAME, "fine"]), str(folder))
    assert code == 0, text
    return folder


@pytest.mark.parametrize("case", SAME)
def test_workers_that_disagree(case: str, disagreements: Path) -> None:
    texts = [path.read_text() for path in sorted(disagreements.glob(f"*-{case}.txt"))]
    assert len(texts) == 3
    for text in texts:
        assert re.match(r"[\d.]+ " + SAME[case], text), text
        assert "failing_workers.py:" in text  # the user's line


def test_after_an_error_of_all_training_goes_on(disagreements: Path) -> None:
    texts = [path.read_text() for path in sorted(disagreements.glob("*-fine.txt"))]
    assert [text.partition(" ")[2] for text in texts] == ["no error"] * 3


@pytest.mark.parametrize("case", APART)
def test_a_worker_that_fails(case: str, tmp_path: Path) -> None:
    own, others = APART[case]
    texts = said(case, tmp_path)
    assert len(texts) == 3
    for rank, text in enumerate(texts):
        assert re.match(r"[\d.]+ " + (own if rank == 1 else others), text), text
        assert float(text.split()[0]) < 15


def test_no_data(tmp_path: Path) -> None:
    texts = said("empty", tmp_path)
    assert len(texts) == 3
    assert all("the data is empty" in text for text in texts), texts


def test_a_worker_that_is_killed_ends_all(tmp_path: Path) -> None:
    assert said("killed", tmp_path) == []  # mpirun ended the others


def test_a_worker_that_is_killed_is_named_where_mpi_tells(tmp_path: Path) -> None:
    texts = said("killed", tmp_path, "--with-ft", "ulfm")
    assert len(texts) == 2
    for text in texts:
        assert re.match(r"[\d.]+ WorkerLostError: worker [02] of 3: another worker died", text)
        assert float(text.split()[0]) < 15
