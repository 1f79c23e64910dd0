"""Conversions, prints and checks under TensorFlow's older names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.graph import Tensor, get_default_graph
from laminar.engine.ops.core.checks import check_numerics

from .adapting import v1
from .maths import cast
from .values import as_kind, is_value, symbol


def _to(dtype: str) -> Callable[..., Any]:
    @v1()
    def convert(x: Any) -> Tensor:
        found: Tensor = cast(x, dtype)
        return found

    convert.__doc__ = f"`x` as {dtype}."
    return convert


to_bfloat16, to_float, to_double = _to("bfloat16"), _to("float32"), _to("float64")
to_int32, to_int64 = _to("int32"), _to("int64")
to_complex64, to_complex128 = _to("complex64"), _to("complex128")


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor, or stands for one."""
    return not is_value(x)


@v1()
def verify_tensor_all_finite(t: Any = None, msg: str = "", x: Any = None, message: str = "") -> Any:
    """The tensor; a run fails where it has NaN or infinities."""
    return check_numerics(symbol(t if x is None else x), msg or message)


@v1()
def Print(  # noqa: N802  # its name there
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
) -> Tensor:
    """`input_`; each run writes `data` to the standard error."""
    count = 0

    def show(*arrays: Any) -> Any:
        nonlocal count
        count += 1
        if first_n is None or first_n < 0 or count <= first_n:
            parts = [np.array2string(np.asarray(a), threshold=summarize or 3) for a in arrays]
            sys.stderr.write(f"{message or ''}{''.join(f'[{p}]' for p in parts)}\n")
        return []

    x = symbol(input_)
    items = [symbol(d) for d in data]
    shown = engine.host_function(
        lambda *a: [np.zeros(len(show(*a)), "int32")], items, [engine.TensorSpec([0], "int32")]
    )
    with engine.control_dependencies(list(shown)):
        return engine.identity(x)


def add_check_numerics_ops() -> Any:
    """An operation that fails where any floating tensor of the default graph is not finite."""
    graph = get_default_graph()
    with graph.as_default():
        checks = [
            check_numerics(y, y.name)
            for op in graph.operations
            for y in op.outputs
            if y.dtype.is_floating
        ]
        return engine.group(*checks, name="check_numerics")


@v1()
def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """`value` as a tensor; IndexedSlices as they are.

    Raises:
        ValueError: they have another type.
    """
    if not isinstance(value, engine.IndexedSlices):
        return engine.convert_to_tensor(value, as_kind(dtype))
    if dtype is not None and value.dtype != as_kind(dtype):
        raise ValueError(f"the IndexedSlices are {value.dtype}, asked for {as_kind(dtype)}")
    return value
