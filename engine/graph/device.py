"""Device names: "/job:worker/replica:0/task:1/device:gpu:0", any part of which may be missing.

Instead of a name, "@node" says: wherever that node is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..errors import InvalidArgumentError

NODE_NAME = r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*"
_PART = re.compile(
    r"/(?:(?P<field>job|replica|task):(?P<value>[A-Za-z_][\w.-]*|\d+|\*)"
    r"|(?P<device>device:)?(?P<type>[A-Za-z]\w*)(?::(?P<index>\d+|\*))?)",
    re.ASCII,
)
_COLOCATED = re.compile(rf"@{NODE_NAME}", re.ASCII)
_WORDS = ("job", "replica", "task", "device")  # a part that lacks its value
_FIELDS = ("job", "replica", "task", "device_type", "device_index")
_VALUES = {
    "job": "a name",
    "replica": "a whole number",
    "task": "a whole number",
    "device_type": "a name",
    "device_index": "a whole number",
}
_NAMES = {
    "job": re.compile(r"[A-Za-z_][\w.-]*|\d+", re.ASCII),
    "device_type": re.compile(r"[A-Za-z]\w*", re.ASCII),
}


def _fits(name: str, value: Any) -> bool:
    pattern = _NAMES.get(name)
    if pattern is not None:
        return isinstance(value, str) and pattern.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# Types that may stand for themselves, and others that may while they are registered.
_TYPES = frozenset({"cpu", "gpu", "tpu"})
_registered = set[str]()


def know_device_type(device_type: str) -> None:
    """Have "/device_type:0" be the name of a device."""
    _registered.add(device_type)


def forget_device_type(device_type: str) -> None:
    """Take back what `know_device_type` made known."""
    _registered.discard(device_type)


@dataclass(frozen=True, eq=False)
class DeviceSpec:
    """A device name in parts; None where the name says nothing.

    The case of the device type is kept, and makes no difference: "GPU" and "gpu" are one type, and
    `kind` is its name in lower case. `colocated_with` is the name of a node, of a spec that says no
    more than that: the device of that node.

    Raises:
        InvalidArgumentError: a part is none that a name can have.

    Examples:
        >>> spec = engine.DeviceSpec(job="worker", task=1, device_type="gpu", device_index=0)
        >>> str(spec)
        '/job:worker/task:1/device:gpu:0'
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None
    colocated_with: str | None = None

    def __post_init__(self) -> None:
        for name, value in zip(_FIELDS, self._parts(), strict=True):
            if value is not None and not _fits(name, value):
                raise InvalidArgumentError(
                    f"DeviceSpec: {name} must be {_VALUES[name]} or None, got {value!r}"
                )
        if self.colocated_with is not None and any(p is not None for p in self._parts()):
            raise InvalidArgumentError(
                f"device: what is placed with {self.colocated_with!r} has no name besides, got "
                f"{replace(self, colocated_with=None).to_string()!r}"
            )

    @classmethod
    def from_string(cls, text: str) -> DeviceSpec:
        """Parse a name; "" is the empty spec, an index may be "*" for any; "@node" names a node.

        Raises:
            InvalidArgumentError: `text` is not a device name.
        """
        if _COLOCATED.fullmatch(text):
            return cls(colocated_with=text[1:])
        fields: dict[str, str | int | None] = {}
        position = 0
        # "cpu:0" alone is how people speak of a device.
        source = text if not text or text.startswith("/") else "/" + text
        while position < len(source):
            match = _PART.match(source, position)
            if match is None:
                break
            position = match.end()
            name, value = match["field"], match["value"]
            if name is not None:
                if name != "job" and value != "*" and not value.isdigit():
                    break
                part = value if name == "job" else int(value) if value.isdigit() else None
                found: dict[str, str | int | None] = {name: None if value == "*" else part}
            else:
                kind, index = match["type"], match["index"]
                if kind.lower() in _WORDS:
                    break
                alone = source is not text and index is not None  # "mine:0", without a slash
                if not (
                    match["device"]
                    or kind.lower() in _TYPES
                    or kind.lower() in _registered
                    or alone
                ):
                    break
                found = {
                    "device_type": kind,
                    "device_index": None if index in (None, "*") else int(index),
                }
            if fields.keys() & found.keys():
                raise InvalidArgumentError(f"device {text!r}: a part is given twice")
            fields.update(found)
        else:
            return cls(**fields)  # type: ignore[arg-type]  # the parts have the fields' types
        raise InvalidArgumentError(
            f"device {text!r} is not a device name",
            remedy='write it as "/job:worker/task:0/device:gpu:0", "/gpu:0", "cpu:0" or "@node"',
        )

    parse_from_string = from_string

    def merge_from(self, other: DeviceSpec) -> DeviceSpec:
        """This spec with the parts that `other` sets taken from `other`.

        One that names a node, and one that names a device, have nothing to add to each other.
        """
        if other == ANYWHERE:
            return self
        if self.colocated_with is not None or other.colocated_with is not None:
            return other
        return type(self)(
            *(
                mine if theirs is None else theirs
                for mine, theirs in zip(self._parts(), other._parts(), strict=True)
            )  # type: ignore[arg-type]  # parts keep their place
        )

    make_merged_spec = merge_from

    def replace(self, **parts: Any) -> DeviceSpec:
        """A new spec with other parts; None unsets a part."""
        return replace(self, **parts)

    def to_string(self) -> str:
        """The canonical name."""
        if self.colocated_with is not None:
            return f"@{self.colocated_with}"
        parts = []
        for field in ("job", "replica", "task"):
            value = getattr(self, field)
            if value is not None:
                parts.append(f"/{field}:{value}")
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            parts.append(f"/device:{self.device_type}:{index}")
        return "".join(parts)

    @property
    def kind(self) -> str | None:
        """The device type in lower case."""
        return None if self.device_type is None else self.device_type.lower()

    def is_compatible_with(self, other: DeviceSpec) -> bool:
        """Whether one device could have both names."""
        return all(
            a is None or b is None or a == b for a, b in zip(self._key(), other._key(), strict=True)
        )

    def _key(self) -> tuple[str | int | None, ...]:
        return (self.job, self.replica, self.task, self.kind, self.device_index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceSpec):
            return NotImplemented
        return self._key() == other._key() and self.colocated_with == other.colocated_with

    def __hash__(self) -> int:
        return hash((*self._key(), self.colocated_with))

    def _parts(self) -> tuple[str | int | None, ...]:
        return (self.job, self.replica, self.task, self.device_type, self.device_index)

    def __str__(self) -> str:
        return self.to_string()


ANYWHERE = DeviceSpec()


class EagerPlace(Protocol):
    """A device, as what computes at once knows it; see engine/devices/place.py."""

    @property
    def spec(self) -> DeviceSpec:
        """Its name."""

    def get(self, value: Any) -> Any:
        """An array of the device, copied out to the host."""

    def tensor(self, array: Any, dtype: Any) -> Any:
        """A host array as a tensor that lies there."""

    def compute(
        self, op: Any, tensors: Sequence[Any], attrs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """The outputs of an op, computed there, and its attributes with defaults."""
