"""What is converted and what is not; errors, and the lines that they name."""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.autograph import convert
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    ShapeError,
)
from laminar.engine.functions import FuncGraph, do_not_convert


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


def types(f: Any, *specs: Any) -> list[str]:
    return [op.type for op in f.concrete(*specs).graph.operations]


def line_of(fn: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


# What stays Python's


def test_python_values_stay_pythons() -> None:
    seen: list[Any] = []

    @eng.function
    def f(x: Any, flag: bool, n: int) -> Any:
        if flag and n > 1 and not seen:
            for i in range(n):
                if i == 2:
                    continue
                seen.append(i)
                x = x + i
        y = x if flag else -x
        while n > 0:
            n -= 1
            y = y * 2
        return y

    assert f(tensor(1), True, 4) == 80.0  # (1 + 0 + 1 + 3) * 2 ** 4
    assert seen == [0, 1, 3]  # Python runs once, while tracing
    assert not {"Case", "While", "Scan"} & set(types(f, tensor(1), True, 4))


def test_what_has_no_control_flow_is_not_rewritten() -> None:
    def plain(x: Any) -> Any:
        y = ops.relu(ops.sum(x))
        return np.float32(2) * y

    assert convert(plain) is plain
    assert convert(ops.relu) is ops.relu
    assert convert(np.sin) is np.sin
    assert convert(len) is len
    assert convert(inspect.getsource) is inspect.getsource


def test_code_is_converted_once() -> None:
    def make(scale: float) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            return x * scale if x > 0 else x

        return f

    one, two = convert(make(2.0)), convert(make(3.0))
    assert isinstance(one, FunctionType)
    assert isinstance(two, FunctionType)
    assert one.__code__ is two.__code__
    assert convert(one) is one
    assert [one(1.0), two(1.0)] == [2.0, 3.0]  # each with its own closure
    assert one.__qualname__ == make(2.0).__qualname__


def test_globals_and_closures_are_live(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = 2.0

    def f(x: Any) -> Any:
        return x * scale * _FACTOR if x > 0 else x

    g = convert(f)
    monkeypatch.setattr(sys.modules[__name__], "_FACTOR", 10.0)
    assert g(1.0) == 20.0
    scale = 3.0
    assert g(1.0) == f(1.0) == 30.0


_FACTOR = 1.0


def test_signatures_defaults_and_attributes_are_kept() -> None:
    def f(a: Any, /, b: Any = 2, *rest: Any, c: Any = 3, **more: Any) -> Any:
        """What it does."""
        if a:
            return a, b, rest, c, more
        return None

    f.tag = "kept"  # type: ignore[attr-defined]  # an attribute of the user's
    g: Any = convert(f)
    assert g(1) == f(1)
    assert g(1, 5, 6, c=7, d=8) == f(1, 5, 6, c=7, d=8) == (1, 5, (6,), 7, {"d": 8})
    assert (g.__doc__, g.tag, g.__name__) == ("What it does.", "kept", "f")


class Base:
    def __init__(self) -> None:
        self.__hidden = 3.0
        self.count = tensor(0)

    def scaled(self, x: Any) -> Any:
        return x * self.__hidden


class Derived(Base):
    limit = 2.0

    @property
    def double(self) -> float:
        return self.limit * 2

    def scaled(self, x: Any) -> Any:
        if x > self.limit:
            self.count = self.count + 1
            x = self.__twice(x)
        return super().scaled(x) + self.double

    def __twice(self, x: Any) -> Any:
        return x * 2 if x < 10 else x

    @classmethod
    def made(cls, x: Any) -> Any:
        return -x if x < cls.limit else x

    @staticmethod
    def kept(x: Any) -> Any:
        return x if x > 0 and x < 5 else 0.0 * x

    def __call__(self, x: Any) -> Any:
        return self.scaled(x) + self.made(x) + self.kept(x)


@pytest.mark.parametrize("x", [1.0, 3.0, 20.0, -1.0])
def test_methods(x: float) -> None:
    plain, traced = Derived(), Derived()

    @eng.function
    def f(x: Any) -> Any:
        return traced(x), traced.count

    expected = plain(tensor(x))
    found, count = f(tensor(x))
    assert (found, count) == (expected, plain.count)
    assert eng.function(Derived())(tensor(x)) == expected


def test_functions_in_hand_are_converted_when_they_are_called() -> None:
    def twice(fn: Callable[..., Any], x: Any) -> Any:
        return fn(fn(x))

    f = eng.function(lambda x: twice(lambda v: v * 3 if v < 4 else v - 1, x))
    assert [float(f(tensor(x))) for x in (1, 2, 5)] == [9.0, 5.0, 3.0]


def test_lambdas_in_one_line() -> None:
    f, g = (lambda x: x if x > 1 else -x), (lambda x: x if x > 2 else x * 5)
    assert [float(eng.function(h)(tensor(2))) for h in (f, g)] == [2.0, 10.0]


def test_decorators_run_around_what_is_converted() -> None:
    def plus_one(fn: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(x: Any) -> Any:
            return fn(x) + 1

        return wrapped

    @eng.function
    @plus_one
    def f(x: Any) -> Any:
        return x * 2 if x > 0 else x

    assert [float(f(tensor(x))) for x in (1, -1)] == [3.0, 0.0]


def test_it_can_be_turned_off() -> None:
    def inner(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(FailedPreconditionError, match="data-dependent control flow"):
        eng.function(inner, autograph=False)(tensor(1))
    kept = do_not_convert(inner)
    for f in (eng.function(kept), eng.function(lambda x: kept(x) if x > 0 else x)):
        with pytest.raises(FailedPreconditionError, match="data-dependent control flow"):
            f(tensor(1))
    with pytest.raises(InvalidArgumentError, match="autograph must be True or False"):
        eng.function(inner, autograph=1)  # type: ignore[call-overload]  # is refused


# What cannot be converted says so


def test_without_source() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return 1.0 if x > 0 else x", scope)  # what has no file
    with pytest.raises(FailedPreconditionError, match=r"leaves f as it is.*source cannot be read"):
        eng.function(scope["f"])(tensor(1))


def test_a_generator() -> None:
    def numbers(x: Any) -> Iterator[Any]:
        yield x
        if x > 0:
            yield x + 1

    with pytest.raises(FailedPreconditionError, match=r"numbers as it is.*a generator") as caught:
        eng.function(lambda x: list(numbers(x)))(tensor(1))
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(numbers, "if x > 0")
    assert eng.function(lambda x: sum([x, *(v for v in [x, x])]))(tensor(1)) == 3.0


def test_a_jump_out_of_finally() -> None:
    def f(x: Any) -> Any:
        while True:
            try:
                x = x + 1
            finally:
                if x > 3:
                    break  # noqa: B012  # that is the case
        return x

    with pytest.raises(FailedPreconditionError, match="jumps out of `finally`"):
        eng.function(f)(tensor(1))


# Errors


def failing(fn: Callable[..., Any], kind: type[LaminarError], text: str, *args: Any) -> None:
    """`fn` fails with that error, which names the line that ends in `# here`."""
    with pytest.raises(kind, match=text) as caught:
        eng.function(fn, jit_compile=False)(*args)
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__
    assert caught.value.location.line == line_of(fn, "# here")


def test_a_variable_of_one_branch() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            y = x
        return y + 1  # here

    failing(f, FailedPreconditionError, "'y' has a value only in the if branch", tensor(1))


def test_a_variable_of_a_loop() -> None:
    def f(n: Any) -> Any:
        for i in range(n):
            last = i
        return last * 2  # here

    failing(
        f, FailedPreconditionError, "'last' has a value only inside of a loop", tensor(3, "int32")
    )


def test_a_variable_that_is_bound_nowhere_is_pythons_error() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            later = x + 1
            del later
            x = later + x
        return x

    with pytest.raises(NameError, match="later"):
        eng.function(f)(tensor(1))


def test_types_and_shapes_that_differ() -> None:
    def branches(x: Any) -> Any:
        y = x
        if x > 0:  # here
            y = ops.cast(x, "float64")
        return y

    def loop(x: Any) -> Any:
        while x < 3:  # here
            x = ops.cast(x, "float64")
        return x

    def shapes(x: Any) -> Any:
        y = ops.zeros((2,))
        while x < 3:  # here
            y = ops.zeros((2, 2))
            x = x + 1
        return y

    failing(branches, DTypeError, r"variable\['y'\] is float32\[\] in the else branch", tensor(1))
    failing(loop, DTypeError, r"\['x'\] is float32.*returns float64", tensor(1))
    failing(shapes, ShapeError, r"\['y'\] is float32\[2\].*returns float32\[2, 2\]", tensor(1))


def test_sizes_may_grow() -> None:
    @eng.function(jit_compile=False)
    def f(n: Any) -> Any:
        xs = ops.zeros((1, 2))
        for i in range(n):
            xs = ops.concatenate([xs, ops.ones((1, 2)) * ops.cast(i, "float32")], 0)
        return xs

    assert f(tensor(2, "int32")).tolist() == [[0, 0], [0, 0], [1, 1]]


def test_objects_cannot_depend_on_tensors() -> None:
    def f(x: Any) -> Any:
        kind = "plain"
        if x > 0:  # here
            kind = "other"
        return x if kind == "plain" else -x

    failing(
        f,
        InvalidArgumentError,
        "'kind' is 'plain' in the else branch and 'other' in the if",
        tensor(1),
    )


def test_none_on_one_path() -> None:
    def f(x: Any) -> Any:
        if x > 0:  # here
            return x
        return None

    failing(f, InvalidArgumentError, "what the function returns is None in the else", tensor(1))


def test_none_before_a_loop() -> None:
    def f(x: Any) -> Any:
        last = None
        while x < 10:  # here
            last = x
            x = x * 2
        return last

    failing(f, InvalidArgumentError, "'last' is None before the loop, and a tensor", tensor(1))


def test_a_return_on_some_paths_of_a_loop() -> None:
    def f(xs: Any) -> Any:
        for x in xs:  # here
            if x < 0:
                return None
        return xs

    failing(f, InvalidArgumentError, "is None on some of the paths", tensor([1, 2]))


def test_lists_of_another_length_in_each_branch() -> None:
    def f(x: Any) -> Any:
        if x > 0:  # here
            found = [x]
        else:
            found = []
            x = x + 1
        return found, x

    failing(f, InvalidArgumentError, "'found' is a list of 0 in the else branch", tensor(1))


def test_conditions_are_scalars() -> None:
    def f(x: Any) -> Any:
        if x > 0:  # here
            x = x + 1
        return x

    failing(f, ShapeError, r"the condition must be one bool, got bool\[2\]", tensor([1, 2]))


def test_errors_of_the_user_have_their_lines() -> None:
    def f(x: Any) -> Any:
        if x.dtype == "float32":
            raise KeyError("mine")  # here
        return x

    with pytest.raises(KeyError, match="mine") as caught:
        eng.function(f)(tensor(1))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, line_of(f, "# here"))
    assert "raise KeyError" in linecache.getline(last.filename, last.lineno or 0)


def test_assertions() -> None:
    @eng.function(jit_compile=False)
    def f(x: Any, n: int) -> Any:
        assert n > 0, "n is Python's"
        assert x > 0, f"x must be positive, {n}"
        return x

    assert f(tensor(1), 2) == 1.0
    with pytest.raises(InvalidArgumentError, match="x must be positive, 2"):
        f(tensor(-1), 2)
    with pytest.raises(AssertionError, match="n is Python's"):
        f(tensor(1), 0)


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    @eng.function(jit_compile=False)
    def f(xs: Any) -> Any:
        print("tracing")
        for x in xs:
            if x > 1:
                print("x is", x, sep=": ", end="!\n")
        return xs

    f(tensor([1, 2, 3]))
    f(tensor([0, 1, 5]))
    lines = capsys.readouterr().out.split()
    assert "".join(lines) == "tracing" + "xis:2.0!xis:3.0!" + "xis:5.0!"


def test_operands_that_python_would_not_look_at_have_no_effect() -> None:
    seen = eng.Variable(0.0)

    def effect(x: Any) -> Any:
        seen.assign_add(1.0)
        return x > 0

    @eng.function(jit_compile=False)
    def f(x: Any) -> Any:
        return 1.0 if x > 1 and effect(x) else 0.0

    assert [float(f(tensor(x))) for x in (0, 2)] == [0.0, 1.0]
    assert float(seen) == 1.0


def test_in_a_plain_graph() -> None:
    def f(x: Any) -> Any:
        while x < 10:
            x = x * 2
        return x

    with eng.Graph().as_default(), eng.Session() as session:
        x = eng.placeholder("float32", [])
        y = eng.function(f)(x)
        assert session.run(y, {x: 3.0}) == 12.0


def test_branches_are_traced_without_leaks() -> None:
    """After a condition, what it changed belongs to the graph around it, or is as before."""
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.clear()
        if x > 0:
            kept.append(x * 2)
        return x

    graph = FuncGraph("test")
    with graph.as_default():
        x = graph.add_argument(eng.TensorSpec([], "float32"), "x")
        with pytest.raises(InvalidArgumentError, match="'kept' is a list from outside"):
            convert(f)(x)
    assert not kept
