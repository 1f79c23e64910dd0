"""Placement beside a node that is named, and of whole graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine import DeviceSpec, Session, SessionConfig
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.engine.ops.math import arithmetic

THREE = SessionConfig(device_count={"cpu": 3})


def device_of(session: Any, name: str) -> str:
    devices: dict[str, str] = {d.operation: d.device for d in session.placement.decisions}
    return devices[name].removeprefix("/job:localhost/device:")


# "@node"


@pytest.mark.parametrize(
    "where",
    ["@a", DeviceSpec(colocated_with="a"), lambda op: "@a" if op.type == "Square" else None],
)
def test_with_a_node(where: Any) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        with eng.device("/cpu:2"):
            arithmetic.square(x, name="a")
        with eng.device("/cpu:1"):
            with eng.device(where):
                y: Any = arithmetic.square(x, name="b")
            z = arithmetic.square(x, name="c") if isinstance(where, str) else None
        assert y.op.colocation == ("a",)
        assert y.op.device == ""
        with Session(config=THREE) as session:
            assert session.run(y, {x: 3.0}) == 9.0
            assert device_of(session, "b") == "cpu:2"
            if z is not None:
                assert session.run(z, {x: 3.0}) == 9.0
                assert device_of(session, "c") == "cpu:1"


def test_a_device_inside_wins_over_a_node() -> None:
    with eng.Graph().as_default() as graph:
        arithmetic.square(eng.placeholder("float32", []), name="a")
        with eng.device("@a"), eng.device("/cpu:1"):
            y: Any = eng.constant(1.0)
        with eng.device("@a"), eng.device(None):
            z: Any = eng.constant(1.0)
        with eng.device("@a"):
            assert graph.scopes.device_name == ""
    assert (y.op.device, y.op.colocation) == ("/device:cpu:1", ())
    assert (z.op.device, z.op.colocation) == ("", ())


def test_a_node_that_there_is_not() -> None:
    with eng.Graph().as_default() as graph:
        with pytest.raises(NotFoundError, match="'b'"), eng.device("@b"):
            pass
        with eng.device(lambda op: "@b"), pytest.raises(NotFoundError, match="'b'"):
            eng.constant(1.0)
        assert graph.operations == []


def test_with_a_node_of_a_file() -> None:
    with eng.Graph().as_default() as graph:
        eng.constant(1.0, name="a")
        eng.constant(2.0, name="b")
    message = graph.as_graph_def().message
    next(n for n in message.node if n.name == "b").device = "@a"
    with eng.Graph().as_default() as other:
        eng.import_graph_def(eng.GraphDef(message), name="in")
    found = other.get_operation_by_name("in/b")
    assert (found.device, found.colocation) == ("", ("in/a",))


# Whole graphs


def test_what_no_step_needs_is_placed_too_where_that_is_asked_for() -> None:
    with eng.Graph().as_default():
        with eng.device("/gpu:7"):
            eng.constant(1.0, name="nowhere")
        x = eng.constant(2.0) * 2.0
        with Session() as session:
            assert session.run(x) == 4.0
        with Session(config=SessionConfig(place_pruned_graph=False)) as session:
            for _ in range(2):
                with pytest.raises(InvalidArgumentError, match="'nowhere'.*cannot be placed"):
                    session.run(x)
        soft = SessionConfig(place_pruned_graph=False, allow_soft_placement=True)
        with Session(config=soft) as session:
            assert session.run(x) == 4.0


def test_each_operation_has_one_device_in_all_steps() -> None:
    """What stands by an operation on a device does so in steps without that operation."""
    config = SessionConfig(device_count={"cpu": 3}, placement="simulated")
    whole = SessionConfig(device_count={"cpu": 3}, placement="simulated", place_pruned_graph=False)
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [200, 200])
        ys = [arithmetic.square(x + float(i), name=f"y{i}") for i in range(3)]
        with Session(config=whole) as session:
            session.run(ys, {x: np.ones((200, 200), "float32")})
            together = [device_of(session, f"y{i}") for i in range(3)]
            alone = []
            for i, y in enumerate(ys):
                session.run(y, {x: np.ones((200, 200), "float32")})
                alone.append(device_of(session, f"y{i}"))
            assert alone == together
            assert len(set(together)) == 3
            with graph.as_default(), eng.device("/cpu:2"):
                later: Any = arithmetic.square(x, name="later")
            session.run(later, {x: np.ones((200, 200), "float32")})
            assert device_of(session, "later") == "cpu:2"
        with Session(config=config) as session:
            session.run(ys[2], {x: np.ones((200, 200), "float32")})
            assert device_of(session, "y2") == "cpu:0"
