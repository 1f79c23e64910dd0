"""Loops: in Python on eager values, as one operation while a graph is built.

`while_loop` becomes a While, everything whose number of iterations is known before it starts a
Scan (see ops/control/structured.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..graph import INTEGER, Graph, GraphTensor, Tensor, TensorShape, TensorSpec, bool_, int32
from ..ops.array.index import get_item
from ..ops.array.join import stack
from ..ops.array.shape import dim_of
from ..ops.control.structured import SCAN, WHILE
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.math.arithmetic import add, subtract
from ..ops.math.cast import cast
from ..tree import flatten, map_structure, pack_sequence_as
from .carried import flows_of, with_arrays
from .func_graph import FuncGraph
from .subgraph import (
    Subgraph,
    as_output,
    covers,
    graph_for,
    inside,
    matched,
    names_of,
    one_element,
    same_structure,
    share_captures,
    trace,
)


class _Leaves(NamedTuple):
    """The tensors of a structure; leaves that are None stay None."""

    structure: Any
    tensors: list[Tensor]
    names: list[str]
    all_names: list[str]

    @staticmethod
    def of(structure: Any, root: str) -> _Leaves:
        names = names_of(structure, root)
        pairs = [
            (convert_to_tensor(leaf), name)
            for leaf, name in zip(flatten(structure), names, strict=True)
            if leaf is not None
        ]
        return _Leaves(structure, [t for t, _ in pairs], [n for _, n in pairs], names)

    @property
    def specs(self) -> list[TensorSpec]:
        return [t.spec for t in self.tensors]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """The structure with other tensors."""
        return _pack(self.structure, tensors)


def _pack(structure: Any, tensors: Sequence[Any]) -> Any:
    left = iter(tensors)
    return map_structure(lambda leaf: None if leaf is None else next(left), structure)


def _argument_names(names: Sequence[str]) -> list[str]:
    return [name.replace("[", "_").replace("]", "").replace("'", "") for name in names]


class _Traced(NamedTuple):
    """The body of a loop, traced for variables of these specs."""

    graph: FuncGraph
    specs: list[TensorSpec]
    outputs: list[GraphTensor]
    extra: Any


def _trace_body(
    who: str,
    outer: Graph,
    variables: _Leaves,
    step: Callable[[FuncGraph, list[GraphTensor]], tuple[Any, Any]],
    declared: Sequence[TensorShape | None],
    more: Sequence[tuple[str, TensorSpec]] = (),
) -> _Traced:
    """Trace `step`, again for more general shapes until what it gives fits what it takes.

    `step(graph, arguments)` returns the next variables, and anything besides; `more` are arguments
    after the variables.
    """
    specs = [
        s if shape is None else TensorSpec(shape, s.dtype)
        for s, shape in zip(variables.specs, declared, strict=True)
    ]
    for name, first, spec in zip(variables.names, variables.specs, specs, strict=True):
        if not covers(spec.shape, first.shape):
            raise ShapeError(
                f"{who}: the loop variable {name} starts as {first}, "
                f"which the shape invariant {spec.shape} does not cover",
                remedy="declare None for each size that changes",
            )
    while True:
        graph = FuncGraph(f"{who}_body", outer=outer)
        arguments = [*zip(_argument_names(variables.names), specs, strict=True), *more]
        extra: list[Any] = []

        def body(*tensors: GraphTensor, graph: FuncGraph = graph, extra: list[Any] = extra) -> Any:
            found, rest = step(graph, list(tensors))
            extra.append(rest)
            return found

        found = trace(graph, body, [s for _, s in arguments], [n for n, _ in arguments])
        said = f"{who}: what the body returns does not match the loop variables"
        leaves = same_structure(variables.structure, found, said)
        outputs: list[GraphTensor] = []
        for leaf, expected, name in zip(
            leaves, flatten(variables.structure), variables.all_names, strict=True
        ):
            if (leaf is None) != (expected is None):
                raise InvalidArgumentError(
                    f"{said}: {name} is None in one of the two, and a tensor in the other"
                )
            if leaf is not None:
                place = variables.names[len(outputs)]
                dtype = specs[len(outputs)].dtype
                outputs.append(as_output(graph, leaf, dtype, f"{who}: the loop variable {place}"))
        found_specs = [
            matched(who, name, spec, y.spec, shape is not None)
            for name, spec, y, shape in zip(variables.names, specs, outputs, declared, strict=True)
        ]
        if found_specs == specs:
            return _Traced(graph, specs, outputs, extra[0])
        specs = found_specs


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    *,
    shape_invariants: Any = None,
    maximum_iterations: Any = None,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> Any:
    """Apply `body` to the variables of a loop while `cond` holds for them.

    On eager values this is a Python loop; while a graph is built, it is one operation, for any
    number of iterations. Both functions may use tensors and variables from outside, and update
    variables: in the order of the program.

    Args:
        cond: takes the variables, returns one bool.
        body: takes the variables, returns their next values, nested as `loop_vars`.
        loop_vars: the first values: a structure of tensors and TensorArrays. The items of a tuple
            or list are passed as separate arguments.
        shape_invariants: shapes nested as `loop_vars`, with None for sizes that change from one
            iteration to the next.
        maximum_iterations: an upper bound, a number or scalar.
        parallel_iterations: how many iterations may be in flight where the loop is run by several
            threads or devices.

    Returns:
        The variables after the last iteration, nested as `loop_vars`.

    Raises:
        DTypeError, ShapeError: `body` changes the type or shape of a variable; the error names it.
        InvalidArgumentError: it returns another structure, or `cond` is not one bool.

    Examples:
        >>> engine.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, 1))
        (Tensor(3, shape=(), dtype=int32), Tensor(8, shape=(), dtype=int32))
    """
    several = isinstance(loop_vars, tuple | list)
    rebuild = with_arrays(loop_vars)
    if rebuild is not None:

        def on_flows(fn: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any) -> Any:
                packed = rebuild([*values] if several else values[0])
                return flows_of(fn(*packed) if several else fn(packed))

            return call

        return rebuild(
            while_loop(
                on_flows(cond),
                on_flows(body),
                flows_of(loop_vars),
                shape_invariants=shape_invariants,
                maximum_iterations=maximum_iterations,
                parallel_iterations=parallel_iterations,
                name=name,
            )
        )
    first = _Leaves.of(loop_vars, "loop_vars")
    outer = graph_for("while_loop", [*first.tensors, maximum_iterations])

    def arguments(packed: Any) -> Sequence[Any]:
        return packed if several else (packed,)

    def next_values(packed: Any) -> Any:
        found = body(*arguments(packed))
        one = several and len(loop_vars) == 1 and not isinstance(found, tuple | list)
        return [found] if one else found

    if outer is None:
        packed, done = first.pack(first.tensors), 0
        most = -1 if maximum_iterations is None else int(maximum_iterations)
        while done != most and _holds(cond(*arguments(packed))):
            said = "while_loop: what the body returns does not match the loop variables"
            leaves = same_structure(loop_vars, next_values(packed), said)
            packed = pack_sequence_as(loop_vars, [_as_value(leaf) for leaf in leaves])
            done += 1
        return packed

    declared: list[TensorShape | None] = [None] * len(first.tensors)
    if shape_invariants is not None:
        declared = [None if s is None else TensorShape(s) for s in _shapes(shape_invariants)]
        if len(declared) != len(first.tensors):
            raise InvalidArgumentError(
                f"while_loop: there are {len(first.tensors)} loop variables, "
                f"and {len(declared)} shape invariants"
            )
    with inside(outer):
        traced = _trace_body(
            "while_loop",
            outer,
            first,
            lambda graph, tensors: (next_values(first.pack(tensors)), None),
            declared,
        )
        test = FuncGraph("while_loop_condition", outer=outer)
        names = _argument_names(first.names)
        holds = as_output(
            test,
            trace(test, lambda *t: cond(*arguments(first.pack(t))), traced.specs, names),
            bool_,
            "while_loop: the condition",
        )
        with test.as_default():
            single = one_element(holds) if holds.dtype == bool_ else None
        if single is None:
            raise InvalidArgumentError(
                f"while_loop: the condition must be one bool, got {holds.spec}",
                remedy="reduce it with all() or any()",
            )
        given, (in_test, in_body) = share_captures(outer, [test, traced.graph], every_run=True)
        condition = Subgraph(
            test, [*test.arguments[: len(names)], *in_test], [single], test.effects
        )
        inputs = [*traced.graph.arguments[: len(names)], *in_body]
        step = Subgraph(traced.graph, inputs, traced.outputs, traced.graph.effects)
        attrs = {
            "condition": condition,
            "body": step,
            "variables": len(names),
            "parallel_iterations": int(parallel_iterations),
        }
        limit = convert_to_tensor(-1 if maximum_iterations is None else maximum_iterations)
        if limit.dtype not in INTEGER or limit.shape.rank not in (0, None):
            raise DTypeError(
                f"while_loop: maximum_iterations must be one integer, got {limit.spec}"
            )
        op = WHILE[step.stateful or condition.stateful]
        found = apply(op, [limit, *first.tensors, *given], attrs, name or "while_loop")
        return first.pack(found[: len(names)])


def _as_value(leaf: Any) -> Any:
    return None if leaf is None else convert_to_tensor(leaf)


def _holds(value: Any) -> bool:
    tensor = convert_to_tensor(value)
    if tensor.shape.num_elements() != 1:
        raise InvalidArgumentError(
            f"while_loop: the condition must be one bool, got {tensor.spec}",
            remedy="reduce it with all() or any()",
        )
    return bool(tensor)


def _shapes(invariants: Any) -> list[Any]:
    """The shapes in a structure of them; a TensorShape, TensorSpec or None is a leaf."""
    if isinstance(invariants, TensorSpec):
        return [invariants.shape]
    if invariants is None or isinstance(invariants, TensorShape):
        return [invariants]
    if isinstance(invariants, dict):
        return [s for key in sorted(invariants) for s in _shapes(invariants[key])]
    if not isinstance(invariants, list | tuple):
        raise InvalidArgumentError(
            f"while_loop: a shape invariant is a shape, got {invariants!r}",
            remedy="give a tuple with None for each size that changes, such as (None, 3)",
        )
    if all(d is None or isinstance(d, int) for d in invariants):
        return [TensorShape(invariants)]
    return [s for item in invariants for s in _shapes(item)]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    *,
    reverse: bool = False,
    unroll: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Carry a value through a sequence: (carry, y) = f(carry, x) for each x of `xs`.

    On eager values this is a Python loop; while a graph is built, it is one operation, for
    sequences of any length.

    Args:
        f: one step; the carry that it returns nests as `init`, with the same types and shapes.
        init: the first carry, a structure of tensors.
        xs: a tensor, or a structure of them, whose slices along the first axis are the x; None
            passes None, `length` times.
        length: how many steps, where `xs` is None; a number or scalar.
        reverse: whether to go from the last slice to the first.
        unroll: write the steps out in the graph; their number must be known.

    Returns:
        The last carry, and the y stacked in the order of `xs` (None where f gives None).

    Raises:
        InvalidArgumentError: neither `xs` nor `length`, or they contradict each other.
        DTypeError, ShapeError: `f` changes the type or shape of a part of the carry, or the first
            axes of `xs` differ.

    Examples:
        >>> last, sums = engine.scan(
        ...     lambda c, x: (c + x, c + x), engine.constant(0), engine.constant([1, 2, 3])
        ... )
        >>> sums
        Tensor([1, 3, 6], shape=(3,), dtype=int32)
    """
    return _scan("scan", f, init, xs, length, reverse=reverse, unroll=unroll, name=name)


