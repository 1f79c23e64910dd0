"""Words in memory, and the parts of Python's objects, as native code reads them."""

from __future__ import annotations

from ...graph import DType, int64
from .function import IRFunction, Value
from .memory import address_at, load, store

# Where CPython keeps the parts of an ndarray; how many items a list has, and where.
REFERENCES, TYPE, DATA, RANK, SIZES, BASE, FLAGS = 0, 8, 16, 24, 32, 48, 64
COUNT, ITEMS = 16, 24


def word(fn: IRFunction, base: str, index: int | Value) -> Value:
    """The word of that number."""
    return load(fn, at(fn, base, index), int64, 0)


def at(fn: IRFunction, base: str, index: int | Value) -> str:
    """Where the word of that number is."""
    place = fn.number(index) if isinstance(index, int) else index
    return address_at(fn, base, place, 8)


def pointer(fn: IRFunction, address: Value) -> str:
    """A number as an address."""
    return fn.named(f"inttoptr {address} to ptr")


def put(fn: IRFunction, base: str, index: int | Value, value: Value) -> None:
    """Write a word."""
    store(fn, value, at(fn, base, index))


def field(fn: IRFunction, held: str, offset: int, dtype: DType) -> Value:
    """What an object holds so many bytes from where it begins."""
    return load(fn, address_at(fn, held, fn.number(offset), 1), dtype, 0)
