"""DataParallel: one copy of a model's computation per device, one set of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.devices import local_devices
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import DeviceSpec
from laminar.engine.ops.core.kernels import HOST_TYPE
from laminar.engine.runtime import Machine, SessionConfig

from .replicas import Replicas, sharing
from .staleness import Staleness

_MODES = ("sync", "async")


class DataParallel:
    """Several devices share the work on each batch, or on the batches.

    `mode="sync"`: every device computes a share of the batch; the loss, the metrics and the update
    are those of the whole batch. Training is that of one device, up to the rounding of sums, also
    for a short last batch, with sample weights, for any loss, and in a `train_step` of the user's:
    the calls of models in it are what is shared. BatchNormalization has the statistics of each
    share, and its moving ones are the mean of those; with `synchronized=True` they are those of
    the whole batch, and such layers are computed on one device. What runs op by op
    (`run_eagerly`), and a batch of fewer examples than devices, is computed by one device.

    `mode="async"`: every device trains on batches of its own, without waiting for the others.
    Gradients are those of the weights at the time when a device began with its batch; `staleness`
    tells how many updates of others came between. Updates are applied one at a time. It leaves
    `train_step` to `fit`; with `fit(check="nan")` one batch is looked at after the other.

    Args:
        devices: their names, or how many: GPUs if there are as many, else shares of the CPU.
        mode: "sync" or "async".
        max_staleness: for "async", the most updates that may come between; a device that is ahead
            waits for those behind. None for no bound.

    Raises:
        InvalidArgumentError: no devices, one twice, an unknown mode, or a bound below 0 or
            without "async".
        NotFoundError: a device does not exist.

    Examples:
        >>> model = laminar.Sequential([layers.Input((4,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse", strategy=laminar.distribute.DataParallel(2))
        >>> history = model.fit(np.ones((8, 4)), np.ones((8, 1)), verbose=0)
    """

    def __init__(
        self,
        devices: Sequence[str] | int = 2,
        mode: str = "sync",
        max_staleness: int | None = None,
    ) -> None:
        if mode not in _MODES:
            raise InvalidArgumentError(
                f"DataParallel: mode must be one of {', '.join(_MODES)}, got {mode!r}"
            )
        if max_staleness is not None and (
            mode != "async" or isinstance(max_staleness, bool) or max_staleness < 0
        ):
            raise InvalidArgumentError(
                f"DataParallel: max_staleness is for mode='async', a number of updates from 0 on, "
                f"got {max_staleness!r} with mode={mode!r}"
            )
        names = _names(devices)
        self.mode = mode
        # CPUs share memory, so that their replicas lose nothing by sharing threads, too, and need
        # not wait for each other.
        config = SessionConfig(device_count=_counts(names), allow_soft_placement=True)
        self.machine = Machine(config, pools_cpus=True)
        self.devices = [self.machine.devices.named(name).name for name in names]
        if len(set(self.devices)) < len(self.devices):
            raise InvalidArgumentError(
                f"DataParallel: a device is named twice: {names}",
                remedy="name each device once: it can have more than one thread",
            )
        self.staleness = Staleness(max_staleness)

    @property
    def num_replicas(self) -> int:
        """How many copies of the computation there are."""
        return len(self.devices)

    @property
    def is_async(self) -> bool:
        """Whether devices train without waiting for each other."""
        return self.mode == "async"

    def shared(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`step` with its calls of models shared among the devices, where it is traced."""

        def run(batch: Any) -> Any:
            with sharing(Replicas(self.devices) if self.shares_batches else None):
                return step(batch)

        return run

    @property
    def shares_batches(self) -> bool:
        """Whether each batch is computed by several devices."""
        return not self.is_async and self.num_replicas > 1

    def __repr__(self) -> str:
        return f"DataParallel({self.devices}, mode={self.mode!r})"


def _names(devices: Sequence[str] | int) -> list[str]:
    if isinstance(devices, int):
        if isinstance(devices, bool) or devices < 1:
            raise _bad_devices(devices)
        preferred = local_devices()[0].device_type
        found = [d.name for d in local_devices() if d.device_type == preferred]
        if len(found) >= devices:
            return found[:devices]
        return [f"{HOST_TYPE}:{i}" for i in range(devices)]
    names = [] if isinstance(devices, str) or not isinstance(devices, Sequence) else list(devices)
    if not names or not all(isinstance(name, str) for name in names):
        raise _bad_devices(devices)
    return names


def _bad_devices(devices: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"DataParallel: expected a number of devices from 1 on, or their names, got {devices!r}",
        remedy='write devices=2, or devices=["cpu:0", "cpu:1"]',
    )


def _counts(names: Sequence[str]) -> dict[str, int]:
    """How many CPUs there must be for all that are named; of other devices there are all."""
    cpus = [DeviceSpec.from_string(name) for name in names]
    most = max((d.device_index or 0 for d in cpus if d.device_type == HOST_TYPE), default=0)
    return {HOST_TYPE: most + 1}
