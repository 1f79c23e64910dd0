"""Exact products of bytes, and floats times matrices in few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.ops.linalg.byte_matmul import byte_matmul
from laminar.engine.ops.linalg.few_bits_matmul import few_bits_matmul

from ..harness import check_op

rng = np.random.default_rng(0)


def exact(a: Any, b: Any) -> Any:
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)


@pytest.mark.parametrize("shape", [(1, 5), (3, 4), (2, 3, 7), (9, 1500), (4, 64)])
def test_products_of_bytes(shape: tuple[int, ...]) -> None:
    a = rng.integers(-128, 128, shape).astype(np.int8)
    b = rng.integers(-128, 128, (shape[-1], 6)).astype(np.int8)
    check_op(byte_matmul, exact, [a, b], grad=False)
    assert ops.matmul(a, b).dtype == "int32"
    assert np.array_equal(ops.matmul(a, b).numpy(), exact(a, b))


def floats(x: Any, w: Any, *groups: Any, bits: int, columns: int, group_size: Any = None) -> Any:
    numbers = w.astype(np.float64)
    if bits == 4:
        halves = np.stack([w << 4, w], axis=-1) >> 4  # with their signs
        numbers = halves.reshape(len(w), -1)[:, :columns].astype(np.float64)
    if groups:
        scale, zero = (g[np.arange(len(w)) // group_size] for g in groups)
        numbers = (numbers - zero) * scale
    return x @ numbers


@pytest.mark.parametrize("group_size", [None, 4, 3])
@pytest.mark.parametrize("bits", [4, 8])
def test_floats_times_few_bits(bits: int, group_size: int | None) -> None:
    x, columns = rng.normal(size=(2, 3, 10)), 5
    w = rng.integers(-128, 128, (10, 3 if bits == 4 else columns)).astype(np.int8)
    groups: list[Any] = []
    if group_size is not None:
        shape = (-(-10 // group_size), columns)
        groups = [rng.uniform(0.5, 1, shape), rng.integers(-8, 8, shape).astype(np.int8)]
    attrs = {"bits": bits, "columns": columns, "group_size": group_size}
    check_op(few_bits_matmul, floats, [x, w, *groups], attrs=attrs, grad=False, dtypes=["float32"])


def test_native_code_for_any_batch() -> None:
    w = rng.integers(-128, 128, (70, 40)).astype(np.int8)
    product = laminar.function(
        lambda x: few_bits_matmul(x, ops.convert_to_tensor(w), bits=8, columns=40),
        input_signature=[((None, 70), "float32")],
    )
    for rows in (1, 2, 9):
        x = rng.normal(size=(rows, 70)).astype("float32")
        assert np.allclose(product(x), x @ w.astype("float32"), atol=2e-2)
    assert product.trace_count == 1


def test_refused() -> None:
    bytes_ = np.ones((3, 4), np.int8)
    with pytest.raises(ShapeError, match="inner dimensions differ"):
        byte_matmul(bytes_, bytes_)
    with pytest.raises(ShapeError, match="inner dimensions differ"):
        few_bits_matmul(np.ones((2, 4), np.float32), bytes_, bits=8, columns=4)
    with pytest.raises(ShapeError, match="5 columns of 8 bits"):
        few_bits_matmul(np.ones((2, 3), np.float32), bytes_, bits=8, columns=5)
