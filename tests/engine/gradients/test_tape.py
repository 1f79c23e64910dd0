"""GradientTape: what it records, what it gives, and when it refuses."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.ops.core.basic import stop_gradient
from laminar.engine.ops.core.recording import paused
from laminar.engine.ops.math.elementary import sin


def tensor(value: Any) -> Any:
    return eng.convert_to_tensor(np.asarray(value, np.float64))


def test_watched_tensors() -> None:
    x, y = tensor(3.0), tensor(4.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        z = x * x * y + y * y  # the last part is not recorded
    dx, dy = tape.gradient(z, [x, y])
    assert dx.numpy() == 24.0
    assert dy is None


def test_the_structure_of_the_sources_is_kept() -> None:
    x, y = tensor(3.0), tensor(4.0)
    with eng.GradientTape() as tape:
        tape.watch({"x": x, "rest": (y,)})
        z = x * y
    found = tape.gradient(z, {"x": x, "rest": (y,)})
    assert (found["x"].numpy(), found["rest"][0].numpy()) == (4.0, 3.0)


def test_trainable_variables_are_watched_when_they_are_read() -> None:
    v = eng.Variable(2.0)
    frozen = eng.Variable(5.0, trainable=False)
    with eng.GradientTape() as tape:
        y = v * v * frozen
    dv, df = tape.gradient(y, [v, frozen])
    assert float(dv) == 20.0
    assert df is None


def test_watching_can_be_left_to_the_user() -> None:
    v, w = eng.Variable(2.0), eng.Variable(3.0, trainable=False)
    with eng.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v * w
    dv, dw = tape.gradient(y, [v, w])
    assert dv is None
    assert float(dw) == 2.0


def test_a_variable_is_differentiated_at_each_of_its_values() -> None:
    v = eng.Variable(2.0)
    with eng.GradientTape() as tape:
        first = v * v
        v.assign(3.0)
        y = first + v * v
    assert float(tape.gradient(y, v)) == 2 * 2.0 + 2 * 3.0


def test_one_gradient_unless_persistent() -> None:
    x = tensor(3.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(FailedPreconditionError, match="a second time") as caught:
        tape.gradient(y, x)
    assert caught.value.remedy == "make it with GradientTape(persistent=True)"
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * x
    assert [tape.gradient(t, x).numpy() for t in (y, z)] == [6.0, 27.0]


def test_gradient_inside_the_block_ends_the_record() -> None:
    x = tensor(3.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        dx = tape.gradient(x * x, x)
    assert dx.numpy() == 6.0


def test_second_order_by_two_tapes_and_by_one() -> None:
    x = tensor(3.0)
    with eng.GradientTape() as outer:
        outer.watch(x)
        with eng.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        dx = inner.gradient(y, x)
    assert outer.gradient(dx, x).numpy() == 18.0
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(x)
        dx = tape.gradient(x * x * x, x)
    assert tape.gradient(dx, x).numpy() == 18.0


def test_third_order() -> None:
    x = tensor(0.5)
    with eng.GradientTape() as t3:
        t3.watch(x)
        with eng.GradientTape() as t2:
            t2.watch(x)
            with eng.GradientTape() as t1:
                t1.watch(x)
                y = sin(x)
            dx = t1.gradient(y, x)
        ddx = t2.gradient(dx, x)
    assert t3.gradient(ddx, x).numpy() == pytest.approx(-np.cos(0.5))


def test_unconnected_sources() -> None:
    x, v = tensor([1.0, 2.0]), eng.Variable([1.0, 2.0])
    integers = eng.convert_to_tensor([1, 2])
    with eng.GradientTape(persistent=True) as tape:
        y = tensor(1.0) * 2.0
    assert tape.gradient(y, [x, v, integers]) == [None, None, None]
    zeros = tape.gradient(y, [x, v, integers], unconnected_gradients="zero")
    assert [z.tolist() for z in zeros] == [[0.0, 0.0], [0.0, 0.0], [0, 0]]
    assert [z.dtype for z in zeros] == ["float64", "float32", "int32"]
    with pytest.raises(InvalidArgumentError, match="got 'ones'"):
        tape.gradient(y, x, unconnected_gradients="ones")


def test_weights() -> None:
    x = tensor([1.0, 2.0])
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
    assert tape.gradient(y, x, np.array([10.0, 1.0])).tolist() == [20.0, 4.0]
    found = tape.gradient([y, z], x, output_gradients=[np.array([10.0, 1.0]), None])
    assert found.tolist() == [23.0, 7.0]
    with pytest.raises(InvalidArgumentError, match="2 results are weighted by 1 gradients"):
        tape.gradient([y, z], x, output_gradients=[None])
    with pytest.raises(InvalidArgumentError, match="must have its shape and dtype"):
        tape.gradient([y], x, output_gradients=[np.ones(3)])


def test_several_results_are_summed() -> None:
    x = tensor(2.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        ys = {"a": x * x, "b": x * 5.0}
    assert tape.gradient(ys, x).numpy() == 9.0


def test_stop_gradient_and_stop_recording() -> None:
    x = tensor(3.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = x * stop_gradient(x)
        with tape.stop_recording():
            hidden = x * x
        z = y + hidden
    assert tape.gradient(z, x).numpy() == 3.0


def test_paused() -> None:
    x = tensor(3.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        with paused():
            y = x * x
    assert tape.gradient(y, x) is None


def test_what_cannot_be_watched() -> None:
    with eng.GradientTape() as tape, pytest.raises(InvalidArgumentError, match="got 3.0"):
        tape.watch([3.0])


def test_a_tape_records_once_at_a_time() -> None:
    tape = eng.GradientTape()
    with tape, pytest.raises(FailedPreconditionError, match="recording already"):
        tape.__enter__()


def test_a_tape_can_be_used_anew() -> None:
    x = tensor(3.0)
    tape = eng.GradientTape()
    for power in (2, 3):
        tape.reset()
        with tape:
            tape.watch(x)
            y = x**power
        assert tape.gradient(y, x).numpy() == pytest.approx(power * 3.0 ** (power - 1))


def test_a_tape_belongs_to_its_thread() -> None:
    x = tensor(3.0)
    found: list[Any] = []
    with eng.GradientTape() as tape:
        tape.watch(x)
        thread = threading.Thread(target=lambda: found.append(x * x))
        thread.start()
        thread.join()
        mine = x * 2.0
    assert tape.gradient([found[0], mine], x).numpy() == 2.0


def test_what_is_not_watched_is_not_kept() -> None:
    with eng.GradientTape() as tape:
        tape.watch(tensor(1.0))
        y = tensor(2.0) * 3.0
        alive = weakref.ref(y)
        del y
        gc.collect()
        assert alive() is None


def test_a_used_tape_keeps_nothing() -> None:
    x = tensor(np.ones(3))
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        middle = weakref.ref(y)
        z = y * x
    tape.gradient(z, x)
    del y
    gc.collect()
    assert middle() is None


def test_in_a_plain_graph() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [], name="x")
        constant = eng.convert_to_tensor(5.0, "float64")
        with eng.GradientTape() as tape:
            tape.watch([x, constant])
            y = x * x * constant
        dx, dc = tape.gradient(y, [x, constant])
        with eng.Session() as session:
            assert session.run([dx, dc], {x: 3.0}) == [30.0, 9.0]


def test_in_a_function() -> None:
    v = eng.Variable(np.asarray(2.0))
    outside = tensor(5.0)

    @eng.function
    def slopes(x: Any) -> Any:
        literal = eng.convert_to_tensor(np.asarray(7.0))
        with eng.GradientTape() as tape:
            tape.watch([x, literal, outside])
            y = v * x * x * literal * outside
        return tape.gradient(y, [x, v, literal, outside])

    assert [g.numpy() for g in slopes(tensor(3.0))] == [420.0, 315.0, 90.0, 126.0]


def test_a_target_can_be_a_variable() -> None:
    v, w = eng.Variable(np.asarray([2.0, 3.0])), eng.Variable(np.asarray([1.0, 1.0]))
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(v)
    np.testing.assert_array_equal(tape.gradient(v, v), [1.0, 1.0])
    assert tape.gradient(v, w) is None
    with eng.GradientTape(persistent=True) as tape:
        y = v * v
        inside = tape.gradient([v, y], v)
    np.testing.assert_array_equal(inside, [5.0, 7.0])
    np.testing.assert_array_equal(tape.gradient({"y": y, "v": v}, [v])[0], [5.0, 7.0])
    with eng.GradientTape(watch_accessed_variables=False) as tape:
        pass
    assert tape.gradient(v, v) is None


def test_a_variable_as_the_target_in_a_function_and_a_graph() -> None:
    v = eng.Variable(np.asarray(2.0))

    @eng.function
    def slope() -> Any:
        with eng.GradientTape() as tape:
            y = v * v
        return tape.gradient([y, v], v)

    assert slope() == 5.0
    assert eng.function(lambda: eng.gradients(v, v)[0])() == 1.0
    assert eng.grad(lambda v: v)(v) == 1.0


def test_watched_variables() -> None:
    v, w, fixed = eng.Variable(1.0), eng.Variable(2.0), eng.Variable(3.0, trainable=False)
    with eng.GradientTape() as tape:
        y = w * v * fixed * w
    assert tape.watched_variables() == (w, v)
    assert tape.gradient(y, w).numpy() == 12.0

    found = []

    @eng.function
    def step() -> Any:
        with eng.GradientTape() as tape:
            y = v * 2.0
        found.append(tape.watched_variables())
        return tape.gradient(y, v)

    assert step().numpy() == 2.0
    assert found == [(v,)]
