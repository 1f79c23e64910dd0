"""What is compared of the results of a script: plain data, and little of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

_ARRAY = "__array__"  # the key by which an array is known
# Of an array: its shape, its type, and so many of its values.
_KEPT = 6
_SIGNIFICANT = 6


def digest(value: Any) -> Any:
    """`value` as data that JSON can hold: dicts, lists, strings, and arrays as a few numbers."""
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        return {str(key): digest(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [digest(part) for part in value]
    array = np.asarray(value)
    kind = str(array.dtype) if not isinstance(value, int | float) else type(value).__name__
    flat = array.astype("float64").ravel()
    kept = [float(f"%.{_SIGNIFICANT}g" % v) for v in flat[:_KEPT]]
    rest = [float(np.abs(flat[_KEPT:]).sum())] if flat.size > _KEPT else []
    return {_ARRAY: True, "shape": list(array.shape), "dtype": kind, "values": kept, "rest": rest}


def differences(found: Any, expected: Any, path: str = "") -> Iterator[str]:
    """Where two digests differ: in form, or in numbers by more than rounding in float32."""
    if isinstance(expected, dict) and _ARRAY not in expected:
        if not isinstance(found, dict) or set(found) != set(expected):
            yield f"{path}: {_keys(found)} is not {_keys(expected)}"
            return
        for key in expected:
            yield from differences(found[key], expected[key], f"{path}/{key}")
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            yield f"{path}: {found!r:.200} is not {expected!r:.200}"
            return
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            yield from differences(a, b, f"{path}[{i}]")
    elif not isinstance(expected, dict):
        if found != expected:
            yield f"{path}: {found!r} is not {expected!r}"
    elif not isinstance(found, dict) or found.get("shape") != expected["shape"]:
        yield f"{path}: {found!r:.200} is not {expected!r:.200}"
    elif found["dtype"] != expected["dtype"]:
        yield f"{path}: {found['dtype']} is not {expected['dtype']}"
    else:
        for part in ("values", "rest"):
            a, b = np.array(found[part]), np.array(expected[part])
            if not np.allclose(a, b, rtol=2e-4, atol=2e-5, equal_nan=True):
                yield f"{path}: {a} is not {b}"


def _keys(value: Any) -> str:
    return f"a dict of {sorted(value)}" if isinstance(value, dict) else repr(value)[:200]
