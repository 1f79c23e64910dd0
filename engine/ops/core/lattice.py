"""Which dtype an expression of mixed types has.

The rules are JAX's and Keras 3's: a lattice in which a Python number is weaker than any array type
of its kind, integers never widen floats, and the result does not depend on order.
Source: "Design of Type Promotion Semantics for JAX" (JEP 9407), section "The lattice".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...errors import DTypeError
from ...graph import DType, as_dtype
from .arrays import Defaults

# Each type and those directly above it; "int", "float" and "complex" are Python's own numbers.
_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("int",),
    "int": ("uint8", "int8"),
    "uint8": ("uint16", "int16"),
    "uint16": ("uint32", "int32"),
    "uint32": ("uint64", "int64"),
    "uint64": ("float",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("float",),
    "float": ("bfloat16", "float16", "complex"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "complex": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}
# A bool is an int, so it comes first.
_WEAK = {bool: "bool", int: "int", float: "float", complex: "complex"}


@lru_cache
def _upper(name: str) -> frozenset[str]:
    return frozenset({name}).union(*(_upper(above) for above in _ABOVE[name]))


@lru_cache(maxsize=1024)
def _join(names: frozenset[str]) -> str:
    common = frozenset.intersection(*(_upper(n) for n in names))
    least = [n for n in common if common <= _upper(n)]
    return least[0]


def result_type(*values: Any) -> DType:
    """The dtype of an expression of `values`: dtypes, tensors, arrays, or Python types and numbers.

    Raises:
        DTypeError: strings or resources are mixed with numbers.
    """
    names = set()
    for value in values:
        if isinstance(value, bool | int | float | complex) and not hasattr(value, "dtype"):
            names.add(next(name for kind, name in _WEAK.items() if isinstance(value, kind)))
        elif isinstance(value, type) and value in _WEAK:
            names.add(_WEAK[value])
        else:
            names.add(str(as_dtype(getattr(value, "dtype", value))))
    if len(names) == 1:
        (found,) = names
    else:
        for name in names:
            if name not in _ABOVE:
                raise DTypeError(
                    f"{name} does not mix with {', '.join(sorted(names - {name}))}",
                    remedy="convert the text to numbers first: string_to_number for digits, "
                    "layers.StringLookup or layers.TextVectorization for words"
                    if name == "string"
                    else None,
                )
        found = _join(frozenset(names))
    if found == "int":
        return Defaults.integer
    if found == "float":
        return Defaults.floating
    return as_dtype("complex64" if found == "complex" else found)


def to_floating(dtype: DType) -> DType:
    """`dtype` if it has fractions, else the default floating type."""
    return dtype if dtype.is_differentiable else Defaults.floating
