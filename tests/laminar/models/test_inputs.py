"""What fit, evaluate and predict take: each kind of data gives the same training."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, config, layers, ops
from laminar.datasets import Dataset
from laminar.engine.errors import (
    DTypeError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
    UnimplementedError,
)
from laminar.training import prefetch
from laminar.utils import PyDataset

from .inputs import ARRAYS, Endless, Numbered, W, X, Y, endless, linear, sliced

pytestmark = pytest.mark.usefixtures("nothing_is_left")


class Frame:
    """As much of a pandas frame as is looked at."""

    def __init__(self, values: Any, dtypes: Any = None) -> None:
        self._values = values
        self.dtypes = dtypes if dtypes is not None else [values.dtype] * values.shape[-1]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def to_numpy(self, dtype: Any = None) -> Any:
        return self._values if dtype is None else self._values.astype(dtype)


class Loader:
    """As a torch DataLoader: walked anew for each epoch, yields lists, has a length."""

    def __len__(self) -> int:
        return 4

    def __iter__(self) -> Iterator[Any]:
        for i in range(0, 40, 10):
            yield [X[i : i + 10], Y[i : i + 10], W[i : i + 10]]


KINDS: list[Any] = [
    ("tensors", lambda: ((laminar.ops.array(X), laminar.ops.array(Y)), {"sample_weight": W})),
    ("frames", lambda: ((Frame(X), Frame(Y)), {"sample_weight": Frame(W[:, None][:, 0])})),
    ("mixed-frame", lambda: ((Frame(X.astype(object), [X.dtype] * 3), Y), {"sample_weight": W})),
    ("float64", lambda: ((X.astype("float64"), Y.tolist()), {"sample_weight": W})),
    ("memmap", lambda: ((X.view(np.memmap), Y), {"sample_weight": W})),
    ("generator", lambda: ((endless(),), {"steps_per_epoch": 4})),
    ("loader", lambda: ((Loader(),), {})),
    ("list-of-batches", lambda: ((iter(list(Loader()) * 3),), {"steps_per_epoch": 4})),
    ("dataset", lambda: ((sliced().batch(10),), {})),
    ("dataset-unknown-size", lambda: ((sliced().filter(lambda *_: True).batch(10),), {})),
    ("dataset-endless", lambda: ((sliced().repeat().batch(10),), {"steps_per_epoch": 4})),
    ("dataset-prefetch", lambda: ((sliced().map(lambda *e: e, 2).batch(10).prefetch(),), {})),
    ("py-dataset", lambda: ((Numbered(),), {"shuffle": False})),
    ("py-dataset-threads", lambda: ((Numbered(workers=3),), {"shuffle": False})),
    (
        "py-dataset-processes",
        lambda: ((Numbered(workers=2, use_multiprocessing=True),), {"shuffle": False}),
    ),
]


@pytest.mark.parametrize("kind", [pytest.param(k[1], id=k[0]) for k in KINDS])
def test_kinds_of_data(kind: Callable[[], tuple[Any, dict[str, Any]]]) -> None:
    data, options = kind()
    if len(data) == 2:
        options = ARRAYS | options
    model, reference = linear(), linear()
    fit: Any = model.fit
    history = fit(*data, epochs=3, verbose=0, **options)
    expected = reference.fit(X, Y, sample_weight=W, epochs=3, verbose=0, **ARRAYS)
    np.testing.assert_allclose(history.history["loss"], expected.history["loss"], rtol=1e-6)
    for a, b in zip(model.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


VALIDATION: list[Any] = [
    ("tuple", lambda: (X, Y, W), {}),
    ("frames", lambda: (Frame(X), Frame(Y), W), {}),
    ("dataset", lambda: sliced().batch(16), {}),
    ("dataset-endless", lambda: sliced().batch(10).repeat(), {"validation_steps": 4}),
    ("generator", lambda: endless(), {"validation_steps": 4}),
    ("py-dataset", lambda: Numbered(workers=2), {}),
    ("loader", lambda: Loader(), {}),
]


@pytest.mark.parametrize(("make", "options"), [pytest.param(*v[1:], id=v[0]) for v in VALIDATION])
def test_kinds_of_validation_data(make: Callable[[], Any], options: dict[str, Any]) -> None:
    model, reference = linear(), linear()
    found = model.fit(X, Y, validation_data=make(), epochs=2, verbose=0, **ARRAYS, **options)
    expected = reference.fit(X, Y, validation_data=(X, Y, W), epochs=2, verbose=0, **ARRAYS)
    np.testing.assert_allclose(found.history["val_loss"], expected.history["val_loss"], rtol=1e-5)


def test_evaluate_and_predict() -> None:
    model = linear()
    loss = model.evaluate(X, Y, verbose=0)
    pairs = Dataset.from_tensor_slices((X, Y)).batch(7)
    assert model.evaluate(pairs, verbose=0) == pytest.approx(loss, rel=1e-5)
    assert model.evaluate(pairs.repeat(), steps=6, verbose=0) == pytest.approx(loss, rel=1e-5)
    expected = model.predict(X, verbose=0)
    only_x = Dataset.from_tensor_slices(X).batch(7)
    for data in (only_x, pairs, Numbered(), Numbered(workers=2), Loader(), Frame(X)):
        np.testing.assert_allclose(model.predict(data, verbose=0), expected, rtol=1e-6)


def test_class_weight_goes_with_a_dataset() -> None:
    y = (Y > 0).astype("int32")
    weights = {0: 1.0, 1: 3.0}
    model, reference = linear(), linear()
    data = Dataset.from_tensor_slices((X, y)).batch(10)
    model.fit(data, class_weight=weights, verbose=0)
    reference.fit(X, y, class_weight=weights, verbose=0, **ARRAYS)
    np.testing.assert_allclose(model.get_weights()[0], reference.get_weights()[0], rtol=1e-6)


# Working ahead


def slow(seconds: float, count: int = 30) -> Iterator[Any]:
    for _ in range(count):
        time.sleep(seconds)
        yield X[:10], Y[:10]


class Steps(callbacks.Callback):
    """Which threads there are; while one works ahead, a step lasts until the next batch is begun.

    Attributes:
        begun: an event for each batch.
        ahead: how many steps waited so.
    """

    def __init__(self, count: int = 0) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.begun = [threading.Event() for _ in range(count)]
        self.ahead = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        names = {t.name for t in threading.enumerate()}
        self.names |= names
        if "laminar-prefetch" in names and batch + 1 < len(self.begun):
            assert self.begun[batch + 1].wait(30)
            self.ahead += 1


def test_slow_data_is_made_ahead_of_the_step() -> None:
    model = linear()
    model.fit(X, Y, verbose=0)  # compiled
    step = Steps(60)

    def told() -> Iterator[Any]:
        for event, batch in zip(step.begun, slow(0.01, 60), strict=True):
            event.set()
            yield batch

    model.fit(told(), callbacks=step, verbose=0)
    assert step.ahead > 40


def test_quick_data_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick by the clock of the thread itself: another process may have its core for a while."""
    monkeypatch.setattr(prefetch, "time", SimpleNamespace(perf_counter=time.thread_time))
    model = linear()
    model.fit(X, Y, verbose=0)
    step = Steps()
    model.fit(endless(), steps_per_epoch=50, callbacks=step, verbose=0)
    model.fit(sliced().batch(10), callbacks=step, verbose=0)
    assert "laminar-prefetch" not in step.names


