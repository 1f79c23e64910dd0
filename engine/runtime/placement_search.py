"""A better placement than the greedy one: a search over where groups of operations stand.

A step is reduced to numbers: operations, the groups that stand together, seconds on each device
and between devices (`PlacementProblem`). `simulate` runs it as `placement.py` does, with each group
where an assignment puts it; the last finish is the makespan. `search` improves an assignment by
simulated annealing: a move takes a cluster of groups to another device, every other time one of
those that the makespan waits for; a worse makespan is accepted with the probability
exp(-change / temperature), the temperature falling to zero. The draws have a fixed seed and their
number depends on the step's size alone, so the same step gives the same placement.

Sources: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983;
    clusters by the only consumer: Sarkar, "Partitioning and scheduling parallel programs for
    multiprocessors", 1989 (edge zeroing).
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Collection, Mapping, Sequence

from ..devices import Device, DeviceSet
from ..graph import GraphTensor, Operation
from .colocation import Groups
from .cost import Costs, tensor_bytes
from .placement import waits_for

_SIMULATED_OPERATIONS = 1_500_000  # in one search: about 3 s of one core
_FEWEST_MOVES, _MOST_MOVES = 60, 6_000
_FIRST_TEMPERATURE = 0.03  # as a part of the first makespan
_CLUSTER_SHARE = 0.05  # of all compute, at most in one cluster


class PlacementProblem:
    """A step as a search sees it: numbers instead of operations and devices.

    Args:
        operations: what a step runs.
        devices: to choose from.
        groups: what stands together, and where each group may be.
        feeds: tensors that are given.
        costs: of operations and transfers.

    Attributes:
        owners: by the group's number, the name of the operation that stands for it.
        feasible: by the group's number, the numbers of the devices that it may be on.
        size: how many operations there are.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        devices: DeviceSet,
        groups: Groups,
        feeds: Collection[GraphTensor],
        costs: Costs,
    ) -> None:
        self.devices: list[Device] = list(devices)
        self.size = len(operations)
        number = {id(d): i for i, d in enumerate(self.devices)}
        fed = {id(t) for t in feeds}
        self._ids = [op.id for op in operations]
        index = {op.id: i for i, op in enumerate(operations)}
        by_group: dict[int, int] = {}
        self.owners: list[str] = []
        self.feasible: list[list[int]] = []
        self._group: list[int] = []  # by the operation
        for op in operations:
            group = groups.of(op)
            found = by_group.get(id(group))
            if found is None:
                found = by_group[id(group)] = len(self.owners)
                self.owners.append(group.owner.name)
                self.feasible.append([number[id(d)] for d in group.feasible])
            self._group.append(found)
        self._seconds = [
            [
                costs.compute_seconds(op, d) if i in self.feasible[g] else math.inf
                for i, d in enumerate(self.devices)
            ]
            for op, g in zip(operations, self._group, strict=True)
        ]
        known = {op.id: op for op in operations}
        # By the operation: what it waits for, and with what: (producer, tensor; -1 for control).
        self._sources: list[list[int]] = []
        self._takes: list[list[tuple[int, int]]] = []
        self._delays: list[list[list[float]]] = []  # by the tensor, between two devices
        tensors: dict[int, int] = {}
        delays: dict[int, list[list[float]]] = {}
        for op in operations:
            before = waits_for(op, fed, known)
            self._sources.append([index[i] for i in before])
            taken = []
            for x in op.inputs:
                if id(x) in fed or x.op.id not in before:
                    continue
                t = tensors.setdefault(id(x), len(tensors))
                if t == len(self._delays):
                    self._delays.append(self._between(tensor_bytes(x), costs, delays))
                taken.append((index[x.op.id], t))
            taken += [(index[c.id], -1) for c in op.control_inputs if c.id in index]
            self._takes.append(taken)
        self._control = self._between(0, costs, delays)
        self._consumers: list[list[int]] = [[] for _ in operations]
        for i, sources in enumerate(self._sources):
            for j in sources:
                self._consumers[j].append(i)

    def _between(
        self, nbytes: int, costs: Costs, known: dict[int, list[list[float]]]
    ) -> list[list[float]]:
        if nbytes not in known:
            known[nbytes] = [
                [costs.transfer_seconds(nbytes, a, b) for b in self.devices] for a in self.devices
            ]
        return known[nbytes]

    def choices(self, assignment: Sequence[int]) -> dict[str, str]:
        """An assignment by names: of each group's owner, and of its device."""
        return {o: self.devices[d].name for o, d in zip(self.owners, assignment, strict=True)}

    def together(self, device: int) -> list[int]:
        """Everything that may be there on one device, the rest on the first that it may be on."""
        return [device if device in f else f[0] for f in self.feasible]

    def assignment(self, choices: Mapping[str, str]) -> list[int]:
        """The devices of groups by names; the first feasible one of a group that has none."""
        number = {d.name: i for i, d in enumerate(self.devices)}
        wishes = [number.get(choices.get(owner, ""), -1) for owner in self.owners]
        return [w if w in f else f[0] for w, f in zip(wishes, self.feasible, strict=True)]

    def simulate(self, assignment: Sequence[int]) -> tuple[float, list[int]]:
        """The makespan in seconds, and the groups of the operations that it waits for."""
        group, seconds, takes, delays = self._group, self._seconds, self._takes, self._delays
        waits = [len(s) for s in self._sources]
        ids = self._ids
        finish = [0.0] * len(ids)
        because = [-1] * len(ids)
        free_at = [0.0] * len(self.devices)
        latest = [-1] * len(self.devices)
        arrived: dict[tuple[int, int], float] = {}
        ready = [(0.0, ids[i], i) for i, n in enumerate(waits) if not n]
        heapq.heapify(ready)
        last, makespan = -1, 0.0
        while ready:
            _, _, i = heapq.heappop(ready)
            device = assignment[group[i]]
            start, reason = free_at[device], latest[device]
            for j, t in takes[i]:
                source = assignment[group[j]]
                if source == device:
                    there = finish[j]
                elif t < 0:
                    there = finish[j] + self._control[source][device]
                else:
                    there = arrived.get((t, device), -1.0)
                    if there < 0:
                        there = arrived[t, device] = finish[j] + delays[t][source][device]
                if there > start:
                    start, reason = there, j
            end = finish[i] = start + seconds[i][device]
            because[i] = reason
            free_at[device], latest[device] = end, i
            if end > makespan or last < 0:
                makespan, last = end, i
            for k in self._consumers[i]:
                waits[k] -= 1
                if not waits[k]:
                    heapq.heappush(ready, (max(finish[j] for j in self._sources[k]), ids[k], k))
        critical = []
        while last >= 0:
            critical.append(group[last])
            last = because[last]
        return makespan, critical

    def clusters(self) -> list[list[int]]:
        """Groups joined with their only consumer, as long as they are small."""
        size = [0.0] * len(self.owners)
        for i, g in enumerate(self._group):
            size[g] += min(self._seconds[i][d] for d in self.feasible[g])
        limit = _CLUSTER_SHARE * sum(size)
        after: list[set[int]] = [set() for _ in self.owners]
        for i, consumers in enumerate(self._consumers):
            after[self._group[i]] |= {self._group[k] for k in consumers} - {self._group[i]}
        parent = list(range(len(self.owners)))

        def root(g: int) -> int:
            while parent[g] != g:
                parent[g] = parent[parent[g]]
                g = parent[g]
            return g

        for g, later in enumerate(after):
            if len(later) != 1:
                continue
            a, b = root(g), root(next(iter(later)))
            if a != b and self.feasible[a] == self.feasible[b] and size[a] + size[b] <= limit:
                parent[a] = b
                size[b] += size[a]
        found: dict[int, list[int]] = {}
        for g in range(len(self.owners)):
            found.setdefault(root(g), []).append(g)
        return [found[root(g)] for g in range(len(self.owners))]


