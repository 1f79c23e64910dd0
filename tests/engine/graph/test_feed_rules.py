from __future__ import annotations

import pytest

from laminar import engine
from laminar.engine.errors import InvalidArgumentError


def test_what_may_not_be_fed_or_fetched() -> None:
    graph = engine.Graph()
    with graph.as_default():
        engine.identity(engine.constant(2.0, name="a") * engine.constant(3.0, name="b"), name="c")
        a, b, c = (graph.get_tensor_by_name(f"{name}:0") for name in "abc")
    with engine.Session(graph=graph) as session:
        assert graph.is_feedable(a)
        assert graph.is_fetchable(b)
        graph.prevent_feeding(a)
        graph.prevent_fetching(b.op)
        assert not graph.is_feedable(a)
        assert not graph.is_fetchable(b)
        assert not graph.is_fetchable(b.op)
        assert graph.is_fetchable(a)
        assert session.run(c, {b: 5.0}) == 10.0
        with pytest.raises(InvalidArgumentError, match=r"'a:0' has been marked as not feedable"):
            session.run(c, {a: 1.0})
        for fetch in (b, b.op, {"x": [c, "b:0"]}):
            with pytest.raises(InvalidArgumentError, match="marked as not fetchable"):
                session.run(fetch)
        with pytest.raises(InvalidArgumentError, match="not fetchable"):
            session.make_callable(b)
        assert session.run(a) == 2.0
