"""Conditions and loops as functions.

On eager values they run in Python. While a graph is built, what depends on a tensor becomes one
operation, for any number of iterations and sequences of any length.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, SupportsInt

from laminar.engine import functions as engine
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import GraphTensor, Tensor, int32
from laminar.engine.ops.array import axes, join
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.shape import dims_of, reshape
from laminar.engine.ops.math.arithmetic import maximum, minimum
from laminar.engine.ops.math.cast import cast
from laminar.tree import flatten, map_structure, pack_sequence_as

from ..typing import TensorLike
from .arguments import known_size, tensor, whole
from .recording import public

__all__ = [
    "associative_scan",
    "cond",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "vectorized_map",
    "while_loop",
]


@public
def cond(pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """The result of `true_fn()` if `pred` holds, of `false_fn()` if not; only that one runs.

    Args:
        pred: one bool or number.
        true_fn, false_fn: while a graph is built, both are traced: they return structures of
            tensors (and None) of one form, with the same dtypes.

    Raises:
        InvalidArgumentError: the structures differ, or `pred` is not a scalar.
        DTypeError: an output has another type in each branch.

    Examples:
        >>> ops.cond(ops.greater(3, 2), lambda: "larger", lambda: "smaller")
        'larger'
    """
    return engine.cond(pred, true_fn, false_fn)


@public
def switch(
    index: SupportsInt | Tensor, branches: Sequence[Callable[..., Any]], *operands: Any
) -> Any:
    """The result of branches[index](*operands); an index out of range means the nearest branch.

    Args:
        index: a whole number, or a scalar tensor.
        branches: at least one function.
        *operands: what the branch is called with.

    Returns:
        What the branch returns.

    Raises:
        InvalidArgumentError: the branches return different structures while a graph is built.
        DTypeError: an output has another type in each branch.

    Examples:
        >>> ops.switch(1, [lambda x: x + 1, lambda x: x * 10], 5)
        50
    """
    if not branches or not all(callable(branch) for branch in branches):
        raise InvalidArgumentError(f"switch: expected functions, at least one, got {branches!r}")
    if hasattr(index, "__laminar_tensor__"):
        index = index.__laminar_tensor__()
    last = len(branches) - 1
    if isinstance(index, GraphTensor):
        place: Any = maximum(minimum(cast(index, int32), tensor(last, int32)), tensor(0, int32))
    else:
        place = min(max(whole("switch", "the index", index), 0), last)
    return engine.switch_case(place, [functools.partial(branch, *operands) for branch in branches])


@public
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
    *,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
) -> Any:
    """Apply `body` to the variables of a loop while `cond` holds for them.

    Args:
        cond: takes the variables, returns whether to go on.
        body: takes the variables, returns their next values, with the same types and shapes.
        loop_vars: the first values; a tuple or list is passed as separate arguments.
        maximum_iterations: an upper bound.
        shape_invariants: shapes nested as `loop_vars`, with None for sizes that change from one
            iteration to the next.
        parallel_iterations: how many iterations may be in flight where several threads or devices
            run the loop.

    Raises:
        DTypeError, ShapeError: `body` changes the type or shape of a variable.
        InvalidArgumentError: it returns another structure, or `cond` is not one bool.

    Examples:
        >>> ops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, 1))
        (Tensor(3, shape=(), dtype=int32), Tensor(8, shape=(), dtype=int32))
    """
    return engine.while_loop(
        cond,
        body,
        loop_vars,
        shape_invariants=shape_invariants,
        maximum_iterations=maximum_iterations,
        parallel_iterations=parallel_iterations,
    )


@public
def fori_loop(
    lower: TensorLike, upper: TensorLike, body_fun: Callable[[Any, Any], Any], init_val: Any
) -> Any:
    """Apply value = body_fun(i, value) for i from `lower` to `upper` - 1, from `init_val` on.

    Args:
        lower: the first i.
        upper: the bound, itself left out; where it is not above `lower`, the result is `init_val`.
        body_fun: takes i and the value, returns the next value.
        init_val: a tensor, or a structure of tensors.

    Returns:
        The last value.

    Raises:
        DTypeError, ShapeError: `body_fun` changes the type or shape of the value.

    Examples:
        >>> ops.fori_loop(0, 5, lambda i, total: total + i, 0)
        10
    """
    return engine.fori_loop(lower, upper, body_fun, init_val)


@public
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f` of each slice of `xs` along the first axis, stacked.

    Args:
        f: takes a slice (for a structure, a structure of slices), returns tensors.
        xs: a tensor, or a structure of tensors with first axes of one size.

    Raises:
        ShapeError: the first axes differ, or are empty and no graph is being built: the form of
            the result is then unknown.

    Examples:
        >>> ops.map(lambda row: ops.sum(row), np.array([[1, 2], [3, 4]]))
        Tensor([3, 7], shape=(2,), dtype=int64)
    """
    return engine.map_slices(f, xs)


