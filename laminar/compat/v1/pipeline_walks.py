"""`tf.data.experimental`: data sets of others, whose walks choose, group or remember elements.

Each is a generator over the elements of its source, which begins anew with each walk.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from laminar import engine
from laminar.datasets.elements import as_element
from laminar.datasets.picking import apply
from laminar.datasets.sources import Generated
from laminar.engine.errors import InvalidArgumentError, OutOfRangeError
from laminar.engine.graph import TensorSpec, as_dtype
from laminar.tree import map_structure

from .pipelines import Dataset, computing, values_of

Transform: TypeAlias = Callable[[Any], Any]


def generated(who: str, make: Callable[[], Iterable[Any]], spec: Any = None) -> Dataset:
    """The data set of what a generator gives, which is made anew for each walk."""
    return Dataset(Generated(f"tf.data.{who}", make, spec, ()))


def _called(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as one of arrays, with arrays for results."""
    call = computing(fn)
    return lambda *elements: as_element(call(*elements))


def Counter(  # noqa: N802  # its name there
    start: int = 0, step: int = 1, dtype: Any = "int64"
) -> Dataset:
    """The numbers start, start + step, ... without end."""
    kind = as_dtype(dtype)
    return generated("Counter", lambda: itertools.count(start, step), TensorSpec([], kind))


def RandomDataset(seed: int | None = None) -> Dataset:  # noqa: N802  # its name there
    """Random numbers from 0 to below 2^32, int64, without end; the same in each walk of a seed."""

    def numbers() -> Iterator[int]:
        source = np.random.Generator(np.random.Philox(seed))
        while True:
            yield from source.integers(0, 1 << 32, 256).tolist()

    return generated("RandomDataset", numbers, TensorSpec([], engine.int64))


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Transform:
    """Elements that a function makes of each, with a state that it hands on.

    Args:
        initial_state: the first state.
        scan_func: of a state and an element; gives the next state and the new element.
    """
    step = _called(scan_func)

    def transform(dataset: Any) -> Any:
        def walk() -> Iterator[Any]:
            state = as_element(map_structure(values_of, initial_state))
            for element in dataset.as_numpy_iterator():
                state, found = step(state, element)
                yield found

        return generated("scan", walk)

    return transform


def take_while(predicate: Callable[..., Any]) -> Transform:
    """The elements up to the first for which a function is False."""
    holds = _called(predicate)

    def transform(dataset: Any) -> Any:
        def walk() -> Iterator[Any]:
            for element in dataset.as_numpy_iterator():
                if not bool(apply(holds, element)):
                    return
                yield element

        return generated("take_while", walk, dataset.element_spec)

    return transform


def unique() -> Transform:
    """Each element once: those that have come before are left out."""

    def transform(dataset: Any) -> Any:
        def walk() -> Iterator[Any]:
            seen = set()
            for element in dataset.as_numpy_iterator():
                key = np.asarray(element).tobytes() if not isinstance(element, bytes) else element
                if key not in seen:
                    seen.add(key)
                    yield element

        return generated("unique", walk, dataset.element_spec)

    return transform


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transform:
    """Elements of one key, so many at a time, as the data sets that a function makes of them.

    Args:
        key_func: of an element; gives its key, a whole number.
        reduce_func: of a key and the data set of the elements; gives a data set.
        window_size: how many elements at most.
        window_size_func: instead, of a key.

    Raises:
        InvalidArgumentError: both of the last are given, or none.
    """
    if (window_size is None) == (window_size_func is None):
        raise InvalidArgumentError("group_by_window: give window_size or window_size_func")
    key_of = _called(key_func)
    size_of: Any = None if window_size_func is None else _called(window_size_func)
    reduce = computing(reduce_func)

    def transform(dataset: Any) -> Any:
        spec = dataset.element_spec

        def window(key: int, items: list[Any]) -> Iterator[Any]:
            inside = generated("group_by_window", lambda: iter(items), spec)
            yield from reduce(np.int64(key), inside).as_numpy_iterator()

        def walk() -> Iterator[Any]:
            windows: dict[int, list[Any]] = {}
            for element in dataset.as_numpy_iterator():
                key = int(apply(key_of, element))
                windows.setdefault(key, []).append(element)
                size = window_size if size_of is None else size_of(np.int64(key))
                if len(windows[key]) >= int(size):
                    yield from window(key, windows.pop(key))
            for key, items in windows.items():
                yield from window(key, items)

        return generated("group_by_window", walk)

    return transform


