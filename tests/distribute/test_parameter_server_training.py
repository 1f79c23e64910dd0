"""ParameterServer: models that are trained by workers, with their weights on servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, layers, ops, optimizers
from laminar.distribute import Coordinator, ParameterServer
from laminar.distribute.serving_tasks import Beats, end_tasks, serve_until_end
from laminar.engine.errors import (
    InvalidArgumentError,
    UnavailableError,
    UnimplementedError,
)
from laminar.training.server_step import ServerStep
from laminar.tree import flatten
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster

rng = np.random.default_rng(0)
X = rng.normal(size=(53, 6)).astype("float32")
WORDS = rng.integers(1, 40, (53, 5)) * (rng.uniform(size=(53, 5)) < 0.7)
Y = rng.integers(0, 3, 53)
TAGS = rng.integers(0, 3, (53, 5))
W = rng.uniform(size=53).astype("float32")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"ps": 2, "worker": 2}) as found:
        yield found


def dense(**options: Any) -> Any:
    laminar.set_random_seed(1)
    return laminar.Sequential(
        [
            layers.Input((6,)),
            layers.Dense(8, activation="tanh", **options),
            layers.Dense(3, activation="softmax"),
        ]
    )


def words(length: int | None = 5) -> Any:
    """Masks, an embedding, a loss for each word."""
    laminar.set_random_seed(1)
    return laminar.Sequential(
        [
            layers.Input((length,), dtype="int32"),
            layers.Embedding(40, 6, mask_zero=True),
            layers.LSTM(4),
            layers.Dense(3, activation="softmax"),
        ]
    )


class Reporting(laminar.Model):
    """Two outputs, a penalty, and a metric of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = layers.Dense(4, activity_regularizer="l2")
        self.out = layers.Dense(3)
        self.seen = laminar.metrics.Mean(name="seen")

    def call(self, x: Any) -> Any:
        hidden = self.hidden(x)
        self.add_metric(ops.mean(hidden), name="spread")
        self.seen.update_state(hidden)
        return {"classes": self.out(hidden), "hidden": hidden}


def reporting() -> Any:
    laminar.set_random_seed(1)
    return Reporting()


def tagged() -> Any:
    """A loss for each word that is there, of which shares have other numbers."""
    laminar.set_random_seed(1)
    return laminar.Sequential(
        [
            layers.Input((5,), dtype="int32"),
            layers.Embedding(40, 6, mask_zero=True),
            layers.Dense(3, activation="softmax", kernel_regularizer="l2"),
        ]
    )


def entropy(reduction: Any) -> Any:
    return laminar.losses.SparseCategoricalCrossentropy(reduction=reduction)


LOSS = "sparse_categorical_crossentropy"
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any], dict[str, Any]]] = {
    "adam": (dense, {"optimizer": "adam", "metrics": ["accuracy"]}, {"sample_weight": W}),
    "regularized": (lambda: dense(kernel_regularizer="l2"), {"optimizer": "sgd"}, {}),
    "words": (words, {"optimizer": "adam", "weighted_metrics": ["accuracy"]}, {"x": WORDS}),
    "summed": (
        lambda: dense(kernel_regularizer="l2", activity_regularizer="l2"),
        {"optimizer": lambda: optimizers.SGD(0.001, momentum=0.9), "loss": entropy("sum")},
        {"class_weight": {0: 1.0, 1: 3.0, 2: 0.5}},
    ),
    "weighted": (
        lambda: dense(kernel_regularizer="l2"),
        {"optimizer": "sgd", "loss": entropy("mean_with_sample_weight")},
        {"sample_weight": W},
    ),
    # 53 examples in batches of 4: the last one has an example for one worker alone.
    "each": (
        lambda: dense(kernel_regularizer="l2"),
        {"optimizer": lambda: optimizers.SGD(0.01), "loss": entropy("none")},
        {"sample_weight": W, "batch_size": 4},
    ),
    "each_tag": (
        tagged,
        {"optimizer": lambda: optimizers.SGD(0.01), "loss": entropy("none")},
        {"x": WORDS, "y": TAGS, "batch_size": 4},
    ),
    "tagged": (tagged, {"optimizer": "sgd"}, {"x": WORDS, "y": TAGS}),
    "summed_tags": (tagged, {"optimizer": "sgd", "loss": entropy("sum")}, {"x": WORDS, "y": TAGS}),
    "clipped": (
        dense,
        {"optimizer": lambda: optimizers.Adam(0.01, global_clipnorm=0.1, use_ema=True)},
        {},
    ),
    "reporting": (
        reporting,
        {
            "optimizer": "sgd",
            "loss": {"classes": laminar.losses.SparseCategoricalCrossentropy(from_logits=True)},
        },
        {},
    ),
}


