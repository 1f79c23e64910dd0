"""The operations that save and restore, added to a graph.

    filename (fed) -> SaveV2 of all tensors -> the prefix, once all is written
    filename -> RestoreV2 -> Assign to each variable -> restore_all

Sharded, there is a SaveV2 and a RestoreV2 for each device, and one operation that makes one
checkpoint of what they wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from ..checkpoint import write_checkpoint
from ..errors import InvalidArgumentError
from ..graph import DeviceSpec, Graph, GraphTensor, Operation
from ..graph.scopes import Runner
from ..ops.core.basic import constant, group, identity
from ..ops.io.checkpoints import (
    checkpoint_entries,
    merge_v2_checkpoints,
    restore_v2,
    save_v2,
    sharded_filenames,
)
from .saveables import SaveableObject, SaveSpec
from .saver_def import SaverDef


def add_saver(
    items: Sequence[SaveableObject],
    *,
    name: str,
    filename: str,
    sharded: bool,
    reshape: bool,
    sequentially: bool,
    max_to_keep: int,
    hours: float,
) -> SaverDef:
    """Add to the graph of `items` what saves and restores them; see `Saver`."""
    graph = items[0].graph
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(name):
        prefix = constant(np.array(filename.encode(), object), name="filename")
        assert isinstance(prefix, GraphTensor)
        groups = _by_device(items) if sharded else [list(items)]
        saved = _save_sharded(graph, prefix, groups) if sharded else _save(prefix, groups[0])
        restores: list[Operation] = []
        for group_ in groups:
            with _beside(graph, group_) if sharded else nullcontext():
                restores += _restore(graph, prefix, group_, reshape, sequentially)
        done = group(*restores, name="restore_all")
    return SaverDef(prefix.name, saved.name, done.name, max_to_keep, sharded, hours)


def _by_device(items: Sequence[SaveableObject]) -> list[list[SaveableObject]]:
    found: dict[str, list[SaveableObject]] = {}
    for item in items:
        found.setdefault(item.device, []).append(item)
    return [found[device] for device in sorted(found)]


def _beside(graph: Graph, items: Sequence[SaveableObject]) -> AbstractContextManager[Any]:
    """The host of the device that keeps the values: it has the files."""
    device = DeviceSpec.from_string(items[0].device)
    if device.device_type not in (None, "cpu"):
        device = replace(device, device_type="cpu", device_index=0)
    return graph.device(device)


def _inputs(specs: Sequence[SaveSpec]) -> tuple[Any, Any]:
    names = np.array([spec.name.encode() for spec in specs], object)
    slices = np.array([spec.slice_spec.encode() for spec in specs], object)
    return (
        constant(names, name="tensor_names"),
        constant(slices, name="shape_and_slices"),
    )


def _write(prefix: GraphTensor, items: Sequence[SaveableObject]) -> Operation:
    specs = [spec for item in items for spec in item.specs]
    names, slices = _inputs(specs)
    graph = prefix.graph
    inputs = (prefix, names, slices, *(spec.tensor for spec in specs))
    return graph.add(save_v2, inputs, name="SaveV2")


def _save(prefix: GraphTensor, items: Sequence[SaveableObject]) -> GraphTensor:
    with prefix.graph.control_dependencies([_write(prefix, items)]):
        return _identity(prefix)


def _save_sharded(
    graph: Graph, prefix: GraphTensor, groups: Sequence[Sequence[SaveableObject]]
) -> GraphTensor:
    parts = graph.add(
        sharded_filenames, (prefix,), {"num_shards": len(groups)}, name="ShardedFilenames"
    ).outputs
    writes = []
    for part, items in zip(parts, groups, strict=True):
        with _beside(graph, items):
            writes.append(_write(part, items))
    with graph.control_dependencies(writes):
        merged = graph.add(merge_v2_checkpoints, (prefix, *parts), name="MergeV2Checkpoints")
    with graph.control_dependencies([merged]):
        return _identity(prefix)


def _identity(prefix: GraphTensor) -> GraphTensor:
    return prefix.graph.add(identity, (prefix,), name="control_dependency").outputs[0]


def _restore(
    graph: Graph,
    prefix: GraphTensor,
    items: Sequence[SaveableObject],
    reshape: bool,
    sequentially: bool,
) -> list[Operation]:
    """What puts back the values: all are read and checked before the first is stored."""
    batches = [[item] for item in items] if sequentially else [list(items)]
    done: list[Operation] = []
    for batch in batches:
        specs = [spec for item in batch for spec in item.specs]
        attrs = {
            "dtypes": tuple(spec.dtype for spec in specs),
            "shapes": tuple(spec.shape for spec in specs),
        }
        with graph.control_dependencies(done[-1:] if sequentially else []):
            names, slices = _inputs(specs)
            values = graph.add(restore_v2, (prefix, names, slices), attrs, name="RestoreV2").outputs
        start = 0
        for item in batch:
            own = values[start : start + len(item.specs)]
            start += len(own)
            shapes = [spec.tensor.shape for spec in item.specs] if reshape else None
            done.append(item.restore(own, shapes))
    return done


def saved_later(session: Runner, saver: SaverDef, prefix: str) -> Callable[[], None]:
    """What writes the values that a session has now.

    Raises:
        InvalidArgumentError: each device writes a file of its own, which only a step can do.
    """
    graph = getattr(session, "graph", None)
    assert isinstance(graph, Graph)
    (write,) = graph.get_tensor_by_name(saver.save_tensor_name).op.control_inputs
    if write.definition is not save_v2:
        raise InvalidArgumentError(
            "Saver.save: a checkpoint with a file for each device is written by a step",
            remedy="leave out background=, or sharded=True",
        )
    _, *inputs = write.inputs
    names, slices, *tensors = session.run(inputs)
    found = checkpoint_entries(names, slices, tensors)
    return lambda: write_checkpoint(prefix, found, "Saver.save")