class Reducer:
    """What is computed of the elements of a group.

    Args:
        init_func: of a key; gives the first state.
        reduce_func: of a state and an element; gives the next state.
        finalize_func: of the last state; gives what stands for the group.
    """

    def __init__(
        self,
        init_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        finalize_func: Callable[..., Any],
    ) -> None:
        self.init_func = init_func
        self.reduce_func = reduce_func
        self.finalize_func = finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transform:
    """For each key, in the order of first elements, what a `Reducer` makes of its elements."""
    key_of = _called(key_func)
    first, step, last = map(
        _called, (reducer.init_func, reducer.reduce_func, reducer.finalize_func)
    )

    def transform(dataset: Any) -> Any:
        def walk() -> Iterator[Any]:
            states: dict[int, Any] = {}
            for element in dataset.as_numpy_iterator():
                key = int(apply(key_of, element))
                state = states[key] if key in states else first(np.int64(key))
                states[key] = step(state, element)
            for key in sorted(states):
                yield apply(last, states[key])

        return generated("group_by_reducer", walk)

    return transform


def choose_from_datasets(datasets: Any, choice_dataset: Any) -> Dataset:
    """The next element of the data set that the next of `choice_dataset` names by its number.

    Data sets that have ended are passed over.
    """
    given = list(datasets)

    def walk() -> Iterator[Any]:
        walks: list[Any] = [iter(d.as_numpy_iterator()) for d in given]
        for number in choice_dataset.as_numpy_iterator():
            if not 0 <= int(number) < len(walks):
                raise OutOfRangeError(f"choose_from_datasets: there is no data set {number}")
            found = next(walks[int(number)], None)
            if found is not None:
                yield found

    return generated("choose_from_datasets", walk, given[0].element_spec)


def sample_from_datasets(datasets: Any, weights: Any = None, seed: int | None = None) -> Dataset:
    """The next element of a random one of several data sets, until all have ended.

    Args:
        datasets: of elements of one kind.
        weights: how probable each is; alike by default.
        seed: for the same choices in each walk.
    """
    given = list(datasets)
    chances = np.ones(len(given)) if weights is None else np.asarray(values_of(weights), np.float64)
    if chances.shape != (len(given),) or (chances < 0).any() or not chances.sum() > 0:
        raise InvalidArgumentError(
            f"sample_from_datasets: expected {len(given)} weights of at least 0, got {weights}"
        )

    def walk() -> Iterator[Any]:
        source = np.random.Generator(np.random.Philox(seed))
        walks: list[Any] = [iter(d.as_numpy_iterator()) for d in given]
        left = chances.copy()
        while left.sum() > 0:
            number = int(source.choice(len(left), p=left / left.sum()))
            found = next(walks[number], None)
            if found is None:
                left[number] = 0
            else:
                yield found

    return generated("sample_from_datasets", walk, given[0].element_spec)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Transform:
    """(class, element), some left out at random so that classes come as often as asked for.

    Args:
        class_func: of an element; gives its class, a whole number.
        target_dist: how often each class is to come.
        initial_dist: how often each comes; counted, where it is not given.
        seed: for the same elements in each walk.
    """
    target = np.asarray(values_of(target_dist), np.float64)
    known = None if initial_dist is None else np.asarray(values_of(initial_dist), np.float64)
    class_of = _called(class_func)

    def transform(dataset: Any) -> Any:
        def walk() -> Iterator[Any]:
            source = np.random.Generator(np.random.Philox(seed))
            counts = np.zeros(len(target))
            for element in dataset.as_numpy_iterator():
                label = int(apply(class_of, element))
                counts[label] += 1
                shares = counts / counts.sum() if known is None else known
                ratios = np.divide(target, shares, out=np.zeros_like(target), where=shares > 0)
                if source.random() * ratios.max() < ratios[label]:
                    yield np.int32(label), element

        return generated("rejection_resample", walk)

    return transform


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Any,
    bucket_batch_sizes: Any,
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transform:
    """Batches of elements of similar length; see `laminar.datasets.Dataset.bucket_by_length`.

    Raises:
        NotImplementedError: rows are to be filled up to the ends of buckets, or not at all.
    """
    if pad_to_bucket_boundary or no_padding:
        raise NotImplementedError("bucket_by_sequence_length: rows are filled up to the longest")
    length = _called(element_length_func)

    def transform(dataset: Any) -> Any:
        found = dataset.bucket_by_length(
            length, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
            drop_remainder,
        )  # fmt: skip
        return Dataset(found.stage)

    return transform


def prefetch_to_device(device: str, buffer_size: int | None = None) -> Transform:
    """`prefetch`; elements are brought to a device where they are used."""
    return lambda dataset: dataset.prefetch(buffer_size or 1)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transform:
    """The data set itself; elements are brought to a device where they are used."""
    return lambda dataset: dataset
