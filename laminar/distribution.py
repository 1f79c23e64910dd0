"""`laminar.distribution`: the names under which Keras shares training among devices.

`set_distribution(DataParallel())` makes every model that is compiled afterwards train on all
devices: it is `compile(strategy=laminar.distribute.DataParallel(devices))`. In a program that
several processes run (`laminar launch -n 4 train.py`), after `initialize()`, each process is a
device, and `ModelParallel` has each keep pieces of the variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from laminar import distribute
from laminar.distribute.collectives import mpi
from laminar.distribute.layouts.model_parallel import ModelParallel as ModelParallelWorkers
from laminar.engine import list_devices as _all_devices
from laminar.engine.errors import InvalidArgumentError, UnimplementedError
from laminar.engine.graph import DeviceSpec
from laminar.ops import convert_to_tensor

# `is_joined`: whether the processes that were started together are the devices.
_state: dict[str, Any] = {"distribution": None, "is_joined": False}


def list_devices(device_type: str | None = None) -> list[str]:
    """The devices of this process, such as ["cpu:0"]; after `initialize`, one for each process.

    Args:
        device_type: such as "cpu" or "gpu"; otherwise the type that work goes to: the GPUs, or the
            CPU if there are none.
    """
    found = _all_devices()
    wanted = (device_type or found[0].device_type).lower()
    if _state["is_joined"]:
        return [f"{wanted}:{rank}" for rank in range(mpi.world().size)]
    return [_short(device.name) for device in found if device.device_type == wanted]


def get_device_count(device_type: str | None = None) -> int:
    """How many devices `list_devices` gives."""
    return len(list_devices(device_type))


def initialize(
    job_addresses: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
) -> None:
    """Join the processes that were started together, as by `laminar launch -n 4` or `mpirun`.

    Args:
        job_addresses: processes find each other without; it must be None.
        num_processes: how many there must be; by default as many as there are.
        process_id: the number that this one must have.

    Raises:
        UnimplementedError: addresses were given.
        InvalidArgumentError: there are other processes.
        FailedPreconditionError: mpi4py, or its MPI library, is missing.
    """
    if job_addresses is not None:
        raise UnimplementedError(
            "distribution.initialize: processes are not joined by their addresses",
            remedy="start them together, as by laminar launch -n 4 train.py, and leave these out",
        )
    group = mpi.world()
    if num_processes not in (None, group.size) or process_id not in (None, group.rank):
        raise InvalidArgumentError(
            f"distribution.initialize: expected process {process_id} of {num_processes}, this is "
            f"process {group.rank} of {group.size}",
            remedy="start as many: laminar launch -n 4 train.py",
        )
    _state["is_joined"] = group.size > 1


class DeviceMesh:
    """Devices as a grid whose axes have names.

    Args:
        shape: of the grid.
        axis_names: one for each axis.
        devices: their names; by default those of `list_devices()`.

    Raises:
        InvalidArgumentError: the shape has another number of devices or of axes.
    """

    def __init__(
        self, shape: Sequence[int], axis_names: Sequence[str], devices: Any = None
    ) -> None:
        found = np.array(list_devices() if devices is None else devices, dtype=object).ravel()
        if len(shape) != len(axis_names):
            raise InvalidArgumentError(
                f"DeviceMesh: shape {tuple(shape)} has {len(shape)} axes, "
                f"axis_names {list(axis_names)} names {len(axis_names)}"
            )
        if math.prod(shape) != len(found):
            raise InvalidArgumentError(
                f"DeviceMesh: shape {tuple(shape)} takes {math.prod(shape)} devices, "
                f"got {len(found)}: {found.tolist()}",
                remedy="name as many devices; or start as many processes (laminar launch -n 4), "
                "and call distribution.initialize() in them first",
            )
        self.shape = tuple(shape)
        self.axis_names = list(axis_names)
        self.devices = found.reshape(self.shape)

    def __repr__(self) -> str:
        return f"<DeviceMesh shape={self.shape}, axis_names={self.axis_names}>"


class TensorLayout:
    """Along which axis of a mesh each axis of a tensor is cut; None for one that is whole.

    Raises:
        InvalidArgumentError: the mesh has no axis of a name.
    """

    def __init__(self, axes: Sequence[str | None], device_mesh: DeviceMesh | None = None) -> None:
        self.axes = tuple(axes)
        self.device_mesh = device_mesh

    @property
    def device_mesh(self) -> DeviceMesh | None:
        """The mesh; it may be set later, when it must have the axes."""
        return self._mesh

    @device_mesh.setter
    def device_mesh(self, mesh: DeviceMesh | None) -> None:
        for axis in self.axes:
            if mesh is not None and axis is not None and axis not in mesh.axis_names:
                raise InvalidArgumentError(
                    f"TensorLayout: the mesh has no axis {axis!r}; "
                    f"its axes are {', '.join(map(repr, mesh.axis_names))}"
                )
        self._mesh = mesh

    def __repr__(self) -> str:
        return f"<TensorLayout axes={self.axes}, device_mesh={self.device_mesh}>"


class LayoutMap(MutableMapping[str, Any]):
    """Layouts of variables by patterns (regular expressions) of their paths.

    `layouts[path]` is the layout of the pattern that equals `path`, else of the one found in it,
    else None.

    Raises:
        InvalidArgumentError: two patterns are found in a path.
    """

    def __init__(self, device_mesh: DeviceMesh) -> None:
        self.device_mesh = device_mesh
        self._layouts: dict[str, TensorLayout] = {}

    def __getitem__(self, key: str) -> TensorLayout | None:
        if key in self._layouts:
            return self._layouts[key]
        found = [pattern for pattern in self._layouts if re.search(pattern, key)]
        if len(found) > 1:
            raise InvalidArgumentError(
                f"LayoutMap: the path {key!r} has {len(found)} patterns: {found}",
                remedy="make the patterns exclude each other",
            )
        return self._layouts[found[0]] if found else None

    def __setitem__(self, key: str, layout: Any) -> None:
        if key in self._layouts:
            raise InvalidArgumentError(f"LayoutMap: the pattern {key!r} has a layout already")
        if not isinstance(layout, TensorLayout):
            layout = TensorLayout(layout, self.device_mesh)
        self._layouts[key] = layout

    def __delitem__(self, key: str) -> None:
        del self._layouts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)


class DataParallel:
    """Each device works on a part of every batch; each has all variables.

    Args:
        device_mesh: a mesh of one axis; or
        devices: names of devices; by default those of `list_devices()`.
        auto_shard_dataset: kept for Keras scripts; batches are always shared.

    Raises:
        InvalidArgumentError: a mesh of several axes, or both a mesh and devices.
    """

    def __init__(
        self,
        device_mesh: DeviceMesh | None = None,
        devices: Sequence[str] | None = None,
        auto_shard_dataset: bool = True,
    ) -> None:
        if device_mesh is not None and devices is not None:
            raise InvalidArgumentError("DataParallel: got both device_mesh and devices; give one")
        if device_mesh is None:
            names = list_devices() if devices is None else list(devices)
            device_mesh = DeviceMesh((len(names),), ["batch"], names)
        if len(device_mesh.shape) != 1:
            raise InvalidArgumentError(
                f"DataParallel: expected a mesh of one axis, got {device_mesh}",
                remedy="DeviceMesh((n,), ['batch'], devices)",
            )
        self.device_mesh = device_mesh
        self.batch_dim_name = device_mesh.axis_names[0]
        self.auto_shard_dataset = auto_shard_dataset
        self.strategy = self._strategy()

    def _strategy(self) -> Any:
        names = self.device_mesh.devices.reshape(-1).tolist()
        if _state["is_joined"]:
            return ModelParallelWorkers(
                lambda path: None,
                self.device_mesh.shape,
                self.device_mesh.axis_names,
                self.batch_dim_name,
            )
        return distribute.DataParallel(names) if len(names) > 1 else None

    @property
    def num_model_replicas(self) -> int:
        """How many devices there are."""
        return int(self.device_mesh.devices.size)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Models compiled inside are shared so."""
        before = distribution()
        set_distribution(self)
        try:
            yield
        finally:
            set_distribution(before)

    def __repr__(self) -> str:
        return f"<DataParallel device_mesh={self.device_mesh}>"


