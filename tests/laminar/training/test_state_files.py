"""The states of trainings as files: values come back, and files of others can do no harm."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.training.state_files import StateFiles, decode, encode

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
    assert len(list((tmp_path / "folder").iterdir())) == 2
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


def test_other_archives_are_passed_over(tmp_path: Path) -> None:
    from laminar.saving.archive import write_archive

    write_archive(tmp_path / "state-0000000001.ckpt", {"class_name": "Dense"}, {}, {"arrays": []})
    with pytest.warns(UserWarning, match="it is not a state of a training"):
        assert StateFiles(tmp_path).latest(lambda state: None) is None
