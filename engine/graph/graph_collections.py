"""The collections of a graph: lists of objects that it keeps by key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any


class Collections:
    """The part of `Graph` that keeps lists of objects by key."""

    _lock: AbstractContextManager[Any]
    _collections: dict[str, list[Any]]

    @property
    def root(self) -> Collections:
        """The graph whose collections these are; see `Graph.root`."""
        raise NotImplementedError

    def check_open(self, what: str) -> None:
        """FailedPreconditionError when nothing may change; see `Graph.check_open`."""
        raise NotImplementedError

    def add_to_collection(self, key: str, value: Any) -> None:
        """Append `value` to the list under `key`; of a branch or a body, of the graph around it."""
        root = self.root
        with root._lock:
            root.check_open(f"adding to collection {key!r}")
            root._collections.setdefault(key, []).append(value)

    def get_collection(self, key: str, scope: str | None = None) -> list[Any]:
        """A copy of the list under `key`; with `scope`, the items whose name starts so."""
        items = list(self.root._collections.get(key, ()))
        if scope is None:
            return items
        return [i for i in items if re.match(scope, getattr(i, "name", ""))]

    def get_collection_ref(self, key: str) -> list[Any]:
        """The list itself under `key`, which changes with it."""
        self.root.check_open(f"changing collection {key!r}")
        return self.root._collections.setdefault(key, [])

    def clear_collection(self, key: str) -> None:
        """Empty the list under `key`."""
        self.get_collection_ref(key).clear()

    def add_to_collections(self, keys: Sequence[str], value: Any) -> None:
        """Append `value` to the list under each key, once."""
        for key in dict.fromkeys([keys] if isinstance(keys, str) else keys):
            self.add_to_collection(key, value)

    @property
    def collection_keys(self) -> list[str]:
        """The keys in use."""
        return list(self.root._collections)

    def get_all_collection_keys(self) -> list[str]:
        """`collection_keys`, as a call."""
        return self.collection_keys
