"""Placement that improves by what was measured: the search, its trials, and the file of it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.devices import CpuDevice, Device, DeviceSet
from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.engine.graph import FLOATING, Operation, TensorSpec
from laminar.engine.ops.core import basic
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math.add_n import add_n
from laminar.engine.passes import needed_operations
from laminar.engine.runtime import SessionConfig, learned_placement, placement_search
from laminar.engine.runtime.colocation import Groups
from laminar.engine.runtime.learned_placement import LearningPlan
from laminar.engine.runtime.placement import Placement, place
from laminar.engine.runtime.placement_search import PlacementProblem, search

identity: Any = basic.identity
multiply: Any = arithmetic.multiply
negative: Any = arithmetic.negative


@define("TestLearnedSlow", dtypes=FLOATING)
def slow(x: TensorSpec) -> TensorSpec:
    """x, after 20 ms."""
    return x


@slow.reference
def _slow(xp: Any, x: Any) -> Any:
    time.sleep(0.02)
    return x


class GivenCosts:
    """Seconds of operations by name, and of every transfer."""

    def __init__(self, seconds: Mapping[str, float], transfer: float) -> None:
        self.seconds = seconds
        self.transfer = transfer

    def compute_seconds(self, op: Operation, device: Device) -> float:
        return self.seconds.get(op.name, 0.0)

    def transfer_seconds(self, nbytes: int, source: Device, target: Device) -> float:
        return 0.0 if source is target else self.transfer


class Step:
    """A step, what it costs, and the devices for it."""

    def __init__(self, fetches: list[Any], costs: GivenCosts, devices: int) -> None:
        self.operations = needed_operations(fetches)
        self.fetches = fetches
        self.costs = costs
        self.devices = DeviceSet([CpuDevice(i) for i in range(devices)])

    def problem(self) -> PlacementProblem:
        groups = Groups(self.operations, self.devices, (), soft=False, settled={})
        return PlacementProblem(self.operations, self.devices, groups, (), self.costs)

    def place(self, choices: Mapping[str, str] | None = None) -> Placement:
        return place(
            self.operations,
            self.devices,
            fetches=self.fetches,
            costs=self.costs,
            policy="learned",
            choose=None if choices is None else lambda groups: choices,
        )

    def improved(self) -> Placement:
        problem = self.problem()
        greedy = {d.operation: d.device for d in self.place().decisions}
        return self.place(problem.choices(search(problem, problem.assignment(greedy))))


def random_step(seed: int, devices: int = 3) -> Step:
    """Layers of operations that each take up to three of the layers before, at random costs."""
    rng = np.random.default_rng(seed)
    seconds: dict[str, float] = {}
    with eng.Graph().as_default():
        layers = [[identity(1.0, name=f"source{i}") for i in range(3)]]
        for depth in range(8):
            before = [x for layer in layers[-2:] for x in layer]
            layer = []
            for i in range(5):
                taken = rng.choice(len(before), size=rng.integers(1, 4), replace=False)
                name = f"node{depth}_{i}"
                layer.append(add_n([before[j] for j in taken], name=name))
                seconds[name] = float(rng.uniform(0.5, 2.0))
            layers.append(layer)
        last = add_n(layers[-1], name="last")
    return Step([last], GivenCosts(seconds, float(rng.uniform(0.2, 3.0))), devices)


def test_the_problem_simulates_as_placement_does() -> None:
    for seed in range(5):
        step = random_step(seed)
        problem = step.problem()
        rng = np.random.default_rng(seed)
        for _ in range(5):
            assignment = [int(rng.choice(f)) for f in problem.feasible]
            placed = step.place(problem.choices(assignment))
            makespan, critical = problem.simulate(assignment)
            assert makespan == pytest.approx(placed.makespan, rel=1e-12)
            assert critical


@pytest.mark.slow
def test_the_search_beats_the_greedy_placement_on_random_graphs() -> None:
    ratios = []
    for seed in range(12):
        step = random_step(seed)
        ratio = step.improved().makespan / step.place().makespan
        assert ratio <= 1.0
        ratios.append(ratio)
    assert math.exp(float(np.mean(np.log(ratios)))) < 0.9


def test_the_search_finds_what_greed_misses() -> None:
    """Greed starts the second source where nothing waits, and pays for bringing its result back."""
    with eng.Graph().as_default():
        pair = [identity(1.0, name="one"), identity(1.0, name="two")]
        last = add_n(pair, name="last")
    step = Step([last], GivenCosts({"one": 1.0, "two": 1.0}, 3.0), 2)
    assert step.place().makespan == pytest.approx(4.0)
    assert step.improved().makespan == pytest.approx(2.0)


def test_constraints_hold() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:2"):
            pinned = identity(1.0, name="pinned")
        beside = identity(pinned, name="free")
        with eng.colocate_with(pinned.op):
            joined = identity(beside, name="joined")
    step = Step([joined], GivenCosts({"free": 1.0, "joined": 1.0, "pinned": 1.0}, 5.0), 3)
    found = {d.operation: d.device[-5:] for d in step.improved().decisions}
    assert found["pinned"] == found["joined"] == found["free"] == "cpu:2"
    wished = step.place(dict.fromkeys(("pinned", "free", "joined"), "/job:localhost/device:cpu:0"))
    assert {d.operation: d.device[-5:] for d in wished.decisions}["pinned"] == "cpu:2"


def test_the_search_repeats() -> None:
    first, second = (random_step(3).improved() for _ in range(2))
    assert [d.device for d in first.decisions] == [d.device for d in second.decisions]


def branches() -> tuple[eng.Graph, Any, Any]:
    """Two slow operations that the estimates take for cheap ones."""
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [], name="x")
        base = multiply(x, 2.0, name="base")
        y: Any = add_n([slow(base, name="left"), slow(negative(base), name="right")], name="y")
    return graph, x, y


def run(config: SessionConfig, steps: int) -> dict[str, str]:
    graph, x, y = branches()
    with eng.Session(graph=graph, config=config) as session:
        for i in range(steps):
            assert session.run(y, {x: float(i)}) == 0.0
        assert session.placement is not None
        return {d.operation: d.device for d in session.placement.decisions}


@pytest.mark.slow  # 70 steps of 20 to 40 ms
@pytest.mark.parametrize("jit_compile", ["auto", True, False])
def test_a_session_learns_and_another_one_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jit_compile: Any
) -> None:
    take = LearningPlan._take
    calls: list[int] = []

    def simulated(self: LearningPlan, number: int, seconds: float) -> None:
        """The trials take what their simulations say, but for a while the machine is busy."""
        calls.append(number)
        factor = 100 if 8 <= len(calls) <= 12 else 1
        trials = vars(self)["_trials"]
        given = factor * trials[number].placement.makespan if number < len(trials) else seconds
        take(self, number, given)

    monkeypatch.setattr(LearningPlan, "_take", simulated)
    path = tmp_path / "placements.json"
    config = SessionConfig(
        device_count={"cpu": 2},
        placement="learned",
        placement_file=str(path),
        jit_compile=jit_compile,
        inter_op_threads=[1],
    )
    before = run(config, 1)
    assert before["left"] == before["right"]  # by the estimates
    learned = run(config, 22)
    assert learned["left"] != learned["right"]
    written = path.read_bytes()

    def no_search(*_: Any) -> Any:
        raise AssertionError("it was searched for again")

    monkeypatch.setattr(learned_placement, "search", no_search)
    known = run(config, 25)
    assert known == learned
    assert path.read_bytes() == written


def test_steps_without_a_choice_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_search, "search", None)
    with eng.Graph().as_default() as graph:
        y = identity(2.0, name="y")
    config = SessionConfig(placement="learned")
    with eng.Session(graph=graph, config=config) as session:
        assert [session.run(y) for _ in range(25)] == [2.0] * 25


def test_where_state_was_made_is_known_afterwards() -> None:
    """On a GPU it cannot be found elsewhere."""
    with eng.Graph().as_default() as graph:
        v = eng.Variable(1.0, name="v")
    config = SessionConfig(device_count={"cpu": 2}, placement="learned")
    with eng.Session(graph=graph, config=config) as session:
        session.run(v.initializer)
        assert vars(session._engine)["_machine"].settled


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        json.dumps({"format": "laminar placements 1", "placements": {"a": {"b": 1}}}).encode(),
        json.dumps({"format": "another", "placements": {}}).encode(),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "placements.json"
    path.write_bytes(content)
    with pytest.raises(DataLossError, match=r"(?s)placement_file.*remove it"):
        eng.Session(
            graph=eng.Graph(), config=SessionConfig(placement="learned", placement_file=str(path))
        )
    assert path.read_bytes() == content


def test_a_folder_is_refused_as_file(tmp_path: Path) -> None:
    config = SessionConfig(placement="learned", placement_file=str(tmp_path))
    with pytest.raises(DataLossError, match="not a file of placements"):
        eng.Session(graph=eng.Graph(), config=config)


def test_a_file_without_learning_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="placement_file"):
        SessionConfig(placement_file="placements.json")
