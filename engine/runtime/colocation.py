"""Colocation: which operations stand together, and where they may be.

Operations that must stand together (those that share a resource, and those that `colocate_with`
joins) are groups, found by union-find. A group may go where every member has a kernel and may be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..devices import Device, DeviceSet, RemoteDevice
from ..errors import InvalidArgumentError, NotFoundError
from ..graph import DeviceSpec, DeviceTensor, GraphTensor, Operation, resource
from ..ops.control.dataflow import ENTER, EXIT, LOOP_COND, MERGE, NEXT_ITERATION, SWITCH
from ..ops.core.registry import definition_of
from ..passes.order import in_order
from ..passes.step_graph import standing_with

_SOFTLY = "SessionConfig(allow_soft_placement=True) places it elsewhere"


@dataclass
class Group:
    """Operations that stand together; `owner` has the last word, `reason` says why."""

    owner: Operation
    members: list[Operation]
    feasible: list[Device]
    reason: str = ""


class Groups:
    """The groups of some operations: `of(op)` is the one of an operation."""

    def __init__(
        self,
        operations: Sequence[Operation],
        devices: DeviceSet,
        feeds: Collection[GraphTensor],
        *,
        soft: bool,
        settled: Mapping[str, str],
    ) -> None:
        self._devices = devices
        self._soft = soft
        self._settled = settled
        # By the id of a fed handle, the device that what it stands for was made on.
        self._state = {
            id(inner): outer.place.spec.to_string()
            for graph in {x.graph for x in feeds}
            for outer, inner in graph.captures.values()
            if isinstance(outer, DeviceTensor) and outer.dtype == resource
        }
        if isinstance(devices.client, RemoteDevice):  # what a handle stands for does not travel
            self._state |= {id(x): devices.client.name for x in feeds if x.dtype == resource}
        self._pins: dict[int, str] = {}  # the device of what is not in the step, for those by it
        self._parent = {op.id: op.id for op in operations}
        self._join(operations, feeds)
        members: dict[int, list[Operation]] = {}
        for op in operations:
            members.setdefault(self._find(op.id), []).append(op)
        self._groups = {root: self._group(ops) for root, ops in members.items()}

    def of(self, op: Operation) -> Group:
        """The group of an operation."""
        return self._groups[self._find(op.id)]

    # Union-find

    def _find(self, i: int) -> int:
        parent = self._parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def _unite(self, i: int, j: int) -> None:
        i, j = self._find(i), self._find(j)
        self._parent[max(i, j)] = min(i, j)

    def _join(self, operations: Sequence[Operation], feeds: Collection[GraphTensor]) -> None:
        fed = {id(t) for t in feeds}
        by_name = {op.name: op for op in operations}
        present = dict(by_name)
        users: dict[int, Operation] = {}  # the first that takes a resource that is fed
        for op in operations:
            if op.colocation:
                names, self._pins[op.id] = standing_with(op, by_name)
                for name in names:  # what is not in the step joins those that name it
                    self._unite(op.id, present.setdefault(name, op).id)
            for x in op.inputs:
                if x.dtype != resource:
                    continue
                known = users.setdefault(id(x), op) if id(x) in fed else x.op
                self._unite(op.id, known.id)
        self._join_loops(operations, fed)

    def _join_loops(self, operations: Sequence[Operation], fed: Collection[int]) -> None:
        """Have what steers a loop in one place; its body can be anywhere (partition_loops.py)."""
        if not any(op.definition is ENTER for op in operations):
            return
        first: dict[tuple[str, ...], int] = {}  # frame -> an operation that steers it
        frames: dict[int, tuple[str, ...]] = {}  # operation -> the frames around its outputs
        for op in in_order(operations):
            sources = [x.op.id for x in op.inputs if id(x) not in fed]
            sources += [c.id for c in op.control_inputs]
            around = max((frames.get(i, ()) for i in sources), key=len, default=())
            inside = around
            if op.definition is ENTER:
                inside = (*around, op.attrs["frame_name"])
            elif op.definition is EXIT:
                inside = around[:-1]
            frames[op.id] = inside
            if _steers_a_loop(op):
                frame = inside if op.definition is ENTER else around
                self._unite(op.id, first.setdefault(frame, op.id))

    # Where a group may be

    def _group(self, members: list[Operation]) -> Group:
        owner = next((op for op in members if _makes_resource(op)), members[0])
        feasible = [d for d in self._devices if all(_runs_on(op, d) for op in members)]
        if not feasible:
            raise self._no_kernel(owner, members)
        group = Group(owner, members, feasible)
        name = self._settled.get(owner.name) or self._lies_on(members)
        for other in (n for op in members for n in standing_with(op, ())[0]):
            name = name or self._settled.get(other)
        if name is not None:
            held = [d for d in feasible if d.name == name]
            if held:
                group.feasible, group.reason = held, "where it is already"
                return group
        by: Operation | None = None
        pinned = [op for op in members if self._device(op) and op is not owner]
        # Who asks to stand with others is named before what was only made for it.
        pinned.sort(key=lambda op: not op.colocation)
        for op in (owner, *pinned):
            if not self._device(op):
                continue
            spec = DeviceSpec.from_string(self._device(op))
            left = [d for d in group.feasible if spec.is_compatible_with(d.spec)]
            if left:
                group.feasible = left
                by = by or op
            elif self._soft:
                group.reason = f"soft placement: {self._device(op)} cannot be had; "
                task = spec.replace(device_type=None, device_index=None)
                near = [d for d in group.feasible if task.is_compatible_with(d.spec)]
                group.feasible = near or group.feasible
            elif by is None:
                raise self._unplaceable(op, group)
            elif op.colocation or owner.colocation or not _takes_resource(op):
                raise _conflict(by, op)
            # else: what uses a resource runs where the resource is, whatever the scope says
        if by is not None and not group.reason:
            group.reason = (
                f"pinned to {self._device(by)}"
                if len(members) == 1
                else f"with {owner.name!r}, pinned to {self._device(by)}"
            )
        elif len(members) > 1:
            group.reason += f"with {owner.name!r}, "
        return group

    def _device(self, op: Operation) -> str:
        """The device that is asked for, of an operation or of what it stands with."""
        return op.device or self._pins.get(op.id, "")

    def _lies_on(self, members: Sequence[Operation]) -> str | None:
        """The device of a variable that was made there, if one of these operations takes it."""
        for op in members:
            for x in op.inputs:
                found = self._state.get(id(x))
                if found is not None:
                    return found
        return None

    def _no_kernel(self, owner: Operation, members: Sequence[Operation]) -> InvalidArgumentError:
        types = sorted({d.device_type for d in self._devices})
        alone = [op for op in members if not any(_runs_on(op, d) for d in self._devices)]
        op = alone[0] if alone else owner
        have = ", ".join(
            f"{m.name!r} ({m.type}): {', '.join(_kernel_types(m, types)) or 'none of these'}"
            for m in members[:5]
        )
        return InvalidArgumentError(
            f"operation {op.name!r} ({op.type}) cannot be placed: "
            f"no device of {self._devices} has kernels for it"
            f"{' and what it is colocated with' if not alone else ''}; kernels: {have}\n  {op!r}",
            remedy="register a kernel, or take the operations apart",
            location=op.location,
            layer=op.layer,
        )

    def _unplaceable(self, op: Operation, group: Group) -> InvalidArgumentError:
        wish = self._device(op)
        spec = DeviceSpec.from_string(wish)
        try:
            there = self._devices.matching(spec)
            types = sorted({d.device_type for d in group.feasible})
            why = f"{there[0].name} has no kernel for {op.type}, which runs on: {', '.join(types)}"
            reason: str | None = None
        except NotFoundError as error:
            why, reason = error.message, error.remedy
        return InvalidArgumentError(
            f"operation {op.name!r} ({op.type}) cannot be placed on {wish!r}: {why}\n  {op!r}",
            remedy="; ".join(filter(None, (reason, _SOFTLY))),
            location=op.location,
            layer=op.layer,
        )


def _conflict(a: Operation, b: Operation) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"operations {a.name!r} ({a.type}), pinned to {a.device!r}, and {b.name!r} ({b.type}), "
        f"pinned to {b.device!r}, are to be colocated\n  {a!r}\n  {b!r}",
        remedy=f"pin them alike; {a.name!r} was made at {a.location}",
        location=b.location,
        layer=b.layer,
    )


def _steers_a_loop(op: Operation) -> bool:
    if op.definition is MERGE:
        return any(x.op.definition is NEXT_ITERATION for x in op.inputs)
    if op.definition is SWITCH:
        return op.inputs[1].op.definition is LOOP_COND
    return op.definition in (ENTER, EXIT, NEXT_ITERATION, LOOP_COND)


def _makes_resource(op: Operation) -> bool:
    return any(y.dtype == resource for y in op.outputs)


def _takes_resource(op: Operation) -> bool:
    return any(x.dtype == resource for x in op.inputs)


def _runs_on(op: Operation, device: Device) -> bool:
    """Whether a device has a kernel for an operation, and can hold what it takes and gives."""
    if not device.has_kernel(definition_of(op), [x.spec for x in op.inputs]):
        return False
    return not any(map(device.refuses, (*op.inputs, *op.outputs)))


def _kernel_types(op: Operation, types: Sequence[str]) -> list[str]:
    own = list(getattr(op.definition, "kernels", ()))
    general = getattr(op.definition, "reference_kernel", None) is not None
    return sorted({*own, *(types if general else ())})
