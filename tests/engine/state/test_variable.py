"""Variables: at hand, in functions, and as operations of a graph."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine import GraphKeys
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)
from laminar.engine.source import inside_layer
from laminar.engine.state import autocast, variables_made

# At hand


def test_properties() -> None:
    v = eng.Variable([[1, 2, 3]], dtype="float32", name="kernel")
    assert (v.shape, v.dtype, v.ndim, v.size, v.name, v.path) == (
        (1, 3),
        "float32",
        2,
        3,
        "kernel",
        "kernel",
    )
    assert v.spec == eng.TensorSpec((1, 3))
    assert v.trainable
    assert (v.aggregation, v.device, v.graph) == ("none", "/device:cpu:0", None)
    assert repr(v) == "<Variable 'kernel' float32[1, 3], trainable>"
    with pytest.raises(InvalidArgumentError, match="belongs to no graph"):
        _ = v.op


def test_the_path_is_that_of_the_layer() -> None:
    with inside_layer("model"), inside_layer("dense"):
        v = eng.Variable(1.0, name="kernel")
    assert (v.name, v.path) == ("kernel", "model/dense/kernel")
    v.path = "renamed/kernel"
    assert v.store.name == "renamed/kernel"


INITIAL: list[Any] = [
    pytest.param(3, {}, "int32", 3, id="number"),
    pytest.param(3, {"dtype": "float64"}, "float64", 3.0, id="dtype"),
    pytest.param([1.0], {"shape": (1,)}, "float32", [1.0], id="shape"),
    pytest.param(np.zeros(2), {}, "float64", [0.0, 0.0], id="array"),
    pytest.param(lambda s, dtype: np.full(s, 2), {"shape": (2,)}, "float32", [2, 2], id="callable"),
    pytest.param(
        lambda s, dtype: 7, {"shape": (), "dtype": "int8"}, "int8", 7, id="callable-dtype"
    ),
    pytest.param("text", {}, "string", b"text", id="string"),
]


@pytest.mark.parametrize(("value", "options", "dtype", "expected"), INITIAL)
def test_initial_values(value: Any, options: Any, dtype: str, expected: Any) -> None:
    v = eng.Variable(value, **options)
    assert v.dtype == dtype
    assert v.numpy().tolist() == expected
    with eng.Graph().as_default(), eng.Session() as session:
        w = eng.Variable(value, **options)
        assert w.dtype == dtype
        session.run(w.initializer)
        assert np.asarray(session.run(w)).tolist() == expected


WRONG: list[Any] = [
    pytest.param(
        [1.0], {"shape": (2,)}, ShapeError, "expected an initial value of shape", id="shape"
    ),
    pytest.param(
        np.zeros, {}, InvalidArgumentError, "of a shape, so shape= is needed", id="no-shape"
    ),
    pytest.param(np.zeros, {"shape": (None,)}, ShapeError, "must be fully known", id="unknown"),
    pytest.param(1.0, {"aggregation": "max"}, InvalidArgumentError, "got 'max'", id="aggregation"),
]


@pytest.mark.parametrize(("value", "options", "kind", "message"), WRONG)
def test_what_is_no_variable(value: Any, options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        eng.Variable(value, **options)


def test_a_function_of_nothing_gives_the_value_and_its_shape() -> None:
    assert eng.Variable(lambda: np.array([1, 2])).numpy().tolist() == [1, 2]
    with eng.Graph().as_default(), eng.Session() as session:
        v = eng.Variable(lambda: eng.constant([1.0, 2.0]) * 2.0, name="v")
        assert (v.shape, v.dtype) == ((2,), "float32")
        session.run(v.initializer)
        assert session.run(v).tolist() == [2.0, 4.0]


def test_what_is_no_variable_cannot_be_assigned_to() -> None:
    x = eng.constant(1.0)
    for update in (eng.assign, eng.assign_add, eng.assign_sub):
        with pytest.raises(TypeError, match="expected a variable, got Tensor"):
            update(x, 2.0)  # type: ignore[arg-type]  # it is wrong


def test_a_handle_is_no_value() -> None:
    with pytest.raises(DTypeError, match="a handle cannot be stored"):
        eng.Variable(eng.Variable(1.0).handle)


def test_updates() -> None:
    v: Any = eng.Variable([1.0, 2.0])
    assert v.assign([5, 6]).tolist() == [5.0, 6.0]
    assert eng.assign_add(v, 1.0 * np.ones(2)).numpy().tolist() == [6.0, 7.0]
    assert eng.assign_sub(v, [1.0, 2.0]).numpy().tolist() == [5.0, 5.0]
    assert eng.assign(v, v * 2.0).numpy().tolist() == [10.0, 10.0]
    assert v.numpy().tolist() == [10.0, 10.0]
    assert v.dtype == "float32"
    with pytest.raises(ShapeError, match=r"is float32\[2\], the value assigned to it is"):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"is float32\[2\]"):
        v.assign_add(1.0)


def test_a_value_once_read_does_not_change() -> None:
    source = np.ones(2, np.float32)
    v = eng.Variable(source)
    source[0] = 9.0
    before = v.value
    v.assign_add([1.0, 1.0])
    assert before.numpy().tolist() == [1.0, 1.0]
    mine = v.numpy()
    mine[0] = 9.0
    assert v.numpy().tolist() == [2.0, 2.0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "bfloat16"])
def test_updates_keep_the_dtype(dtype: str) -> None:
    v: Any = eng.Variable(3, dtype=dtype)
    assert v.assign_add(1).dtype == dtype
    assert v.store.value.dtype == eng.as_dtype(dtype).numpy


def test_a_variable_is_used_as_a_tensor() -> None:
    v = eng.Variable([1.0, 2.0])
    assert (v + 1.0).tolist() == [2.0, 3.0]
    assert (10.0 / v).tolist() == [10.0, 5.0]
    assert (np.array([1, 2], np.float32) * v).tolist() == [1.0, 4.0]
    assert v[1] == 2.0
    assert (v > 1.5).tolist() == [False, True]
    assert len(v) == 2
    assert [float(x) for x in v] == [1.0, 2.0]
    np.testing.assert_array_equal(np.asarray(v), [1.0, 2.0])
    assert eng.convert_to_tensor(v).numpy().tolist() == [1.0, 2.0]
    one = eng.Variable(3.0)
    assert (int(one), float(one), bool(one)) == (3, 3.0, True)
    assert len({v, v, one}) == 2


def test_updates_are_atomic() -> None:
    v = eng.Variable(np.zeros(20_000))  # large enough for NumPy to let other threads run

    def work() -> None:
        for _ in range(50):
            v.assign_add(np.ones(20_000))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(v.numpy().tolist()) == {400.0}


def test_a_copy_is_another_variable() -> None:
    v = eng.Variable([1.0], name="w", trainable=False)
    v.path = "model/w"
    twin = copy.deepcopy(v)
    v.assign([5.0])
    assert twin.numpy().tolist() == [1.0]
    assert (twin.path, twin.trainable, twin.dtype) == ("model/w", False, "float32")


def test_the_storage_lives_as_long_as_the_variable() -> None:
    v = eng.Variable(np.ones(1000))
    array = weakref.ref(v.store.value)
    del v
    gc.collect()
    assert array() is None


def test_autocast() -> None:
    v: Any = eng.Variable([1.0])
    n = eng.Variable([1])
    fixed = eng.Variable([1.0], autocast=False)
    with autocast("float16"):
        assert (v.dtype, n.dtype, fixed.dtype) == ("float16", "int32", "float32")
        assert (v + 1.0).dtype == "float16"
        assert v.read_value().dtype == "float32"
        with autocast(None):
            assert v.dtype == "float32"
        v.assign([2.0])
    assert v.store.value.dtype == np.float32
    f = eng.function(lambda: v.value)
    assert f().dtype == "float32"
    with autocast("bfloat16"):
        assert f().dtype == "bfloat16"
    assert f.trace_count == 2


def test_who_makes_variables_is_told_in_its_own_thread() -> None:
    keep: list[Any] = []
    with variables_made() as outer:
        keep.append(eng.Variable(1.0))
        with variables_made() as inner:
            keep.append(eng.Variable(2.0))
        thread = threading.Thread(target=lambda: keep.append(eng.Variable(3.0)))
        thread.start()
        thread.join()
    assert [float(v) for v in outer] == [1.0, 2.0]
    assert [float(v) for v in inner] == [2.0]


def test_a_variable_made_in_a_trace_is_initialized() -> None:
    kept: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        if not kept:
            kept.append(eng.Variable(lambda s, dtype: np.ones(s), shape=(2,)))
        return kept[0] * x

    assert f(eng.convert_to_tensor(3.0)).tolist() == [3.0, 3.0]
    assert kept[0].graph is None
    assert kept[0].numpy().tolist() == [1.0, 1.0]


# In a graph


def test_the_operations_of_a_variable() -> None:
    with eng.Graph().as_default() as graph:
        w = eng.Variable([1.0, 2.0], name="W")
        again = eng.Variable([1.0], name="W")
        unnamed = eng.Variable(1.0)
    names = [op.name for op in graph.operations]
    assert {"W", "W/Assign", "W/read"} <= set(names)
    assert (w.name, w.op.name, w.path) == ("W", "W", "W")
    assert (again.name, unnamed.name) == ("W_1", "Variable")
    assert w.initializer is graph.get_operation_by_name("W/Assign")
    assert w.value.graph is graph  # type: ignore[attr-defined]  # in a graph
    for name in ("W/Assign", "W/read"):
        assert graph.get_operation_by_name(name).colocation == ("W",)
    assert w.op.attrs["shared_name"] == "W"
    assert w.initial_value.op.name == "W/Const"


def test_a_variable_in_a_session() -> None:
    with eng.Graph().as_default():
        v = eng.Variable(1.0, name="v")
        more = v.assign_add(2.0)
        with eng.Session() as session:
            with pytest.raises(FailedPreconditionError, match="variable 'v' is read before"):
                session.run(v)
            with pytest.raises(FailedPreconditionError, match="variable 'v' is read before"):
                session.run(more)
            session.run(v.initializer)
            for _ in range(3):
                session.run(more)
            assert session.run(v) == v.eval() == 7.0
            session.run(v.initializer)
            assert v.eval() == 1.0
            assert session.run(v.value * 2.0, {v: 5.0}) == 10.0
            assert session.run(v, {v: 5.0}) == 5.0


def test_shapes_in_a_graph() -> None:
    with eng.Graph().as_default():
        v = eng.Variable([1.0, 2.0], name="v")
        x: Any = eng.placeholder("float32", [None], name="x")
        update = v.assign(x)
        with pytest.raises(ShapeError, match=r"is float32\[2\]"):
            v.assign([1.0])
        with eng.Session() as session:
            assert session.run(update, {x: [5.0, 6.0]}).tolist() == [5.0, 6.0]
            with pytest.raises(ShapeError, match=r"Assign: variable 'v' is float32\[2\].*'Assign'"):
                session.run(update, {x: [5.0]})


def test_assignment_is_cast_to_the_variable() -> None:
    with eng.Graph().as_default():
        v = eng.Variable(1.0, name="v")
        update = v.assign(eng.placeholder("int32", [], name="n"))
        with eng.Session() as session:
            found = session.run(update, {"n:0": 3})
            assert (found, found.dtype) == (3.0, np.float32)


def test_dependent_initial_values() -> None:
    """W is random and V starts from it: one run of the initializer, in any order, makes V == W."""
    rng = np.random.default_rng(0)
    with eng.Graph().as_default():
        x: Any = eng.placeholder("float64", [3], name="x")
        w = eng.Variable(x * 1.0, name="W")
        v = eng.Variable(w.initialized_value(), name="V")
        init = eng.variables_initializer([v, w])
        with eng.eager_scope():
            late = w.initialized_value()  # asked for when no graph is being built
        with eng.Session() as session:
            for _ in range(200):
                session.run(init, {x: rng.normal(size=3)})
                a, b = session.run([w, v])
                np.testing.assert_array_equal(a, b)
        with eng.Session() as session:
            np.testing.assert_array_equal(session.run(late, {x: [1.0, 2.0, 3.0]}), [1.0, 2.0, 3.0])
    assert eng.Variable(3.0).initialized_value().numpy() == 3.0


def test_a_graph_variable_belongs_to_its_graph() -> None:
    with eng.Graph().as_default():
        v = eng.Variable(1.0, name="v")
    with eng.Graph().as_default(), eng.Session() as session:
        with pytest.raises(InvalidArgumentError, match="belongs to another graph"):
            session.run(v)
        with pytest.raises(FailedPreconditionError, match="belongs to another graph"):
            v.assign_add(1.0)


GROUPS: list[Any] = [
    pytest.param({}, {"GLOBAL_VARIABLES", "TRAINABLE_VARIABLES"}, id="default"),
    pytest.param({"trainable": False}, {"GLOBAL_VARIABLES"}, id="frozen"),
    pytest.param({"collections": []}, set(), id="none"),
    pytest.param(
        {"collections": [GraphKeys.LOCAL_VARIABLES], "trainable": False},
        {"LOCAL_VARIABLES"},
        id="local",
    ),
]


@pytest.mark.parametrize(("options", "keys"), GROUPS)
def test_collections(options: Any, keys: set[str]) -> None:
    with eng.Graph().as_default() as graph:
        v = eng.Variable(1.0, name="v", **options)
    assert set(graph.collection_keys) == {getattr(GraphKeys, key) for key in keys}
    for key in graph.collection_keys:
        assert graph.get_collection(key)[0] is v


def test_container_argument() -> None:
    with eng.Graph().as_default(), eng.container("scope"):
        assert eng.Variable(1.0, container="mine").op.attrs["container"] == "mine"


def test_a_read_asks_again_where_the_lock_has_changed() -> None:
    """As where a call that shares it with others has given it theirs, while the read waited."""
    v, other = eng.Variable(np.zeros(2, np.float32)), eng.Variable(np.ones(2, np.float32))

    class Late:
        """A lock that is no longer the variable's when it is held."""

        def __enter__(self) -> None:
            v.store.lock = threading.Lock()
            v.store.value = np.full(2, 7, np.float32)

        def __exit__(self, *error: object) -> None:
            v.store.value = other.store.value

    v.store.lock = Late()  # type: ignore[assignment]  # which has no more than `with` asks for
    np.testing.assert_array_equal(v.numpy(), [1, 1])


@pytest.mark.parametrize("kind", [float, np.float32, eng.Variable])
def test_an_operand_is_read_once(kind: Any) -> None:
    v, other = eng.Variable(np.array([3, 4], np.float32)), kind(2.0)
    for x, y in ((v, other), (other, v), (v, v)):
        f = eng.function(lambda x=x, y=y: ops.add(x, y))
        read = {id(x) for x in (x, y) if isinstance(x, eng.Variable)}
        operations = f.concrete().graph.operations
        # The same variable on both sides is read for each.
        expected = 2 if x is y else len(read)
        assert sum(op.type == "ReadVariable" for op in operations) == expected
        np.testing.assert_array_equal(f(), np.asarray(x) + np.asarray(y))


def test_an_initializer_of_eager_variables_does_nothing() -> None:
    assert eng.variables_initializer([eng.Variable(1.0)]).type == "NoOp"
