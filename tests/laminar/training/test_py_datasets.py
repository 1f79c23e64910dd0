"""A PyDataset as data: epochs, threads and processes that make its batches, and how they end."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks
from laminar.engine.errors import (
    AbortedError,
    DeadlineExceededError,
    ShapeError,
)
from laminar.utils import PyDataset, Sequence

from ..models.inputs import Endless, Numbered, endless, linear

pytestmark = pytest.mark.usefixtures("nothing_is_left")


class Told(Numbered):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.told: list[str] = []
        self.asked: list[int] = []

    def __getitem__(self, index: int) -> Any:
        self.asked.append(index)
        return super().__getitem__(index)

    def on_epoch_begin(self) -> None:
        self.told.append("begin")

    def on_epoch_end(self) -> None:
        self.told.append("end")


def test_a_py_dataset_is_told_of_epochs_and_shuffled() -> None:
    data = Told()
    linear().fit(data, epochs=8, verbose=0)
    assert data.told == ["begin", "end"] * 8
    orders = [data.asked[i : i + 4] for i in range(0, 32, 4)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len({tuple(order) for order in orders}) > 2


def test_sequence_is_its_older_name() -> None:
    assert Sequence is PyDataset


def test_a_py_dataset_without_end() -> None:
    model, reference = linear(), linear()
    model.fit(Endless(workers=2), epochs=2, steps_per_epoch=6, verbose=0)
    reference.fit(endless(), epochs=2, steps_per_epoch=6, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], reference.get_weights()[0], rtol=1e-6)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_queue_of_no_length(workers: int) -> None:
    model, reference = linear(), linear()
    model.predict(Numbered(workers=workers, max_queue_size=0), verbose=0)
    np.testing.assert_array_equal(
        model.predict(Numbered(workers=workers, max_queue_size=0), verbose=0),
        reference.predict(Numbered(), verbose=0),
    )


class Random(PyDataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return np.random.normal(size=(2, 3)).astype("float32"), np.full((2, 1), index, "float32")


def test_random_numbers_of_processes_do_not_repeat_nor_depend_on_their_number() -> None:
    outputs = []
    for workers in (1, 3):
        laminar.random.set_random_seed(1)
        model = linear()
        data = Random(workers=workers, use_multiprocessing=True)
        outputs.append(model.predict(data, verbose=0))
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert len(np.unique(outputs[0])) == 12


class Failing(Numbered):
    def __init__(self, how: Callable[[], Any], **options: Any) -> None:
        super().__init__(**options)
        self.how = how

    def __getitem__(self, index: int) -> Any:
        if index == 2:
            self.how()
        return super().__getitem__(index)


class OwnError(Exception):
    pass


def divide() -> None:
    1 / 0  # noqa: B018  # raises


def own() -> None:
    raise OwnError("mine")


def ours() -> None:
    raise ShapeError("wrong shape", remedy="another one")


@pytest.mark.parametrize(
    ("options", "how", "kind", "message"),
    [
        ({"workers": 1}, divide, ZeroDivisionError, "division by zero"),
        ({"workers": 3}, divide, ZeroDivisionError, "division by zero"),
        ({"workers": 2, "use_multiprocessing": True}, divide, ZeroDivisionError, "by zero"),
        ({"workers": 2, "use_multiprocessing": True}, own, AbortedError, "OwnError: mine"),
        ({"workers": 2, "use_multiprocessing": True}, ours, ShapeError, "wrong shape"),
    ],
)
def test_errors_of_workers_come_back(
    options: Any, how: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    data = Failing(how, **options)
    with pytest.raises(kind, match=message) as caught:
        linear().fit(data, verbose=0, shuffle=False)
    if options.get("use_multiprocessing"):
        notes = "\n".join(caught.value.__notes__)
        assert "in a worker process, in batch 2" in notes
        assert f"in {how.__name__}" in notes


def test_a_worker_that_dies_is_noticed() -> None:
    data = Failing(lambda: os._exit(3), workers=2, use_multiprocessing=True)
    with pytest.raises(AbortedError, match=r"exit status 3\) while it made batch 2"):
        linear().fit(data, verbose=0, shuffle=False)
    data = Failing(lambda: os.kill(os.getpid(), 9), workers=2, use_multiprocessing=True)
    with pytest.raises(AbortedError, match="signal SIGKILL"):
        linear().fit(data, verbose=0, shuffle=False)


def test_an_interrupt_while_workers_are_forked_is_not_lost() -> None:
    left = [signal.SIGINT]

    def interrupt() -> None:  # it cannot be taken off again, and so acts once
        if left:
            signal.raise_signal(left.pop())

    os.register_at_fork(before=interrupt)
    data = Numbered(workers=2, use_multiprocessing=True)
    with pytest.raises(KeyboardInterrupt):
        linear().fit(data, verbose=0)
    assert not left
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not multiprocessing.active_children()
    linear().fit(data, verbose=0)


def test_a_worker_that_hangs_is_noticed() -> None:
    data = Failing(lambda: time.sleep(60), workers=2, use_multiprocessing=True, timeout=1.5)
    with pytest.raises(DeadlineExceededError, match="batch 2 was not ready after 1.5 s"):
        linear().fit(data, verbose=0, shuffle=False)
    release = threading.Event()
    data = Failing(lambda: release.wait(3), workers=2, timeout=1.0)
    with pytest.raises(DeadlineExceededError, match="batch 2"):
        linear().fit(data, verbose=0, shuffle=False)


def test_large_batches_pass_through_processes() -> None:
    class Large(PyDataset):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> Any:
            return {"a": np.full((4, 100_000), index, "float32"), "b": np.array(["x"] * 4)}

    with laminar_data(Large(workers=2, use_multiprocessing=True, max_queue_size=2)) as batches:
        for index, batch in enumerate(batches):
            assert batch["a"].shape == (4, 100_000)
            assert float(batch["a"][3, 99_999]) == index
            assert batch["b"].dtype == "string"
    assert index == 4


def laminar_data(data: Any) -> Any:
    from laminar.training.data import Epochs, make_data

    class Walk:
        def __enter__(self) -> Any:
            self.passes = Epochs(make_data(data, who="predict"))
            return self.passes.epoch()

        def __exit__(self, *_: Any) -> None:
            self.passes.close()

    return Walk()


def test_leaving_early_ends_everything() -> None:
    class Stop(callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                self.model.stop_training = True

    both: list[dict[str, Any]] = [{"workers": 3}, {"workers": 2, "use_multiprocessing": True}]
    for options in both:
        linear().fit(Numbered(**options), epochs=3, callbacks=Stop(), verbose=0)

    class Interrupt(callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise KeyboardInterrupt

    for options in both:
        with pytest.raises(KeyboardInterrupt):
            linear().fit(Numbered(**options), callbacks=Interrupt(), verbose=0)


def test_a_py_dataset_is_gone_through_to_its_end() -> None:
    class Three(PyDataset):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return index

    class Endless(PyDataset):
        def __getitem__(self, index: int) -> Any:
            return index

    assert list(Three()) == [0, 1, 2]
    assert list(itertools.islice(Endless(), 5)) == [0, 1, 2, 3, 4]
