"""Steps on the fake GPU: warm-up, capture, replay, by its rules."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from laminar.engine.cuda.executor import Lane, ProgramExecutor
from laminar.engine.cuda.interface import GpuFaultError, OutOfGpuMemoryError
from laminar.engine.cuda_program import Buffer, CudaProgram, LibraryCall, Product, Strides
from laminar.engine.graph import as_dtype
from laminar.engine.ops.state.variable import VariableStore

from .fake_gpu import FakeGpu, KernelFunction, array_at
from .programs import ACCESSES, KERNELS, SPEC, N, T, W, X, Y, launch, step
from .strict_cupy import Array, StrictCupy

rng = np.random.default_rng(0)


def a_gpu(**options: Any) -> FakeGpu:
    gpu = FakeGpu(kernels=KERNELS, accesses=ACCESSES, **options)
    StrictCupy(gpu)
    return gpu


@pytest.fixture
def gpu() -> FakeGpu:
    return a_gpu()


def batch() -> np.ndarray[Any, Any]:
    return rng.normal(size=N).astype(np.float32)


def run(executor: ProgramExecutor, x: Any, store: VariableStore) -> Any:
    (found,) = executor.run([x], [store]) or [None]
    return found


def on_host(value: Any) -> Any:
    return value.get() if isinstance(value, Array) else value


def value_of(store: VariableStore) -> Any:
    return on_host(store.value)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_hundred_replays_with_foreign_arrays_between(gpu: FakeGpu, on_gpu: bool) -> None:
    executor = ProgramExecutor(Lane(gpu), step(), {})
    store, w = VariableStore("w", np.ones(N, np.float32)), np.ones(N, np.float32)
    foreign: list[Any] = []
    for i in range(100):
        x = batch()
        y = run(executor, gpu.xp.asarray(x) if on_gpu else x, store)
        foreign.append(gpu.xp.asarray(batch()))  # allocated, and freed, as eager code does
        if i % 3 == 0:
            foreign.clear()
        np.testing.assert_array_equal(y.get(), x * 3 + w + 10)
        w += x * 3
    np.testing.assert_array_equal(value_of(store), w)
    assert executor.num_graphs == 2  # one for each slot of inputs
    assert gpu.log.count("graph") >= 95


def test_nothing_waits_in_a_step(gpu: FakeGpu) -> None:
    executor = ProgramExecutor(Lane(gpu), step(), {})
    store = VariableStore("w", gpu.xp.zeros(N, np.float32))
    for _ in range(6):
        run(executor, batch(), store)
    gpu.log.clear()
    gpu.xp.waits.clear()
    outputs = [run(executor, batch(), store) for _ in range(2)]
    # The host waits for the copies of the step before the last one to have been made, no more.
    assert "allocate" in gpu.log  # of the outputs
    launches = [name for name in gpu.log if name in (*KERNELS, "graph", "begin_capture")]
    assert launches == ["graph", "graph"]
    assert not gpu.xp.waits
    assert all(isinstance(y, Array) for y in outputs)


def test_a_value_once_read_stays_as_it_is(gpu: FakeGpu) -> None:
    executor = ProgramExecutor(Lane(gpu), step(), {})
    store = VariableStore("w", np.zeros(N, np.float32))
    w = np.zeros(N, np.float32)
    for i in range(8):
        held = store.value if i % 2 else None
        before = w.copy()
        x = batch()
        run(executor, x, store)
        w += x * 3
        if held is not None:
            np.testing.assert_array_equal(on_host(held), before)
        del held
        np.testing.assert_array_equal(value_of(store), w)


def test_what_is_stored_comes_to_where_graphs_have_it(gpu: FakeGpu) -> None:
    """As metrics are reset each epoch, from the host or on the GPU."""
    executor = ProgramExecutor(Lane(gpu), step(), {})
    store = VariableStore("w", np.zeros(N, np.float32))
    for i in range(30):
        if i % 5 == 0:
            fresh = np.full(N, i, np.float32)
            store.value = gpu.xp.asarray(fresh) if i % 2 else fresh
        run(executor, np.ones(N, np.float32), store)
        assert value_of(store).tolist() == [i // 5 * 5 + 3.0 * (i % 5 + 1)] * N
    assert executor.num_graphs == 2
    assert gpu.log.count("begin_capture") == 2
    store.value = np.zeros((2, N), np.float32)[0]  # a row of something else
    run(executor, np.ones(N, np.float32), store)
    assert value_of(store).tolist() == [3.0] * N


def test_a_view_of_a_variable_holds_it(gpu: FakeGpu) -> None:
    executor = ProgramExecutor(Lane(gpu), step(), {})
    value = gpu.xp.asarray(np.zeros(N, np.float32))
    store, view = VariableStore("w", value), value[2:4]
    del value
    run(executor, np.ones(N, np.float32), store)
    assert view.get().tolist() == [0, 0]
    assert value_of(store).tolist() == [3.0] * N


def test_a_check_that_fails_gives_nothing(gpu: FakeGpu) -> None:
    executor = ProgramExecutor(Lane(gpu), step(checks=True), {})
    store = VariableStore("w", np.zeros(N, np.float32))
    for first in (1.0, -1.0, 1.0, 1.0, -1.0, -1.0):
        x = np.full(N, first, np.float32)
        found = executor.run([x], [store])
        assert (found is None) == (first < 0)
        store.value = np.zeros(N, np.float32)


def test_an_output_outlives_the_next_step(gpu: FakeGpu) -> None:
    executor = ProgramExecutor(Lane(gpu), step(), {})
    store = VariableStore("w", np.zeros(N, np.float32))
    outputs = [run(executor, np.full(N, i, np.float32), store) for i in range(5)]
    total = 0
    for i, y in enumerate(outputs):
        assert y.get().tolist() == [3.0 * i + total + 10] * N
        total += 3 * i


def test_programs_share_an_arena_and_keep_their_own(gpu: FakeGpu) -> None:
    lane = Lane(gpu)
    small = ProgramExecutor(lane, step(), {})
    bytes_before = gpu.used_bytes()
    same = ProgramExecutor(lane, step(), {})
    assert gpu.used_bytes() - bytes_before < 1024 + 1024
    large = ProgramExecutor(lane, step().__class__(**{**vars(step()), "arena_bytes": 8192}), {})
    stores = [VariableStore("w", np.zeros(N, np.float32)) for _ in range(3)]
    for i in range(6):
        for executor, store in zip((small, same, large), stores, strict=True):
            run(executor, np.ones(N, np.float32), store)
            assert value_of(store).tolist() == [3.0 * (i + 1)] * N


def test_graphs_of_old_addresses_are_forgotten(gpu: FakeGpu) -> None:
    executor = ProgramExecutor(Lane(gpu), step(), {})
    kept = []
    for _ in range(12):
        store = VariableStore("w", gpu.xp.zeros(N, np.float32))
        kept.append(store.value)
        for _ in range(4):
            run(executor, batch(), store)
        kept.append(store)
    gc.collect()
    assert executor.num_graphs <= 8
    assert len(gpu._graphs) == executor.num_graphs
    del executor
    gc.collect()
    assert not gpu._graphs


def product(a: Buffer, b: Buffer, c: Buffer) -> LibraryCall:
    f32, rows = as_dtype("float32"), Strides((), 1, 1)
    parameters = Product((), N, 1, 1, f32, f32, rows, rows, rows)
    return LibraryCall("matmul", parameters, (a, b, c), (launch("add", a, b, c),))


def with_a_call() -> CudaProgram:
    return CudaProgram(
        (launch("scale", X, T, 2), product(T, W, Y)), 1024, (), (SPEC,), (SPEC,), (SPEC,)
    )


@pytest.mark.parametrize("has_library", [False, True])
def test_a_library_call_and_its_fallback(gpu: FakeGpu, has_library: bool) -> None:
    planned = []

    def plan(call: LibraryCall, addresses: Any) -> Any:
        planned.append(call.name)
        if not has_library:
            return None
        function = gpu.load([launch("add").kernel], {})["add"]
        return lambda stream: gpu.launch(function, (1, 1, 1), (N, 1, 1), 0, addresses, stream)

    executor = ProgramExecutor(Lane(gpu), with_a_call(), {}, plan)
    store = VariableStore("w", np.ones(N, np.float32))
    for _ in range(5):
        y = run(executor, np.full(N, 2.0, np.float32), store)
        assert y.get().tolist() == [5.0] * N
    assert planned == ["matmul"] * 2  # for each slot


def test_what_cannot_be_captured_runs_without_a_graph(gpu: FakeGpu) -> None:
    def plan(call: LibraryCall, addresses: Any) -> Any:
        def run_one(stream: int) -> None:
            if gpu._capture is not None:
                gpu.allocate(1)  # as a library that takes a workspace late

            def compute() -> None:
                a, b, c = (array_at(x, [N], "float32") for x in addresses)
                c[...] = a + b

            compute() if gpu._capture is not None else gpu._ask(stream, item(compute))

        return run_one

    executor = ProgramExecutor(Lane(gpu), with_a_call(), {}, plan)
    store = VariableStore("w", np.ones(N, np.float32))
    for _ in range(6):
        assert run(executor, np.ones(N, np.float32), store).get().tolist() == [3.0] * N
    assert executor.num_graphs == 0


def item(run: Any) -> Any:
    from .fake_gpu import _Item

    return _Item(run, (), "library")


def test_memory_runs_out_cleanly() -> None:
    """Wherever an allocation fails, what holds stays, and the next try works."""
    for n in range(40):
        gpu = a_gpu(fail_allocation=n)
        store = VariableStore("w", np.ones(N, np.float32))
        w, executor = np.ones(N, np.float32), None
        failures = 0
        for _ in range(4):
            try:
                executor = executor or ProgramExecutor(Lane(gpu), step(), {})
                run(executor, np.ones(N, np.float32), store)
                w += 3
            except OutOfGpuMemoryError:
                failures += 1
            np.testing.assert_array_equal(value_of(store), w)
        assert failures == (n < gpu._allocations)


def test_a_fault_is_told_and_stays() -> None:
    def broken(*_: Any) -> None:
        raise IndexError("an illegal memory access")

    kernels: dict[str, KernelFunction] = {**KERNELS, "scale": broken}
    gpu = FakeGpu(kernels=kernels)
    StrictCupy(gpu)
    executor = ProgramExecutor(Lane(gpu), step(), {})
    store = VariableStore("w", np.ones(N, np.float32))
    y = run(executor, np.ones(N, np.float32), store)  # nothing is known yet
    with pytest.raises(GpuFaultError, match="scale: an illegal memory access"):
        gpu.synchronize(gpu.stream)
    with pytest.raises(GpuFaultError):
        run(executor, np.ones(N, np.float32), store)
    assert y is not None


def test_an_error_in_a_capture_leaves_the_stream_usable(gpu: FakeGpu) -> None:
    calls = []

    def plan(call: LibraryCall, addresses: Any) -> Any:
        def run_one(stream: int) -> None:
            calls.append(stream)
            if gpu._capture is not None:
                raise ValueError("the library says no")

        return run_one

    executor = ProgramExecutor(Lane(gpu), with_a_call(), {}, plan)
    store = VariableStore("w", np.ones(N, np.float32))
    for _ in range(2):
        run(executor, np.ones(N, np.float32), store)
    with pytest.raises(ValueError, match="says no"):
        run(executor, np.ones(N, np.float32), store)
    gpu.synchronize(gpu.stream)
    assert gpu._capture is None
    gpu.begin_capture(gpu.stream)
    gpu.release_graph(gpu.end_capture(gpu.stream))
