"""Kernels of loops as CUDA C: run on the host thread by thread, compared with the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine.cuda_program import LibraryCall

from .batch import Array, Case, build, check
from .shim import needs_compiler

pytestmark = needs_compiler
rng = np.random.default_rng(0)


def f32(*shape: int) -> Array:
    return np.asarray(rng.normal(size=shape).astype(np.float32))


CASES: dict[str, tuple[Callable[..., Any], list[Array]]] = {
    "flat": (lambda x: ops.exp(x) * 2 + x, [f32(5, 70)]),
    "flat-tail": (lambda x: x * x, [f32(1027)]),
    "bias": (lambda x, b: ops.relu(x + b), [f32(9, 24), f32(24)]),
    "bias-odd": (lambda x, b: x + b, [f32(9, 7), f32(7)]),
    "column": (lambda x, b: x * b, [f32(9, 24), f32(9, 1)]),
    "scalar": (lambda x: x + 1, [f32()]),
    "transpose": (lambda x: ops.transpose(x), [f32(33, 17)]),
    "transpose-batches": (lambda x: ops.transpose(x, (0, 2, 1)), [f32(3, 41, 65)]),
    "transpose-and-add": (lambda x, y: ops.transpose(x) + y * 2, [f32(33, 17), f32(17, 33)]),
    "transpose-outer": (lambda x: ops.exp(ops.transpose(x, (2, 1, 0))), [f32(9, 5, 40)]),
    "transpose-reversed": (
        lambda x: ops.transpose(ops.flip(x, axis=1) * 1.0, (0, 2, 1)),
        [f32(3, 19, 16)],
    ),
    "transpose-of-reversed": (lambda x: ops.exp(ops.flip(ops.transpose(x), 1)), [f32(40, 33)]),
    "slices": (lambda x: x[::2, 1:] - x[1::2, :-1], [f32(10, 9)]),
    "reversed": (lambda x: ops.flip(x, axis=1) * 2, [f32(4, 16)]),
    "concat": (lambda x, y: ops.concatenate([x, y * 2], axis=1), [f32(6, 5), f32(6, 3)]),
    "softmax": (lambda x: ops.softmax(x), [f32(11, 70)]),
    "softmax-long": (lambda x: ops.softmax(x), [f32(3, 1500)]),
    "softmax-middle": (lambda x: ops.softmax(x, axis=1), [f32(3, 20, 7)]),
    "log-softmax": (lambda x: ops.log_softmax(x), [f32(11, 64)]),
    "layer-norm": (
        lambda x: (x - ops.mean(x, axis=1, keepdims=True)) / (ops.std(x, axis=1, keepdims=True)),
        [f32(13, 96)],
    ),
    "rows": (lambda x: ops.sum(x, axis=1), [f32(300, 33)]),
    "long-rows": (lambda x: ops.max(x, axis=1), [f32(2, 4100)]),
    "columns": (lambda x: ops.sum(x, axis=0), [f32(50, 70)]),
    "many-rows-of-columns": (lambda x: ops.sum(x, axis=0), [f32(5000, 3)]),
    "outer-and-inner": (lambda x: ops.sum(x, axis=(0, 2)), [f32(7, 8, 9)]),
    "middle": (lambda x: ops.prod(x, axis=1), [f32(7, 8, 9)]),
    "everything": (lambda x: ops.sum(x), [f32(400, 300)]),
    "all-of-few": (lambda x: ops.mean(x), [f32(40, 3)]),
    "argmax": (lambda x: ops.argmax(x, axis=1), [f32(40, 50)]),
    "argmin-columns": (lambda x: ops.argmin(x, axis=0), [f32(40, 50)]),
    "argmax-long": (lambda x: ops.argmax(x, axis=1), [f32(3, 2000)]),
    "any": (lambda x: ops.any(x > 2, axis=1), [f32(40, 50)]),
    "gather": (lambda x: ops.take(x, np.array([4, 0, 4, -1]), axis=0), [f32(6, 5)]),
    "cumsum": (lambda x: ops.cumsum(x, axis=1), [f32(6, 50)]),
    "cumprod": (lambda x: ops.cumprod(x, axis=0), [f32(6, 50)]),
    "sort": (lambda x: ops.sort(x, axis=1), [f32(6, 20)]),
    "top-k": (lambda x: ops.top_k(x, 5), [f32(6, 300)]),
    "shared": (lambda x: (ops.sum(x * 2, axis=1), ops.exp(x), ops.max(x, axis=1)), [f32(8, 40)]),
}


def test_kernels_of_loops_agree_with_the_reference() -> None:
    cases = list[Case]()
    for name, (fn, arrays) in CASES.items():
        for dynamic in (False, True):
            case = build(f"{name} {dynamic=}", fn, arrays, dynamic=dynamic)
            assert case is not None or dynamic, name
            cases += [case] if case is not None else []
    assert len(cases) > 1.7 * len(CASES)
    check(cases)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0])
def test_special_values_go_through_reductions_as_in_numpy(value: float) -> None:
    x = f32(40, 50)
    x[::3, 7] = value
    x[2] = value
    fns = {
        "max": lambda x: ops.max(x, axis=1),
        "min": lambda x: ops.min(x, axis=0),
        "argmax": lambda x: ops.argmax(x, axis=1),
        "argmin": lambda x: ops.argmin(x, axis=0),
        "sum": lambda x: ops.sum(x, axis=1),
        "clip": lambda x: ops.clip(x, -1.0, 1.0),
    }
    cases = [build(name, fn, [x]) for name, fn in fns.items()]
    check([case for case in cases if case is not None])


def test_a_product_may_have_millions_of_rows() -> None:
    rows = 5_000_000
    case = build("rows", lambda x, y: ops.matmul(x, y), [np.ones((rows, 2), "f"), f32(2, 3)])
    assert case is not None
    (call,) = case.program.launches
    assert isinstance(call, LibraryCall)
    assert call.fallback[0].grid == (-(-rows // 64), 1, 1)


def test_one_kernel_serves_all_sizes_of_a_batch() -> None:
    def fn(x: Any) -> Any:
        return ops.softmax(ops.exp(x))

    some = [build("batch", fn, [f32(n, 24)], dynamic=True) for n in (3, 64, 500)]
    names = [[k.name for k in case.program.kernels] for case in some if case is not None]
    assert len(names) == 3
    assert names[0] == names[1] == names[2]


def test_wide_places_have_64_bits() -> None:
    from laminar.engine.compiler.cuda import launches

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launches, "_NARROW", 64)
        cases = [build(f"wide {name}", *CASES[name]) for name in ("flat", "rows", "columns")]
    found = [case for case in cases if case is not None]
    assert all("const long long total" in found[0].program.kernels[0].source for _ in found[:1])
    check(found)


def test_a_transpose_is_read_by_tiles() -> None:
    case = build("transpose", *CASES["transpose"])
    assert case is not None
    (kernel,) = case.program.kernels
    assert "__shared__" in kernel.source
