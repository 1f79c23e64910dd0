"""`SessionConfig(placement="learned")`: placement that improves by the steps that it has measured.

A set of fetches and feeds that has a choice of devices begins with the simulated placement. Its
first runs are these, each an ordinary step of the user's:

    1                warm-up
    2, 3             traced: the cost model learns what each operation takes (cost.py)
    then, in turns   one warm-up and `_TRIAL_RUNS` measured runs of each proposal: the simulated
                     placement, a search with the measured costs (placement_search.py), and all
                     on one device. In turns, so that what else the machine does meets all alike.

The proposal with the smallest median is kept, and written to `SessionConfig.placement_file`: a
session that runs the same step on the same devices later takes it from there, and tries nothing.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 10 (placement by learning); Mirhoseini et al., "Device placement
    optimization with reinforcement learning", 2017 (measured steps as the objective).
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import forks
from ..errors import DataLossError, LaminarError, ResourceExhaustedError
from ..graph import Operation
from ..io.atomic import atomic_write
from ..io.places import no_place
from .options import RunMetadata, RunOptions
from .partitioned import Machine, PartitionedPlan, Proposal
from .placement import Placement
from .placement_search import PlacementProblem, search
from .plan import Plan
from .step import StepContext
from .watching import run_watched

_TRACED_RUNS = (2, 3)
_TRIAL_RUNS = 5
_FORMAT = "laminar placements 1"
_MOST_BYTES = 64 << 20  # of a file

Make = Callable[[Proposal | None], Plan | PartitionedPlan]


class LearnedPlacements:
    """What has been learned, by the digest of a step and its devices; in a file if one is given.

    `_known` is guarded by `_lock`.

    Args:
        path: the file, or None.

    Raises:
        DataLossError: the file is not one of these.
        PermissionDeniedError: it cannot be read.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._lock = forks.lock()
        self._known = {} if path is None else _read(path)

    def get(self, digest: str) -> Mapping[str, str] | None:
        """By the name of the operation that owns a group, its device."""
        with self._lock:
            return self._known.get(digest)

    def keep(self, digest: str, choices: Mapping[str, str]) -> None:
        """Remember a placement, beside what other sessions have written meanwhile.

        A file that cannot be written is a warning: the step that found the placement has run.
        """
        with self._lock:
            self._known[digest] = dict(choices)
            if self._path is None:
                return
            try:
                self._known = _read(self._path) | self._known
                told = {"format": _FORMAT, "placements": self._known}
                with atomic_write(self._path) as file:
                    file.write(json.dumps(told, indent=1, sort_keys=True).encode())
            except LaminarError as error:
                warnings.warn(f"the placement is not kept: {error}", stacklevel=2)


def _read(path: str) -> dict[str, dict[str, str]]:
    place = Path(path)
    try:
        if not place.exists():
            return {}
        if not place.is_file() or place.stat().st_size > _MOST_BYTES:
            raise DataLossError(
                f"placement_file: {path} is not a file of placements",
                remedy="give the name of a file that is new, or that laminar wrote",
            )
        found = json.loads(place.read_bytes())
    except OSError as cause:
        raise no_place(f"placement_file: {path} cannot be read", cause) from cause
    except (ValueError, RecursionError) as cause:
        raise _damaged(path) from cause
    known = found.get("placements") if isinstance(found, dict) else None
    if known is None or found.get("format") != _FORMAT or not _is_table(known):
        raise _damaged(path)
    return dict(known)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(v, dict) and all(isinstance(d, str) for d in v.values()) for v in value.values()
    )


def _damaged(path: str) -> DataLossError:
    return DataLossError(
        f"placement_file: {path} is damaged, or not a file of placements",
        remedy="remove it: the placements in it are learned anew",
    )


def digest_of(operations: Sequence[Operation], machine: Machine) -> str:
    """What a step computes, and on which devices, as 64 hexadecimal digits."""
    told = hashlib.sha256()
    for device in machine.devices:
        told.update(f"{device.name} {device.limit_bytes}\n".encode())
    for op in operations:
        inputs = ",".join(f"{x.op.name}:{x.value_index}" for x in op.inputs)
        after = ",".join(sorted(c.name for c in op.control_inputs))
        outputs = ",".join(f"{y.dtype}{y.shape}" for y in op.outputs)
        told.update(f"{op.name} {op.type} {op.device} {inputs} {after} {outputs}\n".encode())
    return told.hexdigest()


