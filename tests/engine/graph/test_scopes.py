"""The `with` blocks: names, control dependencies, devices, colocation, containers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add


def op_named(name: str) -> eng.Operation:
    return eng.no_op(name=name)


def test_name_scopes() -> None:
    with eng.Graph().as_default() as graph:
        names = [op_named("c").name]
        with eng.name_scope("nested") as scope:
            assert scope == "nested/"
            names.append(op_named("c").name)
            with eng.name_scope("inner"):
                names.append(op_named("c").name)
            with eng.name_scope(scope):
                names.append(op_named("d").name)
                with eng.name_scope("") as root:
                    assert root == ""
                    names.append(op_named("e").name)
            with eng.name_scope(None):
                names.append(op_named("f").name)
        with eng.name_scope("nested") as again:
            assert again == "nested_1/"
    assert names == ["c", "nested/c", "nested/inner/c", "nested/d", "e", "f"]
    assert graph.scopes.name == ""


def test_a_scope_and_its_operation_share_a_name() -> None:
    with eng.Graph().as_default(), eng.name_scope("w") as scope:
        assert [op_named(scope).name, op_named(scope).name] == ["w", "w_1"]


def test_name_scope_takes_the_graph_of_its_values() -> None:
    graph = eng.Graph()
    with graph.as_default():
        x = eng.placeholder("float32", [], name="x")
    with eng.name_scope(None, "default", [3, x]) as scope:
        assert scope == "default/"
        y = add(x, x)
    assert y.name == "default/Add:0"  # type: ignore[attr-defined]  # in a graph


def test_scopes_are_left_after_an_error() -> None:
    graph = eng.Graph()
    with (
        pytest.raises(KeyError),
        graph.as_default(),
        eng.name_scope("a"),
        eng.device("/gpu:0"),
        eng.container("box"),
        eng.control_dependencies([op_named("first")]),
    ):
        raise KeyError
    with graph.as_default():
        op = op_named("b")
    assert (op.name, op.device, op.control_inputs) == ("b", "", [])
    assert graph.scopes.container == ""


def test_control_dependencies_nest() -> None:
    with eng.Graph().as_default():
        a, b, c = op_named("a"), op_named("b"), op_named("c")
        x = eng.placeholder("float32", [], name="x")
        with eng.control_dependencies([a, b]):
            with eng.control_dependencies([c, a, x]):
                inner = op_named("inner")
            with eng.control_dependencies(None):
                fresh = op_named("fresh")
                with eng.control_dependencies([c]):
                    only = op_named("only")
            outer = op_named("outer")
    assert inner.control_inputs == [a, b, c, x.op]
    assert fresh.control_inputs == []
    assert only.control_inputs == [c]
    assert outer.control_inputs == [a, b]


def test_control_dependencies_of_one_and_of_lists() -> None:
    with eng.Graph().as_default() as graph:
        a, b = op_named("a"), op_named("b")
        x = eng.placeholder("float32", [], name="x")
        before = len(graph.operations)
        found = []
        for controls in (a, x, "b", [[a, b], x], (a, {"x": x})):
            with eng.control_dependencies(controls):
                found.append(op_named("inner").control_inputs)
        assert len(graph.operations) == before + 5  # the inner ones alone
        assert eng.group([a, b], x).control_inputs == [a, b, x.op]
    assert found == [[a], [x.op], [b], [a, b, x.op], [a, x.op]]


def test_control_dependencies_of_values_are_met_already() -> None:
    variable = eng.Variable(1.0)
    with eng.control_dependencies([variable.assign_add(1.0), variable]):
        assert float(variable) == 2.0
    with eng.Graph().as_default():
        first = op_named("first")
        with eng.control_dependencies([eng.convert_to_tensor(1.0), variable, "first"]):
            assert op_named("b").control_inputs == [first]


def test_control_dependencies_of_another_graph() -> None:
    with eng.Graph().as_default():
        other = op_named("other")
    with (
        eng.Graph().as_default(),
        pytest.raises(InvalidArgumentError, match="belongs to another graph"),
        eng.control_dependencies([other]),
    ):
        raise AssertionError("the block must not be entered")


def test_control_dependencies_are_on_what_can_run() -> None:
    with eng.Graph().as_default(), pytest.raises(TypeError, match="got 3"):
        eng.control_dependencies([3])


def test_a_name_scope_is_of_one_graph() -> None:
    with eng.Graph().as_default():
        x = eng.constant(1.0)
    with eng.Graph().as_default():
        y = eng.constant(1.0)
        with pytest.raises(InvalidArgumentError, match="different graphs"):
            eng.name_scope(None, "scope", [x, y]).__enter__()
        with eng.name_scope(None, "scope", [y, 2.0]) as scope:
            assert scope == "scope/"


def test_a_unique_name_need_not_be_used() -> None:
    graph = eng.Graph()
    assert graph.unique_name("x", mark_as_used=False) == "x"
    assert graph.unique_name("x") == "x"
    assert graph.unique_name("x", mark_as_used=False) == "x_1"
    assert [graph.unique_name("x"), graph.unique_name("x")] == ["x_1", "x_2"]


def test_devices_merge() -> None:
    with eng.Graph().as_default(), eng.device("/job:ps"):
        with eng.device("/task:0/gpu:0"):
            assert op_named("a").device == "/job:ps/task:0/device:gpu:0"
            with eng.device("/gpu:1"):
                assert op_named("b").device == "/job:ps/task:0/device:gpu:1"
        with eng.device(eng.DeviceSpec(job="worker", device_type="CPU")):
            assert op_named("c").device == "/job:worker/device:CPU:*"
        with eng.device(None):
            assert op_named("d").device == ""
            with eng.device("/cpu:0"):
                assert op_named("e").device == "/device:cpu:0"
        assert op_named("f").device == "/job:ps"


def test_a_device_function_sees_the_operation() -> None:
    def where(op: eng.Operation) -> str | None:
        return "/gpu:0" if op.type == "MatMul" else None

    with eng.Graph().as_default(), eng.device("/job:worker"), eng.device(where):
        x = eng.placeholder("float32", [2, 2], name="x")
        product = matmul(x, x)
        total = add(x, x)
    assert product.device == "/job:worker/device:gpu:0"
    assert total.device == "/job:worker"


def test_a_device_function_sees_what_inner_blocks_say() -> None:
    seen: list[str] = []

    def where(op: eng.Operation) -> None:
        seen.append(op.device)
        if op.device == "/job:b":
            raise ZeroDivisionError

    with eng.Graph().as_default(), eng.device(where):
        with eng.device("/job:a"), eng.device("/task:1"):
            assert op_named("a").device == "/job:a/task:1"
        with eng.device("@a"):
            assert op_named("b").device == ""
        with eng.device("/job:b"), pytest.raises(ZeroDivisionError):
            op_named("c")
        assert op_named("d").device == ""
    assert seen == ["/job:a/task:1", "", "/job:b", ""]


def test_the_device_of_the_blocks_alone() -> None:
    with eng.Graph().as_default() as graph, eng.device("/job:a/cpu:0"):
        with eng.device(lambda op: "/gpu:0"), eng.device("/job:b"):
            assert graph.scopes.device_name == "/job:b/device:cpu:0"
        with eng.device(None):
            assert graph.scopes.device_name == ""


def test_colocation() -> None:
    with eng.Graph().as_default():
        a, b = op_named("a"), op_named("b")
        with eng.colocate_with(a):
            assert op_named("c").colocation == ("a",)
            with eng.colocate_with(b):
                assert op_named("d").colocation == ("a", "b")
            with eng.colocate_with(b, ignore_existing=True):
                assert op_named("e").colocation == ("b",)
        assert op_named("f").colocation == ()


def test_containers() -> None:
    with eng.Graph().as_default() as graph:
        with eng.container("outer"):
            v = eng.Variable(1.0, name="v")
            with eng.container("inner"):
                w = eng.Variable(1.0, name="w")
        u = eng.Variable(1.0, name="u")
    assert [x.op.attrs["container"] for x in (v, w, u)] == ["outer", "inner", ""]
    assert graph.scopes.container == ""


def test_each_thread_has_its_own_scopes() -> None:
    graph = eng.Graph()
    found: list[tuple[str, str]] = []

    def build() -> None:
        with graph.as_default():
            op = op_named("other")
            found.append((op.name, op.device))

    with graph.as_default(), eng.name_scope("mine"), eng.device("/gpu:0"):
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert found == [("other", "")]


def test_what_is_no_device() -> None:
    message = "device: expected the name of a device, got 3"
    with pytest.raises(InvalidArgumentError, match=message), eng.device(3):  # type: ignore[arg-type]  # wrong
        pass


def test_an_operation_as_data() -> None:
    with eng.Graph().as_default():
        a: Any = eng.constant([1.0, 2.0], name="a")
        with eng.colocate_with(a), eng.device("/cpu:0"), eng.control_dependencies([a]):
            b: Any = eng.identity(a, name="b")
    found = b.op.node_def
    assert (found.name, found.op, found.device) == ("b", "Identity", "/device:cpu:0")
    assert list(found.input) == ["a", "^a"]
    assert b.op.colocation_groups() == [b"loc:@a"]
    assert a.op.colocation_groups() == [b"loc:@a"]
    assert b.op.op_def.type == "Identity"
    found.name = "c"
    assert b.op.name == b.op.node_def.name == "b"


def test_no_colocation() -> None:
    with eng.Graph().as_default():
        a = eng.constant(1.0, name="a")
        with eng.colocate_with(a), eng.colocate_with(None, ignore_existing=True):
            b: Any = eng.identity(a)
        with pytest.raises(InvalidArgumentError, match="None stands for no constraint"):
            eng.colocate_with(None).__enter__()
    assert b.op.colocation == ()


def test_a_name_scope_enters_the_graph_of_its_values() -> None:
    there, here = eng.Graph(), eng.Graph()
    with there.as_default():
        x = eng.constant(1.0)
    with here.as_default():
        with eng.name_scope("k", values=[x]) as scope:
            assert op_named("a").graph is there
        assert scope == "k/"
        assert op_named("a").graph is here


def test_the_class_of_an_operation_is_what_it_stands_with() -> None:
    with eng.Graph().as_default() as graph:
        eng.Variable(1.0, name="w")
        assert graph.get_operation_by_name("w/read").get_attr("_class") == [b"loc:@w"]
        with pytest.raises(InvalidArgumentError, match="_class"):
            graph.get_operation_by_name("w").get_attr("_class")


@pytest.mark.parametrize(
    "block",
    [
        lambda: eng.device("cpu:0"),
        lambda: eng.name_scope("a"),
        lambda: eng.control_dependencies([]),
        lambda: eng.Session().as_default(),
    ],
)
def test_blocks_are_left_in_the_order_of_entering(block: Any) -> None:
    said: list[str] = []

    def leave_the_outer() -> None:  # in a thread, which takes its blocks with it
        with eng.Graph().as_default():
            outer, inner = block(), block()
            outer.__enter__()
            inner.__enter__()
            try:
                outer.__exit__(None, None, None)
            except FailedPreconditionError as error:
                said.append(error.message)

    thread = threading.Thread(target=leave_the_outer)
    thread.start()
    thread.join()
    assert "in the order of entering" in said[0]


def test_the_block_of_a_session_is_entered_once() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        with session.as_default(), pytest.raises(FailedPreconditionError, match="entered already"):
            session.__enter__()
        assert session.run(eng.constant(1)) == 1


def test_colocation_wins_over_the_devices_around_it() -> None:
    with eng.Graph().as_default():
        with eng.device("/gpu:0"):
            a = op_named("a")
        with eng.device("/cpu:0"), eng.colocate_with(a):
            b = op_named("b")
            with eng.colocate_with(b), eng.device("/cpu:1"):
                c = op_named("c")
        with eng.device("/cpu:0"), eng.colocate_with(None, ignore_existing=True):
            d = op_named("d")
    assert (b.device, b.colocation_groups()) == ("/device:gpu:0", [b"loc:@a"])
    assert (c.device, c.colocation_groups()) == ("/device:cpu:1", [b"loc:@a"])  # b's group is a's
    assert (d.device, d.colocation_groups()) == ("", [b"loc:@d"])