def _scan(
    who: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: Any,
    *,
    reverse: bool = False,
    unroll: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """`scan` for `who`, which is what errors name."""
    rebuild = with_arrays(init)
    if rebuild is not None:

        def step_on_flows(carry: Any, x: Any) -> tuple[Any, Any]:
            carry, y = f(rebuild(carry), x)
            return flows_of(carry), y

        begin = flows_of(init)
        carry, ys = _scan(
            who, step_on_flows, begin, xs, length, reverse=reverse, unroll=unroll, name=name
        )
        return rebuild(carry), ys
    first, items = _Leaves.of(init, "init"), _Leaves.of(xs, "xs")
    size = _size(who, items, length)
    outer = graph_for(who, [*first.tensors, *items.tensors, length])
    if outer is None or unroll:
        if size is None:
            raise InvalidArgumentError(
                f"{who}: the number of steps must be known where they are written out",
                remedy="leave unroll=False",
            )
        carry, ys = first.pack(first.tensors), []
        for i in reversed(range(size)) if reverse else range(size):
            carry, y = f(carry, items.pack([get_item(x, i) for x in items.tensors]))
            said = f"{who}: the carry that f returns does not match init"
            leaves = same_structure(init, carry, said)
            carry = pack_sequence_as(init, [_as_value(leaf) for leaf in leaves])
            ys.append(y)
        if reverse:
            ys.reverse()
        return carry, _stack(ys) if ys else None
    with inside(outer):
        count = len(first.tensors)

        def step(graph: FuncGraph, tensors: list[GraphTensor]) -> tuple[Any, Any]:
            found = f(first.pack(tensors[:count]), items.pack(tensors[count:]))
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise InvalidArgumentError(
                    f"{who}: f must return a pair (carry, y), got {found!r}",
                    remedy="return (carry, None) where there is no y",
                )
            return found[0], found[1]

        sliced = [TensorSpec(s.shape[1:], s.dtype) for s in items.specs]
        more = list(zip(_argument_names(items.names), sliced, strict=True))
        traced = _trace_body(who, outer, first, step, [None] * count, more)
        y_leaves = [
            None if y is None else as_output(traced.graph, y, None, f"{who}: a y that f returns")
            for y in flatten(traced.extra)
        ]
        given, (captured,) = share_captures(outer, [traced.graph], every_run=True)
        body = Subgraph(
            traced.graph,
            [*traced.graph.arguments[: count + len(sliced)], *captured],
            [*traced.outputs, *(y for y in y_leaves if y is not None)],
            traced.graph.effects,
        )
        attrs = {
            "body": body,
            "carries": count,
            "slices": len(sliced),
            "reverse": bool(reverse),
            "size": size,
        }
        steps = _steps(size, items, length)
        inputs = [steps, *first.tensors, *items.tensors, *given]
        results = apply(SCAN[body.stateful], inputs, attrs, name or who)
        return first.pack(results[:count]), _pack(traced.extra, results[count:])


def _size(who: str, items: _Leaves, length: Any) -> int | None:
    """The number of slices of all `items`, None where it is known at run time only.

    Raises:
        InvalidArgumentError: there is nothing to tell it, or `length` is another.
        ShapeError: sizes differ, or something has no first axis.
    """
    if not items.tensors:
        if length is None:
            raise InvalidArgumentError(f"{who}: give xs or length")
        return None if isinstance(length, GraphTensor) else max(_whole(who, length), 0)
    for name, spec in zip(items.names, items.specs, strict=True):
        if spec.shape.rank is None or not len(spec.shape):
            raise ShapeError(
                f"{who}: {name} is {spec}, and has no first axis to go along",
                remedy="give it one, and the tensor a shape if its rank is unknown",
            )
    sizes = sorted({s.shape[0] for s in items.specs if s.shape[0] is not None})
    if len(sizes) > 1:
        raise ShapeError(f"{who}: the first axes must have one size, got {sizes}")
    size = sizes[0] if sizes else None
    given = None if length is None or isinstance(length, GraphTensor) else _whole(who, length)
    if None not in (given, size) and given != size:
        raise InvalidArgumentError(f"{who}: length is {given}, but xs has {size} slices")
    return size


def _whole(who: str, length: Any) -> int:
    try:
        return operator.index(length)
    except TypeError:
        raise DTypeError(f"{who}: length must be an integer, got {length!r}") from None


def _steps(size: int | None, items: _Leaves, length: Any) -> Tensor:
    if size is not None:
        return convert_to_tensor(size)
    return dim_of(items.tensors[0], axis=0) if length is None else convert_to_tensor(length)


def _stack(results: Sequence[Any]) -> Any:
    """Results of one structure, leaf by leaf, as the slices of a new first axis."""

    def stacked(*leaves: Any) -> Any:
        if leaves[0] is None:
            return None
        return stack([convert_to_tensor(leaf) for leaf in leaves])

    return map_structure(stacked, *results)


def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    name: str | None = None,
) -> Any:
    """Apply value = body(i, value) for i from `lower` to `upper` - 1, from `init` on.

    Args:
        lower, upper: integers, or scalars that a graph computes.
        body: takes the number of the iteration (a scalar in a graph) and the value.
        init: the first value, a structure of tensors.

    Raises:
        DTypeError: a bound is no integer.
        DTypeError, ShapeError: `body` changes the type or shape of a part of the value.

    Examples:
        >>> engine.fori_loop(0, 3, lambda i, x: x * 2, engine.constant(1))
        Tensor(8, shape=(), dtype=int32)
    """
    if graph_for("fori_loop", [lower, upper, *flatten(init)]) is None:
        value = init
        for i in range(int(lower), int(upper)):
            value = body(i, value)
        return value
    bounds = []
    for bound in (lower, upper):
        tensor = convert_to_tensor(bound)
        if tensor.dtype not in INTEGER:
            raise DTypeError(f"fori_loop: a bound must be an integer, got {tensor.spec}")
        bounds.append(tensor if tensor.dtype == int32 else cast(tensor, int32))
    plain = isinstance(lower, int) and isinstance(upper, int)
    length = max(upper - lower, 0) if plain else subtract(bounds[1], bounds[0])

    def step(carry: Any, _: None) -> tuple[Any, None]:
        i, value = carry
        return (add(i, convert_to_tensor(1)), body(i, value)), None

    (_, value), _ = _scan("fori_loop", step, (bounds[0], init), None, length, name=name)
    return value


def map_slices(f: Callable[[Any], Any], xs: Any, *, name: str | None = None) -> Any:
    """`f` of each slice of `xs` along the first axis, stacked.

    Args:
        f: takes a slice (for a structure, a structure of slices), returns tensors.
        xs: a tensor, or a structure of tensors with first axes of one size.

    Raises:
        ShapeError: the first axes differ; or they are empty, and the form of the result is unknown
            because nothing is traced.

    Examples:
        >>> engine.map_slices(lambda row: row * 2, engine.constant([[1, 2], [3, 4]]))
        Tensor([[2, 4],
                [6, 8]], shape=(2, 2), dtype=int32)
    """
    items = _Leaves.of(xs, "xs")
    if graph_for("map", items.tensors) is None and _size("map", items, None) == 0:
        raise ShapeError("map: the first axis is empty, so there is nothing to apply f to")
    _, ys = _scan("map", lambda _, x: ((), f(x)), (), xs, None, name=name)
    return ys
