"""A library with cupy's face over NumPy's arithmetic, strict where NumPy is lenient.

Its arrays lie in the memory of a `FakeGpu`, and refuse what cupy's refuse: to mix with NumPy's, to
become one but by `get`, and what cupy's functions do not take. What cupy does, but makes the host
wait for the GPU (a number or a truth of an array, sizes that depend on values), is counted in
`waits`; what gives other bits from run to run (adding floats by atomics), in `unordered`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import numpy as np

from .fake_gpu import FakeGpu

# What NumPy has and cupy 14.2 has not.
_MISSING = """asmatrix block bmat clongdouble complex256 datetime64 einsum_path errstate float128
frompyfunc geomspace getbufsize geterr histogram_bin_edges insert isnat longdouble matrix matvec
memmap nanpercentile nanquantile ndenumerate nditer nested_iters polyder polydiv polyint recarray
record setbufsize seterr spacing timedelta64 unstack vecdot vecmat void linalg.diagonal
linalg.matrix_norm linalg.multi_dot linalg.outer linalg.svdvals linalg.tensordot linalg.trace
linalg.vecdot linalg.vector_norm"""
MISSING = frozenset(_MISSING.split())
# Sizes of what these give depend on values, which the host waits for.
_WAITING = """argwhere array_equal allclose bincount compress extract flatnonzero nonzero unique
unique_all unique_counts unique_inverse unique_values setdiff1d intersect1d union1d trim_zeros
linalg.eig linalg.eigvals"""
WAITING = frozenset(_WAITING.split())
# The methods of ufuncs, and what they are there for.
_METHODS = {
    "at": {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"},
    "reduce": {"add", "multiply"},
    "accumulate": {"add", "multiply"},
    "reduceat": {"add"},
}
_KEYWORDS = {"out", "dtype", "casting"}


_T = TypeVar("_T")


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that lies on the GPU.

    Attributes:
        base: the array that it is a view of.
    """

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as cupy's

    def __init__(self, library: StrictCupy, host: Any, owner: Any, base: Array | None) -> None:
        self._library, self._host, self._owner, self.base = library, host, owner, base

    def get(self) -> np.ndarray[Any, Any]:
        self._library.settle()
        return np.array(self._host)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self._library, ufunc.__name__)
        return (found if method == "__call__" else getattr(found, method))(*args, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        module = function.__module__.removeprefix("numpy").strip(".")
        found: Any = self._library
        for part in (*module.split("."), function.__name__):
            found = getattr(found, part) if part else found
        return found(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("ctypes", "setflags", "resize"):
            raise AttributeError(name)
        found = getattr(self._host, name)
        if name in ("dtype", "shape", "flags", "strides"):
            return found
        if not callable(found):
            return self._library.wrapped(found, self)
        if name in ("item", "tolist", "nonzero", "tobytes"):
            return lambda *args: self._library.waited(name, found(*args))
        return lambda *args, **kwargs: self._library.call(found, args, kwargs, self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("real", "imag"):
            self._library.settle()
            setattr(self._host, name, self._library.unwrapped(value))
        else:
            super().__setattr__(name, value)

    @property
    def shape(self) -> Any:
        return self._host.shape

    def __getitem__(self, index: Any) -> Any:
        self._note_mask(index)
        return self._library.wrapped(np.asarray(self._host[self._library.unwrapped(index)]), self)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._library.settle()
        if isinstance(value, Array | int | float | complex | bool | np.generic):
            self._host[self._library.unwrapped(index)] = self._library.unwrapped(value)
        else:  # cupy makes an array of it first
            self._host[self._library.unwrapped(index)] = np.asarray(self._library.unwrapped(value))

    def _note_mask(self, index: Any) -> None:
        self._library.settle()
        for x in index if isinstance(index, tuple) else (index,):
            if isinstance(x, Array) and x._host.dtype == bool:
                self._library.waits["mask"] += 1
            if isinstance(x, np.ndarray) and x.ndim:
                raise TypeError("an index of NumPy's is copied to the GPU at each use")

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self._host)))

    def __int__(self) -> int:
        return self._library.waited("int", int(self._host))

    def __float__(self) -> float:
        return self._library.waited("float", float(self._host))

    def __complex__(self) -> complex:
        return self._library.waited("complex", complex(self._host))

    def __bool__(self) -> bool:
        return self._library.waited("bool", bool(self._host))

    def __index__(self) -> int:
        return self._library.waited("index", int(self._host))

    def __repr__(self) -> str:
        return f"<array of {self._host.dtype} {self._host.shape} on the fake GPU>"


