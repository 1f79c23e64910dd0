"""Save and Restore: tensors written to checkpoints, and read from them, as operations."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import checkpoint
from ...errors import DTypeError, InvalidArgumentError, NotFoundError, ShapeError
from ...graph import ANY, STRING, Array, TensorShape, TensorSpec, as_dtype, string, unknown_shape
from ...io.places import local_path, make_folder
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from ..state.variable import fetched


def _check_names(who: str, prefix: TensorSpec, names: TensorSpec, slices: TensorSpec) -> int:
    """The number of names, which is known."""
    if not prefix.shape.is_compatible_with(()):
        raise ShapeError(f"{who}: the prefix is a scalar, got {prefix}")
    found = [
        n
        for s in (names, slices)
        if s.shape.is_compatible_with([None]) and s.shape.rank is not None
        for n in s.shape
    ]
    if len(found) != 2 or None in found or found[0] != found[1]:
        raise ShapeError(
            f"{who}: expected a vector of names and one of parts, equally long, got {names} and "
            f"{slices}"
        )
    return int(found[0] or 0)


@define(
    "SaveV2",
    dtypes={"prefix": STRING, "tensor_names": STRING, "shape_and_slices": STRING, "tensors": ANY},
    same_dtype=False,
    stateful=True,
)
def save_v2(
    prefix: TensorSpec,
    tensor_names: TensorSpec,
    shape_and_slices: TensorSpec,
    *tensors: TensorSpec,
) -> tuple[TensorSpec, ...]:
    """Write tensors as the checkpoint `prefix`, under their names; "" for all of a tensor.

    A part of a tensor is given as "4 10 0,2:-": rows 0 and 1 of one of the shape (4, 10).
    """
    count = _check_names("SaveV2", prefix, tensor_names, shape_and_slices)
    if len(tensors) != count:
        raise InvalidArgumentError(f"SaveV2: {count} names for {len(tensors)} tensors")
    return ()


@save_v2.effect
def _save_kernel(
    context: KernelContext, prefix: Array, tensor_names: Array, slices: Array, *tensors: Array
) -> tuple[Array, ...]:
    values = checkpoint_entries(tensor_names, slices, tensors)
    path = context.files(_text(prefix))
    make_folder(os.path.dirname(path) or ".", "SaveV2")
    checkpoint.write_checkpoint(path, values, "SaveV2")
    return ()


save_v2.grad(no_gradient)


def checkpoint_entries(
    tensor_names: Array, slices: Array, tensors: Sequence[Array]
) -> list[tuple[str, Any]]:
    """What SaveV2 writes: names with arrays, or with parts of tensors."""
    values: list[tuple[str, Any]] = []
    for name, text, tensor in zip(_texts(tensor_names), _texts(slices), tensors, strict=True):
        value = np.asarray(fetched(tensor))
        part = checkpoint.parse_slice(text)
        values.append((name, value if part is None else checkpoint.Part(value, *part)))
    return values


@define("RestoreV2", dtypes=STRING, stateful=True)
def restore_v2(
    prefix: TensorSpec,
    tensor_names: TensorSpec,
    shape_and_slices: TensorSpec,
    *,
    dtypes: tuple[str, ...],
    shapes: tuple[TensorShape | None, ...] = (),
) -> tuple[TensorSpec, ...]:
    """Tensors of the checkpoint `prefix` by their names, all or none.

    `shapes` are those that they must have, None for any.
    """
    count = _check_names("RestoreV2", prefix, tensor_names, shape_and_slices)
    if len(dtypes) != count or len(shapes or dtypes) != count:
        raise InvalidArgumentError(
            f"RestoreV2: {count} names, {len(dtypes)} dtypes, {len(shapes)} shapes"
        )
    wanted = shapes or (None,) * count
    return tuple(
        TensorSpec(unknown_shape() if s is None else s, as_dtype(d))
        for d, s in zip(dtypes, wanted, strict=True)
    )


@restore_v2.effect
def _restore_kernel(
    context: KernelContext,
    prefix: Array,
    tensor_names: Array,
    slices: Array,
    *,
    dtypes: tuple[str, ...],
    shapes: tuple[TensorShape | None, ...],
) -> Any:
    names = _texts(tensor_names)
    with checkpoint.CheckpointReader(context.files(_text(prefix))) as reader:
        _check_all_there(reader, names)
        wanted = shapes or (None,) * len(names)
        parts = [checkpoint.parse_slice(text) for text in _texts(slices)]
        for name, part, dtype, shape in zip(names, parts, dtypes, wanted, strict=True):
            check_fit(reader, name, dtype, part and part[0], shape if part is None else None)
        found = reader.read_all(
            [(name, part and part[1]) for name, part in zip(names, parts, strict=True)]
        )
    return _outputs([v if v.dtype == object else context.xp.asarray(v) for v in found])


def _check_all_there(reader: checkpoint.CheckpointReader, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in reader]
    if len(missing) == 1:
        reader.entry(missing[0])  # raises, and tells what there is
    if missing:
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        raise NotFoundError(
            f"{reader.prefix} has no tensors {', '.join(map(repr, missing[:8]))}{more}",
            remedy="list_variables(prefix) tells what it has; restore those with "
            "Saver({name in the checkpoint: variable})",
        )


def check_fit(
    reader: checkpoint.CheckpointReader,
    name: str,
    dtype: str,
    whole: tuple[int, ...] | None,
    shape: TensorShape | None,
) -> None:
    """DTypeError or ShapeError where a tensor of a checkpoint is not what is expected.

    Args:
        reader: of the checkpoint.
        name: of the tensor.
        dtype: that it must have.
        whole: the shape of the tensor of which a part is wanted; None if all is.
        shape: that it must have; None for any.
    """
    entry = reader.entry(name)
    if entry.dtype != dtype:
        raise DTypeError(
            f"{name!r} is {entry.dtype} in {reader.prefix}, expected {dtype}",
            remedy="declare the variable in the checkpoint's type",
        )
    fits = shape is None or TensorShape(shape).is_compatible_with(entry.shape)
    if not fits or (whole is not None and whole != entry.shape):
        raise ShapeError(
            f"{name!r} has the shape {TensorShape(entry.shape)} in {reader.prefix}, "
            f"expected {TensorShape(shape if shape is not None else whole)}",
            remedy="build the model as it was when the checkpoint was written",
        )


restore_v2.grad(no_gradient)


@define("ShardedFilenames", dtypes=STRING, stateful=True)
def sharded_filenames(prefix: TensorSpec, *, num_shards: int) -> tuple[TensorSpec, ...]:
    """Prefixes for parts that are to become one checkpoint, in a folder of this run alone."""
    if num_shards < 1:
        raise InvalidArgumentError(f"ShardedFilenames: {num_shards} shards")
    return (TensorSpec((), string),) * num_shards


@sharded_filenames.effect
def _sharded_filenames_kernel(context: KernelContext, prefix: Array, *, num_shards: int) -> Any:
    folder = f"{_text(prefix)}_temp_{secrets.token_hex(8)}"
    names = (f"part-{i:05d}-of-{num_shards:05d}" for i in range(num_shards))
    return _outputs([np.array(os.fsencode(os.path.join(folder, n)), object) for n in names])


sharded_filenames.grad(no_gradient)


@define("MergeV2Checkpoints", dtypes=STRING, stateful=True)
def merge_v2_checkpoints(destination: TensorSpec, *prefixes: TensorSpec) -> tuple[TensorSpec, ...]:
    """Make one checkpoint, `destination`, of those that devices or tasks wrote."""
    return ()


@merge_v2_checkpoints.effect
def _merge_kernel(
    context: KernelContext, destination: Array, *prefixes: Array
) -> tuple[Array, ...]:
    checkpoint.merge_checkpoints(
        [context.files(_text(p)) for p in prefixes],
        context.files(_text(destination)),
        "MergeV2Checkpoints",
    )
    return ()


merge_v2_checkpoints.grad(no_gradient)


def _outputs(values: list[Array]) -> Any:
    """What a kernel gives: the value of its output, or a tuple of those of several."""
    return values[0] if len(values) == 1 else tuple(values)


def _text(value: Array) -> str:
    return local_path(value.item())


def _texts(values: Array) -> list[str]:
    return [item.decode() if isinstance(item, bytes) else item for item in values.ravel().tolist()]
