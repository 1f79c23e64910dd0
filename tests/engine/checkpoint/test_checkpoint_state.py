"""The state file of a folder of checkpoints."""

import os
from pathlib import Path

import numpy as np
import pytest

from laminar.engine import errors
from laminar.engine.checkpoint import (
    CheckpointState,
    get_checkpoint_state,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
    write_checkpoint,
    write_checkpoint_state,
)


def save(prefix: Path, value: float) -> str:
    write_checkpoint(prefix, [("a", np.array([value]))])
    return str(prefix)


def test_newest_of_a_folder(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    assert get_checkpoint_state(tmp_path) is None
    first, second = save(tmp_path / "m-1", 1), save(tmp_path / "m-2", 2)
    written = CheckpointState(second, [first, second], [1.5, 2.25], 1.5)
    write_checkpoint_state(tmp_path, written, relative=True)
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "m-2"\n'
        'all_model_checkpoint_paths: "m-1"\nall_model_checkpoint_paths: "m-2"\n'
        "all_model_checkpoint_timestamps: 1.5\nall_model_checkpoint_timestamps: 2.25\n"
        "last_preserved_timestamp: 1.5\n"
    )
    assert get_checkpoint_state(tmp_path) == written
    assert latest_checkpoint(tmp_path) == second
    assert list_variables(tmp_path) == [("a", [1])]
    assert load_variable(tmp_path, "a") == 2
    with load_checkpoint(first) as reader:
        assert reader.read("a") == 1


def test_the_one_before_is_taken_where_the_newest_is_not_there(tmp_path: Path) -> None:
    first, second = save(tmp_path / "m-1", 1), save(tmp_path / "m-2", 2)
    write_checkpoint_state(tmp_path, CheckpointState(second, [first, second]))
    (tmp_path / "m-2.index").unlink()
    with pytest.warns(UserWarning, match="m-2 is not there"):
        assert latest_checkpoint(tmp_path) == first


def test_a_folder_without_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(errors.MissingFileError, match="has no checkpoint"):
        load_checkpoint(tmp_path)
    assert latest_checkpoint(tmp_path / "nowhere") is None


def test_a_folder_that_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("one")
    prefix = save(Path("one") / "m", 3)
    write_checkpoint_state("one", CheckpointState(prefix, [prefix]))
    os.rename("one", "two")
    assert latest_checkpoint("two") == os.path.join("two", "m")


@pytest.mark.parametrize("name", ['q"uote', "back\\slash", "new\nline", "ünï", "\udcff", "%01"])
def test_any_name(tmp_path: Path, name: str) -> None:
    prefix = save(tmp_path / name, 3)
    write_checkpoint_state(tmp_path, CheckpointState(prefix, [prefix]))
    assert latest_checkpoint(tmp_path) == prefix


def test_what_protobuf_may_write(tmp_path: Path) -> None:
    prefix = save(tmp_path / "mä", 3)
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path : "m\\303\\xa4"\n\n  last_preserved_timestamp: 1e3\n'
    )
    assert latest_checkpoint(tmp_path) == prefix


@pytest.mark.parametrize(
    "text",
    ["", "x", 'model_checkpoint_path: "a', "model_checkpoint_path: a b", "\udcff\0",
     'model_checkpoint_path: "a"\nlast_preserved_timestamp: x',
     'model_checkpoint_path: "a"\nlast_preserved_timestamp: nan'],
)  # fmt: skip
def test_damage(tmp_path: Path, text: str) -> None:
    (tmp_path / "checkpoint").write_bytes(os.fsencode(text))
    with pytest.raises(errors.DataLossError, match="checkpoint is damaged"):
        latest_checkpoint(tmp_path)
