"""Arrays read from files, and written to them: .npy, .npz, .csv, .json."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.engine.io.atomic import atomic_write
from laminar.tree import flatten, map_structure

from .opening import check_file

FORMATS = ".npy, .npz, .csv or .json"


def read_array(path: str) -> Any:
    """What a file holds: an array; of .npz and JSON objects, arrays by names. "-" is JSON that is
    typed or piped in.

    Raises:
        MissingFileError: there is no such file.
        DataLossError: it is damaged, or holds something else.
        InvalidArgumentError: its name does not say what it holds.
    """
    if path == "-":
        return from_json(sys.stdin.buffer.read(), "what was read")
    check_file(path)
    ending = os.path.splitext(path)[1]
    try:
        if ending == ".npy":
            return np.load(path, allow_pickle=False)
        if ending == ".npz":
            with np.load(path, allow_pickle=False) as found:
                arrays = {name: found[name] for name in found.files}
            return arrays["arr_0"] if list(arrays) == ["arr_0"] else arrays  # it was given no name
        if ending == ".csv":
            return np.loadtxt(path, delimiter=",", ndmin=2)
        if ending == ".json":
            with open(path, "rb") as file:
                return from_json(file.read(), path)
    except (ValueError, EOFError) as cause:
        if isinstance(cause, DataLossError):
            raise
        raise DataLossError(f"{path!r} is no {ending} file of numbers: {cause}") from cause
    raise InvalidArgumentError(f"{path!r}: expected a {FORMATS} file")


def from_json(data: bytes, who: str) -> Any:
    """Arrays of JSON: a list is one, an object has some by names.

    Raises:
        DataLossError: it is no JSON, or a list whose rows differ in length.
    """
    try:
        return as_arrays(json.loads(data), who)
    except (ValueError, RecursionError) as cause:
        if isinstance(cause, DataLossError):
            raise
        raise DataLossError(f"{who} is not JSON: {cause}") from cause


def as_arrays(value: Any, who: str) -> Any:
    """Lists as arrays, in an object by names.

    Raises:
        DataLossError: rows differ in length, there is something else than numbers and texts, or
            nothing.
    """
    if isinstance(value, dict):
        if not value:
            raise DataLossError(f"{who}: an object without arrays")
        return {name: as_arrays(item, who) for name, item in value.items()}
    try:
        found = np.asarray(value)
    except ValueError as cause:
        raise DataLossError(f"{who}: the rows of a list differ in length") from cause
    if found.dtype.kind not in "biufU":
        raise DataLossError(f"{who}: expected numbers, got {str(value)[:80]}")
    return found.astype(np.float32) if found.dtype == np.float64 else found


def as_data(results: Any) -> Any:
    """Results as JSON has them."""
    return map_structure(lambda y: np.asarray(y).tolist(), results)


def write_results(path: str, results: Any) -> None:
    """Write what a model gave; several arrays need .npz or .json."""
    ending = os.path.splitext(path)[1]
    arrays = [np.asarray(y) for y in flatten(results)]
    if ending not in (".npy", ".npz", ".csv", ".json"):
        raise InvalidArgumentError(f"{path!r}: expected a {FORMATS} file to write to")
    if ending in (".npy", ".csv") and len(arrays) != 1:
        raise InvalidArgumentError(
            f"{path!r} holds one array, the model gives {len(arrays)}", remedy="write .npz or .json"
        )
    names = (
        list(results) if isinstance(results, dict) else [f"output_{i}" for i in range(len(arrays))]
    )
    with atomic_write(path) as file:
        if ending == ".npy":
            np.save(file, arrays[0], allow_pickle=False)
        elif ending == ".npz":
            np.savez(file, **dict(zip(names, arrays, strict=True)))
        elif ending == ".csv":
            np.savetxt(file, arrays[0].reshape(len(arrays[0]), -1), delimiter=",", fmt="%.9g")
        else:
            file.write(json.dumps(as_data(results)).encode())
