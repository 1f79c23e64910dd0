"""NumPy archives (.npz) read without unpickling.

Arrays of numbers are their bytes. Arrays of objects, which NumPy can only pickle, are read by
`pickle_reader` as plain data.

Format: NumPy Enhancement Proposal 1, and `numpy.lib.format`.
"""

from __future__ import annotations

import io
import zipfile
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from laminar.engine.errors import DataLossError

from .pickle_reader import read_pickle

MAX_MEMBER_BYTES: Final = 1 << 30


def read_npz(path: Path, *names: str) -> list[NDArray[Any]]:
    """The arrays of these names.

    Raises:
        DataLossError: the archive is damaged, lacks an array, or holds more than plain data.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [_read(archive, name) for name in names]
    except DataLossError:
        raise
    except Exception as error:  # the parser of headers reads Python's syntax: it can raise anything
        raise DataLossError(
            f"{path}: expected a NumPy archive with {', '.join(names)}: {error}",
            remedy="remove the file, so that it is downloaded again",
        ) from error


def _read(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > MAX_MEMBER_BYTES:
        raise ValueError(f"{name} has {info.file_size} bytes, more than {MAX_MEMBER_BYTES}")
    with archive.open(info) as file:
        # A bytearray, so that the array which shares it can be written to.
        data = bytearray(file.read(MAX_MEMBER_BYTES + 1))
    return _parse(data, f"{archive.filename}[{name!r}]")


def _parse(data: bytearray, source: str) -> NDArray[Any]:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"the version {version} of the array format is not read")
    start = stream.tell()
    if dtype.hasobject:
        array = read_pickle(memoryview(data)[start:], source=source)
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            raise ValueError(f"{source} holds another array than its header says")
        return array
    if len(data) - start != prod(shape) * dtype.itemsize:
        raise ValueError(f"{source} has {len(data) - start} bytes for {dtype} of shape {shape}")
    flat = np.frombuffer(data, dtype, offset=start)
    return flat.reshape(shape, order="F" if is_fortran else "C")
