"""Names of TensorFlow's that stand alone: fingerprints, the time, conversions, block sizes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.graph import Tensor, float64
from laminar.engine.ops.core import host
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.text import farmhash

from .adapting import v1
from .values import symbol


class _Accumulator(type):
    def __instancecheck__(cls, x: Any) -> bool:
        kinds = (engine.ConditionalAccumulator, engine.SparseConditionalAccumulator)
        return isinstance(x, kinds)


class ConditionalAccumulatorBase(metaclass=_Accumulator):
    """What all accumulators are, for `isinstance`."""


@v1()
def timestamp() -> Tensor:
    """The seconds since 1970, float64, at the time of each run."""

    def now() -> list[Any]:
        return [np.array(time.time())]

    return host.host_function(now, [], [engine.TensorSpec([], float64)], None)[0]


@v1()
def fingerprint(data: Any, method: str = "farmhash64") -> Tensor:
    """Eight bytes for each row of a tensor, from its bytes: uint8 (rows, 8).

    Args:
        data: (rows, ...), numbers or strings.
        method: "farmhash64".

    Source: FarmHash's Fingerprint64, see `engine/ops/text/farmhash.py`.
    """
    if method != "farmhash64":
        raise ValueError(f"fingerprint: the method is 'farmhash64', got {method!r}")
    x = symbol(data)
    if x.shape.rank == 0:
        raise ValueError("fingerprint: data has no rows")

    def hashed(rows: Any) -> list[Any]:
        if rows.dtype == object and rows.ndim == 1:
            texts = rows.tolist()
        elif rows.dtype == object:
            inner = [[farmhash.fingerprint_of(t) for t in r.ravel().tolist()] for r in rows]
            texts = [np.array(r, "<u8").tobytes() for r in inner]
        else:
            texts = [np.ascontiguousarray(row).tobytes() for row in rows]
        found = np.array([farmhash.fingerprint_of(t) for t in texts], "<u8")
        return [found.view(np.uint8).reshape(len(texts), 8)]

    count = x.shape[0] if x.shape.rank else None
    return host.host_function(hashed, [x], [engine.TensorSpec([count, 8], "uint8")], None)[0]


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Have objects of a class stand for tensors.

    Args:
        base_type: the class, or a tuple of classes; of the program's own.
        conversion_func: (value, dtype=None, name=None, as_ref=False) to a tensor.
        priority: accepted: a class has one function, the last that was registered.

    Raises:
        TypeError: these are no classes of Python code, or it is no function.
    """
    kinds = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(kind, type) for kind in kinds) or not callable(conversion_func):
        raise TypeError(
            "register_tensor_conversion_function: expected classes and a function, got "
            f"{base_type!r} and {conversion_func!r}"
        )

    def convert(self: Any) -> Tensor:
        return symbol(conversion_func(self, dtype=None, name=None, as_ref=False))

    for kind in kinds:
        kind.__laminar_tensor__ = convert


@v1()
def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None
) -> tuple[Any, Any]:
    """How much sides must be padded to be multiples of a block: (paddings, crops).

    Args:
        input_shape: (n), the sizes of the sides.
        block_shape: (n), the sizes of a block.
        base_paddings: (n, 2), what is padded at least; zeros by default.

    Returns:
        (n, 2) for `space_to_batch`, and (n, 2) for `batch_to_space`.
    """
    sides, blocks = symbol(input_shape, "int32"), symbol(block_shape, "int32")
    known = blocks.shape.rank == 1 and blocks.shape[0]
    base = np.zeros((known or 0, 2), np.int32) if base_paddings is None else base_paddings
    least = symbol(base, "int32")
    before, behind = least[:, 0], least[:, 1]
    whole = sides + before + behind
    more = lookup("FloorMod")(blocks - lookup("FloorMod")(whole, blocks), blocks)
    zero = lookup("ZerosLike")(more)
    pads = lookup("Stack")(before, behind + more, axis=1)
    return pads, lookup("Stack")(zero, more, axis=1)
