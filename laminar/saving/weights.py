"""Weights files (`.weights.h5`): arrays by path, in the layout of Keras 3, both ways.

An object at `path` keeps its variables as `path/vars/0`, `path/vars/1`, ... (or under names of its
own), and its name as the attribute `name` of `path/vars`; the root object keeps them in `vars`.
NumPy has no bfloat16 of its own, so Keras stores it as opaque 2-byte elements with the attribute
`dtype` = "bfloat16". Files are read by `Hdf5File` and written by `Hdf5Image`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from laminar.engine.closing import Closing, open_regular
from laminar.engine.errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
)
from laminar.engine.graph import bfloat16
from laminar.engine.late import later

from .hdf5_file import Hdf5File, StoredArray
from .hdf5_format import Attribute, Kind
from .limits import Limits, refused
from .window import BytesWindow, FileWindow, MappedWindow, Window

if TYPE_CHECKING:
    from .hdf5_image import Hdf5Image

# What is needed to write.
_atomic_write = later("laminar.engine.io.atomic", "atomic_write")
_hdf5_image = later("laminar.saving.hdf5_image", "Hdf5Image")

Array = npt.NDArray[Any]
# Arrays of one object: in order (named "0", "1", ...), or by name.
Variables = Iterable[npt.ArrayLike] | Mapping[str, npt.ArrayLike]

_TEXT = np.dtype(object)


@dataclass(frozen=True)
class ArraySpec:
    """Shape and element type of a stored array; text has the dtype object."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class WeightsReader(Mapping[str, Array], Closing):
    """The arrays of a weights file by their path, read when they are asked for.

    `reader["layers/dense/vars/0"]` is a new NumPy array of the machine's byte order: integers,
    floats, bool, bfloat16 or str (dtype object). Everything but the elements is read and checked on
    opening, and nothing else is touched: no other file, no code.

    Args:
        source: path of the file, or its bytes, or a window over them.
        limits: what the file may ask for.
        mmap: of a path: whether arrays are views of the mapped file, where they stand in it as they
            are.

    Raises:
        MissingFileError: there is no file at the path.
        DataLossError: the file is damaged, cut short, hostile or beyond the limits.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | Window,
        *,
        limits: Limits | None = None,
        mmap: bool = False,
    ) -> None:
        with ExitStack() as stack:
            if isinstance(source, bytes):
                source = BytesWindow(source, "weights")
            elif isinstance(source, str | os.PathLike):
                file = stack.enter_context(open_file(source))
                size = os.fstat(file.fileno()).st_size
                window = MappedWindow if mmap else FileWindow
                source = window(file, 0, size, os.fspath(source))
            self._name = source.name
            self._file = Hdf5File(source, limits or Limits())
            self._specs = {path: self._spec(array) for path, array in self._file.arrays.items()}
            self._names: dict[str, list[str]] = {path: [] for path in self._file.groups}
            for path in self._specs:
                group, _, name = path.rpartition("/")
                self._names[group].append(name)
            self._stack = stack.pop_all()

    def __getitem__(self, path: str) -> Array:
        spec, array = self.spec(path), self._file.read(path)
        return array.view(spec.dtype) if array.dtype.kind == "V" else array

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

    @property
    def groups(self) -> Mapping[str, dict[str, Attribute]]:
        """The attributes of all groups by path; "" is the root."""
        return self._file.groups

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

    def name_of(self, path: str) -> str | None:
        """What the object at `path` was called; None if the file does not say."""
        name = self._file.groups.get(_vars(path), {}).get("name")
        return name if isinstance(name, str) else None

    @property
    def size(self) -> int:
        """The number of elements of all arrays."""
        return sum(math.prod(spec.shape) for spec in self._specs.values())

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self._file.arrays.values())

    def close(self) -> None:
        """Close the file; arrays that were read stay."""
        self._stack.close()

    def _spec(self, array: StoredArray) -> ArraySpec:
        if array.element.kind is Kind.OPAQUE:
            if array.element.dtype.itemsize == 2 and array.attributes.get("dtype") == "bfloat16":
                return ArraySpec(array.shape, bfloat16.numpy)
            raise refused(
                f"{self._name}: {array.path}: its elements are {array.element.dtype.itemsize} "
                "opaque bytes that no attribute declares to be bfloat16"
            )
        if array.element.kind is Kind.BOOL:
            return ArraySpec(array.shape, np.dtype(bool))
        if array.element.kind is Kind.STRING:
            return ArraySpec(array.shape, _TEXT)
        return ArraySpec(array.shape, array.element.dtype.newbyteorder("="))


class WeightsWriter:
    """Writes a weights file, object by object, in the layout of Keras 3.

    The file appears at its path when the `with` block ends well, and not at all otherwise. The same
    arrays give the same bytes. Arrays must not change before the block ends.

        with WeightsWriter("m.weights.h5") as writer:
            writer.write("layers/dense", [kernel, bias], name="dense")

    Args:
        target: path of the file, or a file opened for writing.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self._target = target
        self._image: Hdf5Image = _hdf5_image()

    def __enter__(self) -> WeightsWriter:
        self._image.__enter__()
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
        _put(self._image, path, variables, name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._image.__exit__(kind, error, trace)
        if kind is None:
            _write_image(self._image, self._target)


def write_groups(
    target: str | os.PathLike[str] | BinaryIO,
    attributes: Mapping[str, Mapping[str, Any]],
    arrays: Mapping[str, npt.ArrayLike],
) -> None:
    """Write a HDF5 file of any layout.

    Args:
        target: path of the file, or a file opened for writing.
        attributes: those of each group, by its path; "" is the root.
        arrays: by path.

    Raises:
        InvalidArgumentError: a path has characters that it does not take.
        DTypeError: an array is of a type that cannot be stored.
    """
    image: Hdf5Image = _hdf5_image()
    with image:
        for path, values in attributes.items():
            if path:
                _check_path(path)
            image.group(path, values)
        for path, array in arrays.items():
            _check_path(path)
            if path in image:
                raise AlreadyExistsError(f"write_groups: two arrays have the path {path!r}")
            image.array(path, array)
    _write_image(image, target)


def _write_image(image: Hdf5Image, target: str | os.PathLike[str] | BinaryIO) -> None:
    if isinstance(target, str | os.PathLike):
        with _atomic_write(target) as file:
            image.write_to(file)
    else:
        image.write_to(target)


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
    _write_image(lay_out(weights, names), target)


def lay_out(weights: Mapping[str, Variables], names: Mapping[str, str] | None = None) -> Hdf5Image:
    """A weights file that is not written yet; arguments and errors as of `WeightsWriter.write`."""
    image: Hdf5Image = _hdf5_image()
    with image:
        for path, variables in weights.items():
            _put(image, path, variables, names.get(path) if names else None)
    return image


def _put(image: Hdf5Image, path: str, variables: Variables, name: str | None) -> None:
    group_path = _vars(path)
    _check_path(group_path)
    if group_path in image:
        raise AlreadyExistsError(f"WeightsWriter: {path!r} was written before")
    named = (
        variables
        if isinstance(variables, Mapping)
        else {str(index): value for index, value in enumerate(variables)}
    )
    image.group(group_path, None if name is None else {"name": name})
    for key, value in named.items():
        _check_name(key, group_path)
        image.array(f"{group_path}/{key}", value)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        MissingFileError: there is none.
        DataLossError: it is a folder, a pipe or a device, or the system does not let us read it.
    """
    name = os.fspath(path)
    try:
        return open_regular(path)
    except FileNotFoundError as error:
        raise MissingFileError(f"there is no file at {name!r}", remedy="check the path") from error
    except OSError as error:
        raise DataLossError(f"{name}: it cannot be read: {error.strerror}") from error


def _vars(path: str) -> str:
    return f"{path}/vars" if path else "vars"


def _check_path(path: str) -> None:
    for part in path.split("/"):
        _check_name(part, path)


def _check_name(name: str, path: str) -> None:
    if name in ("", ".", "..") or "/" in name or not name.isprintable():
        raise InvalidArgumentError(
            f"WeightsWriter: {name!r} cannot stand in the path {path!r}",
            remedy="join non-empty printable names with single slashes",
        )


def _number_first(name: str) -> tuple[bool, int, str]:
    is_number = name.isascii() and name.isdigit() and len(name) < 10
    return (not is_number, int(name) if is_number else 0, name)
