"""Files read and found, and rows shuffled anew each time: what input pipelines begin with."""

from __future__ import annotations

import glob
import os
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import STRING, Array, Tensor, TensorSpec, string
from ...io.atomic import atomic_write
from ...io.places import local_path, make_folder
from ...io.records import open_input
from ..core.convert import convert_to_tensor
from ..core.effects import perform
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from ..text.string import collect


@define("ReadFile", dtypes=STRING, stateful=True)
def _read_file(filename: TensorSpec) -> TensorSpec:
    """The bytes of a file."""
    if not filename.shape.is_compatible_with(()):
        raise ShapeError(f"ReadFile: the file name is a scalar, got {filename}")
    return TensorSpec((), string)


@_read_file.effect
def _read_file_kernel(context: KernelContext, filename: Array) -> Array:
    with open_input(context.files(local_path(filename.item()))) as file:
        return np.array(file.read(), object)


_read_file.grad(no_gradient)


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The bytes of a file, a string scalar; MissingFileError when there is none.

    Args:
        filename: a string scalar.
        name: of the operation.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("note.txt").write_text("text")
        >>> engine.read_file("note.txt")
        Tensor(b'text', shape=(), dtype=string)
    """
    return _read_file(convert_to_tensor(filename, string), name=name)


@define("WriteFile", dtypes=STRING, stateful=True)
def _write_file(filename: TensorSpec, contents: TensorSpec) -> tuple[TensorSpec, ...]:
    """The contents become those of a file, whose folder is made where there is none."""
    for what, x in (("file name", filename), ("contents", contents)):
        if not x.shape.is_compatible_with(()):
            raise ShapeError(f"WriteFile: the {what} is a scalar, got {x}")
    return ()


@_write_file.effect
def _write_file_kernel(context: KernelContext, filename: Array, contents: Array) -> tuple[()]:
    path = context.files(local_path(filename.item()))
    make_folder(os.path.dirname(os.path.abspath(path)), "WriteFile")
    with atomic_write(path) as file:
        file.write(contents.item())
    return ()


_write_file.grad(no_gradient)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Any:
    """The contents become those of a file; the folder of it is made where there is none.

    Args:
        filename: a string scalar.
        contents: a string scalar.
        name: of the operation.

    Returns:
        In a graph, the operation; else nothing.

    Examples:
        >>> engine.write_file("note.txt", "text")
        >>> engine.read_file("note.txt")
        Tensor(b'text', shape=(), dtype=string)
    """
    given = [convert_to_tensor(x, string) for x in (filename, contents)]
    return perform(_write_file, given, {}, name)


@define("MatchingFiles", dtypes=STRING, stateful=True)
def _matching_files(pattern: TensorSpec) -> TensorSpec:
    """The names of the files that match one of the patterns, sorted."""
    return TensorSpec([None], string)


@_matching_files.effect
def _matching_files_kernel(context: KernelContext, pattern: Array) -> Array:
    patterns = [context.files(local_path(p)) for p in pattern.ravel().tolist()]
    names = {context.files(n) for p in patterns for n in glob.glob(p)}
    return collect(sorted(map(os.fsencode, names)), (len(names),))


_matching_files.grad(no_gradient)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match one of the patterns ("*", "?", "[a-z]"), sorted.

    Args:
        pattern: one pattern, or a vector of them.
        name: of the operation.

    Returns:
        A vector of strings, empty where nothing matches.

    Examples:
        >>> import pathlib
        >>> pathlib.Path("a.txt").touch()
        >>> engine.matching_files("*.txt")
        Tensor([b'a.txt'], shape=(1,), dtype=string)
    """
    return _matching_files(convert_to_tensor(pattern, string), name=name)


class _Shuffler:
    """The random generator of a ShuffleRows operation."""

    def __init__(self, seed: int | None) -> None:
        self.random = np.random.Generator(np.random.Philox(seed))


@define("ShuffleRows", stateful=True)
def _shuffle_rows(
    x: TensorSpec, *, seed: int | None, container: str, shared_name: str
) -> TensorSpec:
    """The rows of `x` in another random order each time; `seed` fixes the sequence of orders."""
    if x.shape.rank == 0:
        raise ShapeError("ShuffleRows: a scalar has no rows")
    return x


@_shuffle_rows.effect
def _shuffle_rows_kernel(
    context: KernelContext, x: Array, *, seed: int | None, container: str, shared_name: str
) -> Array:
    shuffler = context.resource(container, shared_name, lambda: _Shuffler(seed))
    return x[shuffler.random.permutation(len(x))]


_shuffle_rows.grad(no_gradient)


def shuffle_rows(x: Tensor, seed: int | None, container: str, shared_name: str) -> Tensor:
    """The rows of `x` in a random order, another one each time it runs.

    Args:
        x: (n, ...).
        seed: for the same sequence of orders in each session.
        container, shared_name: where a session keeps the random generator.
    """
    return _shuffle_rows(x, seed=seed, container=container, shared_name=shared_name)
