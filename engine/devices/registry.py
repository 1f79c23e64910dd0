"""The types of devices, and the devices of this process.

`_process.count` says how many devices of each type there are where nobody asks for others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import forks
from ..cuda import loading
from ..cuda.cupy_gpu import CupyGpu
from ..errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ..graph import DeviceSpec, Operation
from ..graph.device import forget_device_type, know_device_type
from ..late import later
from ..ops.core.cluster import Compiler
from ..ops.core.kernels import HOST_TYPE
from .cpu import CpuDevice, num_cores
from .device import Device
from .factories import DeviceFactory, factories, loaded_once
from .gpu import GpuDevice

_lock = forks.lock()


def register_device(
    device_type: str,
    make: Callable[[int, int, int | None], Device],
    *,
    available: Callable[[], tuple[int, str]] = lambda: (1, ""),
    default: int | None = None,
    priority: int = -1,
    memory_bytes: Callable[[int], int] | None = None,
    compiler: Callable[[], Compiler] | None = None,
) -> None:
    """Add a type of devices.

    Args:
        device_type: its name, as in "/device:NAME:0".
        make: gives a device, from its index, how many there are, and its memory limit in bytes
            (None for none).
        available: how many there are at most, and a reason when there are none.
        default: how many a session has when it does not say; None for all.
        priority: where there is a choice, operations go to the type of the highest. The CPU has 0,
            the GPU 100; a type below 0 gets only what is placed there by name, and takes part in
            the steps alone that name it, where nobody has asked for it by a count.
        memory_bytes: gives the memory of a device, from its index, for limits that are shares of
            it.
        compiler: gives what compiles the clusters of all its devices (see `Compiler` in
            engine/ops/core/cluster.py), when that is first needed; None: they run op by op.

    Where `make`, `available` or `memory_bytes` raises, there are no devices of the type, and
    `list_devices().missing` says why; sessions and functions have the others.

    Raises:
        AlreadyExistsError: the name is taken.
        InvalidArgumentError: it cannot stand in a device name.

    Examples:
        >>> engine.register_device(
        ...     "mine", lambda index, count, limit: None, available=lambda: (0, "no driver")
        ... )
        >>> engine.unregister_device("mine")
    """
    found = DeviceSpec.from_string(f"/device:{device_type}:0").kind
    assert found is not None
    with _lock:
        if found in factories:
            raise AlreadyExistsError(f"the device type {found!r} is registered already")
        load = {} if compiler is None else {"compiler": loaded_once(compiler)}
        factories[found] = DeviceFactory(make, available, default, priority, memory_bytes, **load)
        know_device_type(found)
    _devices.cache_clear()


def unregister_device(device_type: str) -> None:
    """Take a type of devices out, as far as sessions and functions go that are made later.

    Raises:
        InvalidArgumentError: it is the CPU, which feeds come from.
        NotFoundError: there is no such type.

    Examples:
        >>> engine.unregister_device("nothing")
        Traceback (most recent call last):
            ...
        laminar.engine.errors.NotFoundError: there is no device type 'nothing'; there ...
    """
    found = device_type.lower()
    if found == HOST_TYPE:
        raise InvalidArgumentError("the CPU cannot be unregistered: values come from there")
    with _lock:
        if factories.pop(found, None) is None:
            raise NotFoundError(
                f"there is no device type {found!r}; there are {', '.join(sorted(factories))}"
            )
        forget_device_type(found)
        _process.count = {kind: n for kind, n in _process.count.items() if kind.lower() != found}
    _devices.cache_clear()


@dataclass(frozen=True)
class DeviceAttributes:
    """What is known of a device: its name, type, memory limit, incarnation, and in words."""

    name: str
    device_type: str
    memory_limit_bytes: int | None
    incarnation: int
    description: str


class DeviceList(list[DeviceAttributes]):
    """The devices of a process or a cluster; `missing[type]` says why it has none of a type."""

    def __init__(self, found: Sequence[DeviceAttributes], missing: Mapping[str, str]) -> None:
        super().__init__(found)
        self.missing = dict(missing)

    def __repr__(self) -> str:
        lines = [f"{d.name}  {d.description}" for d in self]
        lines += [f"no {kind}: {reason}" for kind, reason in self.missing.items()]
        return "\n".join(lines)


class DeviceSet(Sequence[Device]):
    """Some devices, in the order of their types' priority, then of their indexes.

    Attributes:
        missing: by type, why there are no devices of it.
        client: the device that feeds come from and fetches go to.
    """

    def __init__(self, devices: Sequence[Device], missing: Mapping[str, str] | None = None) -> None:
        order = sorted(devices, key=lambda d: (-priority_of(d.device_type), d.device_type, d.index))
        self._devices = tuple(order)
        self.missing = dict(missing or {})
        self._by_name = {d.name: d for d in order}
        self.client = next((d for d in order if d.is_client), order[0])

    def named(self, name: str) -> Device:
        """The one device with that name; NotFoundError when there is none."""
        return self._by_name.get(name) or self.matching(DeviceSpec.from_string(name))[0]

    def matching(self, spec: DeviceSpec) -> list[Device]:
        """The devices that a name, some parts of which may be missing, could mean.

        Raises:
            NotFoundError: there is none.
        """
        found = [d for d in self._devices if spec.is_compatible_with(d.spec)]
        if not found:
            reason = self.missing.get(spec.kind or "")
            raise NotFoundError(
                f"no device is named {spec.to_string()!r}; there are "
                f"{', '.join(d.name for d in self._devices)}",
                remedy=reason or "list_devices() says what there is",
            )
        return found

    @property
    def is_plain(self) -> bool:
        """Whether all there is is one CPU without a memory limit, as by default."""
        (first, *others) = self._devices
        return not others and first.is_plain

    def __getitem__(self, index: Any) -> Any:
        return self._devices[index]

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices)

    def __repr__(self) -> str:
        return f"DeviceSet({', '.join(d.name for d in self._devices)})"


def priority_of(device_type: str) -> int:
    """The priority of a type (see `register_device`)."""
    return factories[device_type].priority if device_type in factories else -1


def check_type(device_type: str, op: Operation) -> None:
    """Raise NotFoundError where an operation names a type that nobody has registered.

    Soft placement is for devices that a machine happens not to have.
    """
    if device_type not in factories:
        raise NotFoundError(
            f"operation {op.name!r} ({op.type}) cannot be placed on {op.device!r}: there is no "
            f"device type {device_type!r}; there are {', '.join(sorted(factories))}",
            remedy="register it with register_device, or name another",
            location=op.location,
            layer=op.layer,
        )


def asked_types(count: Mapping[str, int] | None) -> frozenset[str]:
    """The types that are asked for by a count of devices, or where there is none, the process's."""
    return frozenset(kind.lower() for kind in (_process.count if count is None else count))


