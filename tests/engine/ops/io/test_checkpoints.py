"""The ops of checkpoints: what is saved in parts is restored whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.engine.graph import Tensor, TensorShape
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.io.checkpoints import (
    merge_v2_checkpoints,
    restore_v2,
    save_v2,
    sharded_filenames,
)

A = np.arange(6, dtype="float32").reshape(2, 3)
B = np.array([b"x", b"yz"], object)


def texts(*values: str) -> Tensor:
    return convert_to_tensor(np.array([v.encode() for v in values], object))


def text(value: str) -> Tensor:
    return convert_to_tensor(np.array(value.encode(), object))


def test_parts_become_one_checkpoint(tmp_path: Path) -> None:
    prefix = text(str(tmp_path / "model"))
    first, second = sharded_filenames.many(prefix, num_shards=2)
    save_v2.many(first, texts("a"), texts(""), convert_to_tensor(A))
    save_v2.many(second, texts("deep/b"), texts(""), convert_to_tensor(B))
    merge_v2_checkpoints.many(prefix, first, second)
    names, whole = texts("deep/b", "a"), texts("", "")
    b, a = restore_v2.many(prefix, names, whole, dtypes=("string", "float32"))
    np.testing.assert_array_equal(a.numpy(), A)
    assert b.numpy().tolist() == B.tolist()
    (row,) = restore_v2.many(prefix, texts("a"), texts("2 3 1,1:-"), dtypes=("float32",))
    np.testing.assert_array_equal(row.numpy(), A[1:])


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    prefix = text(str(tmp_path / "model"))
    save_v2.many(prefix, texts("a"), texts(""), convert_to_tensor(A))
    with pytest.raises(NotFoundError, match="'b'"):
        restore_v2.many(prefix, texts("b"), texts(""), dtypes=("float32",))
    with pytest.raises(InvalidArgumentError, match=r"\[2, 3\]"):
        restore_v2.many(
            prefix, texts("a"), texts(""), dtypes=("float32",), shapes=(TensorShape([3, 2]),)
        )
    with pytest.raises(InvalidArgumentError, match="1 names for 2 tensors"):
        save_v2.many(prefix, texts("a"), texts(""), *[convert_to_tensor(A)] * 2)
