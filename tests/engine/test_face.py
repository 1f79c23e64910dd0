"""The face of the graph: what `laminar.engine` names."""

from __future__ import annotations

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError


def test_a_loop_made_by_hand() -> None:
    with eng.Graph().as_default():
        start = eng.placeholder("int32", [], name="start")
        merged, _ = eng.merge([eng.enter(start, "loop")])
        limit = eng.enter(eng.constant(100, "int32"), "loop", is_constant=True)
        leave, stay = eng.switch(merged, eng.loop_cond(merged < limit))
        eng.close_loop(merged, eng.next_iteration(stay * 3))
        result = eng.identity(eng.exit_loop(leave))
        with eng.Session() as session:
            assert session.run(result, {start: 2}) == 162
            assert session.run(result, {start: 500}) == 500


def test_a_function_of_arrays() -> None:
    x = np.asarray([3.0, 1.0, 2.0])
    spec = eng.TensorSpec([3], "float64")
    with eng.Graph().as_default():
        fed = eng.placeholder("float64", [3], name="x")
        (y,) = eng.host_function(lambda a: [np.sort(a)], [fed], [spec])
        with eng.Session() as session:
            np.testing.assert_array_equal(session.run(y, {fed: x}), np.sort(x))


def test_reset_takes_a_list() -> None:
    with pytest.raises(InvalidArgumentError, match="containers must be a list of names, got 'box'"):
        eng.Session.reset(containers="box")


def test_older_spellings() -> None:
    with eng.Graph().as_default() as graph:
        with eng.name_scope("a"):
            x = eng.placeholder("float32", [None, 3], name="x")
            assert graph.get_name_scope() == "a"
        assert x.get_shape().as_list() == [None, 3]
        assert graph.get_operations() == graph.operations == [x.op]
        assert x.op.values() == (x,)
        assert x.op.get_attr("dtype") == "float32"
        with pytest.raises(InvalidArgumentError, match="has no attribute 'T'"):
            x.op.get_attr("T")
        graph.add_to_collections(["p", "q", "p"], x)
        assert graph.get_all_collection_keys() == ["p", "q"]
        v = eng.Variable([1.0, 2.0], name="v")
        assert v.get_shape() == (2,)
        assert v.assign_add([1.0, 1.0], name="up").name == "up:0"  # type: ignore[attr-defined]  # a symbol
        with eng.Session() as session:
            assert not session.run(v.is_initialized())
            v.load([3.0, 4.0], session)
            assert session.run(v.is_initialized())
            np.testing.assert_array_equal(session.run(v), [3.0, 4.0])
    kind = eng.float32
    assert (kind.name, kind.base_dtype, kind.as_numpy_dtype) == ("float32", kind, np.float32)
    assert eng.bool_.is_bool
    assert not kind.is_bool
