"""Steps of workers, in one process: the other workers do and say what this one does and says."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.distribute import MultiWorker
from laminar.distribute.collectives import mpi
from laminar.distribute.collectives.group import Group
from laminar.distribute.multi_worker import default_strategy, use_by_default
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 4)).astype("float32")
Y = rng.integers(0, 2, 12)


class Echo(Group):
    """Two workers with the same rows: sums are twice, and all rows are there twice."""

    size = 2

    def sum(self, arrays: Sequence[Any]) -> list[Any]:
        return [a + a for a in arrays]

    def gather_rows(self, rows: Any, counts: Sequence[int]) -> Any:
        return np.concatenate([rows, rows])

    def exchange(self, record: bytes) -> list[bytes]:
        return [record, record]

    def broadcast(self, arrays: Sequence[Any], root: int = 0) -> None:
        """All have the same."""

    def fail(self, error: BaseException) -> None:
        """Nobody is told."""


def echoing(**options: Any) -> MultiWorker:
    strategy = MultiWorker(**options)
    strategy.group = Echo()
    return strategy


def model(strategy: Any, **options: Any) -> Any:
    laminar.set_random_seed(1)
    made = laminar.Sequential([layers.Input((4,)), layers.Dense(2, activation="softmax")])
    made.compile(
        options.pop("optimizer", "sgd"),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        strategy=strategy,
        **options,
    )
    return made


@pytest.mark.parametrize("native", [True, False])
def test_the_same_rows_twice_are_a_batch_of_twice_the_size(native: bool) -> None:
    both = model(echoing(auto_shard="off"), jit_compile=native)
    found = both.fit(X, Y, batch_size=5, epochs=2, shuffle=False, verbose=0).history
    one = model(None)
    twice = [
        np.concatenate([np.tile(a[i : i + 5], (2, 1)[: a.ndim]) for i in (0, 5, 10)])
        for a in (X, Y)
    ]
    expected = one.fit(*twice, batch_size=10, epochs=2, shuffle=False, verbose=0).history
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)
    for a, b in zip(both.get_weights(), one.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_a_step_is_four_clusters_and_two_calls() -> None:
    """Forward, loss and metrics of all rows, backward, updates."""
    made = model(echoing(), optimizer="adam")
    made.fit(X, Y, batch_size=12, verbose=0)
    (concrete,) = made._laminar_compiled.steps["train"]._shared[False]._concrete.values()
    (plan,) = concrete._plans.values()
    types = [op.type for op in plan.operations]
    calls = [t for t in types if t in ("GatherRows", "SumOverWorkers", "OfFirstWorker")]
    assert calls == ["GatherRows", "SumOverWorkers"]
    assert "Replicated" not in types
    assert types.count("Cluster") == 4


class Late(Echo):
    """Sums of gradients end when they are waited for; `said` is what was asked for, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin_sum(self, arrays: Sequence[Any]) -> Callable[[], list[Any]]:
        number = sum(line.startswith("begin") for line in self.said)
        self.said.append(f"begin {number}")
        given = [np.array(a) for a in arrays]

        def end() -> list[Any]:
            self.said.append(f"end {number}")
            return self.sum(given)

        return end


def test_sums_begin_as_soon_as_their_gradients_are_there() -> None:
    """A cluster of the backward pass after each; and the same bits as of one sum at the end."""
    every = []
    for bucket_bytes in (1 << 20, 1):
        strategy = MultiWorker(bucket_bytes=bucket_bytes)
        strategy.group = group = Late()
        made: Any = laminar.Sequential(
            [layers.Input((4,)), layers.Dense(4, "tanh"), layers.Dense(2)]
        )
        made.set_weights([np.full(v.shape, 0.1) for v in made.weights])
        made.compile("adam", "mse", strategy=strategy)
        made.fit(X, np.stack([Y, 1 - Y], axis=1), batch_size=12, shuffle=False, verbose=0)
        every.append(made.get_weights())
        if bucket_bytes > 1:
            assert group.said == []
            continue
        assert group.said == [*(f"begin {i}" for i in range(4)), *(f"end {i}" for i in range(4))]
        (concrete,) = made._laminar_compiled.steps["train"]._shared[False]._concrete.values()
        (plan,) = concrete._plans.values()
        kinds = [op.type for op in plan.operations]
        begins = [i for i, kind in enumerate(kinds) if kind == "BeginSum"]
        # Of the last layer first; what the first layer takes is computed in between.
        sizes = [tuple(plan.operations[i].inputs[0].shape) for i in begins]
        assert sizes == [(2,), (4, 2), (4,), (4, 4)]
        assert "Cluster" in kinds[begins[0] : begins[-1]]
    for a, b in zip(*every, strict=True):
        np.testing.assert_array_equal(a, b)


def test_inputs_that_nobody_takes_whole_are_not_sent() -> None:
    made = model(echoing(auto_shard="off"))
    made.fit(X, Y, batch_size=12, verbose=0)
    (concrete,) = made._laminar_compiled.steps["train"]._shared[True]._concrete.values()
    sent = [op.inputs[0] for op in concrete.graph.effects if op.type == "GatherRows"]
    assert sorted((tuple(x.shape) for x in sent), key=len) == [(None,), (None, 2)]  # y, y_pred


def eager(strategy: MultiWorker) -> None:
    model(strategy, run_eagerly=True).fit(X, Y, verbose=0)


def nan(strategy: MultiWorker) -> None:
    model(strategy).fit(X, Y, verbose=0, check="nan")


def stateful(strategy: MultiWorker) -> None:
    made = laminar.Sequential([layers.Input((2, 2), batch_size=4), layers.LSTM(1, stateful=True)])
    made.compile("sgd", "mse", strategy=strategy)
    made.fit(X.reshape(12, 2, 2), Y, batch_size=4, verbose=0)


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (eager, "does not go with run_eagerly"),
        (nan, "check='nan' looks at one process"),
        (stateful, "does not go with layers with a state for each example"),
    ],
)
def test_what_does_not_go_with_workers(fit: Callable[[MultiWorker], None], said: str) -> None:
    with pytest.raises(UnimplementedError, match=said):
        fit(echoing())


def test_devices_of_one_process_are_another_way() -> None:
    with pytest.raises(InvalidArgumentError, match=r"devices=2 .* and 2 processes share it"):
        model(echoing()).fit(X, Y, devices=2, verbose=0)


def test_a_strategy_by_default() -> None:
    strategy = echoing()
    use_by_default(strategy)
    try:
        assert default_strategy() is strategy
        made = laminar.Sequential([layers.Dense(1)])
        made.compile("sgd", "mse")
        assert made._laminar_compiled is not None
        assert made._laminar_compiled.strategy is strategy
    finally:
        use_by_default(None)
    made.compile("sgd", "mse")
    assert made._laminar_compiled.strategy is None


def test_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    made = model(echoing())
    before = made.get_weights()
    made.fit(X, Y, dry_run=True)
    assert "fit: a dry run: one batch" in capsys.readouterr().out
    for a, b in zip(made.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_workers_without_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was started with others needs what they talk by; one alone does not."""
    monkeypatch.setattr(mpi, "_world", [])
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert MultiWorker().num_replicas == 1
    mpi._world.clear()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(FailedPreconditionError, match=r"pip install 'laminar\[mpi\]'"):
        MultiWorker()
