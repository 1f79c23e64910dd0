"""The first stages of an input pipeline: queues of names, of numbers, of slices.

Each makes a queue, an operation that fills it once an epoch, and a runner, listed in the graph, for
`start_queue_runners`. When the epochs are over the runner closes the queue, and who reads from it
gets OutOfRangeError after the last element: so the end runs through all stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from ..graph import (
    Graph,
    GraphTensor,
    Operation,
    Tensor,
    TensorShape,
    building,
    get_default_graph,
    string,
)
from ..ops.array.creation import arange
from ..ops.array.gather import gather
from ..ops.array.shape import dim_of
from ..ops.core.basic import identity
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import as_input
from ..ops.io.files import matching_files, shuffle_rows
from .collections import GraphKeys
from .queue_runner import QueueRunner, add_queue_runner
from .queues import FIFOQueue, QueueBase
from .scatter import count_up_to
from .variable import Variable


def pipeline_graph(who: str) -> Graph:
    """The graph that is being built; FailedPreconditionError in a function or outside of graphs."""
    graph = building() or get_default_graph()
    if graph.captures_values:
        raise FailedPreconditionError(
            f"{who} belongs to a Session graph, and a function is being traced",
            remedy="build it inside `with graph.as_default()`, or use datasets.Dataset",
        )
    return graph


def in_graph(graph: Graph, value: Any, dtype: Any = None) -> GraphTensor:
    """A value as a tensor of the graph."""
    return as_input(graph, convert_to_tensor(value, dtype))


def match_filenames_once(pattern: Any, name: str = "matching_filenames") -> Variable:
    """A local variable with the names of the files that match, found when it is initialised.

    Args:
        pattern: one or more patterns ("*", "?", "[a-z]").
        name: of the variable.

    Examples:
        >>> import pathlib
        >>> pathlib.Path("a.txt").touch()
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     names = engine.match_filenames_once("*.txt")
        ...     session.run(engine.local_variables_initializer())
        ...     session.run(names)
        array([b'a.txt'], dtype=object)
    """
    with pipeline_graph("match_filenames_once").as_default():
        return Variable(
            matching_files(pattern),
            trainable=False,
            name=name,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str = "limit_epochs") -> Tensor:
    """`tensor`, as often as `num_epochs` says, then OutOfRangeError.

    The local variable "epochs" counts; `local_variables_initializer()` sets it to 0.

    Args:
        tensor: what is given on; None as `num_epochs` gives it on for ever.
        num_epochs: how often, at least 1.
        name: of the scope.

    Raises:
        OutOfRangeError: when run, once more than `num_epochs` times.
        InvalidArgumentError: `num_epochs` is not positive.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     x = engine.limit_epochs(engine.constant(5), num_epochs=1)
        ...     session.run(engine.local_variables_initializer())
        ...     session.run(x)
        np.int32(5)
    """
    if num_epochs is None:
        return convert_to_tensor(tensor)
    if num_epochs <= 0:
        raise InvalidArgumentError(f"num_epochs must be at least 1, got {num_epochs}")
    graph = pipeline_graph("limit_epochs")
    with graph.as_default(), graph.name_scope(name):
        value = in_graph(graph, tensor)
        epochs = Variable(
            np.zeros((), np.int64),
            trainable=False,
            name="epochs",
            collections=[GraphKeys.LOCAL_VARIABLES],
        )
        counted = count_up_to(epochs, num_epochs)
        with graph.control_dependencies([counted]):
            return identity(value)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str = "input_producer",
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue of the rows of `input_tensor`, filled by a runner.

    Args:
        input_tensor: (n, ...).
        element_shape: of a row, where the tensor's own shape does not say it.
        num_epochs: how often each row comes; None for ever. Needs local variables initialised.
        shuffle: whether the rows come in a random order in each epoch.
        seed: of the orders.
        capacity: of the queue.
        shared_name: under which sessions share the queue.
        name: of the scope.
        cancel_op: cancels the queue; by default its own.

    Raises:
        ShapeError: the tensor has no rows, or they are not of `element_shape`.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     queue = engine.input_producer(engine.constant([5, 6, 7]), shuffle=False)
        ...     row = queue.dequeue()
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(row), session.run(row)
        (np.int32(5), np.int32(6))
    """
    graph = pipeline_graph(name)
    with graph.as_default(), graph.name_scope(name) as scope:
        rows: Tensor = in_graph(graph, input_tensor)
        if rows.shape.rank == 0:
            raise ShapeError(
                f"{name}: expected rows along a first axis, got the scalar {rows.spec}"
            )
        bound = rows.shape if rows.shape.rank is None else TensorShape(rows.shape[1:])
        shape = TensorShape(element_shape) if element_shape is not None else bound
        if rows.shape.rank is not None and not shape.is_compatible_with(bound):
            raise ShapeError(f"{name}: element_shape is {shape}, the rows are {bound}")
        if shuffle:
            if seed is None and graph.seed is not None:
                seed = graph.seed + graph.version
            container = graph.scopes.container
            rows = shuffle_rows(rows, seed, container, f"{scope}shuffle")
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, rows.dtype, [shape], shared_name=shared_name, name="queue")
        enqueue = queue.enqueue_many([rows])
        assert enqueue is not None  # in a graph
        add_queue_runner(QueueRunner(queue, [enqueue], cancel_op=cancel_op))
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str = "input_producer",
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue of strings, such as file names; see `input_producer`.

    Args:
        string_tensor: (n), strings.
        num_epochs: how often each string comes; None for ever. Needs local variables initialised.
        shuffle, seed, capacity, shared_name, name, cancel_op: as for `input_producer`.

    Returns:
        the queue; its elements are string scalars.

    Raises:
        ShapeError: `string_tensor` is no vector.
        InvalidArgumentError: there are no strings.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     name = engine.string_input_producer(["a.txt", "b.txt"], shuffle=False).dequeue()
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(name)
        b'a.txt'
    """
    if isinstance(string_tensor, list | tuple) and not string_tensor:
        string_tensor = np.empty(0, object)
    names = convert_to_tensor(string_tensor, string)
    if names.shape.rank == 1 and names.shape[0] == 0:
        raise InvalidArgumentError(
            "string_input_producer: there are no strings",
            remedy="look whether the pattern of the files matches any",
        )
    return input_producer(
        names, (), num_epochs, shuffle, seed, capacity, shared_name, name, cancel_op
    )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str = "input_producer",
) -> QueueBase:
    """A queue of the integers from 0 to `limit` - 1; see `input_producer`.

    Args:
        limit: an integer, or a scalar integer tensor, whose type the numbers then have.
        num_epochs: how often each number comes; None for ever. Needs local variables initialised.
        shuffle, seed, capacity, shared_name, name: as for `input_producer`.

    Returns:
        the queue; its elements are scalars.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(3, shuffle=False).dequeue()
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(number), session.run(number)
        (np.int32(0), np.int32(1))
    """
    graph = pipeline_graph("range_input_producer")
    with graph.as_default():
        numbers = arange(limit)
    return input_producer(numbers, (), num_epochs, shuffle, seed, capacity, shared_name, name)


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str = "input_producer",
) -> list[Tensor]:
    """One row of each tensor at a time, all of one number; see `input_producer`.

    Args:
        tensor_list: tensors (n, ...), of one n.
        num_epochs, shuffle, seed, capacity, shared_name, name: as for `input_producer`.

    Returns:
        for each tensor a row of it, another one each time it runs.

    Raises:
        ShapeError: the tensors have different numbers of rows.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     x, y = engine.slice_input_producer([[1, 2], [10, 20]], shuffle=False)
        ...     threads = engine.start_queue_runners(session)
        ...     session.run([x, y])
        [np.int32(1), np.int32(10)]
    """
    graph = pipeline_graph("slice_input_producer")
    with graph.as_default():
        tensors = [in_graph(graph, t) for t in tensor_list]
        if not tensors:
            raise InvalidArgumentError("slice_input_producer: there are no tensors")
        counts = {t.shape[0] for t in tensors if t.shape.rank and t.shape[0] is not None}
        if any(t.shape.rank == 0 for t in tensors) or len(counts) > 1:
            raise ShapeError(
                "slice_input_producer: the tensors must have one number of rows, got "
                + ", ".join(str(t.spec) for t in tensors)
            )
        limit: Any = next(iter(counts)) if counts else dim_of(tensors[0], axis=0)
        queue = range_input_producer(limit, num_epochs, shuffle, seed, capacity, shared_name, name)
        with graph.name_scope(f"{name}_slices"):
            number = queue.dequeue()
            return [gather(t, number) for t in tensors]
