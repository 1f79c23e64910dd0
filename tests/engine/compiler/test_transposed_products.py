"""Products that are only read transposed: they are written so, and nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.schedule import buffer_assignment as layouts
from laminar.engine.compiler.schedule.buffer_assignment import BufferAssignment
from tests.engine.ops.native import every_cluster

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)


def attended(q: Any, k: Any, w: Any) -> Any:
    """Heads beside each other, from (batch, heads, length, depth)."""
    scores = q @ ops.transpose(k, (0, 1, 3, 2))
    return ops.einsum("bthd,hdf->btf", ops.transpose(scores @ k, (0, 2, 1, 3)), w)


def attended_in_numpy(q: Array, k: Array, w: Array) -> Array:
    found: Array = np.einsum("bhtd,bhsd,bhse,hef->btf", q, k, k, w)
    return found


def reversed_axes(q: Any, k: Any, w: Any) -> Any:
    """The last axis does not stay last, so the product is written in its own order."""
    return ops.transpose(q @ ops.transpose(k, (0, 1, 3, 2))) * 2


def read_in_two_ways(q: Any, k: Any, w: Any) -> Any:
    y = q @ ops.transpose(k, (0, 1, 3, 2))
    return ops.transpose(y, (0, 2, 1, 3)) * 2, ops.transpose(y, (1, 0, 2, 3)) * 3, y


def broadcast_batch(q: Any, k: Any, w: Any) -> Any:
    y = q[:, :1] @ ops.transpose(k, (0, 1, 3, 2))
    return ops.transpose(y, (2, 0, 1, 3)) * 2


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "attended": (attended, attended_in_numpy),
    "reversed": (reversed_axes, lambda q, k, w: np.einsum("bhtd,bhsd->sthb", q, k) * 2),
    "two ways": (
        read_in_two_ways,
        lambda q, k, w: (
            np.einsum("bhtd,bhsd->bths", q, k) * 2,
            np.einsum("bhtd,bhsd->hbts", q, k) * 3,
            np.einsum("bhtd,bhsd->bhts", q, k),
        ),
    ),
    "broadcast": (
        broadcast_batch,
        lambda q, k, w: np.einsum("btd,bhsd->tbhs", q[:, 0], k) * 2,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [(2, 3, 5, 4), (1, 1, 1, 1), (1, 4, 17, 32), (3, 1, 2, 16)])
def test_values(name: str, sizes: tuple[int, ...]) -> None:
    function, expected = CASES[name]
    q, k = (rng.normal(size=sizes).astype(np.float32) for _ in range(2))
    w = rng.normal(size=(sizes[1], sizes[3], 7)).astype(np.float32)
    with every_cluster():
        found = laminar.function(function)(q, k, w)
    wanted = expected(*(x.astype(np.float64) for x in (q, k, w)))
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for a, e in pairs:
        np.testing.assert_allclose(np.asarray(a), e, rtol=1e-4, atol=1e-4)


def test_nothing_is_copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[BufferAssignment] = []
    assign_buffers = layouts.assign_buffers

    def kept(*arguments: Any) -> BufferAssignment:
        made.append(assign_buffers(*arguments))
        return made[-1]

    monkeypatch.setattr("laminar.engine.compiler.plan.specializations.assign_buffers", kept)
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))  # so it is not taken from the disk
    q, k = (rng.normal(size=(2, 3, 6, 8)).astype(np.float32) for _ in range(2))
    w = rng.normal(size=(3, 8, 11)).astype(np.float32)
    with every_cluster():
        laminar.function(attended)(q, k, w)
    (layout,) = made
    _, second, third = (k.call for k in layout.kernels if k.call is not None)
    assert third.inputs[0].storage == second.writes[0]
