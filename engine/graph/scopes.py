"""Names of operations, and the scopes of a graph under construction: names, devices and others.

And what a graph keeps besides: collections, and what sessions may not give it, or ask of it.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

from ..errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError
from .device import ANYWHERE, NODE_NAME, DeviceSpec
from .operation import Operation

Gradient: TypeAlias = "Callable[..., Any] | str"  # a function, or the name of one
_Kept = TypeVar("_Kept")
DeviceRule: TypeAlias = "Callable[[Operation], str | DeviceSpec | None]"
_NAME = re.compile(NODE_NAME)


def is_name(name: str) -> bool:
    """Whether an operation could have the name."""
    try:
        return _NAME.fullmatch(name) is not None
    except TypeError:  # no string
        return False


def as_text(name: Any) -> Any:
    """A name in bytes as text; anything else as it is."""
    return name.decode() if isinstance(name, bytes) else name


def check_name(name: str) -> None:
    """InvalidArgumentError unless an operation could have the name."""
    if not is_name(name):
        raise InvalidArgumentError(
            f"{name!r} is not a name for an operation",
            remedy="use letters, digits and _ . - /, starting with a letter or digit",
        )


def check_text(name: Any) -> None:
    """ArgumentTypeError for what is no string."""
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"Graph: a name is a string, got {name!r}",
            remedy="as_graph_element takes tensors and operations, too",
        )


def _spec_of(where: Any) -> Any:
    """The spec that a name, or a spec of another class, stands for; anything else as it is."""
    if isinstance(where, DeviceSpec):
        return where
    name = where.to_string() if hasattr(where, "to_string") else where
    return DeviceSpec.from_string(name) if isinstance(name, str) else where


def in_order(what: str, innermost: bool) -> None:
    """FailedPreconditionError unless the block that is left is the innermost of its kind."""
    if not innermost:
        raise FailedPreconditionError(f"{what}: blocks must be left in the order of entering")


class Scopes(threading.local):
    """What a new operation gets from the `with` blocks around it; each thread has its own.

    Attributes:
        name: prefix of names, "" or "a/b/".
        container: where state is kept, "" for the default container.
        colocation: names of the operations to be placed with.
        kernel_labels: by the type of an op, the label of the kernels that compute it.
        gradients: by the type of an op, what is its gradient in place of its own.
    """

    def __init__(self) -> None:
        self.name = ""
        self.container = ""
        self.colocation: tuple[str, ...] = ()
        self.kernel_labels: Mapping[str, str] = {}
        self.gradients: Mapping[str, Gradient] = {}
        self._controls: list[list[Operation]] = []
        self._devices: list[DeviceSpec | DeviceRule | None] = []

    def control_inputs(self) -> list[Operation]:
        """The operations that a new one must wait for, outermost first, each once."""
        return list(dict.fromkeys(op for level in self._controls for op in level))

    def inherit_device(self, device: str) -> None:
        """Start from the device that surrounds the making of the graph."""
        self._devices.append(DeviceSpec.from_string(device))

    @contextmanager
    def controls(self, ops: list[Operation] | None) -> Iterator[None]:
        """Add a level of control inputs; None starts afresh."""
        before = self._controls
        mine = self._controls = [] if ops is None else [*before, ops]
        try:
            yield
            in_order("control_dependencies", self._controls is mine)
        finally:
            self._controls = before

    @contextmanager
    def device(self, where: str | DeviceSpec | DeviceRule | None) -> Iterator[None]:
        """Add a level of device constraint; None hides the outer ones."""
        level = _spec_of(where)
        if not (level is None or isinstance(level, DeviceSpec) or callable(level)):
            raise ArgumentTypeError(
                f"device: expected the name of a device, got {where!r}",
                remedy='device("cpu:0")',
            )
        before = self._devices
        mine = self._devices = [*before, level]
        try:
            yield
            in_order("device", self._devices is mine)
        finally:
            self._devices = before

    def device_for(self, op: Operation) -> DeviceSpec:
        """The device of a new operation: innermost scope first, what is already set wins."""
        if not op.device and all(isinstance(level, DeviceSpec) for level in self._devices):
            return self._merged_levels()
        before = op.device
        spec = DeviceSpec.from_string(before)
        try:
            for level in reversed(self._devices):
                if level is None:
                    break
                if isinstance(level, DeviceSpec):
                    found: DeviceSpec | None = level
                else:  # it may depend on what the inner levels say
                    op.device = "" if spec.colocated_with is not None else spec.to_string()
                    found = _spec_of(level(op))
                if found is not None:
                    spec = found.merge_from(spec)
        finally:
            op.device = before
        return spec

    @property
    def device_name(self) -> str:
        """The device that the scopes alone name (functions among them are not asked)."""
        spec = self._merged_levels()
        return "" if spec.colocated_with is not None else spec.to_string()

    def _merged_levels(self) -> DeviceSpec:
        if not self._devices:
            return ANYWHERE
        levels: list[DeviceSpec] = []
        for level in reversed(self._devices):
            if level is None:
                break
            if isinstance(level, DeviceSpec):
                levels.append(level)
        return _merged(tuple(levels), tuple([level.device_type for level in levels]))


@functools.lru_cache(256)
def _merged(levels: tuple[DeviceSpec, ...], types: tuple[str | None, ...]) -> DeviceSpec:
    """What levels say together, the innermost first: it wins. `types` have their case."""
    spec = ANYWHERE
    for level in levels:
        spec = level.merge_from(spec)
    return spec


class Runner(Protocol):
    """What `Tensor.eval` and `Operation.run` need of a session."""

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Compute the fetches."""