def with_types(devices: DeviceSet, types: Collection[str]) -> DeviceSet:
    """The devices that take part in a step: those of a priority of 0 or more, and of some types."""
    return _taking_part(devices, frozenset(types))


@functools.lru_cache(maxsize=64)
def _taking_part(devices: DeviceSet, types: frozenset[str]) -> DeviceSet:
    found = [d for d in devices if d.device_type in types or priority_of(d.device_type) >= 0]
    return devices if len(found) == len(devices) else DeviceSet(found, devices.missing)


class _Process:
    """What holds where nobody says how many devices there are to be."""

    count: Mapping[str, int] = {}


_process = _Process()


def set_device_count(count: Mapping[str, int] | None = None) -> None:
    """Say which devices this process has.

    It holds for what computes at once, for functions that are traced and sessions that are made
    later. What lies on a device that there is no more stays where it is.

    Args:
        count: how many of each type, as {"cpu": 2} for two halves of the cores; None, or without a
            type, one CPU and all others.

    Raises:
        InvalidArgumentError: a count below 0, no CPU, or more devices than there are.
        NotFoundError: a type that nobody has registered.

    Examples:
        >>> engine.set_device_count({"cpu": 2})
        >>> len([device for device in engine.list_devices() if device.device_type == "cpu"])
        2
        >>> engine.set_device_count(None)
    """
    local_devices(count or {})
    _process.count = dict(count or {})


def local_devices(
    count: Mapping[str, int] | None = None,
    limit_bytes: Mapping[str, int | float] | None = None,
) -> DeviceSet:
    """The devices of this process.

    The same counts and limits give the same devices.

    Args:
        count: how many of each type, as {"cpu": 2}; for other types as many as there are where
            nobody says, one CPU and all others. None: as `set_device_count` says.
        limit_bytes: by type, the memory that each of its devices may hold, or as a float the share
            of what it has.

    Raises:
        InvalidArgumentError: a count below 0, no CPU, or more devices than there are.
        NotFoundError: a type that nobody has registered.
    """
    return _devices(*_checked(count, limit_bytes))


def task_devices(
    job: str,
    task: int,
    count: Mapping[str, int] | None = None,
    limit_bytes: Mapping[str, int | float] | None = None,
) -> DeviceSet:
    """Devices of this process, made anew for a task of a cluster, and named after it.

    Raises:
        as `local_devices`.
    """
    devices = _make_devices(*_checked(count, limit_bytes))
    for device in devices:
        device.join_task(job, task)
    return DeviceSet(devices, devices.missing)


_Numbers = tuple[tuple[str, int], ...]  # by type
_Limits = tuple[tuple[str, int | float], ...]


