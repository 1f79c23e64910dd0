"""Updates by workers whose answers are lost, or who come back when others have done their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, optimizers
from laminar.distribute import ParameterServer
from laminar.distribute.coordinator import CoordinatedWorker
from laminar.engine.errors import AlreadyExistsError, UnavailableError
from laminar.engine.graph import Operation
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"ps": 2, "worker": 2}) as found:
        yield found


def counting(strategy: Any, **options: Any) -> Any:
    """A model whose weights count the examples of a step: the gradient of each is 1."""
    model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
    model.set_weights([np.zeros((1, 1)), np.zeros(1)])
    optimizer = options.pop("optimizer", None) or optimizers.SGD(1.0)
    model.compile(optimizer, "mae", strategy=strategy)
    return model


def fitted(model: Any) -> None:
    x, y = np.ones((40, 1), "float32"), np.full((40, 1), 1e6, "float32")
    model.fit(x, y, batch_size=4, verbose=0)


def check_ten_steps(model: Any) -> None:
    assert [float(w.sum()) for w in model.get_weights()] == [10, 10]
    assert int(model.optimizer.iterations.numpy()) == 10


class Interfering:
    """In the place of `CoordinatedWorker.run`: the third update of a training is disturbed.

    Args:
        run: what it stands for.
        disturb: is called in its place.
    """

    def __init__(self, run: Run, disturb: Callable[..., Any]) -> None:
        self._run, self._disturb = run, disturb
        self.updates = 0

    def __call__(self, worker: Any, fetches: Any, feed_dict: Any = None) -> Any:
        made = worker.made
        sums, once = getattr(made, "sums", None), getattr(made, "once", None)
        last = fetches[1] if isinstance(fetches, tuple) and len(fetches) == 2 else fetches
        if (once and last is once.update) or (sums and last is sums.apply):
            self.updates += 1
            if self.updates == 3:
                return self._disturb(self._run, worker, fetches, feed_dict)
        return self._run(worker, fetches, feed_dict)


def lost(worker: Any) -> UnavailableError:
    return UnavailableError(f"/job:worker/task:{worker.task} is gone")


@pytest.mark.parametrize("synchronous", [True, False])
def test_an_answer_that_is_lost(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, synchronous: bool
) -> None:
    """The update was made; the worker that tries again does not make it a second time."""

    def disturb(run: Run, worker: Any, fetches: Any, feeds: Any) -> Any:
        run(worker, fetches, feeds)
        raise lost(worker)

    interfering = Interfering(CoordinatedWorker.run, disturb)
    monkeypatch.setattr(CoordinatedWorker, "run", lambda *given: interfering(*given))
    model = counting(ParameterServer(cluster.spec, synchronous=synchronous))
    fitted(model)
    check_ten_steps(model)
    assert interfering.updates == (10 if synchronous else 11)


def test_a_worker_that_comes_back_after_another_has_made_its_update(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped, say: its gradient is refused, also once other updates have followed."""
    late: list[Callable[[], Any]] = []

    def disturb(run: Run, worker: Any, fetches: Any, feeds: Any) -> Any:
        late.append(lambda: run(worker, fetches, feeds))
        raise lost(worker)

    interfering = Interfering(CoordinatedWorker.run, disturb)
    monkeypatch.setattr(CoordinatedWorker, "run", lambda *given: interfering(*given))
    model = counting(ParameterServer(cluster.spec))
    fitted(model)
    check_ten_steps(model)
    with pytest.raises(AlreadyExistsError):
        late[0]()
    fitted(model)
    assert [float(w.sum()) for w in model.get_weights()] == [20, 20]


def waits_for(op: Operation) -> dict[int, Operation]:
    """What an operation waits for, by id."""
    needed: dict[int, Operation] = {}
    waiting = [op]
    while waiting:
        op = waiting.pop()
        if op.id not in needed:
            needed[op.id] = op
            waiting += [*op.control_inputs, *(x.op for x in op.inputs)]
    return needed


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adam": lambda: optimizers.Adam(0.1, use_ema=True, global_clipnorm=1.0),
    "nadam": lambda: optimizers.Nadam(0.1),  # changes a product that the updates need
    "frozen": lambda: optimizers.SGD(0.1, momentum=0.9),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("synchronous", [True, False])
def test_nothing_of_an_update_comes_before_its_gradients(
    cluster: LocalCluster, synchronous: bool, name: str
) -> None:
    """So a worker that is lost before has changed nothing, not the count of steps either."""
    strategy = ParameterServer(cluster.spec, synchronous=synchronous)
    model = counting(strategy, optimizer=OPTIMIZERS[name]())
    if name == "frozen":
        model.optimizer.groups({"bias": 0})
    model.fit(np.ones((4, 1)), np.ones(4), batch_size=2, verbose=0)
    made = model._laminar_compiled.steps["train"]._workers.made
    update = made.sums.apply if synchronous else made.once.update
    first = "AccumulatorTakeGradient" if synchronous else "RaiseNumber"
    firsts = {i for i, op in waits_for(update).items() if op.type == first}
    assert firsts
    changes = [op for op in waits_for(update).values() if op.type.startswith("Assign")]
    assert len(changes) >= 3
    for op in changes:
        assert firsts <= waits_for(op).keys(), op
