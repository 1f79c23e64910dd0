"""Element types. A dtype is its name: `x.dtype == "float32"` holds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..errors import DTypeError

# What the kernels compute on: an array of the device's own array library.
Array: TypeAlias = Any


class DType(str):
    """An element type; a string with the properties of the type it names.

    Examples:
        >>> engine.as_dtype("bfloat16").is_floating, engine.as_dtype("int8").size
        (True, 1)
    """

    __slots__ = ()

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of this type (object for strings and resources)."""
        return _NUMPY[self]

    @property
    def name(self) -> str:
        """Its name, a plain string."""
        return str(self)

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """The class of NumPy's scalars of this type."""
        return self.numpy.type

    @property
    def size(self) -> int:
        """Bytes of one element; 0 for strings and resources."""
        return _NUMPY[self].itemsize if self not in (string, resource) else 0

    @property
    def is_floating(self) -> bool:
        """Whether it is a real floating type."""
        return self in FLOATING

    @property
    def is_bool(self) -> bool:
        """Whether it is that of truth values."""
        return self == "bool"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self in COMPLEX

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer type."""
        return self in INTEGER

    @property
    def base_dtype(self) -> DType:
        """The type itself: there are no types of references."""
        return self

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an unsigned integer type."""
        return self in UNSIGNED

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy has arrays of it: of all but handles."""
        return self != "resource"

    @property
    def is_quantized(self) -> bool:
        """False: numbers of few bits are integers here."""
        return False

    @property
    def real_dtype(self) -> DType:
        """The type of the real part."""
        return {"complex64": float32, "complex128": float64}.get(self, self)

    @property
    def min(self) -> Any:
        """The least number of the type; False of bool.

        Raises:
            DTypeError: it is no type of ordered numbers.
        """
        return self._range[0]

    @property
    def max(self) -> Any:
        """The greatest number of the type; True of bool.

        Raises:
            DTypeError: it is no type of ordered numbers.
        """
        return self._range[1]

    @property
    def limits(self) -> tuple[Any, Any]:
        """The least and the greatest number of an integer type; of others 0 and 1.

        These are the values of a picture of that type.
        """
        return self._range if self in INTEGER else (0, 1)

    @property
    def _range(self) -> tuple[Any, Any]:
        if self == "bool":
            return False, True
        if self in INTEGER:
            whole = np.iinfo(self.numpy)
            return int(whole.min), int(whole.max)
        if self in FLOATING:
            real = finfo(self)
            return self.as_numpy_dtype(real.min), self.as_numpy_dtype(real.max)
        raise DTypeError(f"{self} has no least and no greatest number")

    @property
    def as_datatype_enum(self) -> int:
        """Its number in TensorFlow's messages and files.

        Raises:
            DTypeError: it has none.
        """
        found = NUMBERS.get(self, 20 if self == "resource" else None)
        if found is None:
            raise DTypeError(f"{self} has no number in TensorFlow's messages")
        return found

    def is_compatible_with(self, other: Any) -> bool:
        """Whether tensors of another type can stand for those of this one: if it is the same."""
        return self == as_dtype(other)

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients flow through tensors of this type."""
        return self in INEXACT


bool_ = DType("bool")
int8, int16, int32, int64 = (DType(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (DType(f"float{n}") for n in (16, 32, 64))
bfloat16 = DType("bfloat16")
complex64, complex128 = DType("complex64"), DType("complex128")
string = DType("string")
resource = DType("resource")  # a handle to state: variable, queue, table, generator

SIGNED = frozenset({int8, int16, int32, int64})
UNSIGNED = frozenset({uint8, uint16, uint32, uint64})
INTEGER = SIGNED | UNSIGNED
FLOATING = frozenset({float16, bfloat16, float32, float64})
COMPLEX = frozenset({complex64, complex128})
INEXACT = FLOATING | COMPLEX
REAL = INTEGER | FLOATING
NUMERIC = INTEGER | INEXACT
BOOLEAN = frozenset({bool_})
DENSE = NUMERIC | BOOLEAN
STRING = frozenset({string})
ANY = DENSE | STRING


class _NumpyTypes(dict[str, np.dtype[Any]]):
    """NumPy's types by name; its package of narrow floats is loaded for bfloat16 alone."""

    def __missing__(self, name: str) -> np.dtype[Any]:
        if name != bfloat16:
            raise KeyError(name)
        import ml_dtypes  # most programs have no use for it

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        self[name], _BY_NUMPY[found] = found, bfloat16
        return found


_NUMPY = _NumpyTypes((d, np.dtype(str(d))) for d in DENSE - {bfloat16})
_NUMPY[string] = _NUMPY[resource] = np.dtype(object)

_BY_NAME: dict[str, DType] = {str(d): d for d in [*DENSE, string, resource]}
_BY_NUMPY: dict[Any, DType] = {_NUMPY[d]: d for d in DENSE - {bfloat16}}
_ALIASES: dict[Any, DType] = {
    "half": float16,
    "float": float32,
    "double": float64,
    "complex": complex64,
    "int": int32,
    "str": string,
    "bytes": string,
    float: float32,
    int: int32,
    bool: bool_,
    complex: complex64,
    str: string,
    bytes: string,
}

# The numbers of element types in files and messages: DataType of
# tensorflow/core/framework/types.proto.
BY_NUMBER: dict[int, DType] = {
    number: _BY_NAME[name]
    for number, name in {
        1: "float32",
        2: "float64",
        3: "int32",
        4: "uint8",
        5: "int16",
        6: "int8",
        7: "string",
        8: "complex64",
        9: "int64",
        10: "bool",
        14: "bfloat16",
        17: "uint16",
        18: "complex128",
        19: "float16",
        22: "uint32",
        23: "uint64",
    }.items()
}
NUMBERS = {dtype: number for number, dtype in BY_NUMBER.items()}


def finfo(dtype: DType) -> Any:
    """The limits of a floating type, as np.finfo has them: `max`, `tiny`, `eps`."""
    if dtype != bfloat16:
        return np.finfo(dtype.numpy)
    import ml_dtypes  # most programs have no use for it

    return ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]  # it has no types


def as_dtype(value: Any) -> DType:
    """The DType that a name, a NumPy dtype, a Python type or another library's dtype means.

    Raises:
        DTypeError: `value` names no element type.

    Examples:
        >>> engine.as_dtype(np.float32), engine.as_dtype("int8")
        ('float32', 'int8')
    """
    if type(value) is DType:
        return value
    if isinstance(value, str) and value in _BY_NAME:
        if value == bfloat16:
            _NUMPY[bfloat16]  # NumPy takes the name from now on
        return _BY_NAME[value]
    try:
        if value in _ALIASES:
            return _ALIASES[value]
        if value in _BY_NUMPY:
            return _BY_NUMPY[value]
    except TypeError:  # unhashable: not a dtype
        pass
    name = str(value).removeprefix("torch.")
    if name in _BY_NAME and not isinstance(value, str):
        return _BY_NAME[name]
    try:
        several = isinstance(value, tuple | list)  # of which NumPy would take the first
        found = None if value is None or several else np.dtype(value).newbyteorder("=")
    except (TypeError, ValueError):
        found = None
    if found is not None:
        if found in _BY_NUMPY:
            return _BY_NUMPY[found]
        if found.kind == "V" and found == _NUMPY[bfloat16]:
            return bfloat16
        if found.kind in "OSU":
            return string
    raise DTypeError(
        f"dtype: expected one of {', '.join(sorted(_BY_NAME))}, got {value!r}",
        remedy='name the element type, such as "float32"',
    )
