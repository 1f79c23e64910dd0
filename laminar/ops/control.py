"""Conditions and loops as functions.

On values at hand they run in Python. While a graph is built, a condition must be known, and a
loop's length too: it is then written out, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError, ShapeError, UnimplementedError
from laminar.engine.graph import GraphTensor, Tensor
from laminar.engine.ops import axes, join
from laminar.engine.ops.index import get_item
from laminar.engine.ops.shape import dims_of, reshape
from laminar.tree import flatten, map_structure, pack_sequence_as

from .arguments import known_size, tensor
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


def _known(who: str, what: str, value: Any) -> Any:
    """`value`, which must be known while a graph is built."""
    if hasattr(value, "__laminar_tensor__"):
        value = value.__laminar_tensor__()
    if isinstance(value, GraphTensor):
        raise UnimplementedError(
            f"{who}: {what} is known at run time only ({value.spec}), "
            f"and this is a graph being built",
            remedy=f"make {what} a Python value, use where() to choose between results, or call "
            "it outside of a traced function (compile(run_eagerly=True) for a whole model)",
        )
    return value


@public
def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """The result of `true_fn()` if `pred` holds, of `false_fn()` if not.

    Raises:
        UnimplementedError: a graph is being built, and `pred` is computed in it.
    """
    return true_fn() if bool(_known("cond", "the condition", pred)) else false_fn()


@public
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """The result of branches[index](*operands); an index out of range means the nearest branch.

    Raises:
        UnimplementedError: a graph is being built, and `index` is computed in it.
    """
    place = int(_known("switch", "the index", index))
    return branches[min(max(place, 0), len(branches) - 1)](*operands)


@public
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:
    """Apply `body` to the variables of a loop while `cond` holds for them.

    Args:
        cond: takes the variables, returns whether to go on.
        body: takes the variables, returns their next values.
        loop_vars: the first values; a tuple or list is passed as separate arguments.
        maximum_iterations: an upper bound.

    Raises:
        UnimplementedError: a graph is being built, and the condition is computed in it.
    """
    several = isinstance(loop_vars, tuple | list)
    variables = map_structure(tensor, loop_vars)
    steps = 0
    while maximum_iterations is None or steps < maximum_iterations:
        arguments = variables if several else (variables,)
        if not bool(_known("while_loop", "the condition", cond(*arguments))):
            break
        found = body(*arguments)
        if several and not isinstance(found, tuple | list):
            found = (found,)
        variables = pack_sequence_as(variables, [tensor(v) for v in flatten(found)])
        steps += 1
    return variables


@public
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Apply value = body_fun(i, value) for i from `lower` to `upper` - 1, from `init_val` on.

    Raises:
        UnimplementedError: a graph is being built, and a bound is computed in it.
    """
    first, last = (int(_known("fori_loop", "a bound", bound)) for bound in (lower, upper))
    value = init_val
    for i in range(first, last):
        value = body_fun(i, value)
    return value


def _length(who: str, xs: Any) -> int:
    """The size that the first axes of all tensors in `xs` have.

    Raises:
        ShapeError: they differ.
        UnimplementedError: it is known at run time only.
    """
    sizes = set()
    for x in flatten(xs):
        if x.shape.rank != 0 and x.shape.rank is not None and x.shape[0] is None:
            raise UnimplementedError(
                f"{who}: the first axis of {x.spec} has a size that is known at run time only",
                remedy="give the axis a size, or write the step for the whole tensor at once",
            )
        sizes.add(known_size(who, x, 0))
    if len(sizes) != 1:
        raise ShapeError(f"{who}: the first axes must have one size, got {sorted(sizes)}")
    return sizes.pop()


def _stack(results: Sequence[Any]) -> Any:
    """Results of one structure, leaf by leaf, as the slices of a new first axis."""

    def stacked(*leaves: Any) -> Any:
        return None if leaves[0] is None else join.stack([tensor(leaf) for leaf in leaves])

    return map_structure(stacked, *results)


@public
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f` of each slice of `xs` along the first axis, stacked.

    Args:
        f: takes a slice (for a structure, a structure of slices), returns tensors.
        xs: a tensor, or a structure of tensors with first axes of one size.

    Raises:
        ShapeError: the first axes differ, or are empty: the form of the result is then unknown.
        UnimplementedError: a graph is being built, and the size is known at run time only.
    """
    xs = map_structure(tensor, xs)
    count = _length("map", xs)
    if not count:
        raise ShapeError("map: the first axis is empty, so there is nothing to apply f to")
    return _stack([f(map_structure(lambda x, i=i: get_item(x, i), xs)) for i in range(count)])


@public
def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """`function` of each slice of `elements` along the first axis, stacked; see `map`."""
    return map(function, elements)


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
        f: one step.
        init: the first carry.
        xs: a tensor, or a structure of them, whose slices along the first axis are the x; None
            passes None, `length` times.
        length: how many steps, where `xs` is None.
        reverse: whether to go from the last slice to the first.
        unroll: accepted for its name; steps are always written out.

    Returns:
        The last carry, and the y stacked in the order of `xs` (None where f gives None).

    Raises:
        InvalidArgumentError: neither `xs` nor `length`, or they contradict each other.
        UnimplementedError: a graph is being built, and the length is known at run time only.
    """
    xs = None if xs is None else map_structure(tensor, xs)
    if xs is None:
        if length is None:
            raise InvalidArgumentError("scan: give xs or length")
        count = int(length)
    else:
        count = _length("scan", xs)
        if length is not None and int(length) != count:
            raise InvalidArgumentError(f"scan: length is {length}, but xs has {count} slices")
    carry, ys = init, []
    for i in reversed(range(count)) if reverse else range(count):
        x = None if xs is None else map_structure(lambda x, i=i: get_item(x, i), xs)
        carry, y = f(carry, x)
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, _stack(ys) if ys else None


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
        ShapeError: the sizes along `axis` differ or are unknown.

    Source: Blelloch, "Prefix sums and their applications", 1990, section 1.2.
    """
    elems = map_structure(tensor, elems)
    leaves = [axes.moveaxis(x, axis, 0) for x in flatten(elems)]
    if reverse:
        leaves = [get_item(x, slice(None, None, -1)) for x in leaves]
    _length("associative_scan", leaves)

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        pair = (
            pack_sequence_as(elems, [axes.moveaxis(x, 0, axis) for x in half]) for half in (a, b)
        )
        return [axes.moveaxis(tensor(y), axis, 0) for y in flatten(f(*pair))]

    found = _prefixes(combine, leaves)
    if reverse:
        found = [get_item(x, slice(None, None, -1)) for x in found]
    return pack_sequence_as(elems, [axes.moveaxis(x, 0, axis) for x in found])


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
