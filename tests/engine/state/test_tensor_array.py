"""TensorArray: in graphs, loops, conditions and functions, and at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine import TensorArray
from laminar.engine.errors import InvalidArgumentError, LaminarError, ShapeError


def in_session(build: Callable[[], Any]) -> Any:
    with engine.Graph().as_default():
        found = build()
        with engine.Session() as session:
            return session.run(found)


def at_once(build: Callable[[], Any]) -> Any:
    found = build()
    return [v.numpy() for v in found] if isinstance(found, list | tuple) else found.numpy()


def in_function(build: Callable[[], Any]) -> Any:
    return at_once(engine.function(build))


@pytest.fixture(params=[in_session, at_once, in_function])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_write_and_read(run: Any) -> None:
    def build() -> Any:
        array = TensorArray("float32", 3, clear_after_read=False)
        array = array.write(1, [1.0, 2.0]).write(0, [3.0, 4.0]).write(2, [5.0, 6.0])
        return [array.read(1), array.stack(), array.gather([2, 0]), array.size()]

    one, whole, some, size = run(build)
    assert one.tolist() == [1, 2]
    assert whole.tolist() == [[3, 4], [1, 2], [5, 6]]
    assert some.tolist() == [[5, 6], [3, 4]]
    assert size == 3


def test_unstack_scatter_and_concat(run: Any) -> None:
    def build() -> Any:
        array = TensorArray("int32", 3).unstack([[1], [2], [3]])
        placed = TensorArray("int32", 3).scatter([2, 0, 1], [7, 8, 9])
        pieces = TensorArray("string", 2, infer_shape=False).split(["a", "b", "c"], [1, 2])
        kept = TensorArray("string", 2, infer_shape=False, clear_after_read=False)
        kept = kept.split(["a", "b", "c"], [1, 2])
        return [array.concat(), placed.stack(), pieces.read(1), kept.concat()]

    joined, placed, piece, words = run(build)
    assert joined.tolist() == [1, 2, 3]
    assert placed.tolist() == [8, 9, 7]
    assert piece.tolist() == [b"b", b"c"]
    assert words.tolist() == [b"a", b"b", b"c"]


def test_elements_that_are_words_or_none(run: Any) -> None:
    def build() -> Any:
        words = TensorArray("string", 2).unstack(["a", "b"])
        empty = TensorArray("float32", 0).unstack(np.zeros((0, 3), "float32"))
        grown = TensorArray("int32", 1, dynamic_size=True).split([1, 2], [1, 1])
        return [words.read(1), empty.stack(), grown.write(2, [3]).concat()]

    word, empty, joined = run(build)
    assert word in (b"b", np.asarray(b"b", object))
    assert empty.shape == (0, 3)
    assert joined.tolist() == [1, 2, 3]


def test_it_grows(run: Any) -> None:
    def build() -> Any:
        array = TensorArray("float32", 0, dynamic_size=True, element_shape=[])
        array = array.write(2, 5.0).write(0, 1.0)
        return [array.size(), array.stack()]

    size, values = run(build)
    assert size == 3
    assert values.tolist() == [1.0, 0.0, 5.0]  # what was not written is zeros of a known shape


def test_a_loop_and_its_gradient(run: Any) -> None:
    """y[i] = x[i] * y[i - 1], written and read in a loop."""
    values = np.asarray([2.0, 3.0, 4.0], "float32")

    def build() -> Any:
        x = engine.constant(values)

        def total(x: Any) -> Any:
            given = TensorArray("float32", 3).unstack(x)
            made = TensorArray("float32", 4, clear_after_read=False, element_shape=[])
            made = made.write(0, 1.0)

            def body(i: Any, made: Any) -> Any:
                return i + 1, made.write(i + 1, given.read(i) * made.read(i))

            _, made = engine.while_loop(lambda i, made: i < 3, body, (0, made))
            return made.stack()

        y = total(x)
        if engine.graph.building() is None:
            with engine.GradientTape() as tape:
                tape.watch(x)
                z = total(x)
            return [y, tape.gradient(z, x, np.asarray([5.0, 1.0, 1.0, 1.0], "float32"))]
        weights = engine.constant([5.0, 1.0, 1.0, 1.0])
        return [y, *engine.gradients(y, x, weights)]

    y, dx = run(build)
    assert y.tolist() == [1, 2, 6, 24]
    # d(2 + 6 + 24): by x0: 1 + 3 + 12, by x1: 2 + 8, by x2: 6
    assert dx.tolist() == [16, 10, 6]


def test_gradients_of_each_change(run: Any) -> None:
    x = np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32")

    def build() -> Any:
        given = engine.constant(x)
        with engine.GradientTape() as tape:
            tape.watch(given)
            rows = TensorArray("float32", 3, clear_after_read=False).unstack(given)
            pieces = TensorArray("float32", 2, infer_shape=False, element_shape=[None, 2])
            pieces = pieces.split(given, [1, 2])
            y = ops.sum(rows.read(1) * rows.read(1)) + ops.sum(rows.gather([0, 1]) * 10.0)
            y = y + ops.sum(pieces.concat() * 100.0)
        return [tape.gradient(y, given)]

    (dx,) = run(build)
    expected = np.full((3, 2), 100.0)
    expected[:2] += 10.0
    expected[1] += 2 * x[1]
    np.testing.assert_array_equal(dx, expected)


def test_a_tape_around_a_function() -> None:
    @engine.function
    def squares(x: Any) -> Any:
        array = TensorArray("float32", 3)
        _, array = engine.while_loop(
            lambda i, array: i < 3,
            lambda i, array: (i + 1, array.write(i, x * ops.cast(i, "float32"))),
            (0, array),
        )
        return ops.sum(array.stack() ** 2)

    x = engine.constant(3.0)
    for _ in range(2):
        with engine.GradientTape() as tape:
            tape.watch(x)
            y = squares(x)
        assert y.numpy() == 45.0
        assert tape.gradient(y, x).numpy() == 30.0


def test_two_passes_do_not_mix() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.placeholder("float32", [])
        array = TensorArray("float32", 1, clear_after_read=False).write(0, x)
        first = engine.gradients(array.read(0) * 2.0, x)
        second = engine.gradients(array.read(0) * 3.0, x)
        both = engine.gradients([array.read(0) * 2.0, array.read(0)], x)
        assert session.run([first, second, both], {x: 1.0}) == [[2.0], [3.0], [3.0]]


def test_a_gradient_array_by_hand() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        array = TensorArray("float32", 2, element_shape=[2]).write(0, [1.0, 2.0])
        own = array.grad("mine")
        own = own.write(0, [1.0, 1.0])
        own = own.write(0, [2.0, 3.0])  # adds up
        again = array.grad("mine", flow=own.flow)
        other = array.grad("other", flow=own.flow)
        found = session.run([again.read(0), again.read(1), other.read(0)])
        assert [v.tolist() for v in found] == [[3, 4], [0, 0], [0, 0]]


@pytest.mark.parametrize("taken", [True, False])
def test_from_a_condition(taken: bool) -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        p = engine.placeholder("bool", [])
        array = TensorArray("float32", 1)
        array = engine.cond(p, lambda: array.write(0, 1.0), lambda: array.write(0, 2.0))
        assert session.run(array.read(0), {p: taken}) == (1.0 if taken else 2.0)


def test_a_scan_carries_one() -> None:
    def f(carry: Any, x: Any) -> Any:
        i, array = carry
        return (i + 1, array.write(i, x * 2.0)), None

    @engine.function
    def doubled(xs: Any) -> Any:
        (_, array), _ = engine.scan(f, (0, TensorArray("float32", 3)), xs)
        return array.stack()

    assert doubled(np.asarray([1.0, 2.0, 3.0], "float32")).numpy().tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda a: a.write(2, 1.0).flow, "cannot write to index 2, the size is 2"),
        (lambda a: a.write(-1, 1.0).flow, "cannot write to index -1"),
        (lambda a: a.write(0, 1.0).write(0, 1.0).flow, "index 0 has been written already"),
        (lambda a: a.read(5), "cannot read index 5"),
        (lambda a: a.read(0), "index 0 was not written"),
        (lambda a: a.split([1.0], [1]).flow, "the size is 2, got 1 lengths"),
        (lambda a: a.split([[1.0]], [1, 1]).flow, "do not make up"),
        (lambda a: a.write(0, 1).flow, "the elements are float32"),
    ],
)
def test_mistakes(run: Any, use: Any, said: str) -> None:
    def build() -> Any:
        value = use(TensorArray("float32", 2))
        return [value, value]

    if said.startswith("the elements"):

        def build() -> Any:
            return TensorArray("float32", 2).write(0, engine.constant(1)).flow

    with pytest.raises(LaminarError, match=said):
        run(build)


def test_what_is_read_is_dropped() -> None:
    array = TensorArray("float32", 1).write(0, 1.0)
    assert array.read(0).numpy() == 1.0
    with pytest.raises(InvalidArgumentError, match="index 0 was cleared"):
        array.read(0)
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        array.write(0, 2.0)


def test_shapes() -> None:
    with engine.Graph().as_default():
        array = TensorArray("float32", 3).write(0, engine.placeholder("float32", [None, 2]))
        assert str(array.read(0).spec) == "float32[?, 2]"
        assert str(array.stack().spec) == "float32[3, ?, 2]"
        assert str(array.concat().spec) == "float32[?, 2]"
        with pytest.raises(ShapeError, match="an element has shape"):
            array.write(1, engine.placeholder("float32", [2, 3]))
    eager = TensorArray("float32", 2).write(0, [1.0])
    with pytest.raises(ShapeError):
        eager.write(1, [1.0, 2.0])


def test_a_closed_array() -> None:
    array = TensorArray("float32", 1)
    array.close()
    with pytest.raises(LaminarError, match="has been closed"):
        array.write(0, 1.0)


def test_each_step_has_its_own() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.placeholder("float32", [])
        y = TensorArray("float32", 1).write(0, x).read(0)
        assert [session.run(y, {x: v}) for v in (1.0, 2.0)] == [1.0, 2.0]
