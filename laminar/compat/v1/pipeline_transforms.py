"""Functions from data set to data set, for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, int64

from .adapting import in_graph
from .pipelines import Dataset

Transform: TypeAlias = Callable[[Any], Any]


def shuffle_and_repeat(
    buffer_size: int, count: int | None = None, seed: int | None = None
) -> Transform:
    """`shuffle`, in another order each time, then `repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transform:
    """`map`, then `batch`.

    Args:
        map_func: of an element.
        batch_size: elements of a batch.
        num_parallel_batches: batches whose elements are made side by side.
        drop_remainder: whether a smaller last batch is left out.
        num_parallel_calls: elements that are made side by side.

    Raises:
        InvalidArgumentError: both numbers are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise InvalidArgumentError(
            "map_and_batch: give num_parallel_batches or num_parallel_calls, not both"
        )
    calls = num_parallel_calls
    if num_parallel_batches is not None:
        calls = batch_size * num_parallel_batches

    def transform(dataset: Any) -> Any:
        return dataset.map(map_func, calls).batch(batch_size, drop_remainder)

    return transform


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transform:
    """`interleave`, whose data sets are walked side by side.

    Args:
        map_func: of an element; gives a data set.
        cycle_length: data sets that are walked at a time.
        block_length: elements that are taken from one before the next.
        sloppy: taken; the order is always the same.
        buffer_output_elements: taken; how far walks go ahead is the pipeline's choice.
        prefetch_input_elements: likewise.
    """
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length
    )


def unbatch() -> Transform:
    """`unbatch`."""
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start: int = 0) -> Transform:
    """`enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def cardinality(dataset: Dataset) -> Tensor:
    """The number of elements, an int64 tensor; -1 of endless ones, -2 where it is not known."""
    with in_graph():
        return engine.constant(dataset.cardinality(), int64)


def get_single_element(dataset: Dataset) -> Any:
    """The element of a data set that has one: in a graph, a tensor that each run takes anew.

    A run fails where there are none.
    """
    return dataset.make_one_shot_iterator().get_next()
