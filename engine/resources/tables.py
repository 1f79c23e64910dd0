"""Lookup tables: from keys to values, in memory."""

from __future__ import annotations

import math
import threading
from itertools import repeat
from typing import Any

import numpy as np

from ..errors import FailedPreconditionError, InvalidArgumentError
from .batches import Array
from .contents import contents_bytes, damaged, read_contents


class Table:
    """A table from keys to values. `_entries[key]` is a Python scalar, or an array for rows.

    Args:
        name: for errors.
        key_dtype, value_dtype: NumPy's; strings are objects.
        value_shape: of one value.
        key_shape: of one key; () for all but keys that are vectors.
        reserved: keys that cannot be used.
        fixed: whether it is filled once, by `initialize`, and never changed.

    `_entries` is None before a fixed table is initialised. Guarded by `_lock`.
    """

    def __init__(
        self,
        name: str,
        key_dtype: np.dtype[Any],
        value_dtype: np.dtype[Any],
        value_shape: tuple[int, ...] = (),
        *,
        key_shape: tuple[int, ...] = (),
        reserved: Array | None = None,
        fixed: bool = False,
    ) -> None:
        self.name = name
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.value_shape = value_shape
        self.key_shape = key_shape
        self._reserved = frozenset[Any]()
        if reserved is not None:
            self._reserved = frozenset(self._items(reserved))
        self.fixed = fixed
        self.declared: Any = None  # what graphs say of it
        self._lock = threading.Lock()
        self._entries: dict[Any, Any] | None = None if fixed else {}

    @property
    def is_initialized(self) -> bool:
        """Whether it may be looked into."""
        return self._entries is not None

    @property
    def value(self) -> dict[Any, Any] | None:
        """The entries; None where it is not initialised. What reports of readiness ask for."""
        return self._entries

    def _ready(self) -> dict[Any, Any]:
        if self._entries is None:
            raise FailedPreconditionError(
                f"table {self.name!r} is used before it is initialised",
                remedy="run tables_initializer(), or the table's initializer, first",
            )
        return self._entries

    def initialize(self, keys: Array, values: Array) -> None:
        """Fill a fixed table; a second time with the same entries changes nothing.

        Raises:
            InvalidArgumentError: a key comes twice with different values.
            FailedPreconditionError: it is filled with other entries already.
        """
        pairs = zip(self._items(keys), self._values(values), strict=True)
        entries: dict[Any, Any] = {}
        for key, value in pairs:
            if not self._same(entries.setdefault(key, value), value):
                raise InvalidArgumentError(
                    f"table {self.name!r}: the key {key!r} has two values: "
                    f"{entries[key]!r} and {value!r}"
                )
        with self._lock:
            if self._entries is None:
                self._entries = entries
            elif self._entries.keys() != entries.keys() or not all(
                self._same(self._entries[k], v) for k, v in entries.items()
            ):
                raise FailedPreconditionError(
                    f"table {self.name!r} is initialised already, with other entries"
                )

    def _same(self, a: Any, b: Any) -> bool:
        return bool(np.array_equal(a, b)) if self.value_shape else bool(a == b)

    def _items(self, keys: Array) -> list[Any]:
        if self.key_shape:
            items = [tuple(row) for row in keys.reshape(-1, math.prod(self.key_shape)).tolist()]
        else:
            items = list(keys.ravel().tolist())
        if self._reserved and not self._reserved.isdisjoint(items):
            bad = next(key for key in items if key in self._reserved)
            raise InvalidArgumentError(
                f"table {self.name!r}: {bad!r} is its empty or deleted key, and no key of an entry"
            )
        return items

    def places(self, keys: Array) -> tuple[int, ...]:
        """The shape of the array of keys, without that of one key.

        Raises:
            InvalidArgumentError: the keys have another shape.
        """
        rank = keys.ndim - len(self.key_shape)
        if rank < 0 or keys.shape[rank:] != self.key_shape:
            raise InvalidArgumentError(
                f"table {self.name!r}: a key has shape {list(self.key_shape)}, "
                f"got keys {list(keys.shape)}"
            )
        found: tuple[int, ...] = keys.shape[:rank]
        return found

    def _values(self, values: Array) -> list[Any]:
        flat = values.reshape(-1, *self.value_shape)
        return list(flat.copy()) if self.value_shape else list(flat.tolist())

    def find(self, keys: Array, default: Array) -> Array:
        """The value of each key, `default` for those that are not there: keys.shape + one's."""
        places = self.places(keys)
        items = self._items(keys)
        missing = default if self.value_shape else default.item()
        with self._lock:
            found = list(map(self._ready().get, items, repeat(missing)))
        return self._collect(found).reshape(places + self.value_shape)

    def _collect(self, found: list[Any]) -> Array:
        out = np.empty((len(found), *self.value_shape), self.value_dtype)
        if found:
            out[...] = found
        return out

    def insert(self, keys: Array, values: Array) -> None:
        """Put entries in, or replace them."""
        self._change("inserted into")
        places = self.places(keys)
        if values.shape != places + self.value_shape:
            raise InvalidArgumentError(
                f"table {self.name!r}: the keys have shape {list(keys.shape)}, so the values must "
                f"have {list(places + self.value_shape)}, got {list(values.shape)}"
            )
        entries = dict(zip(self._items(keys), self._values(values), strict=True))
        with self._lock:
            self._ready().update(entries)

    def remove(self, keys: Array) -> None:
        """Take entries out; keys that are not there are passed over."""
        self._change("removed from")
        items = self._items(keys)
        with self._lock:
            entries = self._ready()
            for key in items:
                entries.pop(key, None)

    def _change(self, what: str) -> None:
        if self.fixed:
            raise FailedPreconditionError(
                f"table {self.name!r} is fixed: nothing can be {what} it",
                remedy="use a MutableHashTable",
            )

    @property
    def size(self) -> int:
        """How many entries there are."""
        with self._lock:
            return len(self._ready())

    def export(self) -> tuple[Array, Array]:
        """All keys and all values, in the order in which the keys came."""
        with self._lock:
            entries = dict(self._ready())
        keys = np.empty((len(entries), *self.key_shape), self.key_dtype)
        if entries:
            keys[...] = np.reshape(np.array(list(entries), self.key_dtype), keys.shape)
        return keys, self._collect(list(entries.values()))

    def state(self) -> bytes:
        """Its entries."""
        return contents_bytes([self.export()])

    def set_state(self, data: bytes) -> None:
        """Have the entries that another table had when it gave `data`.

        Raises:
            DataLossError: the data are damaged, or of another kind of table; nothing changes then.
            FailedPreconditionError: the table is fixed.
        """
        self._change("restored into")
        elements, _ = read_contents(data)
        if len(elements) != 1 or len(elements[0]) != 2:
            raise damaged(f"table {self.name!r}")
        keys, values = elements[0]
        if (keys.dtype, values.dtype) != (self.key_dtype, self.value_dtype) or (
            (keys.shape[1:], values.shape) != (self.key_shape, keys.shape[:1] + self.value_shape)
        ):
            raise damaged(f"table {self.name!r}")
        entries = dict(zip(self._items(keys), self._values(values), strict=True))
        with self._lock:
            self._entries = entries

    def __repr__(self) -> str:
        return f"table {self.name!r}"