@public
def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """`function` of each slice of `elements` along the first axis, stacked; see `map`.

    Args:
        function: takes a slice (for a structure, a structure of slices), returns tensors.
        elements: a tensor, or a structure of tensors with first axes of one size.

    Returns:
        The results with a first axis of that size.

    Raises:
        ShapeError: the first axes differ, or there is none.

    Examples:
        >>> ops.vectorized_map(lambda row: ops.max(row), np.array([[1, 5], [4, 2]]))
        Tensor([5, 4], shape=(2,), dtype=int64)
    """
    return engine.map_slices(function, elements)


@public
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Carry a value through a sequence: (carry, y) = f(carry, x) for each x of `xs`.

    Args:
        f: one step; the carry that it returns has the types and shapes of `init`.
        init: the first carry.
        xs: a tensor, or a structure of them, whose slices along the first axis are the x; None
            passes None, `length` times.
        length: how many steps, where `xs` is None.
        reverse: whether to go from the last slice to the first.
        unroll: True writes the steps out in the graph; a number is accepted for its name.

    Returns:
        The last carry, and the y stacked in the order of `xs` (None where f gives None).

    Raises:
        InvalidArgumentError: neither `xs` nor `length`, or they contradict each other.
        DTypeError, ShapeError: `f` changes the type or shape of the carry.

    Examples:
        >>> last, sums = ops.scan(lambda total, x: (total + x, total + x), 0, np.array([1, 2, 3]))
        >>> last, sums
        (Tensor(6, shape=(), dtype=int64), Tensor([1, 3, 6], shape=(3,), dtype=int64))
    """
    return engine.scan(f, init, xs, length, reverse=reverse, unroll=unroll is True)


@public
def associative_scan(
    f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes of a sequence combined: y[i] = f(...f(f(x[0], x[1]), x[2])..., x[i]).

    Args:
        f: an associative function of two structures of tensors; it is applied to many pairs at
            once, along `axis`.
        elems: a tensor, or a structure of them, of one size along `axis`.
        reverse: whether to combine from the end.
        axis: the axis of the sequence.

    Raises:
        ShapeError: the sizes along `axis` differ.

    Source: Blelloch, "Prefix sums and their applications", 1990, section 1.2.

    Examples:
        >>> ops.associative_scan(ops.add, np.array([1, 2, 3, 4]))
        Tensor([ 1,  3,  6, 10], shape=(4,), dtype=int64)
    """
    elems = map_structure(tensor, elems)
    leaves = [axes.moveaxis(x, axis, 0) for x in flatten(elems)]
    if not leaves:
        raise InvalidArgumentError(f"associative_scan: there is no tensor in {elems!r}")
    if reverse:
        leaves = [get_item(x, slice(None, None, -1)) for x in leaves]
    known = {x.shape[0] for x in leaves if x.shape[0] is not None}
    if len(known) > 1:
        raise ShapeError(f"associative_scan: the sizes along {axis=} differ: {sorted(known)}")

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        pair = (
            pack_sequence_as(elems, [axes.moveaxis(x, 0, axis) for x in half]) for half in (a, b)
        )
        return [axes.moveaxis(tensor(y), axis, 0) for y in flatten(f(*pair))]

    written_out = all(x.shape[0] is not None for x in leaves)
    found = (_prefixes if written_out else _one_by_one)(combine, leaves)
    if reverse:
        found = [get_item(x, slice(None, None, -1)) for x in found]
    return pack_sequence_as(elems, [axes.moveaxis(x, 0, axis) for x in found])


def _one_by_one(
    combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor]
) -> list[Tensor]:
    """The prefixes along axis 0, for a number of items that is known at run time only."""

    def step(carry: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        found = combine(carry, [axes.expand_dims(item, 0) for item in x])
        return found, [axes.squeeze(y, 0) for y in found]

    first = [get_item(x, slice(0, 1)) for x in xs]
    _, rest = engine.scan(step, first, [get_item(x, slice(1, None)) for x in xs])
    return [join.concat((head, tail), 0) for head, tail in zip(first, rest, strict=True)]


def _prefixes(
    combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor]
) -> list[Tensor]:
    """The prefixes along axis 0: those of neighbouring pairs, then what lies between them."""
    count = known_size("associative_scan", xs[0], 0)
    if count < 2:
        return xs
    even = [get_item(x, slice(0, count - 1, 2)) for x in xs]
    odd = [get_item(x, slice(1, count, 2)) for x in xs]
    at_odd = _prefixes(combine, combine(even, odd))  # the prefixes that end at 1, 3, 5, ...
    later = [get_item(x, slice(2, count, 2)) for x in xs]
    before = [get_item(x, slice(0, (count - 1) // 2)) for x in at_odd]
    at_even = combine(before, later) if count > 2 else later
    first = [get_item(x, slice(0, 1)) for x in xs]
    return [
        _interleave(join.concat((head, rest), 0) if count > 2 else head, tail)
        for head, rest, tail in zip(first, at_even, at_odd, strict=True)
    ]


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    """even[0], odd[0], even[1], odd[1], ...; `even` may be longer by one."""
    count = known_size("associative_scan", odd, 0)
    paired = join.stack((get_item(even, slice(0, count)), odd), 1)
    _, dims = dims_of(odd)
    trailing = [dims.pop(0) if d is None else d for d in odd.shape[1:]]
    merged = reshape(paired, [2 * count, *trailing])
    rest = get_item(even, slice(count, None))
    return join.concat((merged, rest), 0)
