"""Dataset: what each step gives, and that a walk can be taken up anywhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.datasets import AUTOTUNE, Dataset
from laminar.engine.errors import FailedPreconditionError, MissingFileError
from laminar.engine.graph import TensorSpec
from laminar.engine.io import RecordWriter

from .pipelines import double, elements, generated, numbers, plain, ragged

pytestmark = pytest.mark.usefixtures("no_thread_is_left")

# What each step gives

CASES: list[Any] = [
    ("range", lambda: Dataset.range(2, 9, 3), [2, 5, 8]),
    ("slices", lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (
        "slices-tuple",
        lambda: Dataset.from_tensor_slices((np.arange(2), ["a", "b"])),
        [(0, b"a"), (1, b"b")],
    ),
    (
        "slices-dict",
        lambda: Dataset.from_tensor_slices({"x": np.arange(4).reshape(2, 2), "y": [5, 6]}),
        [{"x": [0, 1], "y": 5}, {"x": [2, 3], "y": 6}],
    ),
    ("tensors", lambda: Dataset.from_tensors((1, [2, 3])), [(1, [2, 3])]),
    ("generator", lambda: generated(3), [0, 1, 2]),
    ("generator-args", lambda: Dataset.from_generator(range, args=(1, 3)), [1, 2]),
    ("map", lambda: numbers(3).map(double), [0, 2, 4]),
    ("map-tensor", lambda: numbers(3).map(lambda n: laminar.ops.square(n)), [0, 1, 4]),
    (
        "map-several",
        lambda: Dataset.zip(numbers(2), numbers(2)).map(lambda a, b: {"sum": a + b}),
        [{"sum": 0}, {"sum": 2}],
    ),
    ("map-threads", lambda: numbers(30).map(double, 3), [2 * n for n in range(30)]),
    ("filter", lambda: numbers(6).filter(lambda n: n % 2), [1, 3, 5]),
    ("take-skip", lambda: numbers(9).skip(2).take(3), [2, 3, 4]),
    ("take-skip-generator", lambda: generated(9).skip(2).take(3), [2, 3, 4]),
    ("take-too-many", lambda: generated(2).take(5), [0, 1]),
    ("skip-all", lambda: generated(2).skip(5), []),
    ("take-of-endless", lambda: numbers(2).repeat().take(5), [0, 1, 0, 1, 0]),
    ("shard", lambda: numbers(7).shard(3, 1), [1, 4]),
    ("shard-generator", lambda: generated(7).shard(3, 1), [1, 4]),
    ("shard-of-part", lambda: numbers(9).skip(1).shard(2, 0).shard(2, 1), [3, 7]),
    ("repeat", lambda: numbers(2).repeat(2), [0, 1, 0, 1]),
    ("repeat-generator", lambda: generated(2).repeat(2), [0, 1, 0, 1]),
    ("repeat-nothing", lambda: generated(0).repeat(), []),
    ("repeat-nothing-indexed", lambda: numbers(0).repeat(), []),
    ("enumerate", lambda: generated(2).enumerate(5), [(5, 0), (6, 1)]),
    ("concatenate", lambda: numbers(2).concatenate(generated(2)), [0, 1, 0, 1]),
    ("zip", lambda: Dataset.zip(numbers(3), generated(2)), [(0, 0), (1, 1)]),
    ("zip-dict", lambda: Dataset.zip({"a": numbers(1), "b": numbers(2)}), [{"a": 0, "b": 0}]),
    ("batch", lambda: numbers(5).batch(2), [[0, 1], [2, 3], [4]]),
    ("batch-generator", lambda: generated(5).batch(2), [[0, 1], [2, 3], [4]]),
    ("batch-whole", lambda: numbers(5).batch(2, drop_remainder=True), [[0, 1], [2, 3]]),
    ("batch-whole-generator", lambda: generated(5).batch(2, True), [[0, 1], [2, 3]]),
    ("batch-across-passes", lambda: numbers(3).repeat(2).batch(4), [[0, 1, 2, 0], [1, 2]]),
    (
        "batch-texts",
        lambda: Dataset.from_tensor_slices(["a", "b"]).map(lambda t: t + b"!").batch(2),
        [[b"a!", b"b!"]],
    ),
    ("unbatch", lambda: numbers(5).batch(2).unbatch(), [0, 1, 2, 3, 4]),
    ("rebatch", lambda: numbers(7).batch(3).rebatch(2), [[0, 1], [2, 3], [4, 5], [6]]),
    ("rebatch-up", lambda: numbers(7).batch(2).rebatch(3, True), [[0, 1, 2], [3, 4, 5]]),
    (
        "padded",
        lambda: ragged(3).padded_batch(2),
        [[[0, 0], [0, 1]], [[0, 1, 2]]],
    ),
    (
        "padded-shape-value",
        lambda: ragged(2).padded_batch(2, [3], -1),
        [[[0, -1, -1], [0, 1, -1]]],
    ),
    (
        "padded-structure",
        lambda: Dataset.zip(ragged(2), numbers(2)).padded_batch(2, ([None], []), (9, 0)),
        [([[0, 9], [0, 1]], [0, 1])],
    ),
    (
        "buckets",
        lambda: ragged(8).bucket_by_length(len, [3], [2, 3]),
        [[[0, 0], [0, 1]], [[0, 1, 2, 0, 0], [0, 1, 2, 3, 0], [0, 1, 2, 3, 4]], [[0]],
         [[0, 1, 2, 3, 4, 5, 0], [0, 1, 2, 3, 4, 5, 6]]],
    ),
    ("flat-map", lambda: numbers(4).flat_map(lambda n: numbers(int(n))), [0, 0, 1, 0, 1, 2]),
    (
        "interleave",
        lambda: numbers(3).interleave(lambda n: Dataset.from_tensors(n).repeat(2), 2, 1),
        [0, 1, 0, 1, 2, 2],
    ),
    (
        "interleave-blocks",
        lambda: numbers(3).interleave(
            lambda n: Dataset.from_tensors(n).repeat(3), 2, 2, num_parallel_calls=AUTOTUNE
        ),
        [0, 0, 1, 1, 0, 1, 2, 2, 2],
    ),
    (
        "window",
        lambda: numbers(7).window(3, 2).flat_map(lambda w: w.batch(3)),
        [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]],
    ),
    (
        "window-stride",
        lambda: generated(7).window(2, 3, 2, drop_remainder=True).flat_map(lambda w: w.batch(2)),
        [[0, 2], [3, 5]],
    ),
    ("prefetch", lambda: generated(5).prefetch(2), [0, 1, 2, 3, 4]),
    ("cache", lambda: generated(3).cache().repeat(2), [0, 1, 2, 0, 1, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_elements(make: Callable[[], Dataset], expected: list[Any]) -> None:
    dataset = make()
    assert elements(dataset) == expected
    assert elements(dataset) == expected  # a second walk
    size = dataset.cardinality()
    if size >= 0:
        assert size == len(expected) == len(dataset)


# Taking up a walk, with what is random and what runs in threads

OTHERS: list[Any] = [
    ("shuffle", lambda: numbers(50).shuffle(seed=1)),
    ("shuffle-buffer", lambda: numbers(50).shuffle(7, seed=1)),
    ("shuffle-generator", lambda: generated(50).shuffle(7, seed=1)),
    ("shuffle-all-generator", lambda: generated(20).shuffle(70, seed=1)),
    ("shuffle-repeat-batch", lambda: numbers(10).shuffle(5, seed=1).repeat(3).batch(4)),
    ("repeat-shuffle", lambda: generated(10).repeat(3).shuffle(5, seed=1).batch(4)),
    ("shuffle-twice", lambda: numbers(20).shuffle(seed=1).shuffle(6, seed=2).take(15)),
    ("shuffle-map-threads", lambda: generated(40).shuffle(8, seed=3).map(double, 4).batch(3)),
    ("threads-prefetch", lambda: numbers(40).map(double, 3).prefetch(4).batch(3).prefetch(2)),
    ("cache-shuffle", lambda: generated(12).cache().shuffle(5, seed=1).repeat(2)),
    ("shuffle-cache", lambda: numbers(12).shuffle(5, seed=1).cache().repeat(2)),
    (
        "interleave-shuffled",
        lambda: (
            numbers(5)
            .shuffle(seed=4)
            .interleave(lambda n: numbers(6).shuffle(3, seed=int(n)), 3, 2, num_parallel_calls=2)
            .shuffle(4, seed=1)
        ),
    ),
    ("buckets-shuffled", lambda: ragged(30).shuffle(9, seed=5).bucket_by_length(len, [2, 5], 3)),
    (
        "dict-of-arrays",
        lambda: (
            Dataset.from_tensor_slices({"a": np.arange(600), "b": np.ones((600, 2))})
            .shuffle(seed=1)
            .filter(lambda e: e["a"] % 3 == 0)
        ),
    ),
]


@pytest.mark.parametrize(
    "make", [pytest.param(c[1], id=c[0]) for c in CASES + OTHERS if not c[0].startswith("skip-all")]
)
def test_a_walk_can_be_taken_up_anywhere(make: Callable[[], Dataset]) -> None:
    whole = elements(make())
    places = range(0, len(whole) + 1, max(1, len(whole) // 12))
    with make().as_numpy_iterator() as walk:
        states = {}
        for at in range(len(whole) + 1):
            if at in places:
                states[at] = json.dumps(walk.state())
            next(walk, None)
    for at, state in states.items():
        with make().as_numpy_iterator() as again:
            again.restore(json.loads(state))
            assert [plain(e) for e in again] == whole[at:], at


@pytest.mark.parametrize("make", [pytest.param(c[1], id=c[0]) for c in OTHERS])
def test_the_same_program_sees_the_same(make: Callable[[], Dataset]) -> None:
    first, second = make(), make()
    assert [elements(first), elements(first)] == [elements(second), elements(second)]


def test_a_later_walk_is_taken_up_with_its_own_order() -> None:
    def make() -> Dataset:
        return numbers(20).shuffle(seed=1)

    dataset = make()
    first, second = elements(dataset), elements(dataset)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(20))
    with dataset.as_numpy_iterator() as third:
        rest = [plain(e) for e in third]
        state = third.state()
    assert state["pass"] == 2
    with make().as_numpy_iterator() as again:
        again.restore({**state, "at": {"order": {"at": 0}, "taken": 0}})
        assert [plain(e) for e in again] == rest
    later = make()
    later.begin_at(2)
    assert elements(later) == rest


def test_without_order_each_result_comes_once_and_a_walk_can_be_taken_up() -> None:
    release = threading.Event()

    def slow_at_first(n: Any) -> Any:
        if n == 0:
            release.wait(10)
        return n

    dataset = numbers(20).map(slow_at_first, 4, deterministic=False)
    with dataset.as_numpy_iterator() as walk:
        seen = [int(next(walk)) for _ in range(5)]
        assert 0 not in seen
        state = walk.state()
        release.set()
        seen += [int(n) for n in walk]
    assert sorted(seen) == list(range(20))
    with numbers(20).map(double, 4, deterministic=False).as_numpy_iterator() as again:
        again.restore(state)
        assert sorted(seen[:5] + [int(n) // 2 for n in again]) == list(range(20))


# Shuffling


def test_a_buffer_gives_the_same_order_for_arrays_and_generators() -> None:
    for size, buffer in [(50, 7), (5, 7), (9000, 20), (1, 1), (30, 30)]:
        by_index = elements(numbers(size).shuffle(buffer, seed=3))
        assert by_index == elements(generated(size).shuffle(buffer, seed=3))
        assert sorted(by_index) == list(range(size))


def test_a_buffer_bounds_how_early_an_element_comes() -> None:
    order = np.array(elements(numbers(2000).shuffle(10, seed=0)))
    assert (order - np.arange(2000)).max() == 9
    assert elements(numbers(20).shuffle(1)) == list(range(20))


def test_shuffled_orders_are_uniform() -> None:
    dataset = numbers(4).shuffle(seed=0).repeat(3000).batch(4)
    firsts = np.array([e[0] for e in elements(dataset)])
    counts = np.bincount(firsts, minlength=4)
    assert ((counts - 750) ** 2 / 750).sum() < 16.3  # chi-square, 3 degrees, p = 0.001


def test_after_its_end_a_walk_stays_ended_and_has_a_state() -> None:
    walk = generated(3).iterator()
    assert [int(n) for n in walk] == [0, 1, 2]
    assert list(walk) == []
    again = generated(3).iterator()
    again.restore(walk.state())
    assert list(again) == []


def test_one_order_for_all_walks() -> None:
    dataset = numbers(20).shuffle(seed=1, reshuffle_each_iteration=False)
    assert elements(dataset) == elements(dataset)
    stream = generated(20).shuffle(5, seed=1, reshuffle_each_iteration=False).repeat(2)
    both = elements(stream)
    assert both[:20] == both[20:]


def test_the_seed_of_the_program_decides() -> None:
    orders = []
    for seed in (1, 1, 2):
        laminar.random.set_random_seed(seed)
        orders.append(elements(numbers(30).shuffle()))
    assert orders[0] == orders[1] != orders[2]


# Values


def test_elements_are_tensors_and_functions_get_arrays() -> None:
    seen: list[type] = []

    def look(x: Any, text: Any) -> Any:
        seen.extend([type(x), type(text)])
        return x, text

    dataset = Dataset.from_tensor_slices((np.ones((2, 3), "float32"), ["a", "b"])).map(look)
    x, text = next(iter(dataset))
    assert seen == [np.ndarray, bytes]
    assert (x.dtype, x.shape, text.dtype) == ("float32", (3,), "string")
    assert text.numpy() == b"a"


def test_source_arrays_cannot_be_changed_by_a_function() -> None:
    source = np.zeros((4, 2))

    def spoil(x: Any) -> Any:
        x += 1
        return x

    with pytest.raises(ValueError, match="read-only"):
        elements(Dataset.from_tensor_slices(source).batch(2).map(spoil))
    assert not source.any()


def test_batches_that_are_held_keep_their_values() -> None:
    source = np.arange(64 * 1000, dtype="int64").reshape(64, 1000)
    dataset = Dataset.from_tensor_slices(source).shuffle(seed=1).batch(8)
    held = [batch[:, 0] for batch in dataset.as_numpy_iterator()]  # views
    assert sorted(np.concatenate(held)) == list(range(0, 64000, 1000))
    tensors = list(dataset)
    assert sorted(np.concatenate([t.numpy()[:, 0] for t in tensors])) == list(range(0, 64000, 1000))


def test_memory_of_batches_is_used_again() -> None:
    source = np.zeros((64, 10_000), "float32")
    dataset = Dataset.from_tensor_slices(source).shuffle().batch(8)
    places = {batch.ctypes.data for batch in dataset.as_numpy_iterator()}
    assert len(places) <= 2


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: numbers(3), "int64[]"),
        (lambda: numbers(3).batch(2), "int64[?]"),
        (lambda: numbers(3).batch(2, True), "int64[2]"),
        (lambda: numbers(3).batch(2).map(lambda n: n * 1.5), "float64[?]"),
        (lambda: numbers(3).batch(2).unbatch(), "int64[]"),
        (lambda: ragged(3).padded_batch(2), "int64[?, ?]"),
        (lambda: Dataset.from_text_lines("x").batch(2), "string[?]"),
    ],
)
def test_element_spec(make: Callable[[], Dataset], expected: str) -> None:
    assert str(make().element_spec) == expected


def test_signature_of_a_generator() -> None:
    signature = (TensorSpec((None, 2), "float32"), {"id": TensorSpec((), "int64")})

    def items() -> Iterator[Any]:
        yield [[1, 2]], {"id": 7}
        yield [[1, 2], [3, 4]], {"id": 8}

    dataset = Dataset.from_generator(items, output_signature=signature)
    assert dataset.element_spec == signature
    first = next(dataset.as_numpy_iterator())
    assert first[0].dtype == "float32"
    assert elements(dataset)[1] == ([[1, 2], [3, 4]], {"id": 8})


def test_sizes() -> None:
    assert numbers(3).repeat().cardinality() == -1
    assert generated(3).cardinality() == -2
    with pytest.raises(TypeError, match="infinite"):
        len(numbers(3).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(generated(3))
    assert bool(generated(3))
    assert len(numbers(10).repeat().take(7).batch(2)) == 4


def test_reduce_and_apply() -> None:
    total = numbers(5).reduce(np.int64(0), lambda state, n: state + n)
    assert int(total) == 10
    assert numbers(5).apply(lambda d: len(d)) == 5


# Files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\r\n\nlast")
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.txt").write_bytes(b"three\n")
    return tmp_path


def test_files(folder: Path) -> None:
    names = [str(folder / f"{n}.txt") for n in "abc"]
    pattern = str(folder / "*.txt")
    assert elements(Dataset.list_files(pattern, shuffle=False)) == [n.encode() for n in names]
    assert sorted(elements(Dataset.list_files([pattern, names[0]]))) == [n.encode() for n in names]
    assert elements(Dataset.from_text_lines(names)) == [b"one", b"two", b"", b"last", b"three"]
    assert elements(Dataset.from_files(names[2])) == [b"three\n"]
    lines = Dataset.list_files(pattern, shuffle=False).interleave(Dataset.from_text_lines, 3)
    assert elements(lines) == [b"one", b"three", b"two", b"", b"last"]
    with pytest.raises(MissingFileError, match="no file matches"):
        Dataset.list_files(str(folder / "*.csv"))
    with pytest.raises(MissingFileError, match="there is no file 'x'"):
        elements(Dataset.from_text_lines("x"))


def test_records_and_taking_up_inside_a_file(folder: Path) -> None:
    paths = []
    for name in "xy":
        paths.append(folder / name)
        with RecordWriter(paths[-1]) as writer:
            for i in range(4):
                writer.write(f"{name}{i}".encode())
    dataset = Dataset.from_records(paths)
    expected = [b"x0", b"x1", b"x2", b"x3", b"y0", b"y1", b"y2", b"y3"]
    assert elements(dataset) == expected
    with dataset.as_numpy_iterator() as walk:
        for at in range(8):
            with dataset.as_numpy_iterator() as again:
                again.restore(json.loads(json.dumps(walk.state())))
                assert list(again) == expected[at:]
            next(walk)


def test_cache_in_a_file(folder: Path) -> None:
    runs: list[int] = []

    def source() -> Iterator[Any]:
        runs.append(1)
        for i in range(4):
            yield np.full((2,), i, "float32"), f"t{i}", {"k": None, "n": i}

    def make() -> Dataset:
        return Dataset.from_generator(source).cache(folder / "kept")

    first = elements(make())
    assert not list(folder.glob(".kept*"))
    again = make()
    assert elements(again) == first == elements(again)
    assert len(runs) == 1
    with again.as_numpy_iterator() as walk:
        assert next(walk)[0].dtype == "float32"
        state = walk.state()
    with make().as_numpy_iterator() as walk:
        walk.restore(state)
        assert [plain(e) for e in walk] == first[1:]
    with pytest.raises(FailedPreconditionError, match="another pipeline"):
        elements(numbers(4).cache(folder / "kept"))


def test_a_walk_left_early_leaves_no_half_file(folder: Path) -> None:
    dataset = numbers(4).cache(folder / "kept")
    for _ in dataset:
        break
    assert not list(folder.glob("*kept*"))


def test_memory_cache_asks_the_source_once() -> None:
    calls: list[int] = []

    def count(n: Any) -> Any:
        calls.append(1)
        return n

    dataset = numbers(3).map(count).cache()
    next(iter(dataset))  # not a whole pass
    assert elements(dataset) == elements(dataset) == [0, 1, 2]
    assert len(calls) == 4


def test_pipelines_written_for_tf_data() -> None:
    data = (
        Dataset.from_tensor_slices(np.arange(12))
        .filter(lambda x: x != 3, name="filter")
        .map(lambda x: x * 2, num_parallel_calls=AUTOTUNE, deterministic=None, name="map")
        .shuffle(4, seed=1, name="shuffle")
        .repeat(2, name="repeat")
        .skip(2, name="skip")
        .take(16, name="take")
        .batch(4, drop_remainder=True, num_parallel_calls=AUTOTUNE, deterministic=False, name="b")
        .prefetch(AUTOTUNE, name="prefetch")
    )
    assert [batch.shape for batch in data.as_numpy_iterator()] == [(4,)] * 4
    turns = Dataset.range(2).interleave(
        lambda x: Dataset.from_tensors(x), cycle_length=2, deterministic=True, name="i"
    )
    assert [int(x) for x in turns.as_numpy_iterator()] == [0, 1]


@pytest.mark.parametrize("dtype", ["<U3", "S3", object])
def test_text_is_bytes_whatever_array_it_comes_from(dtype: Any) -> None:
    """Rows of an array that are picked at once are not of NumPy's own strings either."""
    words = np.array(["a", "bcd", "e"], dtype)
    whole, pairs = Dataset.from_tensor_slices(words), Dataset.from_tensor_slices({"w": words})
    (first,) = whole.batch(3)
    (second,) = pairs.batch(3).map(lambda row: row["w"])
    for found in (first, second):
        assert found.dtype == "string"
        assert found.numpy().tolist() == [b"a", b"bcd", b"e"]
