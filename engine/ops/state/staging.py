"""Staging areas as ops. The handles are objects of `resources/staging.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import INTEGER, Array, DType, TensorShape, TensorSpec, int32, int64, resource
from ...resources.batches import Element
from ...resources.staging import MapStagingArea, StagingArea
from ..core.effects import HANDLE, component_specs, held, wait
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient

Types = tuple[DType, ...]
Shapes = tuple[TensorShape, ...]
Numbers = tuple[int, ...]


def _check(who: str, dtypes: Types, shapes: Shapes, capacity: int, memory_limit: int) -> None:
    if not dtypes or len(dtypes) != len(shapes):
        raise InvalidArgumentError(
            f"{who}: an element has at least one component, and a shape for each; "
            f"got {len(dtypes)} dtypes and {len(shapes)} shapes"
        )
    if capacity < 0 or memory_limit < 0:
        raise InvalidArgumentError(
            f"{who}: capacity and memory_limit are not negative, got {capacity}, {memory_limit}"
        )


def _scalar(who: str, what: str, x: TensorSpec) -> None:
    if not x.shape.is_compatible_with(()):
        raise ShapeError(f"{who}: the {what} is a scalar, got {x}")


def _check_components(
    who: str, components: tuple[TensorSpec, ...], numbers: Numbers, dtypes: Types, shapes: Shapes
) -> None:
    if len(components) != len(numbers) or any(not 0 <= n < len(dtypes) for n in numbers):
        raise InvalidArgumentError(
            f"{who}: an element has {len(dtypes)} components, "
            f"got {len(components)}, to be number {list(numbers)}"
        )
    for x, n in zip(components, numbers, strict=True):
        if x.dtype != dtypes[n]:
            raise DTypeError(
                f"{who}: component {n} is {dtypes[n]}, got {x}", remedy="cast it first"
            )
        if not shapes[n].is_compatible_with(x.shape):
            raise ShapeError(f"{who}: component {n} must have shape {shapes[n]}, got {x}")


def _one_or_all(element: Element) -> Any:
    return element[0] if len(element) == 1 else tuple(element)


@define("StagingArea", stateful=True)
def staging_area(
    *,
    dtypes: Types,
    shapes: Shapes,
    capacity: int,
    memory_limit: int,
    container: str,
    shared_name: str,
) -> TensorSpec:
    """The handle of a staging area, which gives elements in the order in which they came.

    It holds `capacity` elements and `memory_limit` bytes, 0 for any number.
    """
    _check("StagingArea", dtypes, shapes, capacity, memory_limit)
    return TensorSpec((), resource)


@staging_area.effect
def _staging_kernel(
    context: KernelContext,
    *,
    dtypes: Types,
    shapes: Shapes,
    capacity: int,
    memory_limit: int,
    container: str,
    shared_name: str,
) -> StagingArea:
    declared = (tuple(map(str, dtypes)), capacity, memory_limit)
    return held(
        context,
        container,
        shared_name,
        StagingArea,
        declared,
        lambda: StagingArea(shared_name, capacity, memory_limit),
    )


@define("StagePut", dtypes={"handle": HANDLE})
def stage_put(
    handle: TensorSpec, *components: TensorSpec, dtypes: Types, shapes: Shapes
) -> tuple[TensorSpec, ...]:
    """Put an element down; waits until there is room."""
    _check_components("StagePut", components, tuple(range(len(dtypes))), dtypes, shapes)
    return ()


@stage_put.asynchronous
def _put_kernel(
    context: KernelContext,
    done: Any,
    handle: StagingArea,
    *components: Array,
    dtypes: Types,
    shapes: Shapes,
) -> None:
    wait(context, done, lambda tell: handle.put(components, tell))


@define("StageGet", dtypes={"handle": HANDLE})
def stage_get(handle: TensorSpec, *, dtypes: Types, shapes: Shapes) -> tuple[TensorSpec, ...]:
    """Take the element that came first; waits until there is one."""
    return component_specs(dtypes, shapes)


@stage_get.asynchronous
def _get_kernel(
    context: KernelContext, done: Any, handle: StagingArea, *, dtypes: Types, shapes: Shapes
) -> None:
    wait(context, done, handle.get, _one_or_all)


@define("StagePeek", dtypes={"handle": HANDLE, "index": INTEGER}, same_dtype=False)
def stage_peek(
    handle: TensorSpec, index: TensorSpec, *, dtypes: Types, shapes: Shapes
) -> tuple[TensorSpec, ...]:
    """The element at a place, which stays; waits until there are so many."""
    _scalar("StagePeek", "index", index)
    return component_specs(dtypes, shapes)


@stage_peek.asynchronous
def _peek_kernel(
    context: KernelContext,
    done: Any,
    handle: StagingArea,
    index: Array,
    *,
    dtypes: Types,
    shapes: Shapes,
) -> None:
    wait(context, done, lambda tell: handle.peek(int(index), tell), _one_or_all)


@define("MapStagingArea", stateful=True)
def map_staging_area(
    *,
    dtypes: Types,
    shapes: Shapes,
    ordered: bool,
    capacity: int,
    memory_limit: int,
    container: str,
    shared_name: str,
) -> TensorSpec:
    """The handle of a staging area of elements under keys.

    It holds `capacity` elements and `memory_limit` bytes, 0 for any number.
    """
    _check("MapStagingArea", dtypes, shapes, capacity, memory_limit)
    return TensorSpec((), resource)


@map_staging_area.effect
def _map_staging_kernel(
    context: KernelContext,
    *,
    dtypes: Types,
    shapes: Shapes,
    ordered: bool,
    capacity: int,
    memory_limit: int,
    container: str,
    shared_name: str,
) -> MapStagingArea:
    declared = (tuple(map(str, dtypes)), ordered, capacity, memory_limit)
    return held(
        context,
        container,
        shared_name,
        MapStagingArea,
        declared,
        lambda: MapStagingArea(shared_name, len(dtypes), ordered, capacity, memory_limit),
    )


@define("MapStagePut", dtypes={"handle": HANDLE, "key": INTEGER}, same_dtype=False)
def map_stage_put(
    handle: TensorSpec,
    key: TensorSpec,
    *components: TensorSpec,
    indices: Numbers,
    dtypes: Types,
    shapes: Shapes,
) -> tuple[TensorSpec, ...]:
    """Put the components of an element down that have these indices; waits until there is room."""
    _scalar("MapStagePut", "key", key)
    _check_components("MapStagePut", components, indices, dtypes, shapes)
    return ()


@map_stage_put.asynchronous
def _map_put_kernel(
    context: KernelContext,
    done: Any,
    handle: MapStagingArea,
    key: Array,
    *components: Array,
    indices: Numbers,
    dtypes: Types,
    shapes: Shapes,
) -> None:
    wait(context, done, lambda tell: handle.put(int(key), indices, components, tell))


@define("MapStageGet", dtypes={"handle": HANDLE, "key": INTEGER}, same_dtype=False)
def map_stage_get(
    handle: TensorSpec,
    *key: TensorSpec,
    indices: Numbers,
    dtypes: Types,
    shapes: Shapes,
    stays: bool,
) -> tuple[TensorSpec, ...]:
    """The key, int64, and some components of the element of a key, of any without one.

    Waits until it is whole. The components leave the element, unless it `stays`; an element without
    components is gone.
    """
    if len(key) > 1 or (stays and not key):
        raise InvalidArgumentError(f"MapStageGet: expected one key, got {len(key)}")
    for x in key:
        _scalar("MapStageGet", "key", x)
    if not indices or any(not 0 <= n < len(dtypes) for n in indices):
        raise InvalidArgumentError(
            f"MapStageGet: an element has {len(dtypes)} components, asked for {list(indices)}"
        )
    found = component_specs(dtypes, shapes)
    return (TensorSpec((), int64), *(found[n] for n in indices))


def _with_key(found: tuple[int, Element]) -> Any:
    key, element = found
    return np.asarray(key, np.int64), *element


@map_stage_get.asynchronous
def _map_get_kernel(
    context: KernelContext,
    done: Any,
    handle: MapStagingArea,
    *key: Array,
    indices: Numbers,
    dtypes: Types,
    shapes: Shapes,
    stays: bool,
) -> None:
    chosen = int(key[0]) if key else None
    if stays:
        assert chosen is not None
        place = chosen
        wait(context, done, lambda tell: handle.peek(place, indices, tell), _with_key)
    else:
        wait(context, done, lambda tell: handle.get(chosen, indices, tell), _with_key)


@define("StageSize", dtypes={"handle": HANDLE}, read_only=True)
def stage_size(handle: TensorSpec) -> TensorSpec:
    """The number of elements in a staging area that can be taken, int32."""
    return TensorSpec((), int32)


@stage_size.effect
def _size_kernel(context: KernelContext, handle: StagingArea | MapStagingArea) -> Array:
    return np.asarray(handle.size, np.int32)


@define("StageIncompleteSize", dtypes={"handle": HANDLE}, read_only=True)
def stage_incomplete_size(handle: TensorSpec) -> TensorSpec:
    """The number of elements of which components are missing, int32."""
    return TensorSpec((), int32)


@stage_incomplete_size.effect
def _incomplete_size_kernel(context: KernelContext, handle: MapStagingArea) -> Array:
    return np.asarray(handle.incomplete_size, np.int32)


@define("StageClear", dtypes={"handle": HANDLE})
def stage_clear(handle: TensorSpec) -> tuple[TensorSpec, ...]:
    """Drop all elements of a staging area."""
    return ()


@stage_clear.effect
def _clear_kernel(context: KernelContext, handle: StagingArea | MapStagingArea) -> Any:
    handle.clear()
    return ()


for _op in (
    staging_area,
    stage_put,
    stage_get,
    stage_peek,
    map_staging_area,
    map_stage_put,
    map_stage_get,
    stage_size,
    stage_incomplete_size,
    stage_clear,
):
    _op.grad(no_gradient)