def _checked(
    count: Mapping[str, int] | None, limit_bytes: Mapping[str, int | float] | None
) -> tuple[_Numbers, _Limits]:
    """Counts and limits of devices, by type."""
    counts = {kind.lower(): n for kind, n in (_process.count if count is None else count).items()}
    limits = {kind.lower(): n for kind, n in (limit_bytes or {}).items()}
    for kind in (*counts, *limits):
        if kind not in factories:
            raise NotFoundError(
                f"there is no device type {kind!r}; there are {', '.join(sorted(factories))}"
            )
    for kind, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, int) or n < (kind == HOST_TYPE):
            raise InvalidArgumentError(
                f"device_count[{kind!r}] must be a number of devices, got {n!r}",
                remedy="a session has one CPU at least" if kind == HOST_TYPE else None,
            )
    for kind, limit in limits.items():
        is_share = isinstance(limit, float) and 0 < limit <= 1
        if not is_share and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidArgumentError(
                f"the memory limit of {kind!r} must be bytes, or a share of its memory as a float "
                f"up to 1.0, got {limit!r}"
            )
        if is_share and factories[kind].memory_bytes is None:
            raise InvalidArgumentError(
                f"the memory limit of {kind!r} is the share {limit!r} of what nobody knows",
                remedy="give bytes",
            )
    return tuple(sorted(counts.items())), tuple(sorted(limits.items()))


@functools.cache
def _devices(counts: _Numbers, limits: _Limits) -> DeviceSet:
    return _make_devices(counts, limits)


def _make_devices(counts: _Numbers, limits: _Limits) -> DeviceSet:
    made: list[Device] = []
    missing: dict[str, str] = {}
    wanted, limit = dict(counts), dict(limits)
    for kind, factory in factories.items():
        if wanted.get(kind) == 0:
            continue
        found, reason = _devices_of(kind, factory, wanted.get(kind), limit.get(kind))
        if len(found) < wanted.get(kind, 0):
            raise InvalidArgumentError(
                f"device_count[{kind!r}] is {wanted[kind]}, and there are {len(found)}",
                remedy=reason or None,
            )
        if reason:
            missing[kind] = reason
        made.extend(found)
    return DeviceSet(made, missing)


def _devices_of(
    kind: str, factory: DeviceFactory, count: int | None, limit: int | float | None
) -> tuple[list[Device], str]:
    """The devices of a type, at most `count` of them, and why there are none.

    All sessions come here, so what others' code raises is a reason why there are none of its type,
    and no error to those who do without.
    """
    try:
        most, reason = factory.available()
        wanted = (
            count if count is not None else most if factory.default is None else factory.default
        )
        num = min(wanted, most)
        found = [factory.make(i, num, _bytes(factory, limit, i)) for i in range(num)]
        for device in found:
            if not isinstance(device, Device):
                raise TypeError(f"make gave {device!r}, which is no Device")
    except Exception as error:
        if kind == HOST_TYPE:
            raise
        return [], f"the type {kind!r} cannot make its devices: {type(error).__name__}: {error}"
    return found, reason


def _bytes(factory: DeviceFactory, limit: int | float | None, index: int) -> int | None:
    """A limit in bytes."""
    if not isinstance(limit, float):
        return limit
    assert factory.memory_bytes is not None
    return int(limit * factory.memory_bytes(index))


def num_available(device_type: str) -> int:
    """How many devices of a type this machine has."""
    return factories[device_type].available()[0] if device_type in factories else 0


def list_devices(count: Mapping[str, int] | None = None) -> DeviceList:
    """The devices of this process, and why there are none of some types.

    Args:
        count: how many of each type, as in a SessionConfig.

    Examples:
        >>> [device.device_type for device in engine.list_devices()][:1]
        ['cpu']
    """
    return list_of(local_devices(count))


def list_of(devices: DeviceSet) -> DeviceList:
    """What is known of some devices."""
    return DeviceList(
        [
            DeviceAttributes(d.name, d.device_type, d.limit_bytes, d.incarnation, d.description)
            for d in devices
        ],
        devices.missing,
    )


def _make_cpu(index: int, count: int, limit_bytes: int | None) -> Device:
    share = max(1, num_cores() // count)
    return CpuDevice(index, num_threads=share, limit_bytes=limit_bytes)


def _make_gpu(index: int, count: int, limit_bytes: int | None) -> Device:
    return GpuDevice(CupyGpu(index, loading.load()[0]), limit_bytes=limit_bytes)


def prepare_compilers() -> None:
    """Load what compiles for the devices of this process, so that no first run waits for that."""
    found = [device.compiler for device in local_devices()]
    for compiler in {id(c): c for c in found if c is not None}.values():
        compiler.prepare()


def is_on_host(name: str) -> bool:
    """Whether a device's name says that the host's own kernels compute there."""
    return DeviceSpec.from_string(name).kind == HOST_TYPE


_MANY = 1 << 16  # CPU devices are shares of the host: there is no most that matters
register_device(
    HOST_TYPE,
    _make_cpu,
    available=lambda: (_MANY, ""),
    default=1,
    priority=0,
    compiler=later("laminar.engine.compiler", "NativeCompiler"),
)
register_device(
    GpuDevice.device_type,
    _make_gpu,
    available=loading.num_gpus,
    priority=100,
    memory_bytes=loading.total_bytes,
    compiler=later("laminar.engine.compiler.cuda", "CudaCompiler"),
)