class ModelParallel(DataParallel):
    """Batches are shared along one axis of a mesh of processes, and variables cut along any.

    Each process has its piece of the variables that the map has a layout for, and of what the
    optimizer keeps for them. Steps compute with pieces: a product with a matrix that is cut by
    columns gives columns, one that is cut by rows gives sums, which are added up. Training is that
    of one process, up to the rounding of sums. Files hold whole weights: all processes call `save`,
    and the first one writes; likewise all read values at once (`model.get_weights()`).

    It takes as many processes as the mesh has places: `initialize()`, in a program that
    `laminar launch -n 4 train.py` starts. Where a mesh would not cut variables, as on a machine
    with one device, programs written for several run as they are.

    Args:
        layout_map: which axes of variables go along which axes of its mesh.
        batch_dim_name: the axis of the mesh that batches go along, by default the first.
        auto_shard_dataset: kept for Keras scripts; batches are always shared.

    Raises:
        InvalidArgumentError: no layout map, the mesh has no such axis, or it takes another number
            of processes than there are. In the first step: a layout does not fit its variable.
        UnimplementedError: in the first step: a variable in pieces is used inside of a loop.

    Source: Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using
        model parallelism", 2019, arXiv:1909.08053, section 3; Xu et al., "GSPMD", 2021,
        arXiv:2105.04663.
    """

    def __init__(
        self,
        *,
        layout_map: LayoutMap | None = None,
        batch_dim_name: str | None = None,
        auto_shard_dataset: bool = True,
    ) -> None:
        if layout_map is None or layout_map.device_mesh is None:
            raise InvalidArgumentError(
                "ModelParallel: layout_map is missing", remedy="give a LayoutMap(device_mesh)"
            )
        mesh = layout_map.device_mesh
        name = batch_dim_name or mesh.axis_names[0]
        if name not in mesh.axis_names:
            raise InvalidArgumentError(
                f"ModelParallel: the mesh has no axis {name!r}, it has {mesh.axis_names}"
            )
        self.device_mesh, self.batch_dim_name = mesh, name
        self.layout_map = layout_map
        self.auto_shard_dataset = auto_shard_dataset
        self.strategy = self._strategy()

    def _strategy(self) -> Any:
        mesh = self.device_mesh
        if not _state["is_joined"] and mesh.devices.size == self.num_model_replicas:
            return super()._strategy()  # it cuts no variable, and has its devices in this process

        def layout(path: str) -> Any:
            found = self.layout_map[path]
            return None if found is None else found.axes

        return ModelParallelWorkers(layout, mesh.shape, mesh.axis_names, self.batch_dim_name)

    @property
    def num_model_replicas(self) -> int:
        """How many parts a batch has."""
        mesh = self.device_mesh
        return int(mesh.shape[mesh.axis_names.index(self.batch_dim_name)])

    def __repr__(self) -> str:
        return f"<ModelParallel device_mesh={self.device_mesh}>"


def distribution() -> DataParallel | None:
    """What `set_distribution` was given; None for one device."""
    found: DataParallel | None = _state["distribution"]
    return found


def set_distribution(value: DataParallel | None) -> None:
    """Share the training of models that are compiled from now on; None for one device.

    Raises:
        InvalidArgumentError: `value` is no DataParallel of this module.
    """
    if value is not None and not isinstance(value, DataParallel):
        raise InvalidArgumentError(
            f"set_distribution: expected a laminar.distribution.DataParallel, got {value!r}"
        )
    _state["distribution"] = value


def distribute_tensor(tensor: Any, layout: Any) -> Any:
    """A tensor with a layout: itself, where no axis is cut.

    Raises:
        UnimplementedError: the layout cuts an axis.
    """
    axes = layout.axes if isinstance(layout, TensorLayout) else tuple(layout)
    if any(axis is not None for axis in axes):
        raise UnimplementedError(
            f"distribute_tensor: the layout {axes} cuts an axis, and tensors stay whole here",
            remedy="use DataParallel, which cuts batches",
        )
    return convert_to_tensor(tensor)


def _short(name: str) -> str:
    spec = DeviceSpec.from_string(name)
    return f"{spec.device_type}:{spec.device_index}".lower()
