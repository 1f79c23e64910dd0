"""Conditions and loops in files: their graphs are functions of the GraphDef's library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError, LaminarError, NotFoundError
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.math.arithmetic import add, multiply, square
from laminar.engine.ops.math.compare import greater, less
from laminar.engine.ops.math.elementary import sin, tanh

ZERO: Any = np.float32(0)


def power(x: Any, n: Any) -> Any:
    """x to the n-th, by a loop of as many iterations as are fed."""
    start = (eng.constant(0.0), eng.constant(1.0))
    return eng.while_loop(
        lambda i, p: less(i, n), lambda i, p: (add(i, 1.0), multiply(p, x)), start
    )[1]


def branch(x: Any, n: Any) -> Any:
    """x squared where x > n, else -x."""
    return eng.cond(greater(x, n), lambda: square(x), lambda: multiply(x, -1.0))


def running(x: Any, n: Any) -> Any:
    """The sum of the products n x, n^2 x, ... of four iterations of a scan."""

    def body(carry: Any, step: Any) -> Any:
        product = multiply(carry, n)
        return product, multiply(tanh(product), step)

    _, ys = eng.scan(body, x, eng.constant(np.arange(1.0, 5.0, dtype="float32")))
    return eng.lookup("Sum")(ys, axis=(0,))


def nested(x: Any, n: Any) -> Any:
    """A condition in a loop in a loop."""

    def inner(j: Any, y: Any) -> Any:
        more = eng.cond(greater(y, 2.0), lambda: sin(y), lambda: multiply(y, 1.5))
        return add(j, 1.0), more

    def outer(i: Any, y: Any) -> Any:
        found = eng.while_loop(lambda j, y: less(j, i), inner, (eng.constant(0.0), y))[1]
        return add(i, 1.0), add(found, x)

    return eng.while_loop(lambda i, y: less(i, n), outer, (eng.constant(0.0), x))[1]


GRAPHS = [power, branch, running, nested]


def written(build: Callable[[Any, Any], Any], *, slope: bool) -> GraphDef:
    """y of x and n, as bytes would bring it, with its derivative if `slope`."""
    with eng.Graph().as_default() as graph:
        x, n = (eng.placeholder("float32", [], name=name) for name in "xn")
        y: Any = build(x, n)
        eng.lookup("Identity")(y, name="y")
        if slope:
            eng.lookup("Identity")(eng.gradients(y, x)[0], name="slope")
    return GraphDef.from_bytes(graph.as_graph_def().to_bytes())


def evaluated(graph_def: GraphDef, fetch: str, **feeds: float) -> Any:
    with eng.Graph().as_default() as graph:
        eng.import_graph_def(graph_def, name="")
        with eng.Session(graph=graph) as session:
            return session.run(f"{fetch}:0", {f"{k}:0": v for k, v in feeds.items()})


def at_once(build: Callable[[Any, Any], Any], x: float, n: float) -> tuple[float, float]:
    """y and its derivative, of values at hand."""
    given = eng.constant(np.float32(x))
    with eng.GradientTape() as tape:
        tape.watch(given)
        y = build(given, eng.constant(np.float32(n)))
    return float(y), float(tape.gradient(y, given))


@pytest.mark.parametrize("build", GRAPHS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("x", "n"), [(1.5, 3.0), (2.5, 1.0), (-0.5, 4.0)])
def test_values_and_derivatives_survive(build: Any, x: float, n: float) -> None:
    """Those written with the graph, and those made of the graph that was read."""
    y, slope = at_once(build, x, n)
    graph_def = written(build, slope=True)
    assert graph_def.message.function
    assert evaluated(graph_def, "y", x=x, n=n) == pytest.approx(y, rel=1e-5)
    assert evaluated(graph_def, "slope", x=x, n=n) == pytest.approx(slope, rel=1e-5)
    with eng.Graph().as_default() as graph:
        read: Any = eng.import_graph_def(
            written(build, slope=False), return_elements=["x:0", "n:0", "y:0"], name=""
        )
        (made,) = eng.gradients(read[2], read[0])
        with eng.Session(graph=graph) as session:
            found = session.run(made, {read[0]: x, read[1]: n})
    assert found == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("build", GRAPHS, ids=lambda f: f.__name__)
def test_what_is_read_is_written_alike(build: Any) -> None:
    graph_def = written(build, slope=True)
    for again in (graph_def, GraphDef.from_text(graph_def.to_text())):
        with eng.Graph().as_default() as graph:
            eng.import_graph_def(again, name="")
        assert graph.as_graph_def() == graph_def


def test_a_body_is_written_once_and_needs_only_what_it_uses() -> None:
    (body, condition) = written(power, slope=False).message.function
    assert [node.op for node in condition.node if node.op != "Placeholder"] == ["Less"]
    assert sorted(n.op for n in body.node if n.op not in ("Placeholder", "Const")) == ["Add", "Mul"]
    assert len(body.input) == len(condition.input) == 4  # i, p, x, n
    assert len(body.output) == 2


def test_bodies_that_update_variables() -> None:
    """What runs for its effect alone is among the outputs, with a "^"."""
    with eng.Graph().as_default() as graph:
        n = eng.placeholder("float32", [], name="n")
        v = eng.Variable(1.0, name="v")

        def body(i: Any) -> Any:
            v.assign_add(multiply(v.value, i))
            return (add(i, 1.0),)

        last: Any = eng.while_loop(lambda i: less(i, n), body, (eng.constant(1.0),))
        with eng.control_dependencies([eng.lookup("Identity")(last[0])]):
            eng.lookup("Identity")(v.value, name="after")
        eng.group(v.initializer, name="start")
    graph_def = GraphDef.from_bytes(graph.as_graph_def().to_bytes())
    assert any(y.startswith("^") for f in graph_def.message.function for y in f.output)
    with eng.Graph().as_default() as read:
        eng.import_graph_def(graph_def, name="")
        with eng.Session(graph=read) as session:
            session.run("start")
            session.run("after:0", {"n:0": 4.0})
            assert session.run("after:0", {"n:0": 1.0}) == 1.0 * 2 * 3 * 4


def test_an_output_that_one_branch_lacks() -> None:
    """The gradient of a condition keeps what its branch needs; the other does not have that."""
    with eng.Graph().as_default() as graph:
        x: Any = eng.placeholder("float32", [], name="x")
        y: Any = eng.cond(greater(x, 0.0), lambda: multiply(sin(x), tanh(x)), lambda: x)
        eng.lookup("Identity")(eng.gradients(y, x)[0], name="slope")
    graph_def = graph.as_graph_def()
    assert any("" in f.output for f in graph_def.message.function)
    expected = np.cos(1.0) * np.tanh(1.0) + np.sin(1.0) / np.cosh(1.0) ** 2
    assert evaluated(graph_def, "slope", x=1.0) == pytest.approx(expected, rel=1e-6)
    assert evaluated(graph_def, "slope", x=-1.0) == 1.0


def test_a_body_may_call_functions_of_the_library() -> None:
    graph_def = written(power, slope=False)
    body = graph_def.message.function[0]
    (product,) = [node for node in body.node if node.op == "Mul"]
    twice = graph_def.message.function.add(name="Twice", input=["a", "b"], output=["c:0"])
    with eng.Graph().as_default() as inner:
        a, b = (eng.placeholder("float32", [], name=name) for name in "ab")
        multiply(multiply(a, b), 2.0, name="c")
    twice.node.extend(inner.as_graph_def().message.node)
    product.op = "Twice"
    assert evaluated(graph_def, "y", x=3.0, n=2.0) == (3.0 * 2) ** 2


def test_under_a_name_and_into_a_function() -> None:
    graph_def = written(power, slope=False)

    @eng.function
    def call(x: Any, n: Any) -> Any:
        (y,) = eng.import_graph_def(graph_def, {"x:0": x, "n:0": n}, ["y:0"], name="a")
        return y

    assert float(call(np.float32(3), np.float32(3))) == 27.0


def test_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "graph").write_bytes(written(power, slope=True).to_bytes())
    code = (
        "import pathlib, sys\n"
        "from laminar import engine as eng\n"
        "graph_def = eng.GraphDef.from_bytes(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "with eng.Graph().as_default() as graph:\n"
        "    eng.import_graph_def(graph_def, name='')\n"
        "    print(*eng.Session(graph=graph).run(['y:0', 'slope:0'], {'x:0': 2.0, 'n:0': 5.0}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "graph")], capture_output=True, text=True
    )
    assert done.stdout.split() == ["32.0", "80.0"], done.stderr


# x^n for n = 1, 2, ...: as another front end, or a person, would write it.
BY_HAND = """
node { name: "x" op: "Placeholder"
       attr { key: "shape" value { shape { } } } attr { key: "dtype" value { dtype: "float32" } } }
