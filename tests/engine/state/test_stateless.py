"""StatelessScope: other values for variables, in a block and in one thread."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import StatelessScope, layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError


def number(value: Any) -> float:
    return float(value)


def test_values_inside_are_the_given_ones() -> None:
    v, w = laminar.Variable([1.0, 2.0]), laminar.Variable(5.0)
    with StatelessScope([(v, [3, 4])]) as scope:
        assert ops.convert_to_numpy(v * 2).tolist() == [6, 8]
        assert v.numpy().dtype == np.float32
        assert float(w) == 5
        assert scope.get_current_value(w) is None
    assert v.numpy().tolist() == [1, 2]


def test_updates_stay_inside() -> None:
    v = laminar.Variable(1.0)
    with StatelessScope() as scope:
        assert number(v.assign_add(2.0)) == 3
        assert number(v.assign_sub(0.5)) == 2.5
        assert float(v) == 2.5
        v.assign(7)
    value = scope.get_current_value(v)
    assert number(value) == 7
    assert float(v) == 1


def test_inner_scopes_see_outer_ones_and_keep_their_updates() -> None:
    v = laminar.Variable(1.0)
    with StatelessScope([(v, 2.0)]):
        with StatelessScope() as inner:
            v.assign_add(10.0)
        assert float(v) == 2
        assert number(inner.get_current_value(v)) == 12
    assert float(v) == 1


def test_an_error_inside_leaves_the_scope() -> None:
    v = laminar.Variable(1.0)
    with pytest.raises(RuntimeError), StatelessScope([(v, 2.0)]):
        raise RuntimeError
    assert float(v) == 1


def test_threads_do_not_see_each_other() -> None:
    v = laminar.Variable(0.0)
    together = threading.Barrier(4)
    found: dict[int, list[float]] = {}

    def work(number: int) -> None:
        with StatelessScope([(v, float(number))]):
            together.wait(10)
            for _ in range(50):
                v.assign_add(1.0)
            together.wait(10)
            found[number] = [float(v)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: [i + 50.0] for i in range(4)}
    assert float(v) == 0


def test_losses_are_collected() -> None:
    class Penalty(layers.Layer):
        def call(self, x: Any) -> Any:
            self.add_loss(ops.sum(x))
            return x

    layer = Penalty()
    with StatelessScope(collect_losses=True) as scope:
        layer(np.ones((2, 3), "float32"))
    assert [number(loss) for loss in scope.losses] == [6]
    with StatelessScope() as scope:
        layer(np.ones((2, 3), "float32"))
    assert scope.losses == []


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_with_respect_to_the_values(traced: bool) -> None:
    dense = layers.Dense(1, use_bias=False)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    dense.build((None, 3))
    kernel = dense.kernel

    def loss(value: Any) -> Any:
        outputs, _ = dense.stateless_call([value], [], x)
        return ops.sum(outputs**2)

    gradient = laminar.grad(laminar.function(loss) if traced else loss)
    value = np.array([[1.0], [-2.0], [0.5]], "float32")
    expected = 2 * x.T @ (x @ value)
    assert np.allclose(gradient(laminar.ops.convert_to_tensor(value)), expected)
    assert dense.kernel is kernel


def test_a_traced_function_inside_reads_the_values() -> None:
    v = laminar.Variable(1.0)

    @laminar.function
    def double() -> Any:
        v.assign_add(1.0)
        return 2 * v

    assert float(double()) == 4
    with StatelessScope([(v, 10.0)]):
        assert float(double()) == 22
    assert float(v) == 2


def test_the_random_state_of_a_layer_is_among_the_values() -> None:
    dropout = layers.Dropout(0.5, seed=3)
    x = np.ones((4, 8), "float32")
    states = [v.numpy() for v in dropout.non_trainable_variables]
    first, after = dropout.stateless_call([], states, x, training=True)
    again, _ = dropout.stateless_call([], states, x, training=True)
    other, _ = dropout.stateless_call([], after, x, training=True)
    assert first.numpy().tolist() == again.numpy().tolist() != other.numpy().tolist()


def test_refused() -> None:
    v = laminar.Variable([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"StatelessScope: variable .* has the shape \[2\]"):
        StatelessScope([(v, [1.0])])
    with pytest.raises(InvalidArgumentError, match="expected pairs"):
        StatelessScope([(1.0, v)])  # type: ignore[list-item]  # the mistake that is tested