def test_no_batch_is_taken_that_fit_does_not_need() -> None:
    data = slow(0.003)
    linear().fit(data, steps_per_epoch=9, epochs=2, verbose=0)
    assert len(list(data)) == 30 - 18


def test_an_error_in_a_thread_is_raised_by_fit() -> None:
    def broken() -> Iterator[Any]:
        yield from slow(0.005, 12)
        raise ZeroDivisionError("late")

    with pytest.raises(ZeroDivisionError, match="late"):
        linear().fit(broken(), verbose=0)


def test_waiting_for_data_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    history = linear().fit(slow(0.02, 10), verbose=2)
    assert "waiting on data" in capsys.readouterr().out
    (share,) = history.waiting_on_data
    assert 0.2 < share <= 1
    history = linear().fit(X, Y, verbose=2, epochs=2)
    assert "waiting on data" not in capsys.readouterr().out
    assert history.waiting_on_data == [0, 0]


# Resuming: the place in the data


def test_a_place_in_a_dataset_is_found_again() -> None:
    from laminar.training.data import Epochs, make_data

    def passes(steps: int | None = None) -> Epochs:
        data = Dataset.from_tensor_slices(np.arange(20)).shuffle(seed=1).batch(3)
        return Epochs(make_data(data.map(lambda n: n * 2)), steps)

    for steps in (None, 4):
        walk = passes(steps)
        epochs = [[b.numpy().tolist() for b in walk.epoch()] for _ in range(4)]
        for epoch, step in ((0, 2), (2, 0), (2, 3)):
            walk = passes(steps)
            for _ in range(epoch):
                for _ in walk.epoch():
                    pass
            running = walk.epoch()
            for _ in range(step):
                next(running)
            position = walk.position
            walk.close()
            again = passes(steps)
            again.seek(position, inside=step > 0)
            rest = [[b.numpy().tolist() for b in again.epoch()] for _ in range(2)]
            if steps is None or step == 0:
                assert rest[0] == epochs[epoch][step:]
                assert rest[1] == epochs[epoch + 1]
            again.close()


