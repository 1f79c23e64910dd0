"""get_variable and its scopes: names, reuse, defaults, parts, getters, graphs of their own."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar.engine import GraphKeys, get_variable, variable_scope
from laminar.engine.errors import AlreadyExistsError, InvalidArgumentError


def ones(shape: Any, dtype: Any) -> Any:
    return np.ones(shape, str(dtype))


def test_names_and_reuse() -> None:
    with eng.Graph().as_default():
        with variable_scope("root"):
            with variable_scope("a") as a:
                v = get_variable("v", [1])
            assert v.name == "root/a/v"
            with variable_scope(a, reuse=True):
                assert get_variable("v", [1]) is v
                with pytest.raises(ValueError, match="has the shape"):
                    get_variable("v", [2])
                with pytest.raises(TypeError, match="has the dtype"):
                    get_variable("v", [1], "int32")
                with pytest.raises(InvalidArgumentError, match="does not exist"):
                    get_variable("w", [1])
            with (
                variable_scope("a"),
                pytest.raises(AlreadyExistsError, match="exists already, made"),
            ):
                get_variable("v", [1])
            for _ in range(2):
                with variable_scope("a", reuse=eng.AUTO_REUSE):
                    u = get_variable("u", [])
        assert get_variable("root/a/u", reuse=True) is u
        assert [v.name for v in eng.trainable_variables("root/a")] == ["root/a/v", "root/a/u"]


def test_reuse_is_inherited_and_cannot_be_undone() -> None:
    with eng.Graph().as_default():
        with variable_scope("jump", reuse=True) as scope:
            assert scope.reuse
        with variable_scope(scope, reuse=False) as again:
            assert again.reuse
        with variable_scope("jump") as scope:
            pass
        with variable_scope(scope, reuse=True), variable_scope("inner") as inner:
            assert inner.reuse
        with variable_scope("late") as late:
            late.reuse_variables()
            with pytest.raises(InvalidArgumentError, match="does not exist"):
                get_variable("w", [1])
        assert eng.get_variable_scope().name == ""


def test_name_scopes_follow() -> None:
    with eng.Graph().as_default():
        with eng.name_scope("outside"):
            with variable_scope("tower") as tower, eng.name_scope("op") as inside:
                assert inside == "outside/tower/op/"
            with variable_scope(tower), eng.name_scope("op") as inside:
                assert inside == "outside/tower_1/op/"
            assert tower.original_name_scope == "outside/tower/"
        with variable_scope("quiet", auxiliary_name_scope=False):
            assert eng.constant(1.0, name="c").op.name == "c"  # type: ignore[attr-defined]  # a symbol
            assert get_variable("w", []).name == "quiet/w"


def test_default_names_are_unique() -> None:
    def made() -> str:
        with variable_scope(None, "layer"):
            return str(get_variable("w", []).name)

    with eng.Graph().as_default():
        with variable_scope("net") as net:
            assert [made(), made()] == ["net/layer/w", "net/layer_1/w"]
            with variable_scope(net):
                pass
            assert made() == "net/layer_2/w"
        with variable_scope("net", reuse=True):
            assert made() == "net/layer/w"
        with pytest.raises(InvalidArgumentError, match="reuse needs a name"):
            variable_scope(None, "layer", reuse=True)


def test_defaults_of_a_scope() -> None:
    with eng.Graph().as_default() as graph:
        with variable_scope(
            "s", initializer=ones, dtype="float64", regularizer=lambda v: 3.0 * v
        ) as scope:
            v = get_variable("v", [])
            get_variable("free", [], regularizer=eng.no_regularizer)
            scope.set_initializer(eng.constant(2.0, "float64"))
            w = get_variable("w")
        with variable_scope(scope, reuse=True):
            get_variable("v", [])
        n = get_variable("n", [2], "int32")
        losses = graph.get_collection(GraphKeys.REGULARIZATION_LOSSES)
        with eng.Session() as session:
            session.run(eng.global_variables_initializer())
            assert session.run([v, w, losses]) == [1.0, 2.0, [3.0, 6.0]]
            np.testing.assert_array_equal(session.run(n), [0, 0])
    assert v.dtype == "float64"


def test_initial_values_begin_at_the_seed_of_the_graph() -> None:
    def values(seed: int | None) -> Any:
        with eng.Graph().as_default() as graph:
            graph.seed = seed
            found = [get_variable(name, [200, 100]) for name in "vw"]
            with eng.Session() as session:
                session.run(eng.global_variables_initializer())
                return session.run(found)

    first, second = values(3)
    limit = np.sqrt(6 / 300)
    assert np.abs(first).max() <= limit
    assert abs(first.std() - limit / np.sqrt(3)) < 0.02 * limit
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(values(3)[0], first)
    assert not np.array_equal(values(4)[0], first)
    laminar.set_random_seed(5)
    unseeded = values(None)[0]
    laminar.set_random_seed(5)
    np.testing.assert_array_equal(values(None)[0], unseeded)


def test_parts() -> None:
    table = np.arange(10, dtype="float32").reshape(5, 2)
    by_rows = lambda shape, dtype: [3, 1]  # noqa: E731  # as users write it
    with eng.Graph().as_default():
        with variable_scope("p", partitioner=by_rows):
            whole = get_variable("t", initializer=table)
        with variable_scope("p", reuse=True, partitioner=by_rows):
            assert get_variable("t", [5, 2]) is whole
        with (
            variable_scope("p", reuse=True, partitioner=lambda shape, dtype: [2, 1]),
            pytest.raises(InvalidArgumentError, match="has \\[3, 1\\] parts"),
        ):
            get_variable("t", [5, 2])
        assert [(v.name, tuple(v.shape)) for v in whole] == [
            ("p/t/part_0", (2, 2)),
            ("p/t/part_1", (2, 2)),
            ("p/t/part_2", (1, 2)),
        ]
        with eng.Session() as session:
            session.run(whole.initializer)
            np.testing.assert_array_equal(session.run(whole * 2.0), table * 2)
        with pytest.raises(InvalidArgumentError, match="one axis at most"):
            get_variable("q", [4, 4], partitioner=lambda shape, dtype: [2, 2])


def test_getters_compose() -> None:
    def doubled(getter: Any, name: str, **arguments: Any) -> Any:
        return getter(f"{name}/0", **arguments) + getter(f"{name}/1", **arguments)

    with eng.Graph().as_default():
        with (
            variable_scope("outer", custom_getter=doubled),
            variable_scope("inner", custom_getter=doubled),
        ):
            v = get_variable("v", [2], initializer=ones)
        names = [w.name for w in eng.global_variables()]
        assert names == [f"outer/inner/v/{i}/{j}" for i in (0, 1) for j in (0, 1)]
        with eng.Session() as session:
            session.run(eng.global_variables_initializer())
            np.testing.assert_array_equal(session.run(v), [4.0, 4.0])
        with pytest.raises(InvalidArgumentError, match="not callable"):
            get_variable("w", [], custom_getter=3)  # type: ignore[arg-type]  # what is refused


def test_graphs_and_threads_have_their_own() -> None:
    found: list[str] = []

    def build(graph: eng.Graph, scope: Any) -> None:
        with graph.as_default():
            found.append(get_variable("free", []).name)
            with variable_scope(scope):
                found.append(get_variable("bound", []).name)

    with eng.Graph().as_default() as graph, variable_scope("main") as scope:
        thread = threading.Thread(target=build, args=(graph, scope))
        thread.start()
        thread.join(10)
        assert found == ["free", "main/bound"]
        with eng.Graph().as_default():
            assert get_variable("free", []).name == "free"


def test_in_a_branch_the_graph_around_owns_it() -> None:
    with eng.Graph().as_default() as graph:
        p = eng.placeholder("bool", [])

        def branch() -> Any:
            return get_variable("v", [], initializer=ones) * 3.0

        y = eng.cond(p, branch, lambda: eng.constant(0.0))
        (v,) = eng.global_variables()
        assert v.graph is graph
        with eng.Session() as session:
            session.run(v.initializer)
            assert session.run(y, {p: True}) == 3.0


def test_eager_variables_are_new_each_time() -> None:
    with variable_scope("eager", reuse=eng.AUTO_REUSE):
        assert get_variable("v", [2], initializer=ones) is not get_variable("v", [2])
    with variable_scope("eager", reuse=True), pytest.raises(InvalidArgumentError, match="eager"):
        get_variable("v", [2])


def test_creators() -> None:
    seen: list[str] = []

    def outer(next_creator: Any, **arguments: Any) -> Any:
        seen.append(arguments["name"])
        return next_creator(**arguments)

    def inner(next_creator: Any, **arguments: Any) -> Any:
        return next_creator(**{**arguments, "name": "forced"})

    with eng.variable_creator_scope(outer), eng.variable_creator_scope(inner):
        assert eng.Variable(1.0, name="mine").name == "forced"
        assert get_variable("other", []).name == "forced"
    assert seen == ["forced", "forced"]
    assert eng.Variable(1.0, name="mine").name == "mine"