def search(problem: PlacementProblem, first: Sequence[int], seed: int = 0) -> list[int]:
    """The best assignment found: its makespan is that of `first`, or less.

    Args:
        problem: the step.
        first: a feasible assignment to begin with; those that put all on one device are tried too.
        seed: of the draws.
    """
    draw = random.Random(seed)
    starts = [list(first), *(problem.together(d) for d in range(len(problem.devices)))]
    results = [(problem.simulate(s), s) for s in starts]
    (cost, critical), current = min(results, key=lambda r: r[0][0])
    best_cost, best = cost, list(current)
    moves = [g for g, f in enumerate(problem.feasible) if len(f) > 1]
    if not moves:
        return best
    clusters = problem.clusters()
    count = min(_MOST_MOVES, max(_FEWEST_MOVES, _SIMULATED_OPERATIONS // problem.size))
    for k in range(count):
        temperature = _FIRST_TEMPERATURE * best_cost * (1 - k / count) ** 2
        among = critical if critical and draw.random() < 0.5 else moves
        g = draw.choice(among)
        if len(problem.feasible[g]) < 2:
            continue
        device = draw.choice([d for d in problem.feasible[g] if d != current[g]])
        moved = clusters[g] if draw.random() < 0.7 else [g]
        proposal = list(current)
        for h in moved:
            proposal[h] = device
        proposed, path = problem.simulate(proposal)
        if proposed <= cost or draw.random() < math.exp((cost - proposed) / temperature):
            current, cost, critical = proposal, proposed, path
            if cost < best_cost:
                best_cost, best = cost, list(current)
    return best
