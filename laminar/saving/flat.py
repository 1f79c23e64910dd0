"""Weights by plain names, "layers/dense/vars/0": in checkpoints, and in files of safetensors."""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from laminar.engine.checkpoint import CheckpointReader, write_checkpoint
from laminar.engine.errors import InvalidArgumentError, UnimplementedError
from laminar.engine.graph import as_dtype
from laminar.engine.io.atomic import atomic_write
from laminar.engine.saving import stored_value
from laminar.engine.state import Variable

from .limits import Limits, beyond, refused
from .strict_json import parse_object
from .weights import ArraySpec, open_file
from .window import FileWindow, MappedWindow

CHECKPOINT, SAFETENSORS = ".ckpt", ".safetensors"

_NAMES = "_laminar_names"
_SIZE_BYTES = 8  # of the size of the header of a file of safetensors, before it
Array = npt.NDArray[Any]
# Element types as files of safetensors name them.
_CODES = {
    "BOOL": "bool",
    "BF16": "bfloat16",
    "C64": "complex64",
    **{f"I{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"U{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"F{n}": f"float{n}" for n in (16, 32, 64)},
}


class FlatStore:
    """Arrays by names like "layers/dense/vars/0".

    Args:
        specs: of each array, by name.
        read: gives an array.
        names: what objects are called, by path.
    """

    def __init__(
        self,
        specs: Mapping[str, ArraySpec],
        read: Callable[[str], Array],
        names: Mapping[str, str],
    ) -> None:
        self._specs = specs
        self._read = read
        self._names = names
        self._objects: dict[str, list[str]] = {}
        for name in specs:
            path, mark, key = f"/{name}".rpartition("/vars/")
            if mark:
                self._objects.setdefault(path.lstrip("/"), []).append(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def spec(self, path: str) -> ArraySpec:
        """Shape and dtype of an array."""
        return self._specs[path]

    def objects(self) -> list[str]:
        """The paths of all objects that keep variables."""
        return list(self._objects)

    def variables(self, path: str) -> dict[str, Array]:
        """The variables of an object by name, numbers in their order."""
        keys = sorted(self._objects.get(path, ()), key=lambda key: (len(key), key))
        return {key: self._read(_name(path, key)) for key in keys}

    def name_of(self, path: str) -> str | None:
        """What the object was called."""
        return self._names.get(path)


def _name(path: str, key: str) -> str:
    return f"{path}/vars/{key}".lstrip("/")


def arrays_of(weights: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The arrays of objects by their names; those of variables are not copied."""
    return {
        _name(path, key): stored_value(value) if isinstance(value, Variable) else np.asarray(value)
        for path, variables in weights.items()
        for key, value in variables.items()
    }


# Checkpoints


def write_weights_checkpoint(
    prefix: str, arrays: Mapping[str, Any], names: Mapping[str, str]
) -> None:
    """Write what `arrays_of` gave as a checkpoint."""
    text = np.array(json.dumps(dict(names)).encode(), object)
    write_checkpoint(prefix, {**arrays, _NAMES: text}.items(), "save_weights")


def checkpoint_store(reader: CheckpointReader, limits: Limits) -> FlatStore:
    """The weights of a checkpoint that `write_weights_checkpoint` wrote, or another program.

    Raises:
        DataLossError: it is damaged, or asks for more than the limits.
    """
    found = reader.variables()
    names: dict[str, str] = {}
    if _NAMES in found:
        size = reader.entry(_NAMES).size
        if size > limits.max_text_bytes:
            raise beyond(f"{reader.prefix}: the names have {size} bytes", "max_text_bytes")
        names = _parse_names(reader.read(_NAMES).item(), reader.prefix, limits)
    specs = {
        name: ArraySpec(shape, dtype.numpy)
        for name, (shape, dtype) in found.items()
        if dtype is not None and name != _NAMES
    }
    _check_size(specs, reader.prefix, limits)
    return FlatStore(specs, reader.read, names)


def _check_size(specs: Mapping[str, ArraySpec], owner: str, limits: Limits) -> None:
    total = sum(math.prod(spec.shape) * spec.dtype.itemsize for spec in specs.values())
    if total > limits.max_bytes:
        raise beyond(f"{owner}: its arrays have {total} bytes", "max_bytes")


def _parse_names(data: bytes, owner: str, limits: Limits) -> dict[str, str]:
    names = parse_object(data, owner, limits)
    if not all(isinstance(name, str) for name in names.values()):
        raise refused(f"{owner}: a name of an object is no text")
    return names


# Safetensors


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)  # optional; this module owns it
    except ImportError as cause:
        raise UnimplementedError(
            "files of safetensors need the package safetensors",
            remedy="pip install 'laminar[safetensors]', or save to .weights.h5",
        ) from cause


def write_safetensors(path: str, arrays: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Write what `arrays_of` gave; the file is there whole or not at all.

    Raises:
        UnimplementedError: the package safetensors is not installed.
        InvalidArgumentError: an array is of a type that the format does not have.
    """
    library = _library("safetensors.numpy")
    codes = set(_CODES.values())
    for name, value in arrays.items():
        dtype = as_dtype(value.dtype)
        if dtype not in codes:
            raise InvalidArgumentError(
                f"save_weights: {name!r} is {dtype}, which {path} has no type for"
            )
    found = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    data = library.save(found, metadata={_NAMES: json.dumps(dict(names))})
    with atomic_write(path) as file:
        file.write(data)


@contextmanager
def read_safetensors(path: str, limits: Limits, *, mmap: bool = False) -> Iterator[FlatStore]:
    """The weights of a file of safetensors, read when they are asked for; the library checks it.

    Args:
        path: of the file.
        limits: what it may ask for.
        mmap: whether arrays are views of the mapped file.

    Raises:
        UnimplementedError: the package safetensors is not installed.
        MissingFileError: there is no such file.
        DataLossError: it is damaged, or asks for more than the limits.
    """
    library = _library("safetensors")
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limits.max_bytes:
            raise beyond(f"{path}: it has {size} bytes", "max_bytes")
        header_size = int.from_bytes(file.read(_SIZE_BYTES), "little")
        if header_size > limits.max_text_bytes:
            raise beyond(f"{path}: the header has {header_size} bytes", "max_text_bytes")
        try:
            with library.safe_open(path, framework="numpy"):
                pass  # types, sizes and places fit together
        except Exception as cause:  # SafetensorError; its module differs between versions
            raise refused(f"{path}: it is no file of safetensors: {cause}") from cause
        header = parse_object(file.read(header_size), path, limits)
        metadata = header.pop("__metadata__", None)
        start = _SIZE_BYTES + header_size
        window = (MappedWindow if mmap else FileWindow)(file, start, size - start, path)
        specs, places = _tensors(header, path)

        def read(name: str) -> Array:
            spec, (begin, end) = specs[name], places[name]
            raw: Array = np.empty(end - begin, np.uint8)
            if end > begin:
                found = window.mapped(begin, end - begin)
                if found is None:
                    window.read_into(begin, raw.data)
                else:
                    raw = np.frombuffer(found, np.uint8)
            return raw.view(spec.dtype).reshape(spec.shape)

        yield FlatStore(specs, read, _names_in(metadata, path, limits))


def _tensors(
    header: Mapping[str, Any], path: str
) -> tuple[dict[str, ArraySpec], dict[str, tuple[int, int]]]:
    """The arrays that a header lists, and where each stands behind it."""
    specs: dict[str, ArraySpec] = {}
    places: dict[str, tuple[int, int]] = {}
    for name, entry in header.items():
        if entry["dtype"] not in _CODES:
            raise UnimplementedError(f"{path}: {name!r} is {entry['dtype']}")
        spec = ArraySpec(tuple(entry["shape"]), as_dtype(_CODES[entry["dtype"]]).numpy)
        begin, end = entry["data_offsets"]
        if end - begin != math.prod(spec.shape) * spec.dtype.itemsize:
            raise refused(f"{path}: {name!r} has {end - begin} bytes, which are not its shape's")
        specs[name], places[name] = spec, (begin, end)
    return specs, places


def _names_in(metadata: Any, path: str, limits: Limits) -> dict[str, str]:
    """What objects are called, from the metadata of the header."""
    text = metadata.get(_NAMES) if isinstance(metadata, dict) else None
    return _parse_names(text.encode(), path, limits) if isinstance(text, str) else {}