def trained(
    make: Callable[[], Any], strategy: Any, options: dict[str, Any], given: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    model = make()
    optimizer = options["optimizer"]
    optimizer = optimizer() if callable(optimizer) else optimizer
    model.compile(**{"loss": LOSS, **options, "optimizer": optimizer}, strategy=strategy)
    data = {"x": X, "y": Y, "batch_size": 10, "epochs": 2, "shuffle": False, **given}
    return model, model.fit(
        **data, verbose=0, validation_data=(data["x"][:7], data["y"][:7])
    ).history


def check_same(found: tuple[Any, Any], wanted: tuple[Any, Any]) -> None:
    """The weights, the optimizer's variables and the values of the epochs, up to rounding."""
    (model, history), (other, expected) = found, wanted
    assert history.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, atol=2e-5, err_msg=name)
    for a, b in zip(model.variables, other.variables, strict=True):
        if "seed" not in a.path:
            np.testing.assert_allclose(a.numpy(), b.numpy(), atol=2e-5, err_msg=a.path)
    for a, b in zip(model.optimizer.variables, other.optimizer.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=2e-5, err_msg=a.path)


@pytest.mark.parametrize("name", CASES)
def test_a_synchronous_step_is_that_of_one_process(cluster: LocalCluster, name: str) -> None:
    """Shares of 5 rows, and of the last batch 1 and 2."""
    case = CASES[name]
    make, options, given = case
    shared = ParameterServer(cluster.spec, synchronous=True)
    check_same(trained(make, shared, options, given), trained(make, None, options, given))


def test_one_asynchronous_worker_trains_as_this_process_would() -> None:
    with local_cluster({"ps": 1, "worker": 1}) as alone:
        for name in ("adam", "words", "each"):
            make, options, given = CASES[name]
            strategy = ParameterServer(alone.spec)
            found = trained(make, strategy, options, given)
            check_same(found, trained(make, None, options, given))
            assert set(strategy.staleness.counts) == {0}


def test_asynchronous_workers_train_on_each_batch_once(cluster: LocalCluster) -> None:
    """Weights count the examples: the gradient of each is 1, whatever the weights are."""
    model = laminar.Sequential([layers.Input((1,)), layers.Dense(1, use_bias=False)])
    model.layers[0].set_weights([np.zeros((1, 1), "float32")])
    loss = laminar.losses.MeanAbsoluteError(reduction="sum")
    strategy = ParameterServer(cluster.spec)
    model.compile(optimizers.SGD(1.0), loss, metrics=["mae"], strategy=strategy)
    data = laminar.datasets.Dataset.from_tensor_slices(
        (np.ones((40, 1), "float32"), np.full((40, 1), 1e6, "float32"))
    ).batch(4)
    history = model.fit(data, epochs=3, verbose=0).history
    assert model.get_weights()[0] == 120
    assert int(model.optimizer.iterations.numpy()) == 30
    assert sum(strategy.staleness.counts.values()) == 30
    assert history["mae"][0] > history["mae"][-1] >= 1e6 - 120