node { name: "n" op: "Placeholder"
       attr { key: "shape" value { shape { } } } attr { key: "dtype" value { dtype: "int32" } } }
node { name: "power" op: "While" input: "n" input: "x" input: "x"
       attr { key: "condition" value { function: "always" } }
       attr { key: "body" value { function: "times" } }
       attr { key: "variables" value { i: 1 } } }
function { name: "always"
  node { name: "p" op: "Placeholder"
    attr { key: "shape" value { shape { } } } attr { key: "dtype" value { dtype: "float32" } } }
  node { name: "c" op: "Placeholder"
    attr { key: "shape" value { shape { } } } attr { key: "dtype" value { dtype: "float32" } } }
  node { name: "same" op: "Equal" input: "c" input: "c" }
  input: "p" input: "c" output: "same" }
function { name: "times"
  node { name: "p" op: "Placeholder"
    attr { key: "shape" value { shape { } } } attr { key: "dtype" value { dtype: "float32" } } }
  node { name: "c" op: "Placeholder"
    attr { key: "shape" value { shape { } } } attr { key: "dtype" value { dtype: "float32" } } }
  node { name: "product" op: "Mul" input: "p" input: "c" }
  input: "p" input: "c" output: "product" }
"""


def test_a_graph_written_by_hand() -> None:
    graph_def = GraphDef.from_text(BY_HAND)
    assert evaluated(graph_def, "power", x=3.0, n=3) == 81.0
    with eng.Graph().as_default() as graph:
        x, y = eng.import_graph_def(graph_def, return_elements=["x:0", "power:0"], name="")
        (slope,) = eng.gradients([y], [x])
        with eng.Session(graph=graph) as session:
            assert session.run(slope, {x: 3.0, "n:0": 2}) == 3 * 3.0**2


def _no_function(m: Any) -> None:
    del m.function[1]


def _inside_itself(m: Any) -> None:
    loop = m.function[1].node.add(name="again", op="While")
    (own,) = [n for n in m.node if n.op == "While"]
    loop.CopyFrom(own)


def _another_input(m: Any) -> None:
    m.function[1].input.pop()


def _another_output(m: Any) -> None:
    m.function[1].output[0] = "nowhere:0"


def _an_internal_op(m: Any) -> None:
    m.function[1].node.add(name="a", op="_Arg")


def _not_a_graph(m: Any) -> None:
    (own,) = [n for n in m.node if n.op == "While"]
    own.attr["body"].i = 3


@pytest.mark.parametrize(
    ("damage", "error", "said"),
    [
        (_no_function, NotFoundError, "has no function 'while_loop/1'"),
        (_inside_itself, InvalidArgumentError, "inside of itself"),
        (_another_input, LaminarError, "takes"),
        (_another_output, NotFoundError, "no node 'nowhere'"),
        (_an_internal_op, InvalidArgumentError, "internal op"),
        (_not_a_graph, InvalidArgumentError, "While"),
    ],
)
def test_what_is_refused(damage: Any, error: type[LaminarError], said: str) -> None:
    graph_def = written(power, slope=False)
    damage(graph_def.message)
    with eng.Graph().as_default() as graph:
        with pytest.raises(error, match=said):
            eng.import_graph_def(graph_def, name="")
        assert not graph.operations
