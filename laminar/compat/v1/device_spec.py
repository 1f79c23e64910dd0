"""tf.DeviceSpec: the name of a device in parts that can be set."""

from __future__ import annotations

from typing import Any

from laminar import engine

_PARTS = ("job", "replica", "task", "device_type", "device_index")


class DeviceSpec:
    """The name of a device in parts; None where it says nothing.

    As `laminar.engine.DeviceSpec`, but parts can be set, `merge_from` changes the spec, and "CPU"
    and "GPU" are in capitals.

    Raises:
        InvalidArgumentError: a part is none that a name can have.
    """

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self._take(engine.DeviceSpec(job, replica, task, device_type, device_index))

    def _take(self, spec: engine.DeviceSpec) -> None:
        kind = spec.device_type
        if kind in ("cpu", "gpu"):
            spec = engine.DeviceSpec(
                spec.job, spec.replica, spec.task, kind.upper(), spec.device_index
            )
        self.__dict__["_spec"] = spec

    def __getattr__(self, name: str) -> Any:
        if name not in _PARTS:
            raise AttributeError(f"DeviceSpec has no {name!r}", name=name, obj=self)
        return getattr(self._spec, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _PARTS:
            raise AttributeError(f"DeviceSpec has no {name!r}", name=name, obj=self)
        self._take(engine.DeviceSpec(**{p: getattr(self, p) for p in _PARTS} | {name: value}))

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The spec that a name stands for; InvalidArgumentError where it is none."""
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Be the spec that a name stands for; gives itself."""
        self._take(engine.DeviceSpec.from_string(spec))
        return self

    def merge_from(self, dev: Any) -> DeviceSpec:
        """Take the parts that `dev` sets; gives itself."""
        self._take(self._spec.merge_from(engine.DeviceSpec.from_string(dev.to_string())))
        return self

    def make_merged_spec(self, dev: Any) -> DeviceSpec:
        """A new spec: this one with the parts that `dev` sets."""
        return self.replace().merge_from(dev)

    def replace(self, **parts: Any) -> DeviceSpec:
        """A new spec with other parts; None unsets a part."""
        return DeviceSpec(**{p: getattr(self, p) for p in _PARTS} | parts)

    def to_string(self) -> str:
        """The name, as "/job:ps/task:0/device:CPU:0"."""
        return str(self._spec)

    def __str__(self) -> str:
        return self.to_string()

    def __eq__(self, other: object) -> bool:
        return self._spec == other._spec if isinstance(other, DeviceSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._spec)

    def __repr__(self) -> str:
        return f"<DeviceSpec {self.to_string()!r}>"
