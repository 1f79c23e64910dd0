"""Input pipelines on queues, from names to batches, and how they end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    Coordinator,
    FIFOQueue,
    FixedLenFeature,
    Graph,
    GraphKeys,
    QueueRunner,
    RecordReader,
    RecordWriter,
    Session,
    TextLineReader,
    add_queue_runner,
    batch,
    batch_join,
    constant,
    decode_raw,
    eager_scope,
    encode_example,
    function,
    global_variables_initializer,
    input_producer,
    limit_epochs,
    local_variables_initializer,
    match_filenames_once,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    parse_single_example,
    placeholder,
    range_input_producer,
    shuffle_batch,
    shuffle_batch_join,
    slice_input_producer,
    start_queue_runners,
    string_input_producer,
)
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    MissingFileError,
    OutOfRangeError,
    ShapeError,
)
from laminar.engine.ops.core.host import host_function
from laminar.engine.ops.math.compare import less

from .pipelines import drain, running

pytestmark = pytest.mark.usefixtures("no_thread_left")


@pytest.fixture
def graph() -> Iterator[Graph]:
    made = Graph()
    with made.as_default():
        yield made


def test_three_files_two_epochs(graph: Graph) -> None:
    names = [b"a", b"b", b"c"]
    queue = string_input_producer(names, num_epochs=2, seed=1)
    name = queue.dequeue()
    with Session(graph=graph) as session, pytest.raises(FailedPreconditionError, match="epochs"):
        session.run(graph.get_collection(GraphKeys.QUEUE_RUNNERS)[0].enqueue_ops[0])
    found = drain(graph, name)
    assert Counter(found) == dict.fromkeys(names, 2)
    assert sorted(found[:3]) == names


def test_the_order_changes_from_epoch_to_epoch(graph: Graph) -> None:
    found = drain(graph, range_input_producer(50, num_epochs=2, seed=3).dequeue())
    assert sorted(found[:50]) == sorted(found[50:]) == list(range(50))
    assert found[:50] != found[50:]
    assert found[:50] != list(range(50))


def test_without_shuffling_the_order_is_kept(graph: Graph) -> None:
    rows = input_producer(np.arange(6.0).reshape(3, 2), num_epochs=2, shuffle=False).dequeue()
    assert rows.shape == (2,)
    assert [r.tolist() for r in drain(graph, rows)] == [[0, 1], [2, 3], [4, 5]] * 2


def test_without_a_limit_it_goes_on(graph: Graph) -> None:
    number = range_input_producer(3, shuffle=False).dequeue()
    with running(graph) as (session, _):
        assert [session.run(number) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_slices_in_batches_of_one_epoch(graph: Graph) -> None:
    """One epoch of 10 samples, batches of 5: two batches with all of them; then the end."""
    x, y = np.arange(10), np.arange(10) * 1.5
    batches = batch(slice_input_producer([x, y], num_epochs=1, seed=0), 5)
    assert [b.shape for b in batches] == [(5,), (5,)]
    found = drain(graph, batches)
    assert len(found) == 2
    numbers = np.concatenate([b[0] for b in found])
    assert sorted(numbers) == list(range(10))
    np.testing.assert_array_equal(np.concatenate([b[1] for b in found]), numbers * 1.5)


def test_the_last_batch_is_lost_or_smaller(graph: Graph) -> None:
    number = range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
    assert [b.tolist() for b in drain(graph, batch(number, 3))] == [[0, 1, 2], [3, 4, 5]]
    with Graph().as_default() as other:
        number = range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
        smaller = batch(number, 3, allow_smaller_final_batch=True)
        assert smaller.shape == (None,)
        assert [len(b) for b in drain(other, smaller)] == [3, 3, 1]


def test_shuffled_batches(graph: Graph) -> None:
    number = range_input_producer(400, num_epochs=1, shuffle=False).dequeue()
    found = drain(graph, shuffle_batch(number, 10, 300, 200, num_threads=2, seed=4))
    order = np.concatenate(found)
    assert sorted(order) == list(range(400))
    assert abs(np.corrcoef(order, np.arange(400))[0, 1]) < 0.7  # 200 of 400 are mixed at a time
    assert (order != np.arange(400)).mean() > 0.9


def test_examples_are_dicts_where_they_are_given_so(graph: Graph) -> None:
    x, y = slice_input_producer([np.arange(4), np.arange(4.0)], num_epochs=1, shuffle=False)
    (first, second) = drain(graph, batch({"x": x, "y": y}, 2))
    assert first["x"].tolist() == [0, 1]
    assert second["y"].tolist() == [2.0, 3.0]


def test_unequal_lengths_are_padded(graph: Graph) -> None:
    lengths = range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    from laminar.engine.ops.array.creation import arange

    (found,) = drain(graph, batch(arange(lengths), 4, dynamic_pad=True))
    assert found.tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 2]]


def kept(number: Any) -> Any:
    return less(number % 4, constant(2))


EVENS: list[tuple[str, Callable[[Any], Any]]] = [
    ("batch", lambda n: maybe_batch([n], kept(n), 5)),
    ("shuffle_batch", lambda n: maybe_shuffle_batch([n], 5, 50, 10, kept(n))),
    ("batch_join", lambda n: maybe_batch_join([[n]], kept(n), 5)),
    ("shuffle_batch_join", lambda n: maybe_shuffle_batch_join([[n]], 5, 50, 10, kept(n))),
]


@pytest.mark.parametrize(("name", "make"), EVENS)
def test_only_some_examples(graph: Graph, name: str, make: Callable[[Any], Any]) -> None:
    number = range_input_producer(20, num_epochs=1, shuffle=False).dequeue()
    found = np.concatenate([b[0] if isinstance(b, list) else b for b in drain(graph, make(number))])
    assert sorted(found) == [n for n in range(20) if n % 4 < 2]


def test_only_some_of_many_examples(graph: Graph) -> None:
    queue = input_producer(np.arange(12).reshape(3, 4), num_epochs=1, shuffle=False)
    row = queue.dequeue()
    flags = constant([True, False, False, True])
    found = drain(graph, maybe_batch(row, flags, 2, enqueue_many=True))
    assert [b.tolist() for b in found] == [[0, 3], [4, 7], [8, 11]]


def test_joined_sources(graph: Graph) -> None:
    ones = range_input_producer(10, num_epochs=1, shuffle=False, name="a").dequeue()
    others = range_input_producer(10, num_epochs=1, shuffle=False, name="b").dequeue() + 100
    found = np.concatenate(drain(graph, batch_join([[ones], [others]], 5)))
    assert sorted(found) == [*range(10), *range(100, 110)]
    with Graph().as_default() as other:
        ones = range_input_producer(20, num_epochs=1, shuffle=False).dequeue()
        found = np.concatenate(drain(other, shuffle_batch_join([[ones]], 5, 30, 10, seed=1)))
        assert sorted(found) == list(range(20))


def write_digits(folder: Path, files: int, each: int) -> list[str]:
    paths = []
    for i in range(files):
        paths.append(str(folder / f"part-{i}.rec"))
        with RecordWriter(paths[-1]) as writer:
            for j in range(each):
                label = i * each + j
                pixels = np.full(4, label % 256, np.uint8).tobytes()
                writer.write(encode_example({"image": pixels, "label": label}))
    return paths


def test_the_whole_pipeline_ends_by_itself(tmp_path: Path, graph: Graph) -> None:
    """Two record files, two epochs: each sample comes twice, and every thread ends."""
    write_digits(tmp_path, 2, 20)
    files = match_filenames_once(str(tmp_path / "*.rec"))
    names = string_input_producer(files.initialized_value(), num_epochs=2, seed=0)
    _, record = RecordReader().read(names)
    parsed = parse_single_example(
        record,
        {"image": FixedLenFeature((), "string"), "label": FixedLenFeature((), "int64")},
    )
    image = decode_raw(parsed["image"], "uint8")
    images, labels = shuffle_batch(
        [image, parsed["label"]], 8, 100, 20, num_threads=2, shapes=[(4,), ()], seed=0
    )
    assert images.shape == (8, 4)
    with graph.as_default():
        init = local_variables_initializer()
    seen: list[int] = []
    with Session(graph=graph) as session:
        session.run(init)
        coord = Coordinator()
        threads = start_queue_runners(session, coord)
        try:
            while not coord.should_stop():
                pixels, numbers = session.run([images, labels])
                assert (pixels == numbers[:, None] % 256).all()
                seen += numbers.tolist()
        except OutOfRangeError as error:
            coord.request_stop(error)
        coord.join(threads)
    assert len(seen) == 80
    assert Counter(seen) == dict.fromkeys(range(40), 2)


def test_three_files_of_ten_lines_in_batches_of_four(tmp_path: Path, graph: Graph) -> None:
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("".join(f"{i}.{j}\n" for j in range(10)))
    names = string_input_producer(
        [str(tmp_path / f"{i}.txt") for i in range(3)], num_epochs=1, shuffle=False
    )
    _, line = TextLineReader().read(names)
    found = drain(graph, batch(line, 4, allow_smaller_final_batch=True))
    assert [len(b) for b in found] == [4] * 7 + [2]
    lines = np.concatenate(found).tolist()
    assert lines == [f"{i}.{j}".encode() for i in range(3) for j in range(10)]


def test_a_failure_in_a_runner_is_raised_by_join(tmp_path: Path, graph: Graph) -> None:
    names = string_input_producer([str(tmp_path / "none")], num_epochs=1)
    _, line = TextLineReader().read(names)
    lines = batch(line, 2)
    init = local_variables_initializer()
    with Session(graph=graph) as session:
        session.run(init)
        coord = Coordinator()
        threads = start_queue_runners(session, coord)
        with pytest.raises(OutOfRangeError):
            session.run(lines)
        with pytest.raises(MissingFileError, match="none"):
            coord.join(threads)


def test_a_runner_of_two_operations_has_three_threads(graph: Graph) -> None:
    queue = FIFOQueue(3, "int32", [()])
    runner = QueueRunner(queue, [queue.enqueue(1), queue.enqueue(2)])
    add_queue_runner(runner)
    with Session(graph=graph) as session:
        coord = Coordinator()
        threads = start_queue_runners(session, coord)
        assert len(threads) == 3
        assert runner.create_threads(session, coord) == []
        time.sleep(0.05)  # both wait for room
        coord.request_stop()
        coord.join(threads)
        assert not any(thread.is_alive() for thread in threads)


def test_a_runner_that_waits_on_a_queue_nobody_closes_stops_too(graph: Graph) -> None:
    source = FIFOQueue(3, "int32", [()])
    batches = batch(source.dequeue(), 2)
    with Session(graph=graph) as session:
        coord = Coordinator()
        threads = start_queue_runners(session, coord)
        time.sleep(0.05)  # the runner waits for the first element
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=20)
        with pytest.raises(OutOfRangeError):
            session.run(batches)


def test_a_runner_without_a_coordinator_keeps_its_errors(graph: Graph) -> None:
    queue = FIFOQueue(3, "int32", [()])
    bad = placeholder("int32", ())
    runner = QueueRunner(queue, [queue.enqueue(bad)])
    with Session(graph=graph) as session:
        (thread,) = runner.create_threads(session, start=True)
        thread.join(20)
        (error,) = runner.exceptions_raised
        assert isinstance(error, InvalidArgumentError)
        made = runner.create_threads(session)
        with pytest.raises(FailedPreconditionError, match="run already"):
            runner.create_threads(session)
        for thread in made:
            thread.start()
            thread.join(20)


def test_prefetching_overlaps_reading_and_computing(graph: Graph) -> None:
    """The next example is read while a step lasts."""
    begun = [threading.Event() for _ in range(20)]

    def read_one(x: Any) -> tuple[Any]:
        begun[int(x)].set()
        return (x,)

    number = range_input_producer(20, num_epochs=1, shuffle=False).dequeue()
    (read,) = host_function(read_one, [number], [number.spec])
    one = batch(read, 1)
    with running(graph) as (session, _):
        for i in range(20):
            session.run(one)
            assert begun[min(i + 1, 19)].wait(30)


def test_limit_epochs(graph: Graph) -> None:
    limited = limit_epochs(constant([1, 2]), 2)
    init = local_variables_initializer()
    with Session(graph=graph) as session:
        session.run(init)
        for _ in range(2):
            assert session.run(limited).tolist() == [1, 2]
        with pytest.raises(OutOfRangeError, match="limit 2"):
            session.run(limited)
    assert not global_variables_initializer().control_inputs


def test_mistakes(graph: Graph) -> None:
    mistakes: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: limit_epochs([1], 0), InvalidArgumentError, "at least 1"),
        (lambda: string_input_producer([]), InvalidArgumentError, "no strings"),
        (lambda: input_producer(3), ShapeError, "scalar"),
        (lambda: input_producer([1, 2], element_shape=(3,)), ShapeError, "element_shape"),
        (lambda: slice_input_producer([]), InvalidArgumentError, "no tensors"),
        (lambda: slice_input_producer([[1], [1, 2]]), ShapeError, "number of rows"),
        (lambda: batch([1], 0), InvalidArgumentError, "batch_size"),
        (lambda: batch([1], 2, num_threads=0), InvalidArgumentError, "num_threads"),
        (lambda: batch([], 2), InvalidArgumentError, "at least one"),
        (lambda: batch({}, 2), InvalidArgumentError, "no tensors"),
        (lambda: batch([1], 2, shapes=[(), ()]), InvalidArgumentError, "2 shapes"),
        (lambda: batch([1], 2, enqueue_many=True), ShapeError, "first axis"),
        (lambda: batch_join([], 2), InvalidArgumentError, "no tensors"),
        (lambda: batch_join([[1], [1, 2]], 2), InvalidArgumentError, "equally many"),
        (lambda: batch_join([[1], [1.0]], 2), InvalidArgumentError, "same types"),
        (lambda: batch_join([{"a": 1}, {"b": 1}], 2), InvalidArgumentError, "the keys"),
        (lambda: maybe_batch([1], [True], 2), ShapeError, "keep is a scalar"),
        (lambda: QueueRunner(FIFOQueue(1, "int32"), []), InvalidArgumentError, "enqueue op"),
    ]
    for call, kind, text in mistakes:
        with pytest.raises(kind, match=text):
            call()
    with eager_scope():
        queue = FIFOQueue(3, "int32")
        nothing = queue.enqueue(1)
        with pytest.raises(InvalidArgumentError, match="enqueue operations"):
            QueueRunner(queue, [nothing])

    @function
    def traced(x: Any) -> Any:
        return batch([x], 2)

    with eager_scope(), pytest.raises(FailedPreconditionError, match="Session graph"):
        traced(constant(1))


def test_without_a_session_there_is_nothing_to_start() -> None:
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match="session"):
        start_queue_runners()


def test_the_default_session_is_used(graph: Graph) -> None:
    number = range_input_producer(3, shuffle=False).dequeue()
    with Session(graph=graph) as session:
        coord = Coordinator()
        threads = start_queue_runners(coord=coord)
        assert session.run(number) == 0
        coord.request_stop()
        coord.join(threads)
    assert not any(isinstance(t, threading.Thread) and t.is_alive() for t in threads)


def test_what_is_listed_is_a_runner() -> None:
    with pytest.raises(TypeError, match="add_queue_runner: expected a QueueRunner, got 1"):
        add_queue_runner(1)  # type: ignore[arg-type]  # no runner
