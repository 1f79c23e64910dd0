"""Control flow as functions of functions, lists as values, and other ops that TensorFlow names.

`While`, `If` and `For` take functions of all loop variables, such as `tf.function` or
`tf.contrib.eager.defun` makes, where `tf.while_loop` and `tf.cond` take any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar import engine, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Operation, Tensor, TensorShape, as_dtype
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.array.offsets import concat_offsets
from laminar.engine.ops.core import checks
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.state import tensor_list
from laminar.engine.tree import flatten

from .adapting import in_graph, v1
from .arrays import gather_nd
from .values import static, symbol, tensor


def _results(found: Any) -> list[Any]:
    """What a function gives, as a list."""
    return [x for x in flatten(found) if x is not None]


def _checked(who: str, body: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """What the body of a loop gives: as many as the loop has variables, and of their types."""
    found = _results(body(*values))
    given = list(values)
    if len(found) != len(given) or any(
        a.dtype != b.dtype for a, b in zip(map(symbol, found), given, strict=True)
    ):
        raise InvalidArgumentError(
            f"{who}: the body takes {[x.dtype for x in given]} and must give as many of the same "
            f"types, got {[getattr(x, 'dtype', x) for x in found]}"
        )
    return found


@v1()
def While(  # noqa: N802  # its name there
    input_: Any, cond: Any, body: Any, name: str | None = None, hostmem: Any = None
) -> list[Any]:
    """The loop variables after the last round: body(*variables) while cond(*variables).

    Args:
        input_: the variables before the first round.
        cond: gives a bool, or a number, which is false where it is 0.
        body: gives the variables of the next round.
        name: of it.
        hostmem: accepted.

    Raises:
        InvalidArgumentError: the functions do not fit to the variables.
    """
    begin = [symbol(x) for x in input_]

    def go_on(*values: Any) -> Any:
        found = _results(cond(*values))
        if len(found) != 1:
            raise InvalidArgumentError(f"While: the condition gives {len(found)} values, not one")
        return truth(found[0])

    found = engine.while_loop(
        go_on, lambda *values: tuple(_checked("While", body, values)), tuple(begin), name=name
    )
    return _results(found)


def truth(x: Any) -> Any:
    """A condition: a bool, a number that is not 0, a text that is not empty."""
    found = symbol(x)
    if found.dtype == "bool":
        return found
    if found.dtype == "string":
        return lookup("NotEqual")(found, tensor("", "string"))
    return lookup("NotEqual")(found, tensor(0, found.dtype))


@v1()
def If(  # noqa: N802  # its name there
    cond: Any, inputs: Any, then_branch: Any, else_branch: Any, name: str | None = None
) -> list[Any]:
    """What one of two functions gives of the inputs.

    Args:
        cond: a bool; a number, which is false where it is 0; or a text, where it is empty.
        inputs: the arguments of both functions.
        then_branch: of these.
        else_branch: of these.
        name: of it.
    """
    given = [symbol(x) for x in inputs]
    found = engine.cond(
        truth(cond),
        lambda: tuple(_results(then_branch(*given))),
        lambda: tuple(_results(else_branch(*given))),
        name=name,
    )
    return _results(found)


@v1()
def For(  # noqa: N802  # its name there
    start: Any,
    limit: Any,
    delta: Any,
    inputs: Any,
    body: Any,
    name: str | None = None,
    hostmem: Any = None,
    rewrite_with_while: Any = None,
) -> list[Any]:
    """The loop variables after body(i, *variables) for i = start, start + delta, ...

    Args:
        start: the first number.
        limit: before it ends the loop.
        delta: the distance of two numbers, which may be negative.
        inputs: the variables before the first round.
        body: gives the variables of the next round.
        name: of it.
        hostmem, rewrite_with_while: accepted.

    Raises:
        InvalidArgumentError: delta is 0, has the wrong sign, or the body does not fit.
    """
    numbers = [static(x) for x in (start, limit, delta)]
    if isinstance(numbers[2], int):
        if numbers[2] == 0:
            raise InvalidArgumentError("For: delta must not be 0")
        if all(isinstance(n, int) for n in numbers) and (
            (numbers[1] - numbers[0]) * numbers[2] < 0
        ):
            raise InvalidArgumentError(
                f"For: from {numbers[0]} to {numbers[1]} in steps of {numbers[2]} never ends"
            )
    first, last, step = (symbol(x, "int32") for x in (start, limit, delta))
    begin = [symbol(x) for x in inputs]

    def go_on(i: Any, *values: Any) -> Any:
        return lookup("Where")(step > 0, i < last, i > last)

    def once(i: Any, *values: Any) -> Any:
        def own(*given: Any) -> Any:
            return body(i, *given)

        return (i + step, *_checked("For", own, values))

    found = engine.while_loop(go_on, once, (first, *begin), name=name)
    return _results(found)[1:]


@v1()
def Gradient(  # noqa: N802  # its name there
    inputs: Any, f: Any, name: str | None = None
) -> list[Any]:
    """The gradients of a function's results with respect to its arguments.

    Args:
        inputs: the arguments, then the gradients of the results.
        f: the function.
        name: accepted.
    """
    given = [symbol(x) for x in inputs]
    for count in range(len(given), 0, -1):
        try:
            found = _results(f(*given[:count]))
        except (TypeError, InvalidArgumentError):
            continue
        if len(found) == len(given) - count:
            return list(engine.gradients(found, given[:count], given[count:]))
    raise InvalidArgumentError("Gradient: the inputs are not arguments and gradients of results")


@v1()
def partitioned_call(
    args: Any,
    f: Any,
    tout: Any = None,
    executing_eagerly: Any = None,
    config: Any = None,
    executor_type: str | None = None,
) -> Any:
    """What a function gives of arguments; where it gives nothing, the operation that runs it.

    The other arguments, which say how it is run, are accepted. What the function has captured may
    stand behind the arguments.
    """
    given = list(args)
    captured = list(getattr(f, "captured_inputs", None) or [])
    if captured and len(given) >= len(captured):
        given = given[: len(given) - len(captured)]
    found = f(*given)
    if isinstance(found, Operation) or found is None:
        return found
    return _results(found)


@v1()
def remote_call(args: Any, Tout: Any, f: Any, target: Any, name: str | None = None) -> Any:  # noqa: N803  # its name there
    """What a function gives of arguments, computed on a device.

    Args:
        args: the arguments.
        Tout: the types of the results; accepted.
        f: the function.
        target: the name of the device, known when the graph is built.
        name: accepted.
    """
    place = static(target)
    if isinstance(place, Tensor):
        raise InvalidArgumentError("remote_call: the device must be known")
    with engine.device(place.decode() if isinstance(place, bytes) else str(place)):
        return _results(f(*[symbol(x) for x in args]))


# Gradients


def implicit_val_and_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives what `f` gives, and its gradients for the variables that it reads.

    Args:
        f: gives one tensor.

    Returns:
        A function that gives (value, [(gradient, variable), ...]), of trainable variables.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        with engine.GradientTape() as tape:
            value = f(*args, **kwargs)
        if value is None:
            raise ValueError("implicit gradients: the function gives nothing")
        variables = tape.watched_variables()
        if not variables:
            raise ValueError("implicit gradients: the function reads no trainable variable")
        gradients = tape.gradient(value, variables)
        return value, list(zip(gradients, variables, strict=True))

    return call


def implicit_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """As `implicit_val_and_grad`, without the value."""
    both = implicit_val_and_grad(f)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def get_dependent_variables(input_ops: Any, output_ops: Any) -> list[Any]:
    """The trainable variables that results are differentiable functions of, but not by the inputs.

    Args:
        input_ops: tensors, in any structure: what leads on from them does not count.
        output_ops: the results, likewise.
    """
    given = [x for x in flatten(input_ops) if isinstance(x, Tensor)]
    results = [y for y in map(symbol, flatten(output_ops)) if y.dtype.is_floating]
    variables = list(engine.trainable_variables())
    if not variables or not results:
        return []
    found = engine.gradients(results, variables, stop_gradients=given)
    return [v for v, dv in zip(variables, found, strict=True) if dv is not None]


@v1()
def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Any:
    """The tensor itself; asking for its gradient is an error."""
    return checks.prevent_gradient(symbol(input), message=message)


# Arrays


@v1()
def concat_offset(concat_dim: Any, shape: Any) -> list[Any]:
    """Where each of several tensors begins in what `concat` makes of them.

    Args:
        concat_dim: the axis along which they are joined.
        shape: their shapes, vectors of int32.

    Returns:
        A vector for each: zeros but for that axis.
    """
    return list(concat_offsets.many(symbol(concat_dim, "int32"), *(symbol(s) for s in shape)))


@v1()
def concat_v2(values: Any, axis: Any, name: str | None = None) -> Tensor:
    """Tensors one behind the other along an axis, which is a scalar."""
    place = static(axis)
    if not isinstance(place, int):
        raise InvalidArgumentError(f"concat: the axis is a number, got {axis!r}")
    return concat([symbol(x) for x in values], place)


@v1()
def batch_gather_nd(params: Any, indices: Any, batch_dims: Any, name: str | None = None) -> Any:
    """The slices of `params` at index tuples, for each place of the first `batch_dims` axes."""
    count = static(batch_dims)
    x, places = symbol(params), symbol(indices)
    if not isinstance(count, int) or count < 0:
        raise InvalidArgumentError(f"batch_gather_nd: batch_dims is at least 0, got {count}")
    for who, t in (("params", x), ("indices", places)):
        if t.shape.rank is None:
            raise InvalidArgumentError(f"batch_gather_nd: the number of axes of {who} is not known")
        if count >= t.shape.rank:
            raise InvalidArgumentError(
                f"batch_gather_nd: batch_dims = {count} must be below the {t.shape.rank} axes of "
                f"{who}"
            )
    return gather_nd(x, places, batch_dims=count)


@v1()
def reduced_shape(input_shape: Any, axes: Any) -> Any:
    """The shape that is left of `input_shape` when `axes` are reduced to 1."""
    shape, places = cast(symbol(input_shape, "int32"), "int32"), symbol(axes, "int32")
    rank = lookup("Size")(shape)
    places = lookup("FloorMod")(cast(places, rank.dtype) + rank, rank)
    numbers = ops.arange(rank)
    gone = lookup("Any")(
        lookup("Equal")(numbers[:, None], lookup("Reshape")(places, shape=(1, -1))), axis=(1,)
    )
    return lookup("Where")(gone, lookup("OnesLike")(shape), shape)


def convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, **hints: Any
) -> Any:
    """Each of several values as a tensor of its own."""
    with in_graph():
        return [symbol(x, dtype) for x in values]


# Lists of tensors as values


@v1()
def empty_tensor_list(
    element_shape: Any = None,
    element_dtype: Any = None,
    max_num_elements: Any = None,
    name: str | None = None,
) -> Any:
    """A list without elements; the shape and type of one are accepted."""
    return tensor_list.tensor_list()


@v1()
def tensor_list_push_back(input_handle: Any, tensor: Any, name: str | None = None) -> Any:
    """The list with one more element."""
    return tensor_list.tensor_list_push(input_handle, symbol(tensor))


@v1()
def tensor_list_pop_back(
    input_handle: Any, element_dtype: Any, name: str | None = None, element_shape: Any = None
) -> Any:
    """(the list without its last element, that element)."""
    return tensor_list.tensor_list_pop.many(
        input_handle, dtype=as_dtype(element_dtype), shape=TensorShape(element_shape)
    )


@v1()
def tensor_list_from_tensor(tensor: Any, element_shape: Any = None, name: str | None = None) -> Any:
    """The list of the slices of a tensor along its first axis."""
    return tensor_list.tensor_list_from(symbol(tensor))


@v1()
def tensor_list_reserve(
    element_shape: Any, num_elements: Any, element_dtype: Any, name: str | None = None
) -> Any:
    """A list of so many places."""
    return tensor_list.tensor_list_reserve(symbol(num_elements, "int32"))


@v1()
def tensor_list_resize(input_handle: Any, size: Any, name: str | None = None) -> Any:
    """The list with so many places: without the last ones, or with empty ones behind."""
    return tensor_list.tensor_list_resize(input_handle, symbol(size, "int32"))


@v1()
def tensor_list_length(input_handle: Any, name: str | None = None) -> Any:
    """The number of places."""
    return tensor_list.tensor_list_length(input_handle)


@v1()
def tensor_list_get_item(
    input_handle: Any,
    index: Any,
    element_dtype: Any,
    element_shape: Any = None,
    name: str | None = None,
) -> Any:
    """The element at a place."""
    return tensor_list.tensor_list_get(
        input_handle,
        symbol(index, "int32"),
        dtype=as_dtype(element_dtype),
        shape=TensorShape(element_shape),
    )


@v1()
def tensor_list_set_item(
    input_handle: Any, index: Any, item: Any, resize_if_index_out_of_bounds: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The list with another element at a place."""
    return tensor_list.tensor_list_set(
        input_handle, symbol(index, "int32"), symbol(item), grows=resize_if_index_out_of_bounds
    )


@v1()
def tensor_list_stack(
    input_handle: Any,
    element_dtype: Any,
    num_elements: int = -1,
    element_shape: Any = None,
    name: str | None = None,
) -> Any:
    """All elements along a new first axis; where their number is known, it is checked."""
    found = tensor_list.tensor_list_stack(
        input_handle, dtype=as_dtype(element_dtype), shape=TensorShape(element_shape)
    )
    if num_elements >= 0 and found.shape.rank is not None:
        return engine.lookup("EnsureShape")(
            found, shape=TensorShape([num_elements, *found.shape[1:]])
        )
    return found
