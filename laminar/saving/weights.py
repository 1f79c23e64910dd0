"""Weights files (`.weights.h5`): arrays by path, in the layout of Keras 3, both ways.

An object at `path` keeps its variables as `path/vars/0`, `path/vars/1`, ... (or under names of its
own), and its name as the attribute `name` of `path/vars`; the root object keeps them in `vars`.
NumPy has no bfloat16 of its own, so Keras stores it as opaque 2-byte elements with the attribute
`dtype` = "bfloat16". This module owns h5py, which only writes: files are read by `Hdf5File`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np
import numpy.typing as npt

from laminar.engine.errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
)

from .atomic import atomic_write
from .hdf5_file import Attribute, Hdf5File, StoredArray
from .hdf5_format import Kind
from .limits import Limits, refused
from .window import BytesWindow, FileWindow, Window

Array = npt.NDArray[Any]
# Arrays of one object: in order (named "0", "1", ...), or by name.
Variables = Iterable[npt.ArrayLike] | Mapping[str, npt.ArrayLike]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_TEXT = np.dtype(object)


@dataclass(frozen=True)
class ArraySpec:
    """Shape and element type of a stored array; text has the dtype object."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class WeightsReader(Mapping[str, Array]):
    """The arrays of a weights file by their path, read when they are asked for.

    `reader["layers/dense/vars/0"]` is a new NumPy array of the machine's byte order: integers,
    floats, bool, bfloat16 or str (dtype object). Everything but the elements is read and checked on
    opening, and nothing else is touched: no other file, no code.

    Args:
        source: path of the file, or its bytes, or a window over them.
        limits: what the file may ask for.

    Raises:
        MissingFileError: there is no file at the path.
        DataLossError: the file is damaged, cut short, hostile or beyond the limits.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | Window,
        *,
        limits: Limits | None = None,
    ) -> None:
        with ExitStack() as stack:
            if isinstance(source, bytes):
                source = BytesWindow(source, "weights")
            elif isinstance(source, str | os.PathLike):
                file = stack.enter_context(open_file(source))
                size = os.fstat(file.fileno()).st_size
                source = FileWindow(file, 0, size, os.fspath(source))
            self._file = Hdf5File(source, limits or Limits())
            self._specs = {path: self._spec(array) for path, array in self._file.arrays.items()}
            self._names: dict[str, list[str]] = {path: [] for path in self._file.groups}
            for path in self._specs:
                group, _, name = path.rpartition("/")
                self._names[group].append(name)
            self._stack = stack.pop_all()

    def __getitem__(self, path: str) -> Array:
        dtype = self.spec(path).dtype
        return self._file.read(path).view(dtype) if dtype == _BFLOAT16 else self._file.read(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, path: object) -> bool:
        return path in self._specs

    def spec(self, path: str) -> ArraySpec:
        """Shape and dtype of an array, without reading its elements."""
        if path not in self._specs:
            raise NotFoundError(f"the weights file has no array at {path!r}")
        return self._specs[path]

    def attributes(self, path: str = "") -> dict[str, Attribute]:
        """The attributes of the group or array at `path`; "" is the root."""
        if path in self._file.groups:
            return dict(self._file.groups[path])
        if path in self._file.arrays:
            return dict(self._file.arrays[path].attributes)
        raise NotFoundError(f"the weights file has no group or array at {path!r}")

    def objects(self) -> list[str]:
        """The paths of all objects that keep variables (`path` for each group `path/vars`)."""
        return [
            path.removesuffix("vars").removesuffix("/")
            for path in self._file.groups
            if path == "vars" or path.endswith("/vars")
        ]

    def variables(self, path: str = "") -> dict[str, Array]:
        """The variables of the object at `path` by name, numbered ones first and in order."""
        prefix = _vars(path)
        if prefix not in self._file.groups:
            raise NotFoundError(f"the weights file has no variables for {path!r}")
        names = sorted(self._names[prefix], key=_number_first)
        return {name: self[f"{prefix}/{name}"] for name in names}

    def close(self) -> None:
        """Close the file; arrays that were read stay."""
        self._stack.close()

    def __enter__(self) -> WeightsReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spec(self, array: StoredArray) -> ArraySpec:
        if array.element.kind is Kind.OPAQUE:
            if array.element.dtype.itemsize == 2 and array.attributes.get("dtype") == "bfloat16":
                return ArraySpec(array.shape, _BFLOAT16)
            raise refused(
                f"{array.path}: its elements are {array.element.dtype.itemsize} opaque bytes that "
                "no attribute declares to be bfloat16"
            )
        if array.element.kind is Kind.BOOL:
            return ArraySpec(array.shape, np.dtype(bool))
        if array.element.kind is Kind.STRING:
            return ArraySpec(array.shape, _TEXT)
        return ArraySpec(array.shape, array.element.dtype.newbyteorder("="))


class WeightsWriter:
    """Writes a weights file, object by object, in the layout of Keras 3.

    The file appears at its path when the `with` block ends well, and not at all otherwise. The same
    arrays give the same bytes.

        with WeightsWriter("m.weights.h5") as writer:
            writer.write("layers/dense", [kernel, bias], name="dense")

    Args:
        target: path of the file, or a file opened for writing.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self._target = target

    def __enter__(self) -> WeightsWriter:
        # Heavy: loaded when a file is written.
        import h5py  # type: ignore[import-untyped]  # it has no type hints

        # In memory: HDF5 cannot close a file that it failed to write, say on a full disk.
        self._image = io.BytesIO()
        self._file = h5py.File(self._image, "w", libver="earliest")
        return self

    def write(self, path: str, variables: Variables, *, name: str | None = None) -> None:
        """Write the variables of one object.

        Args:
            path: where the object stands, such as "layers/dense"; "" is the root.
            variables: its arrays, in order or by name; numbers, bool or bfloat16.
            name: the object's own name.

        Raises:
            AlreadyExistsError: `path` was written before.
            InvalidArgumentError: `path` or a name is empty, ".", ".." or has characters that a path
                does not take.
            DTypeError: an array is of another type.
        """
        group_path = _vars(path)
        for part in group_path.split("/"):
            _check_name(part, group_path)
        if group_path in self._file:
            raise AlreadyExistsError(f"WeightsWriter: {path!r} was written before")
        named = (
            variables
            if isinstance(variables, Mapping)
            else {str(index): value for index, value in enumerate(variables)}
        )
        group = self._file.create_group(group_path)
        if name is not None:
            group.attrs["name"] = name
        for key, value in named.items():
            _check_name(key, group_path)
            array = np.asarray(value)
            if array.dtype == _BFLOAT16:
                group.create_dataset(key, data=array.view("V2")).attrs["dtype"] = "bfloat16"
            elif array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
                group.create_dataset(key, data=array)
            else:
                raise DTypeError(
                    f"WeightsWriter: {group_path}/{key} is of {array.dtype}; "
                    "integers, floats, bool and bfloat16 can be stored"
                )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if kind is not None:
            return
        if isinstance(self._target, str | os.PathLike):
            with atomic_write(self._target) as file:
                file.write(self._image.getbuffer())
        else:
            self._target.write(self._image.getbuffer())