def test_what_layers_update_and_draw(cluster: LocalCluster) -> None:
    """Moving averages are those of the shares; masks of dropout differ from share to share."""
    drop = layers.Dropout(0.5)

    class Drawn(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.normalize = layers.BatchNormalization(momentum=0.5)
            self.drop = drop
            self.scale = layers.Dense(1, use_bias=False)

        def call(self, x: Any, training: bool = False) -> Any:
            y = self.drop(ops.ones_like(x), training=training)
            return {"drawn": y, "out": self.scale(self.normalize(x, training=training))}

    drawn: list[Any] = []

    class Seen(laminar.metrics.Metric):
        """Keeps what it is given."""

        def __init__(self) -> None:
            super().__init__(name="seen")
            self.last = self.add_variable((8, 6), "zeros", name="last")

        def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.last.assign(y_pred)

        def result(self) -> Any:
            return self.last.value

    for synchronous in (True, False):
        model, seen = Drawn(), Seen()
        model.compile(
            "sgd",
            {"drawn": None, "out": "mse"},
            metrics={"drawn": [seen]},
            strategy=ParameterServer(cluster.spec, synchronous=synchronous),
        )
        for _ in range(2):
            model.fit(X[:8], {"drawn": X[:8], "out": Y[:8]}, batch_size=8, shuffle=False, verbose=0)
            drawn.append(np.asarray(seen.last.numpy()))
        shares = [X[:4], X[4:8]] if synchronous else [X[:8]]
        mean = np.mean([x.mean(0) for x in shares], axis=0) * 0.75  # of 0 and twice the same
        np.testing.assert_allclose(model.normalize.moving_mean.numpy(), mean, atol=1e-6)
    for values in drawn:
        assert set(np.unique(values)) == {0, 2}
        assert (values[:4] != values[4:]).any()
    assert (drawn[0] != drawn[1]).any()
    assert (drawn[2] != drawn[3]).any()


def test_rows_of_embeddings_travel_as_rows(cluster: LocalCluster) -> None:
    """No worker has a tensor as large as the table, in either kind of training."""
    for synchronous in (True, False):
        strategy = ParameterServer(cluster.spec, synchronous=synchronous)
        model, _ = trained(words, strategy, *CASES["words"][1:])
        made = model._laminar_compiled.steps["train"]._workers.made
        steps = [*made.sums.gives, made.sums.apply] if synchronous else [made.once.update]
        needed: dict[int, Any] = {}
        waiting = [*steps, *(y.op for y in flatten(made.fetches))]
        while waiting:
            op = waiting.pop()
            if op.id not in needed:
                needed[op.id] = op
                waiting += [*op.control_inputs, *(x.op for x in op.inputs)]
        large = [
            op
            for op in needed.values()
            if any(tuple(y.shape) == tuple(model.weights[0].shape) for y in op.outputs)
        ]
        assert not [op.name for op in large if "/job:worker" in op.device]
        assert large


def test_callbacks_change_and_see_what_servers_have(cluster: LocalCluster, tmp_path: Path) -> None:
    """A learning rate of each step; weights set back; files in the middle of an epoch."""

    class Halved(laminar.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.model.optimizer.learning_rate = 0.5 if batch % 2 else 0.25

    class Reset(laminar.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.model.set_weights(initial)

    model = dense()
    initial = model.get_weights()
    saved = callbacks.ModelCheckpoint(str(tmp_path / "{batch}.keras"), save_freq=1)
    runs = []
    for strategy in (None, ParameterServer(cluster.spec, synchronous=True)):
        model = dense()
        model.compile("sgd", LOSS, strategy=strategy)
        given = {"batch_size": 20, "epochs": 2, "shuffle": False, "verbose": 0}
        model.fit(X, Y, **given, callbacks=[Halved(), Reset(), saved])
        runs.append(
            [laminar.saving.load_model(tmp_path / f"{i}.keras").get_weights() for i in (1, 2, 3)]
        )
    for one, other in zip(*runs, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.slow
def test_a_resumed_training_has_the_same_bits(cluster: LocalCluster, tmp_path: Path) -> None:
    """Interrupted in the middle of an epoch, after a backup of two steps before."""

    class Stop(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if self.params["epochs"] == 3 and batch == 4 and stops:
                raise KeyboardInterrupt

    weights = []
    for stops in (True, False):
        folder = tmp_path / str(stops)
        backup = callbacks.BackupAndRestore(str(folder), save_freq=3)
        for _ in range(1 + stops):
            model = dense()
            strategy = ParameterServer(cluster.spec, synchronous=True)
            model.compile("adam", LOSS, strategy=strategy)
            try:
                model.fit(X, Y, batch_size=10, epochs=3, verbose=0, callbacks=[backup, Stop()])
            except KeyboardInterrupt:
                stops = False
        weights.append(model.get_weights())
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_evaluation_before_a_training_and_other_batches(cluster: LocalCluster) -> None:
    """Graphs are built anew for sizes that change, once."""
    model = words(None)
    model.compile("sgd", LOSS, strategy=ParameterServer(cluster.spec))
    other = words(None)
    other.compile("sgd", LOSS)
    for length in (5, 3, 4):
        x = WORDS[:, :length]
        found = model.evaluate(x, Y, verbose=0)
        np.testing.assert_allclose(found, other.evaluate(x, Y, verbose=0), atol=1e-5)
    model.fit(WORDS, Y, verbose=0)
    assert model.get_weights()[0].shape == (40, 6)
    step = model._laminar_compiled.steps["test"]
    assert isinstance(step, ServerStep)
    assert step._workers.made is not None
    assert step._workers.made.batch[0].shape[1] is None


def test_a_loop_of_ones_own(cluster: LocalCluster) -> None:
    from laminar import engine

    def build(task: int) -> Any:
        return engine.Variable(0.0, name="total").assign_add(1.0)

    with ParameterServer(cluster.spec).coordinator(build) as coordinator:
        assert isinstance(coordinator, Coordinator)
        coordinator.initialize()
        for _ in range(5):
            coordinator.schedule(lambda worker: worker.run(worker.made))
        coordinator.join()
        assert coordinator.schedule(lambda worker: worker.run(worker.made)).fetch() == 6


def test_without_a_cluster_it_is_training_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    for synchronous in (True, False):
        strategy = ParameterServer(synchronous=synchronous)
        assert strategy.is_alone
        found = trained(dense, strategy, *CASES["adam"][1:])
        check_same(found, trained(dense, None, *CASES["adam"][1:]))
        with pytest.raises(InvalidArgumentError, match="there is no cluster"):
            strategy.coordinator(lambda task: None)


def test_what_is_refused(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError, match="no job 'ps' with tasks"):
        ParameterServer({"worker": ["localhost:1"]})
    with pytest.raises(InvalidArgumentError, match="from 1 to 2, .* got 3"):
        ParameterServer(cluster.spec, replicas_to_aggregate=3)
    with pytest.raises(InvalidArgumentError, match="timeout_seconds must be .* got -1"):
        ParameterServer(cluster.spec, timeout_seconds=-1)
    with pytest.raises(InvalidArgumentError, match="roots is for a server of this process"):
        ParameterServer(cluster.spec, roots=["/"])
    task = '"task": {"type": "evaluator", "index": 0}'
    monkeypatch.setenv("TF_CONFIG", f'{{"cluster": {{"ps": ["a:1"], "worker": ["b:1"]}}, {task}}}')
    with pytest.raises(InvalidArgumentError, match="nothing to do for /job:evaluator/task:0"):
        ParameterServer()
    strategy = ParameterServer(cluster.spec)

    class Own(laminar.Model):
        def train_step(self, data: Any) -> Any:
            return {}

    for model, eagerly, error, told in (
        (Own(), False, InvalidArgumentError, "a train_step of its own"),
        (dense(), True, UnimplementedError, "run_eagerly"),
    ):
        model.compile("sgd", LOSS, strategy=strategy, run_eagerly=eagerly)
        with pytest.raises(error, match=told):
            model.fit(X, Y, verbose=0)


def test_tasks_that_are_not_there_are_one_error() -> None:
    with local_cluster({"ps": 1, "worker": 1}) as there:
        spec = {**there.spec.as_dict(), "worker": ["localhost:1"]}
        model = dense()
        model.compile("sgd", LOSS, strategy=ParameterServer(spec, timeout_seconds=0.1))
        with pytest.raises(UnavailableError, match="/job:worker/task:0 at localhost:1 has not"):
            model.fit(X, Y, verbose=0)


def test_a_cluster_that_its_tasks_do_not_know_is_one_error(cluster: LocalCluster) -> None:
    spec = cluster.spec.as_dict()
    servers, (first, second) = spec["ps"], spec["worker"]
    with local_cluster({"ps": 2, "worker": 2}) as other:
        for wrong, told in (
            ({"ps": [first, servers[1]], "worker": [servers[0], second]}, "where /job:worker"),
            ({"ps": servers, "worker": [second, first]}, "where /job:worker/task:1 is"),
            ({**spec, "ps": other.spec.as_dict()["ps"]}, "takes another process for /job:ps"),
            ({**spec, "worker": other.spec.as_dict()["worker"]}, "takes another process"),
        ):
            model = dense()
            model.compile("sgd", LOSS, strategy=ParameterServer(wrong))
            with pytest.raises(InvalidArgumentError, match=f"not that of its tasks.*{told}"):
                model.fit(X, Y, verbose=0)
    model = dense()
    model.compile("sgd", LOSS, strategy=ParameterServer({**spec, "worker": [first]}))
    model.fit(X, Y, verbose=0)  # some of the workers will do


def test_a_task_serves_until_the_program_that_leads_ends_or_is_not_heard_of() -> None:
    with local_cluster({"ps": 1, "worker": 1}) as found:
        server, own = found.servers["ps:0"], ("worker", 0)
        begin = time.monotonic()
        with pytest.raises(UnavailableError, match="/job:ps/task:0 has heard nothing .* 0.2 s"):
            serve_until_end(server, None, 0.2)
        assert time.monotonic() - begin < 5
        beats = Beats(found.spec, own, 0.05, None)
        timer = threading.Timer(1.0, end_tasks, (found.spec, own, 3, None))
        timer.start()
        try:
            assert serve_until_end(server, None, 0.7) == 3
        finally:
            timer.join()
            beats.stop()


def test_an_error_of_a_batch_ends_a_training_and_the_next_one_begins_anew(
    cluster: LocalCluster,
) -> None:
    for synchronous in (True, False):
        model = words()
        strategy = ParameterServer(cluster.spec, synchronous=synchronous)
        model.compile("sgd", LOSS, strategy=strategy)
        before = model.get_weights()
        bad = WORDS.copy()
        bad[30] = 1000  # no such row
        with pytest.raises(laminar.engine.errors.LaminarError, match="1000"):
            model.fit(bad, Y, batch_size=10, shuffle=False, verbose=0)
        for a, b in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(a, b)
        model.fit(WORDS, Y, verbose=0)
        assert (model.get_weights()[0] != before[0]).any()
