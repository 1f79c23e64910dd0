"""Conditions and loops as functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec

rng = np.random.default_rng(0)


@pytest.mark.parametrize("pred", [True, 1, np.bool_(True), ops.array(True)])
def test_cond(pred: Any) -> None:
    assert ops.cond(pred, lambda: "yes", lambda: "no") == "yes"
    assert ops.cond(ops.logical_not(pred), lambda: "yes", lambda: "no") == "no"


def test_cond_in_a_graph() -> None:
    @function
    def choose(x: Any, training: bool) -> Any:
        return ops.cond(training, lambda: x + 1, lambda: x)

    assert float(choose(ops.array(1.0), True)) == 2.0
    assert float(choose(ops.array(1.0), False)) == 1.0

    @function
    def by_value(x: Any) -> Any:
        return ops.cond(x > 0, lambda: x, lambda: -x)

    assert float(by_value(ops.array(1.0))) == 1.0
    assert float(by_value(ops.array(-2.0))) == 2.0


def test_switch_takes_the_nearest_branch() -> None:
    branches: list[Any] = [lambda x: x + 1, lambda x: x * 10]
    traced = function(lambda i: ops.switch(i, branches, ops.array(2.0)))
    for places in ((-3, 0, 1, 7), [ops.array(i) for i in (-3, 0, 1, 7)]):
        assert [float(ops.switch(i, branches, ops.array(2.0))) for i in places] == [3, 3, 20, 20]
        assert [float(traced(i)) for i in places] == [3, 3, 20, 20]


def test_while_loop() -> None:
    i, total = ops.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (0, 0))
    assert (int(i), int(total)) == (5, 10)
    assert int(ops.while_loop(lambda i: i < 100, lambda i: i * 2, 1)) == 128
    assert int(ops.while_loop(lambda i: True, lambda i: i + 1, 0, maximum_iterations=3)) == 3
    found = ops.while_loop(
        lambda i, d: i < 2, lambda i, d: (i + 1, {"a": d["a"] * 2}), [0, {"a": 3}]
    )
    assert int(found[1]["a"]) == 12


def test_while_loop_differentiates() -> None:
    x = ops.array(1.5)
    with GradientTape() as tape:
        tape.watch(x)
        _, y = ops.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))
    assert float(tape.gradient(y, x)) == pytest.approx(4 * 1.5**3)


def test_fori_loop() -> None:
    assert int(ops.fori_loop(1, 5, lambda i, v: v + i, 0)) == 10

    @function
    def powers(x: Any) -> Any:
        return ops.fori_loop(0, 3, lambda i, v: v * x, x)

    assert float(powers(ops.array(2.0))) == 16.0


def test_map() -> None:
    x = rng.normal(size=(4, 3))
    np.testing.assert_allclose(ops.map(lambda r: ops.sum(r), x).numpy(), x.sum(1))
    pair = ops.map(lambda r: {"s": r["a"] + r["b"]}, {"a": x, "b": x})
    np.testing.assert_allclose(pair["s"].numpy(), 2 * x)
    np.testing.assert_allclose(ops.vectorized_map(lambda r: r * 2, x).numpy(), 2 * x)
    np.testing.assert_allclose(
        ops.vectorized_map(lambda ab: ab[0] * ab[1], [x, x[:, 0]]).numpy(), x * x[:, :1]
    )


def test_map_needs_slices_and_a_size() -> None:
    with pytest.raises(ShapeError, match="map: the first axis is empty"):
        ops.map(lambda r: r, np.ones((0, 2)))
    with pytest.raises(ShapeError, match="the first axes must have one size"):
        ops.map(lambda r: r["a"], {"a": np.ones(2), "b": np.ones(3)})
    spec = TensorSpec([None, 2], "float32")
    graph = function(lambda x: ops.map(lambda r: r * 2, x), input_signature=[spec])
    for count in (0, 1, 3):
        np.testing.assert_array_equal(graph(np.ones((count, 2), "float32")), np.full((count, 2), 2))


def test_scan() -> None:
    x = np.array([1.0, 2.0, 3.0], "float32")
    carry, ys = ops.scan(lambda c, v: (c + v, c * v), ops.array(0.0), x)
    assert float(carry) == 6
    np.testing.assert_array_equal(ys.numpy(), [0, 2, 9])
    carry, ys = ops.scan(lambda c, v: (c + v, c), ops.array(0.0), x, reverse=True)
    np.testing.assert_array_equal(ys.numpy(), [5, 3, 0])
    carry, ys = ops.scan(lambda c, _: (c * 2, None), ops.array(1.0), length=4)
    assert float(carry) == 16
    assert ys is None
    with pytest.raises(InvalidArgumentError, match="give xs or length"):
        ops.scan(lambda c, v: (c, v), 0)
    with pytest.raises(InvalidArgumentError, match="length is 2, but xs has 3 slices"):
        ops.scan(lambda c, v: (c, v), 0, x, length=2)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_associative_scan(count: int, reverse: bool, axis: int) -> None:
    x = rng.normal(size=(count, 3) if axis == 0 else (3, count))
    found = ops.associative_scan(ops.add, x, reverse=reverse, axis=axis)
    ordered = np.flip(x, axis) if reverse else x
    expected = np.cumsum(ordered, axis)
    np.testing.assert_allclose(found.numpy(), np.flip(expected, axis) if reverse else expected)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_associative_scan_of_an_unknown_length(reverse: bool, axis: int) -> None:
    spec = TensorSpec([None, None], "float64")

    @function(input_signature=[spec])
    def sums(x: Any) -> Any:
        return ops.associative_scan(ops.add, x, reverse=reverse, axis=axis)

    for count in (1, 2, 5):
        x = rng.normal(size=(count, 3) if axis == 0 else (3, count))
        ordered = np.flip(x, axis) if reverse else x
        expected = np.cumsum(ordered, axis)
        np.testing.assert_allclose(sums(x), np.flip(expected, axis) if reverse else expected)


def test_associative_scan_refuses_sizes_that_differ() -> None:
    with pytest.raises(ShapeError, match="the sizes along axis=0 differ"):
        ops.associative_scan(lambda a, b: a, [np.ones(2), np.ones(3)])


def test_associative_scan_of_a_structure_that_does_not_commute() -> None:
    # x -> a * x + b, one after the other
    a, b = rng.normal(size=5), rng.normal(size=5)

    def then(f: Any, g: Any) -> Any:
        return f[0] * g[0], f[1] * g[0] + g[1]

    found = ops.associative_scan(then, (a, b))
    p, q = 1.0, 0.0
    for i in range(5):
        p, q = p * a[i], q * a[i] + b[i]
        assert float(found[0][i]) == pytest.approx(p)
        assert float(found[1][i]) == pytest.approx(q)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_vectorize(shape: tuple[int, ...]) -> None:
    x = rng.normal(size=shape)
    fn = ops.vectorize(lambda a, b: a * 2 + b)
    np.testing.assert_allclose(fn(x, 1.0).numpy(), 2 * x + 1)


def test_vectorize_with_a_signature() -> None:
    a, b = rng.normal(size=(4, 1, 3)), rng.normal(size=(2, 3))
    dot = ops.vectorize(ops.dot, signature="(n),(n)->()")
    np.testing.assert_allclose(dot(a, b).numpy(), np.sum(a * b, -1))
    kept = ops.vectorize(lambda x, n: x * n, excluded={1})
    np.testing.assert_allclose(kept(a, 3).numpy(), a * 3)
    with pytest.raises(InvalidArgumentError, match="expected a signature"):
        ops.vectorize(ops.dot, signature="n,n")
    with pytest.raises(InvalidArgumentError, match="has 2 arguments, the call 1"):
        dot(a)
    with pytest.raises(InvalidArgumentError, match="expected a function, got 3"):
        ops.vectorize(3)  # type: ignore[arg-type]  # the mistake
