"""The variables of a graph by name, and the scopes in which they are made: what get_variable finds.

A graph has one `NamedVariables` (`Graph.attached`); what is built in a branch or a body uses that
of the graph around (`Graph.root`). State:
    variables[full name]: the variable, partitioned or whole; guarded by `lock`;
    made_at[full name]: the user's line that made it;
    here: of each thread, the scope that it is in and how often each scope was opened.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from .. import forks
from ..errors import AlreadyExistsError, DTypeError, InvalidArgumentError, ShapeError
from ..graph import (
    DType,
    Graph,
    Tensor,
    TensorShape,
    as_dtype,
    building,
    eager_scope,
    get_default_graph,
    string,
)
from ..ops.array.creation import zeros
from ..ops.random.draws import random_uniform
from ..source import Location, user_location
from .collections import GraphKeys
from .partitioned import PartitionedVariable, part_sizes
from .random_source import draw_state
from .variable import Variable


class _Here(threading.local):
    def __init__(self) -> None:
        self.scope: Any = None  # None until the thread asks for the root
        self.opened: Counter[str] = Counter()


class NamedVariables:
    """See the head of this file."""

    def __init__(self) -> None:
        self.lock = forks.recursive_lock()
        self.variables: dict[str, Any] = {}
        self.made_at: dict[str, Location | None] = {}
        self.here = _Here()

    def open(self, name: str) -> None:
        """Count that the scope is opened once more."""
        self.here.opened[name] += 1

    def close_inside(self, name: str) -> None:
        """Forget the scopes inside of one: when it is opened again, their numbers begin anew."""
        for inner in list(self.here.opened):
            if inner.startswith(name + "/"):
                del self.here.opened[inner]

    def unique_scope(self, outer: str, name: str) -> str:
        """`name`, or the first of name_1, name_2, ... that was not opened inside `outer`."""
        prefix = f"{outer}/" if outer else ""
        found, number = name, 0
        while self.here.opened[prefix + found]:
            number += 1
            found = f"{name}_{number}"
        return found


def named_variables() -> NamedVariables:
    """Those of the graph that is being built."""
    return get_default_graph().root.attached(NamedVariables)


def default_initializer(dtype: DType) -> Callable[..., Any]:
    """What a variable begins with where nothing is said: Glorot's uniform, zeros for whole numbers.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
        networks", 2010, equation 16.

    Raises:
        InvalidArgumentError: nothing is usual for the element type.
    """
    if dtype.is_floating:
        return _glorot_uniform
    if dtype.is_integer or dtype in ("bool", string):
        return _zeros
    raise InvalidArgumentError(
        f"get_variable: no initial value is usual for {dtype}", remedy="give an initializer"
    )


def _glorot_uniform(shape: tuple[int, ...], dtype: DType) -> Tensor:
    window = int(np.prod(shape[:-2]))
    fan_in, fan_out = (*shape[-2:],) if len(shape) > 1 else (*shape, *shape) or (1, 1)
    limit = float(np.sqrt(6.0 / max(window * (fan_in + fan_out), 1)))
    return random_uniform(draw_state(), shape, -limit, limit, dtype)


def _zeros(shape: tuple[int, ...], dtype: DType) -> Any:
    return np.full(shape, b"", object) if dtype == string else zeros(shape, dtype)


def get_named(
    store: NamedVariables, name: str, reuse: Any, arguments: Mapping[str, Any], partitioner: Any
) -> Any:
    """The variable of a full name, or a new one.

    Args:
        store: where it is looked up and kept.
        name: with all scopes.
        reuse: True for one that is there, False for a new one, None or AUTO_REUSE for either.
        arguments: see `get_variable`.
        partitioner: None for one variable.

    Raises:
        AlreadyExistsError: it is there, and a new one is wanted.
        InvalidArgumentError: it is not, and may not be made.
        ShapeError, DTypeError: what is there differs from what is asked for.
    """
    graph = building()
    is_eager = graph is None
    with store.lock:
        found = None if is_eager else store.variables.get(name)
        if found is not None:
            if reuse is False:
                where = store.made_at.get(name)
                raise AlreadyExistsError(
                    f"variable {name!r} exists already"
                    + (f", made at {where}" if where is not None else ""),
                    remedy="enter its scope with reuse=True or reuse=AUTO_REUSE, "
                    "or take another name",
                )
            _check_like(name, found, arguments, partitioner)
            return found
        if reuse is True:
            raise InvalidArgumentError(
                f"variable {name!r} does not exist, or was not made with get_variable"
                + (" (eager variables are not found by name)" if is_eager else ""),
                remedy="make it first, or use reuse=AUTO_REUSE",
            )
        root = get_default_graph().root
        lifted = root.as_default() if graph is not None and graph is not root else nullcontext()
        with lifted:
            make = _single if partitioner is None else _partitioned
            made = make(root, name, arguments, partitioner)
        if not is_eager:
            store.variables[name] = made
            store.made_at[name] = user_location()
    return made


def _check_like(name: str, found: Any, arguments: Mapping[str, Any], partitioner: Any) -> None:
    shape, dtype = arguments["shape"], arguments["dtype"]
    if shape is not None and not TensorShape(shape).is_compatible_with(found.shape):
        raise ShapeError(
            f"variable {name!r} has the shape {found.shape}, asked for {TensorShape(shape)}"
        )
    if dtype is not None and as_dtype(dtype) != found.dtype:
        raise DTypeError(f"variable {name!r} has the dtype {found.dtype}, asked for {dtype}")
    if partitioner is None or not isinstance(found, PartitionedVariable):
        return
    wanted = _partitions(name, found.shape, found.dtype, partitioner)
    if list(wanted) != found.partitions:
        raise InvalidArgumentError(
            f"variable {name!r} has {found.partitions} parts, the partitioner gives {list(wanted)}"
        )


def _partitions(name: str, shape: TensorShape, dtype: DType, partitioner: Any) -> list[int]:
    found = partitioner(shape=shape, dtype=dtype)
    if not isinstance(found, list | tuple):
        raise InvalidArgumentError(
            f"variable {name!r}: the partitioner gave {found!r}, expected a list of numbers"
        )
    return [int(count) for count in found]


def _single(root: Graph, name: str, arguments: Mapping[str, Any], partitioner: Any) -> Variable:
    shape, dtype, initializer = _initial(name, arguments)
    return _made(root, name, arguments, initializer, shape, dtype)


def _initial(name: str, arguments: Mapping[str, Any]) -> tuple[TensorShape | None, Any, Any]:
    """The shape and dtype (None where the values decide), and the initializer."""
    shape, dtype, initializer = (arguments[key] for key in ("shape", "dtype", "initializer"))
    if initializer is None:
        initializer = default_initializer(as_dtype("float32" if dtype is None else dtype))
    if isinstance(initializer, type):
        initializer = initializer()
    if callable(initializer) and not hasattr(initializer, "shape"):
        if shape is None and not _takes_nothing(initializer):
            raise InvalidArgumentError(
                f"variable {name!r}: a new variable needs a shape", remedy="give shape="
            )
        return (None if shape is None else TensorShape(shape)), dtype, initializer
    if shape is not None:
        raise InvalidArgumentError(
            f"variable {name!r}: the initializer {initializer!r} is a value, which has a shape",
            remedy="leave shape= out, or give a function as the initializer",
        )
    own = getattr(initializer, "dtype", None)
    is_typed = isinstance(initializer, Tensor | Variable) and dtype is not None
    if is_typed and as_dtype(own) != as_dtype(dtype):
        raise DTypeError(
            f"variable {name!r}: the initializer is {own}, the variable is to be {dtype}"
        )
    return None, dtype, initializer


def _made(
    root: Graph, name: str, arguments: Mapping[str, Any], initializer: Any, shape: Any, dtype: Any
) -> Variable:
    if callable(initializer) and not hasattr(initializer, "shape"):
        dtype = as_dtype("float32" if dtype is None else dtype)
        initializer = _called(root, name, initializer, shape, dtype)
    trainable, collections = arguments["trainable"], arguments["collections"]
    if collections is not None and trainable:
        keys = list(collections)
        if GraphKeys.TRAINABLE_VARIABLES not in keys:
            collections = [*keys, GraphKeys.TRAINABLE_VARIABLES]
    with root.name_scope(None):
        made = Variable(
            initializer,
            shape,
            dtype,
            trainable=trainable,
            name=name,
            collections=collections,
            synchronization=arguments["synchronization"],
            aggregation=arguments["aggregation"],
        )
    made.constraint = arguments["constraint"]
    return made


def _takes_nothing(initializer: Any) -> bool:
    try:
        parameters = inspect.signature(initializer).parameters.values()
    except (TypeError, ValueError):  # of a function of C
        return False
    return all(p.default is not p.empty or p.kind in (2, 4) for p in parameters) and not any(
        p.name == "shape" for p in parameters
    )


def _called(
    root: Graph, name: str, initializer: Any, shape: TensorShape | None, dtype: DType
) -> Any:
    """The initial value that a function makes: of shape and dtype, or of nothing."""
    given: dict[str, Any] = {}
    arguments: tuple[Any, ...] = ()
    if not _takes_nothing(initializer):
        assert shape is not None
        if not shape.is_fully_defined:
            raise ShapeError(f"get_variable: the shape must be fully known, got {shape}")
        arguments, given = (list(shape),), {"dtype": dtype}
    if building() is None or root.captures_values:  # the value is needed at once
        with eager_scope():
            return initializer(*arguments, **given)
    with root.control_dependencies(None), root.name_scope(f"{name}/Initializer/"):
        return initializer(*arguments, **given)


def _partitioned(root: Graph, name: str, arguments: Mapping[str, Any], partitioner: Any) -> Any:
    shape, dtype, initializer = _initial(name, arguments)
    if shape is None:
        value = np.asarray(initializer)
        shape, initializer = TensorShape(value.shape), lambda shape, dtype: value
    if not shape.rank or not shape.is_fully_defined:
        return _made(root, name, arguments, initializer, shape, dtype)
    kind = as_dtype("float32" if dtype is None else dtype)
    partitions = _partitions(name, shape, kind, partitioner)
    axis, sizes = part_sizes(name, shape, partitions)
    parts = []
    offset = 0
    for i, size in enumerate(sizes):
        whole = [slice(None)] * axis
        part_shape = TensorShape([size if a == axis else d for a, d in enumerate(shape)])
        if arguments["initializer"] is not None and not callable(arguments["initializer"]):
            window = (*whole, slice(offset, offset + size))
            part: Any = np.asarray(arguments["initializer"])[window]
            part_shape_given = None
        else:
            part, part_shape_given = initializer, part_shape
        parts.append(_made(root, f"{name}/part_{i}", arguments, part, part_shape_given, kind))
        offset += size
    return PartitionedVariable(name, parts, axis, partitions)
