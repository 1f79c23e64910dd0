"""Dataset: errors and the lines they name, and work in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.datasets import Dataset
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import TensorSpec

from ..conftest import names_of_threads_left
from .pipelines import double, elements, generated, numbers, ragged

pytestmark = pytest.mark.usefixtures("no_thread_is_left")

rng = np.random.default_rng(0)

# Errors


def fail(n: Any) -> Any:
    if n == 3:
        raise ZeroDivisionError("three")
    return n


@pytest.mark.parametrize(
    "wrap",
    [
        lambda d: d.map(fail),
        lambda d: d.map(fail, 2),
        lambda d: d.map(fail).prefetch(2),
        lambda d: d.map(fail, 2).prefetch(1).shuffle(3).batch(2).prefetch(1),
        lambda d: d.filter(fail),
        lambda d: d.flat_map(lambda n: Dataset.from_tensors(fail(n))),
    ],
)
def test_an_error_names_the_line_that_made_the_step(wrap: Callable[[Dataset], Dataset]) -> None:
    dataset = wrap(numbers(6))
    with pytest.raises(ZeroDivisionError, match="three") as caught:
        elements(dataset)
    notes = "\n".join(caught.value.__notes__)
    assert "in Dataset." in notes
    assert f"{Path(__file__).name}:" in notes


def test_after_an_error_the_walk_can_go_on() -> None:
    walk = numbers(6).map(fail).as_numpy_iterator()
    seen = []
    for _ in range(6):
        try:
            seen.append(int(next(walk)))
        except ZeroDivisionError:
            seen.append(-1)
    assert seen == [0, 1, 2, -1, 4, 5]


def test_stop_iteration_in_a_function_is_an_error() -> None:
    def stop(n: Any) -> Any:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        elements(numbers(3).map(stop))


A_LIST: Any = [1, 2]
A_TEXT: Any = "a"
A_NUMBER: Any = 3

MISTAKES: list[Any] = [
    (lambda: Dataset.from_tensor_slices((np.ones(3), np.ones(2))), "same number of rows"),
    (lambda: Dataset.from_tensor_slices(3.0), "got a scalar"),
    (lambda: Dataset.from_tensor_slices(()), "expected arrays"),
    (lambda: Dataset.from_generator(A_LIST), "expected a function that makes a generator"),
    (lambda: Dataset.range(A_TEXT), "expected \\(stop\\)"),
    (lambda: numbers(3).batch(0), "batch_size must be a whole number of at least 1, got 0"),
    (lambda: numbers(3).batch(True), "batch_size must be a whole number"),
    (lambda: numbers(3).shuffle(0), "buffer_size must be"),
    (lambda: numbers(3).shuffle(seed=A_TEXT), "seed must be a whole number"),
    (lambda: generated(3).shuffle(), "number of elements is unknown"),
    (lambda: numbers(3).repeat().shuffle(), "number of elements is infinite"),
    (lambda: numbers(3).take(-2), "count must be"),
    (lambda: numbers(3).shard(2, 2), "index must be below num_shards=2"),
    (lambda: numbers(3).map(A_NUMBER), "expected a function"),
    (lambda: numbers(3).map(double, 0), "num_parallel_calls must be"),
    (lambda: numbers(3).concatenate(A_LIST), "expected a Dataset, got list"),
    (lambda: Dataset.zip(numbers(3), 4), "expected a Dataset, got int"),
    (lambda: Dataset(A_NUMBER), "expected the steps of a pipeline"),
    (lambda: ragged(3).bucket_by_length(len, [3, 2], 2), "boundaries must increase"),
    (lambda: ragged(3).bucket_by_length(len, [2], [2]), "1 boundaries make 2 buckets"),
    (lambda: Dataset.from_records([]), "got none"),
    (lambda: Dataset.from_records(A_NUMBER), "expected paths of files"),
    (lambda: numbers(3).iterator().restore({}), "expected what state\\(\\) gave"),
    (
        lambda: numbers(3).iterator().restore(generated(3).iterator().state()),
        "that of another pipeline",
    ),
    (
        lambda: numbers(3).iterator().restore({**numbers(3).iterator().state(), "at": {"a": 1}}),
        "does not fit",
    ),
]


@pytest.mark.parametrize(("act", "message"), MISTAKES)
def test_mistakes(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        act()


WALKING: list[Any] = [
    (lambda: ragged(3).batch(2), ShapeError, "must have one shape"),
    (lambda: ragged(3).padded_batch(2, [1]), ShapeError, "does not fit"),
    (lambda: ragged(3).padded_batch(2, [1, 2]), ShapeError, "another rank"),
    (lambda: numbers(3).unbatch(), InvalidArgumentError, "same number of rows"),
    (lambda: numbers(3).flat_map(double), InvalidArgumentError, "must return a Dataset"),
    (
        lambda: Dataset.from_generator(lambda: iter([1.5]), TensorSpec((2,), "float32")),
        ShapeError,
        "expected float32\\[2\\]",
    ),
    (
        lambda: Dataset.from_generator(lambda: iter([1]), (TensorSpec(()), TensorSpec(()))),
        InvalidArgumentError,
        "expected 2 parts",
    ),
]


@pytest.mark.parametrize(("make", "kind", "message"), WALKING)
def test_mistakes_seen_when_walking(
    make: Callable[[], Dataset], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        elements(make())


# Threads


def test_threads_end_when_a_loop_is_left() -> None:
    dataset = numbers(10_000).map(double, 3).prefetch(4)
    for _ in dataset:
        break


def test_threads_end_when_the_consumer_fails() -> None:
    dataset = numbers(10_000).map(double, 3).prefetch(4)

    def consume() -> None:
        for _ in dataset:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        consume()
    del caught


def test_prefetch_works_ahead_but_not_further_than_asked() -> None:
    made: list[int] = []
    ready = threading.Event()

    def count(n: Any) -> Any:
        made.append(int(n))
        if len(made) == 4:
            ready.set()
        return n

    with numbers(100).map(count).prefetch(3).as_numpy_iterator() as walk:
        next(walk)
        assert ready.wait(10)
        assert not threading.Event().wait(0.05)
        assert len(made) <= 5  # one handed out, three waiting, one in hand


def test_prefetch_overlaps_reading_with_the_step() -> None:
    begun = [threading.Event() for _ in range(20)]

    def read(n: Any) -> Any:
        begun[int(n)].set()
        return n

    for i, _ in enumerate(numbers(20).map(read).prefetch()):
        assert begun[min(i + 1, 19)].wait(30), f"element {i + 1} was not read during step {i}"


def test_buckets_do_not_mix_lengths() -> None:
    lengths = rng.permutation(np.repeat(np.arange(1, 41), 3))
    sentences = Dataset.from_generator(lambda: (np.ones(n, "int32") for n in lengths))
    seen = []
    for batch in sentences.bucket_by_length(len, [11, 21, 31], 4).as_numpy_iterator():
        found = batch.sum(1)
        seen += found.tolist()
        assert len({(n - 1) // 10 for n in found}) == 1
        assert (batch.shape[1] - found).max() <= 9
    assert sorted(seen) == sorted(lengths)


def test_parallel_map_overlaps() -> None:
    barrier = threading.Barrier(4, timeout=10)

    def meet(n: Any) -> Any:
        barrier.wait()
        return n

    assert elements(numbers(8).map(meet, 4)) == list(range(8))


@pytest.mark.parametrize("is_ordered", [True, False])
def test_threads_end_with_an_error_and_the_walk_goes_on(is_ordered: bool) -> None:
    """Also while the error is kept, whose traceback leads to the walk."""

    walk = numbers(10).map(fail, 2, deterministic=is_ordered).as_numpy_iterator()
    found: list[int] = []
    with pytest.raises(ZeroDivisionError) as caught:
        found.extend(walk)
    assert names_of_threads_left(()) == []
    found.extend(walk)
    assert sorted(found) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert "three" in str(caught.value)