def delayed(*element: Any) -> Any:
    time.sleep(0.0003)
    return element


class StoppedError(Exception):
    pass


class BreakAfter(callbacks.Callback):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps -= 1
        if not self.steps:
            raise StoppedError


RESUMED: list[Any] = [
    ("dataset", lambda: sliced().shuffle(9, seed=3).map(lambda *e: e, 2).batch(7), None),
    ("dataset-endless", lambda: sliced().shuffle(seed=3).repeat().batch(7), 6),
    (
        "dataset-prefetch",
        lambda: sliced().filter(lambda *_: True).shuffle(9).repeat().batch(7).prefetch(),
        4,
    ),
    ("dataset-slow", lambda: sliced().shuffle(9).map(delayed).repeat().batch(7), 10),
    ("py-dataset-threads", lambda: Numbered(workers=2), None),
    ("py-dataset-processes", lambda: Numbered(workers=2, use_multiprocessing=True), 3),
]
# Passes of 4 batches in epochs of 3: each other one ends with the data, which is told.
ENDS = pytest.mark.filterwarnings("ignore:fit. the data ended after 1 batches")
MARKS = {"py-dataset-processes": [ENDS]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "steps"),
    [pytest.param(*r[1:], id=r[0], marks=MARKS.get(r[0], [])) for r in RESUMED],
)
def test_training_goes_on_where_it_was_interrupted(
    make: Callable[[], Any], steps: int | None, tmp_path: Path
) -> None:
    def train(*extra: callbacks.Callback) -> laminar.Sequential:
        laminar.random.set_random_seed(3)
        model = linear()
        backup = callbacks.BackupAndRestore(tmp_path, save_freq=1)
        given = [*extra, backup] if extra else []
        model.fit(make(), epochs=4, steps_per_epoch=steps, callbacks=given, verbose=0)
        return model

    expected = train()
    for after in (2, 5, 3):
        with pytest.raises(StoppedError):
            train(BreakAfter(after))
    found = train(BreakAfter(-1))
    for a, b in zip(found.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


# Mistakes


def test_examples_instead_of_batches() -> None:
    with pytest.raises(ShapeError, match="the elements of a Dataset must be batches") as caught:
        linear().fit(Dataset.from_tensor_slices((np.arange(3), np.arange(3))), verbose=0)
    assert "dataset.batch(32)" in str(caught.value)


MISTAKES: list[Any] = [
    (lambda m: m.fit(sliced().batch(10), Y), InvalidArgumentError, "y cannot be given"),
    (lambda m: m.fit(sliced().batch(10).take(0)), OutOfRangeError, "ended after 0"),
    (
        lambda m: m.fit(sliced().batch(10), validation_split=0.2),
        InvalidArgumentError,
        "needs arrays",
    ),
    (lambda m: m.fit(PyDataset()), UnimplementedError, "neither __len__ nor num_batches"),
    (lambda m: m.fit(lambda: iter(())), InvalidArgumentError, "x is a function"),
    (lambda m: m.fit(iter([(X, Y, W, W)])), InvalidArgumentError, "got 4 parts"),
    (lambda m: m.fit(iter([(X, Y[:3])])), InvalidArgumentError, "same number of examples"),
    (lambda m: m.fit(iter([(X[:0], Y[:0])])), InvalidArgumentError, "a batch is empty"),
    (lambda m: m.fit(Frame(np.array([["a", 1]], object)), Y[:1]), DTypeError, "expected numbers"),
    (
        lambda m: m.fit(sliced().batch(10).repeat(), verbose=0),
        InvalidArgumentError,
        "fit: the data never ends, and steps_per_epoch is not given",
    ),
    (
        lambda m: m.fit(X, Y, validation_data=sliced().batch(10).repeat(), verbose=0),
        InvalidArgumentError,
        "fit: validation_data: the data never ends, and validation_steps is not given",
    ),
    (lambda m: m.evaluate(sliced().batch(9).repeat()), InvalidArgumentError, "evaluate: .* steps"),
    (lambda m: m.predict(sliced().batch(9).repeat()), InvalidArgumentError, "predict: .* steps"),
    (lambda m: m.fit(Endless()), InvalidArgumentError, "the data never ends"),
    (lambda m: PyDataset(workers=-1), InvalidArgumentError, "workers must be"),
    (lambda m: PyDataset(timeout=0), InvalidArgumentError, "timeout must be"),
    (lambda m: PyDataset(max_queue_size=-1), InvalidArgumentError, "max_queue_size must be"),
]


@pytest.mark.parametrize(("act", "kind", "message"), MISTAKES)
def test_mistakes(act: Callable[[Any], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        act(linear())


# Other libraries


def test_torch_loader() -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    model, reference = linear(), linear()
    loader = torch.utils.data.DataLoader(data, batch_size=10, num_workers=2)
    model.fit(loader, epochs=2, verbose=0)
    reference.fit(X, Y, epochs=2, verbose=0, **ARRAYS)
    np.testing.assert_allclose(model.get_weights()[0], reference.get_weights()[0], rtol=1e-6)
    assert model.predict(loader, verbose=0).shape == (40, 1)


def test_pandas_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    frame["d"] = (X[:, 0] > 0).astype(int)
    frame["e"] = X[:, 0] > 0
    label = pandas.Series(Y[:, 0])
    model = laminar.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(frame, label, sample_weight=pandas.Series(W), verbose=0)
    assert model.predict(frame, verbose=0).shape == (40, 1)
    with pytest.raises(DTypeError, match="expected numbers"):
        model.fit(pandas.DataFrame({"t": ["x", 1]}), label[:2], verbose=0)


def test_the_default_float_type_is_what_models_get() -> None:
    assert config.floatx() == "float32"
    model = linear()
    model.fit(Dataset.from_tensor_slices((X.astype("float64"), Y)).batch(8), verbose=0)
    assert model.get_weights()[0].dtype == "float32"


class Contrastive(laminar.Model):
    """Two views of each example: a batch has twice as many rows as labels."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with laminar.GradientTape() as tape:
            both = ops.reshape(self(x), (-1, 2))
            loss = ops.mean((ops.mean(both, axis=1) - y) ** 2)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(grads, self.trainable_variables)
        return {"loss": loss}


@pytest.mark.parametrize("eager", [False, True])
def test_a_step_of_ones_own_knows_how_the_parts_of_a_batch_belong_together(eager: bool) -> None:
    x, y = np.ones((8, 3), "float32"), np.zeros(4, "float32")
    model = Contrastive()
    model.compile("sgd", run_eagerly=eager)
    first = abs(float(model(x)[0, 0]))
    losses = model.fit(iter([(x, y)] * 3), steps_per_epoch=1, epochs=3, verbose=0).history["loss"]
    np.testing.assert_allclose(losses[0], first**2, rtol=1e-5)
    assert losses[2] < losses[0]
    with pytest.raises(InvalidArgumentError, match="a batch is empty"):
        model.fit(iter([(x, y[:0])]), verbose=0)
    with pytest.raises(InvalidArgumentError, match="same number of examples"):
        linear().fit(iter([(x, y)]), verbose=0)
