"""Into how many parts variables are cut: what `get_variable` and `variable_scope` take."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import InvalidArgumentError
from ..graph import TensorShape, as_dtype, canonical_axis, string

Partitioner: TypeAlias = Callable[..., list[int]]


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Cut each variable into `num_shards` parts along `axis`.

    Args:
        num_shards: how many parts there are; fewer where the axis has fewer slices.
        axis: along which they are cut.

    Returns:
        a function of `shape` and `dtype` that gives the number of parts along each axis.

    Raises:
        InvalidArgumentError: `num_shards` is not positive.

    Examples:
        >>> engine.fixed_size_partitioner(2)(shape=(10, 3), dtype="float32")
        [2, 1]
    """
    _check_positive(num_shards=num_shards)

    def partition(shape: Any, **unused: Any) -> list[int]:
        parts, place = _whole_parts(shape, axis)
        parts[place] = min(num_shards, TensorShape(shape)[place] or 1)
        return parts

    return partition


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """Cut each variable along `axis` into as few parts as have at most `max_shard_bytes`.

    Args:
        max_shard_bytes: of a part; one slice may be more.
        axis: along which they are cut.
        bytes_per_string_element: what a string is taken for.
        max_shards: how many parts there are at most.

    Raises:
        InvalidArgumentError: a number is not positive.

    Examples:
        >>> engine.variable_axis_size_partitioner(max_shard_bytes=60)(
        ...     shape=(10, 3), dtype="float32"
        ... )
        [2, 1]
    """
    _check_positive(max_shard_bytes=max_shard_bytes, max_shards=max_shards)

    def partition(shape: Any, dtype: Any) -> list[int]:
        sizes = TensorShape(shape).as_list()
        parts, place = _whole_parts(shape, axis)
        size = sizes[place] or 1
        whole = _bytes_of(sizes, dtype, bytes_per_string_element)
        slices = max(1, int(max_shard_bytes / max(whole / size, 1)))
        parts[place] = min(math.ceil(size / slices), max_shards or size)
        return parts

    return partition


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """Cut each variable along `axis` into at most `max_partitions` parts that are not too small.

    Args:
        max_partitions: how many parts there are at most.
        axis: along which they are cut.
        min_slice_size: the bytes that a part has at least.
        bytes_per_string_element: what a string is taken for.

    Raises:
        InvalidArgumentError: a number is not positive.

    Examples:
        >>> engine.min_max_variable_partitioner(max_partitions=4)(shape=(10, 3), dtype="float32")
        [1, 1]
    """
    _check_positive(max_partitions=max_partitions, min_slice_size=min_slice_size)

    def partition(shape: Any, dtype: Any) -> list[int]:
        sizes = TensorShape(shape).as_list()
        parts, place = _whole_parts(shape, axis)
        most = _bytes_of(sizes, dtype, bytes_per_string_element) // min_slice_size
        parts[place] = max(1, min(sizes[place] or 1, max_partitions, most))
        return parts

    return partition


def _whole_parts(shape: Any, axis: int) -> tuple[list[int], int]:
    """One part along each axis, and which axis is cut."""
    rank = len(TensorShape(shape))
    return [1] * rank, canonical_axis("partitioner", axis, rank)


def _check_positive(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise InvalidArgumentError(f"{name} must be positive, got {number}")


def _bytes_of(sizes: list[int | None], dtype: Any, of_string: int) -> int:
    element = of_string if as_dtype(dtype) == string else as_dtype(dtype).size
    return math.prod(n or 1 for n in sizes) * element
