"""Clustering: the same results from fewer operations, and never a circle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.devices import local_devices
from laminar.engine.devices.factories import factories
from laminar.engine.graph import Graph, Operation, Tensor
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.cluster import ClusterBody
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, maximum, multiply, subtract
from laminar.engine.ops.math.elementary import tanh
from laminar.engine.passes import StepGraph, cluster, needed_operations
from laminar.engine.runtime import Plan, StepContext

from ...sampling import examples

HOST = local_devices().client


class Anything:
    """Accepts every elementwise op, and has the reference kernels run them."""

    def prepare(self) -> None:
        pass

    def accepts(self, operations: Sequence[Operation]) -> list[bool]:
        return [
            op.type == "Const" or op.definition.scalar is not None  # type: ignore[attr-defined]  # an OpDef
            for op in operations
        ]

    def build(self, body: ClusterBody) -> Callable[..., Any] | None:
        return None


@pytest.fixture(autouse=True)
def anything(monkeypatch: pytest.MonkeyPatch) -> None:
    anything = Anything()
    factory = dataclasses.replace(factories[HOST.device_type], compiler=lambda: anything)
    monkeypatch.setitem(factories, HOST.device_type, factory)


def run(fetches: Sequence[Any], feeds: Sequence[Any], values: Sequence[Any]) -> None:
    """Check a clustered plan against a plain one."""
    plain = Plan(StepGraph(fetches, feeds)).run(values, StepContext())
    clustered = Plan(StepGraph(fetches, feeds), compiled=True).run(values, StepContext())
    for a, b in zip(plain, clustered, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_chain_is_one_operation() -> None:
    graph = Graph()
    with graph.as_default():
        x: Any = placeholder("float64", [None])
        y: Any = tanh(multiply(add(x, x), subtract(x, add(x, x))))
    operations, replaced = cluster(needed_operations([y], (), [x]), [y], [x], HOST)
    assert [op.type for op in operations] == ["Cluster"]
    assert len(replaced) == 5
    assert operations[0].outputs == (y,)
    assert operations[0].inputs == (x,)
    run([y], [x], [np.arange(4.0)])


@pytest.mark.parametrize(
    ("size", "kinds"),
    [(None, ["Cluster"]), (2048, ["Cluster"]), (8, ["Add", "Tanh"])],
    ids=["any", "large", "small"],
)
def test_two_operations_are_worth_it_where_much_is_computed(
    size: int | None, kinds: list[str]
) -> None:
    graph = Graph()
    with graph.as_default():
        x: Any = placeholder("float64", [size])
        y: Any = tanh(add(x, x))
    operations, _ = cluster(needed_operations([y], (), [x]), [y], [x], HOST)
    assert [op.type for op in operations] == kinds
    run([y], [x], [np.arange(size or 5.0)])


def test_what_lies_between_is_not_jumped_over() -> None:
    graph = Graph()
    with graph.as_default():
        x: Any = placeholder("float64", [3, 3])
        a = tanh(multiply(add(x, x), x))
        b = matmul(a, x)
        y: Any = add(subtract(maximum(a, b), a), multiply(a, b))
    operations, _ = cluster(needed_operations([y], (), [x]), [y], [x], HOST)
    assert [op.type for op in operations] == ["Cluster", "MatMul", "Cluster"]
    run([y], [x], [np.random.default_rng(0).normal(size=(3, 3))])


def test_fetched_and_fed_tensors_stay() -> None:
    graph = Graph()
    with graph.as_default():
        x: Any = placeholder("float64", [2])
        a: Any = add(x, x)
        b: Any = multiply(a, x)
        c: Any = tanh(add(b, a))
    run([c, b, a], [x], [np.ones(2)])
    run([c], [x, b], [np.ones(2), np.full(2, 5.0)])


def test_short_runs_are_left() -> None:
    graph = Graph()
    with graph.as_default():
        x: Any = placeholder("float64", [2])
        y: Any = add(multiply(x, x), x)
    operations, replaced = cluster(needed_operations([y], (), [x]), [y], [x], HOST)
    assert [op.type for op in operations] == ["Mul", "Add"]
    assert not replaced


def test_control_edges_are_kept() -> None:
    graph = Graph()
    with graph.as_default():
        x: Any = placeholder("float64", [2])
        first = matmul(placeholder("float64", [1, 1], name="p"), np.ones((1, 1)))
        with graph.control_dependencies([first]):
            y: Any = tanh(add(multiply(x, x), x))
    feeds: list[Any] = [x, graph.get_tensor_by_name("p:0")]
    operations, _ = cluster(needed_operations([y], (), feeds), [y], feeds, HOST)
    made = next(op for op in operations if op.type == "Cluster")
    assert [c.type for c in made.control_inputs] == ["MatMul"]
    run([y], feeds, [np.ones(2), np.ones((1, 1))])


@examples(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 1000), st.integers(0, 1000)),
        min_size=1,
        max_size=40,
    ),
    st.data(),
)
def test_random_graphs(recipe: list[tuple[int, int, int]], data: st.DataObject) -> None:
    graph = Graph()
    with graph.as_default():
        xs: list[Any] = [placeholder("float64", [2, 2]) for _ in range(2)]
        tensors: list[Tensor] = list(xs)
        ops = (add, subtract, multiply, maximum, multiply)
        for kind, i, j in recipe:
            a, b = tensors[i % len(tensors)], tensors[j % len(tensors)]
            if kind == 5:
                tensors.append(constant(float(i), "float64"))
            else:
                tensors.append(tanh(ops[kind](a, b)))
    fetches = data.draw(st.lists(st.sampled_from(range(2, len(tensors))), min_size=1, max_size=4))
    values = [np.array([[0.5, -1.0], [2.0, 0.25]]), np.array([[1.0, 0.0], [-0.5, 3.0]])]
    run([tensors[i] for i in fetches], xs, values)