class StrictCupy:
    """The module, for one GPU.

    Attributes:
        waits: by what, how often the host waited for the GPU.
        unordered: by what, how often results depended on the order of threads.
        copies: the bytes of each array that `asarray` brought.
    """

    ndarray = Array

    def __init__(self, gpu: FakeGpu | None = None) -> None:
        self._gpu = FakeGpu() if gpu is None else gpu
        self._gpu.xp = self
        self.gpu = self._gpu
        self.waits: Counter[str] = Counter()
        self.unordered: Counter[str] = Counter()
        self.copies: list[int] = []
        self.linalg = _Part(self, "linalg")
        self.fft = _Part(self, "fft")
        self.lib = SimpleNamespace(stride_tricks=_Part(self, "lib.stride_tricks"))

    # Between arrays of both

    def settle(self) -> None:
        """What an array holds is there when the stream has done what it was asked."""
        self._gpu.settle(self._gpu.stream)

    def waited(self, what: str, value: _T) -> _T:
        self.settle()
        self.waits[what] += 1
        return value

    def unwrapped(self, value: Any) -> Any:
        if isinstance(value, Array):
            return value._host
        if isinstance(value, np.ndarray):
            raise TypeError(f"unsupported type {type(value)}")
        if isinstance(value, tuple | list):
            return type(value)(map(self.unwrapped, value))
        if isinstance(value, dict):
            return {k: self.unwrapped(v) for k, v in value.items()}
        return value

    def wrapped(self, value: Any, base: Array | None = None) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            value = np.asarray(value)
            if base is not None and np.shares_memory(value, base._host):
                return Array(self, value, base._owner, base)
            return self._placed(value)
        if isinstance(value, tuple | list):
            found = [self.wrapped(v, base) for v in value]
            return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
        return value

    def _placed(self, host: np.ndarray[Any, Any]) -> Array:
        """A copy in the memory of the GPU."""
        made: Array = self.empty(host.shape, host.dtype)
        made._host[...] = host
        return made

    def call(self, fn: Callable[..., Any], args: Any, kwargs: Any, base: Any = None) -> Any:
        with self._gpu.lock:
            self.settle()
            if base is None:
                base = next((x for x in args if isinstance(x, Array)), None)
            out = kwargs.get("out")
            found = fn(*self.unwrapped(list(args)), **self.unwrapped(kwargs))
            return self.wrapped(found, base) if out is None else out

    # What is cupy's own

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, Array):
            return value if dtype in (None, value.dtype) else value.astype(dtype)
        if isinstance(value, list | tuple) and any(isinstance(x, Array) for x in value):
            return self.stack([self.asarray(x, dtype) for x in value])
        host = np.array(value, dtype)
        if host.dtype.kind in "OSUV" and host.dtype.name not in _HALVES:
            raise ValueError(f"Unsupported dtype {host.dtype}")
        self.copies.append(host.nbytes)
        return self._placed(host)

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        """Memory alone: nothing is computed."""
        host = np.empty(shape, dtype)
        block = self._gpu.allocate(host.nbytes)
        memory = self._gpu.bytes_at(block.address, host.nbytes).view(host.dtype)
        return Array(self, memory.reshape(host.shape), block, None)

    def array(self, value: Any, dtype: Any = None, copy: bool = True, order: str = "K") -> Any:
        found = self.asarray(value, dtype)
        return found.copy() if found is value and copy else found

    def __getattr__(self, name: str) -> Any:
        return _function(self, "", name)


_HALVES = frozenset({"bfloat16"})  # of the types that NumPy does not know itself


class _Part:
    def __init__(self, library: StrictCupy, name: str) -> None:
        self._library, self._name = library, name

    def __getattr__(self, name: str) -> Any:
        return _function(self._library, self._name, name)


def _function(library: StrictCupy, part: str, name: str) -> Any:
    full = f"{part}.{name}".strip(".")
    if name.startswith("__") or full in MISSING:
        raise AttributeError(f"cupy has no {full}")
    home: Any = np
    for inner in filter(None, part.split(".")):
        home = getattr(home, inner)
    found = getattr(home, name)
    if isinstance(found, np.ufunc):
        return _Ufunc(library, found)
    if isinstance(found, type) or not callable(found):
        return found

    def run(*args: Any, **kwargs: Any) -> Any:
        if full in WAITING or (full == "where" and len(args) == 1):
            library.waits[full] += 1
        if full == "repeat" and isinstance(args[1] if len(args) > 1 else None, Array):
            raise ValueError("repeats must be numbers")
        return library.call(found, args, kwargs)

    return run


class _Ufunc:
    """A ufunc as cupy has it: without `where=`, and with few methods."""

    def __init__(self, library: StrictCupy, ufunc: np.ufunc) -> None:
        self._library, self._ufunc = library, ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() - _KEYWORDS:
            raise TypeError(f"Wrong arguments {kwargs}")
        if isinstance(kwargs.get("out"), tuple) and len(kwargs["out"]) == 1:
            kwargs["out"] = kwargs["out"][0]
        return self._library.call(self._ufunc, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS and self._ufunc.__name__ not in _METHODS[name]:
            raise NotImplementedError(f"`{self._ufunc.__name__}.{name}` is not supported yet")
        if name == "at":
            return self._at
        return functools.partial(self._called, name)

    def _called(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._library.call(getattr(self._ufunc, name), args, kwargs)

    def _at(self, into: Array, indices: Any, values: Any) -> None:
        if into.dtype.kind in "fcV" and self._ufunc.__name__ in ("add", "subtract"):
            self._library.unordered["at"] += 1
        if into.dtype.name in ("bool", "int8", "uint8", "int16", "uint16", *_HALVES, "complex64"):
            raise TypeError(f"{self._ufunc.__name__}.at is not there for {into.dtype}")
        self._library.call(self._ufunc.at, (into, indices, values), {})
