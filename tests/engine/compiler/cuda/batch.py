"""Programs of small graphs, compiled for the host together and compared with reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from laminar.engine.compiler.cuda import CudaCompiler
from laminar.engine.compiler.cuda.cluster import CudaPrograms
from laminar.engine.cuda_program import CudaProgram
from laminar.engine.graph import EagerTensor, Graph, as_dtype
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.cluster import ClusterBody

from .shim import compile_kernels, execute

Array = np.ndarray[Any, Any]

TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-11}


class Case(NamedTuple):
    """A program, what goes in, and what is expected of it.

    Attributes:
        name: for messages.
        program: what runs.
        inputs: its inputs.
        expected: of each output: floats in float64.
        rtol: the relative error allowed; None for that of the type.
    """

    name: str
    program: CudaProgram
    inputs: list[Array]
    expected: list[Array]
    rtol: float | None


def build(
    name: str,
    fn: Callable[..., Any],
    arrays: Sequence[Array],
    *,
    dynamic: bool = False,
    in_float64: bool = True,
    rtol: float | None = None,
) -> Case | None:
    """The program of `fn(*tensors)`; None if some operation of it has no CUDA kernel.

    Args:
        name: for messages.
        fn: gives a tensor, or several.
        arrays: the inputs.
        dynamic: whether no size is known while it is built.
        in_float64: whether what is expected is computed of float64.
        rtol: see `Case`.
    """
    graph = Graph()
    with graph.as_default():
        xs = [
            placeholder(as_dtype(a.dtype), [None] * a.ndim if dynamic else a.shape) for a in arrays
        ]
        ys = _listed(fn(*xs))
        operations = [op for op in graph.operations if op not in {x.op for x in xs}]
    if not operations or not all(CudaCompiler().accepts(operations)):
        return None
    programs = CudaPrograms(ClusterBody.of(operations, xs, ys, name))
    assert not programs.sizes
    program = programs.program(tuple(arrays[i].shape for i in programs.arrays))
    wide = [a.astype(np.float64) if in_float64 and _is_float(a) else a for a in arrays]
    expected = [np.asarray(y.numpy()) for y in _listed(fn(*map(EagerTensor, wide)))]
    return Case(name, program, [arrays[i] for i in programs.arrays], expected, rtol)


def check(cases: Sequence[Case]) -> None:
    """Run programs, with the first thread first and with the last, and compare what they give."""
    compile_kernels([kernel for case in cases for kernel in case.program.kernels])
    for case in cases:
        found, _, failed = execute(case.program, case.inputs, [], reverse=False)
        assert not failed, case.name
        again, _, _ = execute(case.program, case.inputs, [], reverse=True)
        for y, other, spec, expected in zip(
            found, again, case.program.outputs, case.expected, strict=True
        ):
            assert y.shape == expected.shape, case.name
            message = f"{case.name}: the order of threads changes the result"
            assert y.tobytes() == other.tobytes(), message
            _compare(y, expected.astype(spec.dtype.numpy), str(spec.dtype), case)


def _compare(found: Array, expected: Array, dtype: str, case: Case) -> None:
    tolerance = TOLERANCE.get(dtype, 0.0) if case.rtol is None else case.rtol
    if dtype in TOLERANCE:
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=case.name)


def _listed(ys: Any) -> list[Any]:
    return list(ys) if isinstance(ys, tuple | list) else [ys]


def _is_float(a: Array) -> bool:
    return as_dtype(a.dtype).is_floating
