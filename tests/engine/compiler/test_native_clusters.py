"""Clusters as native code: the values of the reference kernels, for every shape and pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.compiler import NativeCompiler
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.target import code_cache as codes
from laminar.engine.devices import local_devices
from laminar.engine.graph import Graph, GraphTensor, Tensor
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, divide, maximum, multiply, subtract
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import greater, where
from laminar.engine.ops.math.elementary import exp, sqrt, tanh
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.ops.nn.activations import leaky_relu, relu
from laminar.engine.passes import StepGraph, cluster, needed_operations
from laminar.engine.runtime import Plan, StepContext

from ...sampling import examples

rng = np.random.default_rng(0)


def codes_known() -> int:
    return len(codes._addresses)


def run(
    build: Callable[..., Sequence[Tensor]], arrays: Sequence[Any], *, ulps: int = 4
) -> list[str]:
    """Check a clustered plan against a plain one; gives the kinds of operation that ran."""
    graph = Graph()
    with graph.as_default():
        xs = [placeholder(a.dtype, [None] * a.ndim) for a in arrays]
        ys: Any = list(build(*xs))
    expected = Plan(StepGraph(ys, xs)).run(arrays, StepContext())
    plan = Plan(StepGraph(ys, xs), compiled=True)
    for _ in range(2):  # the first run compiles, the second does not
        for a, b in zip(plan.run(arrays, StepContext()), expected, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            if a.dtype.kind == "f":
                np.testing.assert_array_max_ulp(a, b, ulps)
            else:
                np.testing.assert_array_equal(a, b)
    return [op.type for op in plan.operations]


def normal(*shape: int, dtype: str = "float32") -> Any:
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def adam(w: Any, g: Any, m: Any, v: Any, rate: Any) -> Sequence[Tensor]:
    m2 = m + (g - m) * 0.1
    v2 = v + (g * g - v) * 0.001
    return m2, v2, w - rate * m2 / (sqrt(v2) + 1e-7)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (16,), (17,), (4, 5), (7, 33), (0, 4), (64, 64)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_update_rule(shape: tuple[int, ...], dtype: str) -> None:
    arrays = [normal(*shape, dtype=dtype) for _ in range(3)]
    arrays.append(np.abs(normal(*shape, dtype=dtype)))
    kinds = run(adam, [*arrays, np.asarray(0.01, dtype)])
    assert kinds == ["Cluster"]


@pytest.mark.parametrize(
    "shapes",
    [
        [(5, 7), (7,), (5, 1)],
        [(5, 7), (), (1, 1)],
        [(2, 3, 40), (40,), (3, 1)],
        [(2, 3, 4), (2, 1, 4), (1, 3, 1)],
        [(1, 20), (6, 1), (6, 20)],
        [(0, 3), (3,), (1,)],
    ],
)
def test_broadcasting(shapes: list[tuple[int, ...]]) -> None:
    def build(a: Any, b: Any, c: Any) -> Sequence[Tensor]:
        row = multiply(b, b)  # smaller than the rest: it goes through memory
        y = add(multiply(a, row), c)
        return relu(subtract(y, row)), row

    assert run(build, [normal(*s) for s in shapes]) == ["Cluster"]


def test_types_conditions_and_constants() -> None:
    def build(x: Any, n: Any) -> Sequence[Tensor]:
        positive = greater(x, constant(0.0))
        y = where(positive, x, multiply(x, constant(0.5)))
        return add(y, cast(n, "float32")), positive, cast(positive, "int32")

    run(build, [normal(50), rng.integers(-9, 9, 50).astype("int32")])


def test_specials_pass_through() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38], "float32")

    def build(a: Any) -> Sequence[Tensor]:
        return maximum(a, multiply(a, a)), tanh(add(a, a)), exp(subtract(a, a))

    run(build, [np.tile(x, 5)])


def test_zeros_of_either_sign_are_two_numbers() -> None:
    """They are equal: what is made of the one must not be taken for what is made of the other."""

    def build(a: Any) -> Sequence[Tensor]:
        ways = [divide(exp(a), constant(zero)) for zero in (0.0, -0.0)]
        return [*ways, *(divide(a, leaky_relu(a, negative_slope=z)) for z in (0.0, -0.0))]

    with np.errstate(divide="ignore"):
        run(build, [normal(50)])


def test_views_are_read_as_what_they_show() -> None:
    base = normal(12, 8)
    run(lambda a, b: [tanh(add(multiply(a, b), a))], [base.T, base[::-1, ::2].T.copy().T[:, :1].T])


def test_another_size_compiles_nothing() -> None:
    graph = Graph()
    with graph.as_default():
        x, b = placeholder("float32", [None, 6]), placeholder("float32", [6])
        y = tanh(add(multiply(x, b), b))
        assert isinstance(y, GraphTensor)
    operations, _ = cluster(needed_operations([y], (), [x, b]), [y], [x, b], local_devices().client)
    native = NativeCluster(operations[0].attrs["body"])
    context = StepContext()
    native(context, normal(5, 6), normal(6))
    codes = codes_known()
    for rows in (2, 100, 0, 1, 6):
        found, expected = native(context, a := normal(rows, 6), c := normal(6)), np.tanh(a * c + c)
        np.testing.assert_allclose(found[0], expected, 1e-5)
    assert codes_known() == codes
    assert len(native.events) == 1


def of_rows_and_columns(build: Callable[[Tensor], Tensor]) -> NativeCluster:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None, None])
        y = build(x)
        assert isinstance(y, GraphTensor)
    operations, _ = cluster(needed_operations([y], (), [x]), [y], [x], local_devices().client)
    return NativeCluster(operations[0].attrs["body"])


@pytest.mark.parametrize("sizes", [[(5, 3), (4, 4), (1, 1)], [(4, 4), (5, 3), (7, 7), (2, 9)]])
def test_sizes_that_are_equal_by_chance_compile_nothing(
    sizes: list[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))  # no plans on disk
    native = of_rows_and_columns(lambda x: add(exp(x), reduce_sum(x, axis=0)))
    context = StepContext()
    for shape in sizes:
        (found,) = native(context, a := normal(*shape))
        np.testing.assert_allclose(found, np.exp(a) + a.sum(0), 1e-5, 1e-5)
        if shape == sizes[0]:
            codes = codes_known()
    assert codes_known() == codes
    assert len(native.events) == len(native._specializations) == 1


def test_sizes_that_must_be_equal_have_one_structure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    native = of_rows_and_columns(lambda x: add(matmul(x, x), exp(x)))
    context = StepContext()
    for n in (4, 7, 1):
        (found,) = native(context, a := normal(n, n))
        np.testing.assert_allclose(found, a @ a + np.exp(a), 1e-4, 1e-4)
    assert len(native.events) == len(native._specializations) == 1


def softmax_of_products() -> NativeCluster:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None, 64])
        y = reduce_sum(exp(matmul(exp(matmul(x, x, transpose_b=True)), x)), axis=0)
        assert isinstance(y, GraphTensor)
    operations, _ = cluster(needed_operations([y], (), [x]), [y], [x], local_devices().client)
    return NativeCluster(operations[0].attrs["body"])


def bytes_kept(cluster: NativeCluster) -> int:
    """Of the memory that plans work in."""
    (place,) = cluster._contexts
    memories = {id(r.executable._arena): r.executable._arena for r in place.ready.values()}
    return sum(memory.nbytes for memory in memories.values())


@pytest.mark.parametrize("order", [1, -1])
def test_plans_of_many_sizes_work_in_the_memory_of_one(order: int) -> None:
    largest = softmax_of_products()
    largest(StepContext(), rows := normal(60, 64) / 64)
    many = softmax_of_products()
    for n in range(1, 61)[::order]:
        many(StepContext(), rows[:n])
    assert bytes_kept(many) == bytes_kept(largest) > 60 * 60 * 4
    for n in (60, 7, 31):  # those that have moved, too
        a = rows[:n].astype("float64")
        expected = np.exp(np.exp(a @ a.T) @ a).sum(0)
        np.testing.assert_allclose(many(StepContext(), rows[:n])[0], expected, rtol=1e-5)


def test_calls_at_the_same_time_have_memory_of_their_own() -> None:
    native = softmax_of_products()
    rows = {n: normal(n, 64) / 64 for n in (3, 9, 40)}
    expected = {n: native(StepContext(), a)[0] for n, a in rows.items()}
    place = native._contexts.pop()  # as a thread that runs it
    for n in (3, 40, 9, 3):
        np.testing.assert_array_equal(native(StepContext(), rows[n])[0], expected[n])
    (other,) = native._contexts
    assert other is not place
    assert {id(r.executable._arena) for r in other.ready.values()} == {id(other.memory)}


def test_what_has_no_native_form_is_not_accepted() -> None:
    compiler = NativeCompiler()
    graph = Graph()
    with graph.as_default():
        pair = placeholder("complex64", [3])
        whole = placeholder("int32", [3])
        refused = [add(pair, pair), cast(placeholder("float32", [3]), "uint32")]
        accepted = [add(whole, whole), divide(*[placeholder("float32", [3])] * 2)]
    operations = [y.op for y in (*refused, *accepted)]  # type: ignore[attr-defined]  # of a graph
    assert compiler.accepts(operations) == [False] * 2 + [True] * 2


@examples(25)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 99), st.integers(0, 99)),
        min_size=3,
        max_size=12,
    ),
    st.lists(
        st.sampled_from([(), (1,), (5,), (3, 1), (3, 5), (2, 3, 5), (2, 1, 1)]),
        min_size=2,
        max_size=3,
    ),
)
def test_random_clusters(
    executable_plan: list[tuple[int, int, int]], shapes: list[tuple[int, ...]]
) -> None:
    ops = (add, subtract, multiply, maximum, greater)

    def build(*xs: Any) -> Sequence[Tensor]:
        tensors = list(xs)
        for kind, i, j in executable_plan:
            a, b = tensors[i % len(tensors)], tensors[j % len(tensors)]
            y = ops[kind](a, b)
            tensors.append(y if y.dtype == "float32" else where(y, a, b))
        return tensors[len(xs) :]

    run(build, [normal(*s) for s in shapes], ulps=0)