class LearningPlan:
    """Runs a step as a plan does, and meanwhile finds out where its operations are best.

    `_run_count`, `_trials`, `_trial` and `current` tell how far that is; guarded by `_lock`.

    Args:
        machine: whose devices it runs on.
        digest: of the step, as `digest_of`.
        make: gives a plan of the step, placed as it is told, or simulated for None.
        learned: where what is found is kept.
        done: called with what is kept: how to place the step from now on.

    Attributes:
        current: the plan that the next run takes.
        has_choice: whether an operation may stand elsewhere; where not, `current` is all.
    """

    def __init__(
        self,
        machine: Machine,
        digest: str,
        make: Make,
        learned: LearnedPlacements,
        done: Callable[[Proposal], None],
    ) -> None:
        self._machine = machine
        self._digest = digest
        self._make = make
        self._learned = learned
        self._done = done
        self._lock = forks.lock()
        self._run_count = 0
        self.current = make(None)
        placement = machine.placement
        self._simulated = {} if placement is None else by_operation(placement)
        self.has_choice = placement is not None and placement.has_choice
        self._trials: list[_Trial] = []
        self._trial = 0

    def run(self, feeds: Sequence[Any], context: StepContext) -> list[Any]:
        """Execute the step on arrays, in the order of the feeds; gives host arrays.

        Raises:
            LaminarError: a kernel failed.
        """
        with self._lock:
            self._run_count += 1
            number, plan, trial = self._run_count, self.current, self._trial
        if number in _TRACED_RUNS:
            told = RunOptions(trace=True)
            return run_watched(plan, feeds, context.step(), self._machine, told, RunMetadata(), 0)
        start = time.perf_counter()
        found = plan.run(feeds, context)
        if number > _TRACED_RUNS[-1]:
            self._take(trial, time.perf_counter() - start)
        return found

    def _take(self, number: int, seconds: float) -> None:
        """Note how long a run took, and go on to the next trial until there were enough."""
        with self._lock:
            if not self._trials:
                self._trials = self._proposed()
            elif number != self._trial or number == len(self._trials):
                return  # of another thread, for a trial that is over
            else:
                self._trials[number].seconds.append(seconds)
                self._trial = (number + 1) % len(self._trials)
            if any(len(trial.seconds) <= _TRIAL_RUNS for trial in self._trials):
                self.current = self._trials[self._trial].plan
                return
            self._trial = len(self._trials)
            choices: Mapping[str, str] = self._simulated
            if self._trials:  # otherwise no proposal has room: it stays as it is
                best = min(self._trials, key=lambda t: statistics.median(t.seconds[1:]))
                self.current, choices = best.plan, best.choices
                self._machine.placement = best.placement
        self._learned.keep(self._digest, choices)
        self._done(lambda problem: choices)

    def _proposed(self) -> list[_Trial]:
        """Plans of the proposals that differ, the simulated one first."""
        found: list[_Trial] = []
        proposals: list[Proposal] = [lambda _: self._simulated, self._searched, _on_one_device]
        for proposal in proposals:
            with suppress(ResourceExhaustedError):  # too much for a device: not this one
                plan = self._make(proposal)
                placement = self._machine.placement
                assert placement is not None
                choices = by_operation(placement)
                if all(choices != trial.choices for trial in found):
                    found.append(_Trial(plan, placement, choices))
        return found

    def _searched(self, problem: PlacementProblem) -> Mapping[str, str]:
        first = problem.assignment(self._simulated)
        return problem.choices(search(problem, first))


def _on_one_device(problem: PlacementProblem) -> Mapping[str, str]:
    """All on the device where that is fastest in the simulation."""
    assignments = [problem.together(d) for d in range(len(problem.devices))]
    return problem.choices(min(assignments, key=lambda a: problem.simulate(a)[0]))


@dataclass
class _Trial:
    """A plan, where its operations are, and how long its runs took; the first is a warm-up."""

    plan: Plan | PartitionedPlan
    placement: Placement
    choices: Mapping[str, str]
    seconds: list[float] = field(default_factory=list)


def by_operation(placement: Placement) -> dict[str, str]:
    """The names of devices by those of operations."""
    return {d.operation: d.device for d in placement.decisions}
