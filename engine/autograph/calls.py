"""Calls in rewritten code: functions of the user are converted, builtins know tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ..graph import GraphTensor, Tensor
from ..ops.array.shape import dim_of
from ..ops.core.convert import convert_to_tensor
from ..ops.core.printing import print_tensors
from ..ops.math.arithmetic import maximum, minimum
from ..ops.math.cast import cast
from .conversion import convert, is_library
from .lists import TensorList
from .logic import and_, or_
from .sequences import enumerate_, range_, zip_


def call(fn: Any) -> Any:
    """What a call of `fn` calls: a function of the user with its control flow converted."""
    if getattr(fn, "__self__", None) is builtins:
        return _BUILTINS.get(fn, fn)
    if isinstance(fn, type):
        return _BUILTINS.get(fn, fn)
    return fn if is_library(fn) else convert(fn)


def _symbol(value: Any) -> GraphTensor | None:
    if hasattr(value, "__laminar_tensor__"):
        value = value.__laminar_tensor__()
    return value if isinstance(value, GraphTensor) else None


def _len(value: Any) -> Any:
    """len(value); a tensor where the first axis is known at run time only."""
    if isinstance(value, TensorList):
        return value.count
    tensor = _symbol(value)
    if tensor is not None and tensor.shape.rank and tensor.shape[0] is None:
        return dim_of(tensor, axis=0)
    return len(value)


def _number(kind: type, dtype: str) -> Callable[..., Any]:
    def convert_number(*args: Any, **kwargs: Any) -> Any:
        tensor = _symbol(args[0]) if len(args) == 1 and not kwargs else None
        return kind(*args, **kwargs) if tensor is None else cast(tensor, dtype)

    return convert_number


def _extreme(python: Callable[..., Any], op: Any) -> Callable[..., Any]:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        plain = kwargs or not any(_symbol(a) is not None for a in args)
        if plain or len(args) < 2:
            return python(*args, **kwargs)
        found = convert_to_tensor(args[0])
        for other in args[1:]:
            found = op(found, convert_to_tensor(other))
        return found

    return extreme


def _every(items: Any) -> Any:
    return _joined(items, and_, builtins.all)


def _some(items: Any) -> Any:
    return _joined(items, or_, builtins.any)


def _joined(items: Any, op: Callable[..., Any], python: Callable[[Any], bool]) -> Any:
    if isinstance(items, Tensor):
        return python(items)
    values = list(items)
    if not any(_symbol(v) is not None for v in values):
        return python(values)
    return op(values[0], *((lambda v=v: v) for v in values[1:]))


def _print(*values: Any, **options: Any) -> None:
    """print(...); of tensors of a graph, each time that the graph runs."""
    symbols = [_symbol(v) for v in values]
    if options.get("file") is not None or all(s is None for s in symbols):
        print(*values, **options)
        return
    sep, end = options.get("sep"), options.get("end")
    print_tensors(
        [v if s is None else s for v, s in zip(values, symbols, strict=True)],
        " " if sep is None else sep,
        "\n" if end is None else end,
    )


_BUILTINS: dict[Any, Any] = {
    range: range_,
    enumerate: enumerate_,
    zip: zip_,
    len: _len,
    int: _number(int, "int32"),
    float: _number(float, "float32"),
    bool: _number(bool, "bool"),
    max: _extreme(max, maximum),
    min: _extreme(min, minimum),
    all: _every,
    any: _some,
    print: _print,
}