def write_weights(
    target: str | os.PathLike[str] | BinaryIO,
    weights: Mapping[str, Variables],
    *,
    names: Mapping[str, str] | None = None,
) -> None:
    """Write a whole weights file: `weights[path]` are the variables of the object at `path`.

    Args:
        target: path of the file, or a file opened for writing.
        weights: the variables of each object, as `WeightsWriter.write` takes them.
        names: the objects' own names, by path.
    """
    with WeightsWriter(target) as writer:
        for path, variables in weights.items():
            writer.write(path, variables, name=names.get(path) if names else None)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; MissingFileError if there is none."""
    try:
        return open(path, "rb")
    except FileNotFoundError as error:
        raise MissingFileError(
            f"there is no file at {os.fspath(path)!r}", remedy="check the path"
        ) from error


def _vars(path: str) -> str:
    return f"{path}/vars" if path else "vars"


def _check_name(name: str, path: str) -> None:
    if name in ("", ".", "..") or "/" in name or not name.isprintable():
        raise InvalidArgumentError(
            f"WeightsWriter: {name!r} cannot stand in the path {path!r}",
            remedy="join non-empty printable names with single slashes",
        )


def _number_first(name: str) -> tuple[bool, int, str]:
    is_number = name.isascii() and name.isdigit() and len(name) < 10
    return (not is_number, int(name) if is_number else 0, name)
