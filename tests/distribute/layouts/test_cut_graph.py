"""Steps with pieces give what those with whole variables do, for each op that has a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.distribute.collectives.group import Group, SingleGroup
from laminar.distribute.layouts.cut_graph import with_pieces
from laminar.distribute.layouts.held import HeldPieces
from laminar.distribute.layouts.mesh import ProcessMesh
from laminar.engine.errors import InvalidArgumentError, UnimplementedError
from laminar.engine.functions import Function
from laminar.engine.graph import TensorSpec
from laminar.engine.state import Variable
from tests.distribute.layouts.thread_group import by_each

A, B = "a", "b"
Given = Sequence[tuple[tuple[int, ...], tuple[str | None, ...]]]

# What is computed of variables, and their shapes and cuts on a mesh of 2 by 2.
CASES: dict[str, tuple[Callable[..., Any], Given]] = {
    "columns": (ops.matmul, [((3, 4), (None, None)), ((4, 6), (None, B))]),
    "rows": (ops.matmul, [((3, 4), (None, None)), ((4, 6), (B, None))]),
    "both": (ops.matmul, [((4, 4), (A, None)), ((4, 6), (None, B))]),
    "same axis": (ops.matmul, [((4, 4), (A, B)), ((4, 6), (A, B))]),
    "matrices": (ops.matmul, [((2, 4, 4), (A, None, B)), ((2, 4, 6), (A, B, None))]),
    "one matrix": (ops.matmul, [((2, 4, 4), (A, None, None)), ((4, 6), (None, A))]),
    "transposed": (
        lambda x, y: ops.matmul(ops.transpose(x), y),
        [((4, 6), (None, A)), ((4, 2), (B, None))],
    ),
    "einsum": (
        lambda x, y: ops.einsum("abc,cde->abde", x, y),
        [((2, 3, 4), (None, None, None)), ((4, 2, 6), (None, A, B))],
    ),
    "sum of labels": (
        lambda x, y: ops.einsum("abcd,cde->abe", x, y),
        [((1, 3, 4, 2), (None, None, A, None)), ((4, 2, 6), (A, B, None))],
    ),
    "diagonal": (
        lambda x, y: ops.einsum("aab,bc->ac", x, y),
        [((4, 4, 2), (A, None, None)), ((2, 6), (None, B))],
    ),
    "broadcast": (lambda x, y: x * y + 1.0, [((4, 6), (A, None)), ((6,), (B,))]),
    "other places": (lambda x, y: x * y, [((4, 6), (A, B)), ((4, 6), (B, A))]),
    "size 1": (lambda x, y: x - y, [((4, 1), (A, None)), ((4, 6), (None, A))]),
    "reductions": (
        lambda x: ops.sum(x, axis=0) + ops.max(x, axis=0) * ops.mean(x, axis=(0, 1)),
        [((4, 6), (A, B))],
    ),
    "kept axes": (lambda x: x / ops.sum(x * x, axis=-1, keepdims=True), [((4, 6), (A, B))]),
    "softmax": (lambda x: ops.softmax(x, axis=-1), [((4, 6), (A, B))]),
    "axes": (
        lambda x: ops.squeeze(ops.expand_dims(ops.transpose(x, (1, 0)), 1), 1),
        [((4, 6), (A, None))],
    ),
    "repeated": (lambda x: ops.broadcast_to(x, (2, 4, 6)), [((4, 1), (A, None))]),
    "reshaped": (lambda x: ops.reshape(x, (-1, 6)), [((2, 4, 6), (A, None, B))]),
    "lookup": (lambda x: ops.take(x, [[0, 3], [2, 2]], axis=0), [((4, 6), (A, B))]),
    "convolution": (
        lambda x, k: ops.conv(x, k, padding="same"),
        [((1, 5, 5, 4), (None, None, None, None)), ((3, 3, 4, 2), (None, None, A, B))],
    ),
    "no rule": (lambda x: ops.cumsum(x, axis=0), [((4, 6), (A, B))]),
}


def step_of(
    fn: Callable[..., Any], given: Given, group: Group, shape: tuple[int, int]
) -> tuple[Any, Any, list[Variable], HeldPieces]:
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(len(given))]
    values = [rng.normal(size=size) for size, _ in given]
    variables = [Variable(x, name=name) for x, name in zip(values, names, strict=True)]
    cuts = {name: cut for name, (_, cut) in zip(names, given, strict=True)}

    def step(batch: Any) -> Any:
        with laminar.GradientTape() as tape:
            y = fn(*(v.read_value() for v in variables)) * batch
            loss = ops.sum(y * y)
        gradients = [ops.convert_to_tensor(g) for g in tape.gradient(loss, variables)]
        for v, g in zip(variables, gradients, strict=True):
            v.assign_sub(0.1 * g)
        return y, gradients

    mesh = ProcessMesh(group, shape, [A, B])
    pieces = HeldPieces(mesh, lambda v: cuts[v.path])
    return step, with_pieces(step, mesh, pieces, A), variables, pieces


def run(fn: Callable[..., Any], given: Given, group: Group, shape: tuple[int, int]) -> list[Any]:
    _, cut, variables, pieces = step_of(fn, given, group, shape)
    step = Function(cut).concrete(TensorSpec((), "float64"))
    step.compiled = False
    found = []
    for number in (1.0, 2.0):
        pieces.drop_wholes()
        y, gradients = step(ops.convert_to_tensor(np.float64(number)))
        found += [y.numpy(), *(g.numpy() for g in gradients)]
    for v, (_, axes) in zip(variables, given, strict=True):
        assert (v.store.value is None) == any(axes)
    return [*found, *(v.numpy() for v in variables)]


@pytest.mark.parametrize("name", CASES)
def test_pieces_give_what_wholes_do(name: str) -> None:
    """Values, gradients and updates of two steps; with the same bits in all processes."""
    fn, given = CASES[name]
    expected = run(fn, [(size, (None,) * len(size)) for size, _ in given], SingleGroup(), (1, 1))
    every = by_each(4, lambda group: run(fn, given, group, (2, 2)))
    for found in every:
        for one, other, first in zip(expected, found, every[0], strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(other, first)


def collectives(fn: Callable[..., Any], given: Given) -> list[str]:
    """The types of the collectives of a step by two processes, without its gradients."""

    def of(group: Group) -> list[str]:
        variables = [Variable(np.ones(size), name=f"v{i}") for i, (size, _) in enumerate(given)]
        mesh = ProcessMesh(group, (1, 2), [A, B])
        pieces = HeldPieces(mesh, lambda v: given[int(v.path[1:])][1])
        step = with_pieces(lambda x: fn(x, *(v.read_value() for v in variables)), mesh, pieces, A)
        concrete = Function(step).concrete(TensorSpec((None, 4), "float64"))
        types = [op.type for op in concrete.graph.operations]
        return [t for t in types if t in ("GatherPieces", "SumOverWorkers")]

    first: list[str]
    first, second = by_each(2, of)
    assert first == second
    return first


def test_a_pair_of_layers_takes_one_sum() -> None:
    """Columns, an activation on these, then rows: what Megatron-LM does."""

    def layers(x: Any, w: Any, b: Any, u: Any) -> Any:
        return ops.matmul(ops.relu(ops.matmul(x, w) + b), u)

    given: Given = [((4, 6), (None, B)), ((6,), (B,)), ((6, 4), (B, None))]
    assert collectives(layers, given) == ["SumOverWorkers"]


def test_columns_are_gathered_where_the_next_matrix_is_whole() -> None:
    def layers(x: Any, w: Any, u: Any) -> Any:
        return ops.matmul(x, w) @ u

    assert collectives(layers, [((4, 6), (None, B)), ((6, 2), (None, None))]) == ["SumOverWorkers"]
    assert collectives(lambda x, w: ops.matmul(x, w), [((4, 6), (None, B))]) == ["GatherPieces"]


def fails(fn: Callable[..., Any], size: tuple[int, ...], axes: Any, message: str) -> None:
    error = UnimplementedError if "cannot run" in message else InvalidArgumentError

    def of(group: Group) -> None:
        with pytest.raises(error, match=message):
            run(fn, [(size, axes)], group, (1, 2))

    by_each(2, of)


def test_layouts_that_do_not_fit() -> None:
    fails(ops.sum, (4, 6), (B,), r"variable 'v0' float64\[4, 6\] has 1 axes")
    fails(ops.sum, (4, 6), (B, B), "names an axis of the mesh twice")
    fails(ops.sum, (4, 5), (None, B), "cuts an axis of size 5 into 2 pieces")


def test_meshes_that_do_not_fit() -> None:
    with pytest.raises(InvalidArgumentError, match="takes 4 processes, and 1 of them was started"):
        ProcessMesh(SingleGroup(), (2, 2), [A, B])


def test_a_value_that_is_set_is_cut_again() -> None:
    def of(group: Group) -> Any:
        _, cut, (v,), pieces = step_of(lambda x: x, [((4, 2), (B, None))], group, (1, 2))
        step = Function(cut).concrete(TensorSpec((), "float64"))
        step.compiled = False
        pieces.drop_wholes()
        step(ops.convert_to_tensor(np.float64(0)))
        v.assign(np.arange(8.0).reshape(4, 2))
        pieces.drop_wholes()
        ((_, held),) = [(s, h) for s, h in pieces if s is v.store]
        y, _ = step(ops.convert_to_tensor(np.float64(1)))
        return held.piece().shape, y.numpy()

    for shape, y in by_each(2, of):
        assert shape == (2, 2)
        np.testing.assert_array_equal(y, np.arange(8.0).reshape(4, 2))
