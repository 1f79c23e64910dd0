"""Weights in several files: `m.weights.json` says which of `m_00000.weights.h5`, ... holds what."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt

from laminar.engine.closing import Closing
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.io.atomic import atomic_write

from .limits import Limits, beyond, refused
from .strict_json import format_object, parse_object
from .weights import ArraySpec, WeightsReader, open_file, write_weights

Array = npt.NDArray[Any]

_GIB = 1 << 30
_SUFFIX = ".weights.json"


class ShardedReader(Closing):
    """The arrays of several weights files, found through their list.

    Args:
        path: the list, a `.weights.json` file; the others stand beside it.
        limits: what the files may ask for, all together.
        mmap: whether arrays are views of the mapped files.

    Raises:
        MissingFileError: there is no such list, or a file that it names is not there.
        DataLossError: one of the files is damaged or hostile, or the list names a file that does
            not stand beside it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, limits: Limits | None = None, mmap: bool = False
    ) -> None:
        self.name = os.fspath(path)
        limits = limits or Limits()
        with ExitStack() as stack:
            with open_file(path) as file:
                text = file.read(limits.max_text_bytes + 1)
            listed = _parse_map(parse_object(text, self.name, limits), self.name)
            names = list(dict.fromkeys(name for files in listed.values() for name in files))
            if len(names) > limits.max_entries:
                raise beyond(f"{self.name}: it names {len(names)} files", "max_entries")
            folder = os.path.dirname(self.name)
            self._readers: dict[str, WeightsReader] = {}
            total = 0
            for name in names:
                reader = WeightsReader(os.path.join(folder, name), limits=limits, mmap=mmap)
                self._readers[name] = stack.enter_context(reader)
                total += reader.nbytes
                if total > limits.max_bytes:
                    raise beyond(f"{self.name}: its files hold too much", "max_bytes")
            self._objects = {
                path.strip("/").removesuffix("vars").removesuffix("/"): files
                for path, files in listed.items()
            }
            self._homes = self._find_arrays()
            self._stack = stack.pop_all()

    def _find_arrays(self) -> dict[str, WeightsReader]:
        """Which file holds each array."""
        homes: dict[str, WeightsReader] = {}
        for path, files in self._objects.items():
            prefix = f"{path}/vars/".lstrip("/")
            for file in files:
                reader = self._readers[file]
                for array in reader:
                    if array.startswith(prefix) and "/" not in array[len(prefix) :]:
                        if array in homes:
                            raise refused(f"{self.name}: two files hold {array!r}")
                        homes[array] = reader
        return homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def spec(self, path: str) -> ArraySpec:
        """Shape and dtype of an array."""
        return self._homes[path].spec(path)

    def objects(self) -> list[str]:
        """The paths of all objects that keep variables."""
        return list(self._objects)

    def variables(self, path: str) -> dict[str, Array]:
        """The variables of an object by name."""
        found: dict[str, Array] = {}
        for file in self._objects.get(path, ()):
            if path in self._readers[file].objects():
                found |= self._readers[file].variables(path)
        return found

    def name_of(self, path: str) -> str | None:
        """What the object was called."""
        names = (self._readers[file].name_of(path) for file in self._objects.get(path, ()))
        return next((name for name in names if name is not None), None)

    @property
    def size(self) -> int:
        """The number of elements of all arrays."""
        return sum(reader.size for reader in self._readers.values())

    def close(self) -> None:
        """Close the files; arrays that were read stay."""
        self._stack.close()


def _parse_map(content: dict[str, Any], owner: str) -> dict[str, list[str]]:
    """The files of each object, from the list."""
    weight_map = content.get("weight_map")
    if not isinstance(weight_map, dict):
        raise refused(f"{owner}: it has no weight_map: not a list of weights files")
    found: dict[str, list[str]] = {}
    for path, files in weight_map.items():
        names = files if isinstance(files, list) else [files]
        for name in names:
            if not isinstance(name, str) or not _is_beside(name):
                raise refused(f"{owner}: it names {name!r:.200}, which is no file beside it")
        found[path] = names
    return found


def _is_beside(name: str) -> bool:
    return (
        name.endswith(".h5")
        and name.isprintable()
        and not {"/", "\\", ":"} & set(name)
        and not name.startswith(".")
    )


def write_shards(
    path: str | os.PathLike[str],
    weights: Mapping[str, Mapping[str, npt.ArrayLike]],
    max_gigabytes: float,
    *,
    names: Mapping[str, str],
) -> None:
    """Write weights to files of limited size, and a `.weights.json` file that lists them.

    They are there all, or none of them.

    Args:
        path: of the list.
        weights: the variables of each object by its path.
        max_gigabytes: what one file may hold, in units of 2**30 bytes.
        names: the objects' own names, by path.

    Raises:
        InvalidArgumentError: one array is larger than that.
    """
    target = os.fspath(path)
    base = os.path.basename(target).removesuffix(_SUFFIX)
    most = max_gigabytes * _GIB
    shards: list[dict[str, dict[str, npt.ArrayLike]]] = [{}]
    weight_map: dict[str, list[str]] = {}
    used = total = 0
    for place, variables in weights.items():
        shards[-1].setdefault(place, {})
        for key, value in variables.items():
            size = np.asarray(value).nbytes
            if size > most:
                raise InvalidArgumentError(
                    f"save_weights: one of the weights of {place or 'the model'!r} has {size} "
                    f"bytes, max_shard_size={max_gigabytes} allows {int(most)}",
                    remedy=f"give max_shard_size={size / _GIB:.2g} or more; it is in GB",
                )
            if used + size > most:
                shards.append({})
                used = 0
            used += size
            total += size
            shards[-1].setdefault(place, {})[key] = value
            files = weight_map.setdefault(f"/{place}/vars" if place else "/vars", [])
            file = f"{base}_{len(shards) - 1:05}.weights.h5"
            if file not in files:
                files.append(file)
    content = {
        "metadata": {"total_size": float(total)},
        "weight_map": {k: v[0] if len(v) == 1 else v for k, v in weight_map.items()},
    }
    folder = os.path.dirname(target)
    with ExitStack() as stack:  # left in reverse order: the list is put in place last
        listing = stack.enter_context(atomic_write(target))
        for i, shard in enumerate(shards):
            file = f"{base}_{i:05}.weights.h5"
            write_weights(
                stack.enter_context(atomic_write(os.path.join(folder, file))), shard, names=names
            )
        listing.write(format_object(content, target))