class Entered(threading.local):
    """The sessions that a thread has entered as default for a graph."""

    def __init__(self) -> None:
        self.sessions: list[Runner] = []


class _Refused:
    """By their ids: tensors that are not fed, operations that are not fetched."""

    def __init__(self) -> None:
        self.feeds: dict[int, Any] = {}
        self.fetches: dict[int, Operation] = {}


class FeedRules:
    """The part of a graph that says what sessions may not give it, and not ask of it."""

    def attached(self, kind: type[_Kept]) -> _Kept:
        """What is kept with the graph; see `Graph.attached`."""
        raise NotImplementedError

    def prevent_feeding(self, tensor: Any) -> None:
        """Have sessions refuse values for a tensor."""
        self.attached(_Refused).feeds[id(tensor)] = tensor

    def prevent_fetching(self, op: Operation) -> None:
        """Have sessions refuse to fetch an operation, or what it makes."""
        self.attached(_Refused).fetches[id(op)] = op

    def is_feedable(self, tensor: Any) -> bool:
        """Whether sessions take a value for a tensor."""
        return id(tensor) not in self.attached(_Refused).feeds

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Whether sessions give a tensor or run an operation that is asked for."""
        refused = self.attached(_Refused).fetches
        op = getattr(tensor_or_op, "op", tensor_or_op)
        return id(op) not in refused

    def check_step(self, feeds: Any, fetches: Any) -> None:
        """InvalidArgumentError if a step is fed with, or asked for, what is refused."""
        refused = self.attached(_Refused)
        if not refused.feeds and not refused.fetches:
            return
        for tensor in feeds:
            if id(tensor) in refused.feeds:
                raise InvalidArgumentError(
                    f"Session: {tensor.name!r} has been marked as not feedable",
                    remedy="feed what it is computed from",
                )
        for element in fetches:
            if not self.is_fetchable(element):
                raise InvalidArgumentError(
                    f"Session: {element.name!r} has been marked as not fetchable",
                    remedy="fetch what is computed from it",
                )


class Collections:
    """The part of `Graph` that keeps lists of objects by key."""

    _lock: AbstractContextManager[Any]
    _collections: dict[str, list[Any]]

    @property
    def root(self) -> Collections:
        """The graph whose collections these are; see `Graph.root`."""
        raise NotImplementedError

    def check_open(self, what: str) -> None:
        """FailedPreconditionError when nothing may change; see `Graph.check_open`."""
        raise NotImplementedError

    def add_to_collection(self, key: str, value: Any) -> None:
        """Append `value` to the list under `key`; of a branch or a body, of the graph around it."""
        root = self.root
        with root._lock:
            root.check_open(f"adding to collection {key!r}")
            root._collections.setdefault(key, []).append(value)

    def get_collection(self, key: str, scope: str | None = None) -> list[Any]:
        """A copy of the list under `key`; with `scope`, the items whose name starts so."""
        items = list(self.root._collections.get(key, ()))
        if scope is None:
            return items
        return [i for i in items if re.match(scope, getattr(i, "name", ""))]

    def get_collection_ref(self, key: str) -> list[Any]:
        """The list itself under `key`, which changes with it."""
        self.root.check_open(f"changing collection {key!r}")
        return self.root._collections.setdefault(key, [])

    def clear_collection(self, key: str) -> None:
        """Empty the list under `key`."""
        self.get_collection_ref(key).clear()

    def add_to_collections(self, keys: Sequence[str], value: Any) -> None:
        """Append `value` to the list under each key, once."""
        for key in dict.fromkeys([keys] if isinstance(keys, str) else keys):
            self.add_to_collection(key, value)

    @property
    def collection_keys(self) -> list[str]:
        """The keys in use."""
        return list(self.root._collections)

    def get_all_collection_keys(self) -> list[str]:
        """`collection_keys`, as a call."""
        return self.collection_keys
