"""The states of trainings as files: values come back, and files of others can do no harm."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.checkpoint import latest_checkpoint, write_checkpoint
from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.training.state_files import StateFiles, decode, encode, tensors_of

VALUES: list[Any] = [
    None,
    True,
    3,
    -0.1,
    "text",
    [1, [2.5, None]],
    {"a": {"b": [1, 2]}, "c": "d"},
    np.float32(0.5),
    np.int64(7),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value: Any) -> None:
    assert decode(encode(value, []), []) == value


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity(value: float) -> None:
    assert decode(encode([value], []), []) == [value]


def test_nan_tuples_and_arrays(tmp_path: Path) -> None:
    state: dict[str, Any] = {
        "nan": math.nan,
        "tuple": (1, 2),
        "arrays": [np.arange(3, dtype="uint32"), np.ones((2, 2), "float16"), np.array(True)],
    }
    files = StateFiles(tmp_path / "folder", keep=2)
    for number in (1, 2, 3):
        files.write(number, state)
    names = sorted(p.name for p in (tmp_path / "folder").iterdir())
    assert names[0] == "checkpoint"
    assert [n for n in names if n.endswith(".index")] == [
        "state-0000000002.index",
        "state-0000000003.index",
    ]
    assert latest_checkpoint(tmp_path / "folder") == str(tmp_path / "folder" / "state-0000000003")
    found = files.latest(lambda state: None)
    assert found is not None
    assert math.isnan(found["nan"])
    assert found["tuple"] == [1, 2]
    for a, b in zip(found["arrays"], state["arrays"], strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    files.delete()
    assert not (tmp_path / "folder").exists()
    assert files.latest(lambda state: None) is None


@pytest.mark.parametrize(
    "value", [pytest.param(object(), id="object"), {1: 2}, {"a": {3}}, b"bytes", 1j], ids=repr
)
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a state holds"):
        encode(value, [])


@pytest.mark.parametrize(
    "value",
    [{"__array__": 1}, {"__array__": -1}, {"__array__": "0"}, {"__number__": "__import__"}],
    ids=repr,
)
def test_hostile_values_are_refused(value: Any) -> None:
    with pytest.raises(DataLossError):
        decode([value], [np.ones(1)])


@pytest.mark.parametrize(
    "tensors",
    [
        {"w": np.zeros(3)},
        {"training_state": np.zeros(3)},
        {"training_state": np.array(b"{", object)},
        {"training_state": np.array(b"[" * 100_000, object)},
        {"training_state": np.array(b'{"format": 1, "state": {}}', object)},
        {"training_state": np.array(b'{"format": 2, "state": 3}', object)},
    ],
)
def test_other_checkpoints_are_passed_over(tmp_path: Path, tensors: dict[str, Any]) -> None:
    write_checkpoint(tmp_path / "state-0000000001", tensors.items())
    with pytest.warns(UserWarning, match="state-0000000001 is passed over"):
        assert StateFiles(tmp_path).latest(lambda state: None) is None


def test_variables_are_not_copied_and_others_are() -> None:
    variable, kept = np.zeros(3), np.zeros(3)
    found = tensors_of({"variables": [variable], "kept": kept})
    assert found["variables/0"] is variable
    assert found["arrays/0"] is not kept
