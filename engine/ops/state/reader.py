"""Readers as ops: (key, value) records of the files whose names a queue gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, Array, TensorSpec, int64, resource, string
from ...io.places import local_path
from ...resources.queues import Queue
from ...resources.readers import (
    Format,
    Reader,
    Record,
    checked_records,
    fixed_length,
    names_alone,
    text_lines,
    whole_files,
)
from ..core.effects import HANDLE, held, wait
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from ..text.string import collect

_FORMATS: dict[str, Callable[..., Format]] = {
    "text_lines": text_lines,
    "whole_files": lambda: whole_files,
    "names": lambda: names_alone,
    "records": checked_records,
    "fixed_length": fixed_length,
}


@define("Reader", stateful=True)
def reader(
    *, format: str, options: tuple[Any, ...], container: str, shared_name: str
) -> TensorSpec:
    """The handle of a reader of files in one format.

    `format` is "text_lines" (options: header lines to skip), "whole_files", "names", "records"
    (compression), or "fixed_length" (bytes of record, header, footer, hop).
    """
    if format not in _FORMATS:
        raise InvalidArgumentError(
            f"Reader: the format must be one of {', '.join(_FORMATS)}, got {format!r}"
        )
    return TensorSpec((), resource)


@reader.effect
def _reader_kernel(
    context: KernelContext, *, format: str, options: Any, container: str, shared_name: str
) -> Reader:
    records, files = _FORMATS[format](*options), context.files

    def permitted(name: bytes) -> Iterator[Record]:
        files(local_path(name))
        yield from records(name)

    def make() -> Reader:
        return Reader(shared_name, records if format == "names" else permitted)

    return held(context, container, shared_name, Reader, (format, tuple(options)), make)


@define("ReaderRead", dtypes={"reader": HANDLE, "queue": HANDLE})
def reader_read(reader: TensorSpec, queue: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """The next record's key and value, two strings; takes a name from `queue` between files."""
    return TensorSpec((), string), TensorSpec((), string)


@reader_read.asynchronous
def _read_kernel(context: KernelContext, done: Any, reader: Reader, queue: Queue) -> None:
    def finish(records: list[Record]) -> tuple[Array, Array]:
        ((key, value),) = records
        return np.array(key, object), np.array(value, object)

    wait(context, done, lambda tell: reader.read(queue, tell), finish)


@define(
    "ReaderReadUpTo", dtypes={"reader": HANDLE, "queue": HANDLE, "n": INTEGER}, same_dtype=False
)
def reader_read_up_to(
    reader: TensorSpec, queue: TensorSpec, n: TensorSpec
) -> tuple[TensorSpec, TensorSpec]:
    """Keys and values of the next records, from 1 to `n`, all of one file."""
    if not n.shape.is_compatible_with(()):
        raise ShapeError(f"ReaderReadUpTo: n is a scalar, got {n}")
    return TensorSpec([None], string), TensorSpec([None], string)


@reader_read_up_to.asynchronous
def _read_up_to_kernel(
    context: KernelContext, done: Any, reader: Reader, queue: Queue, n: Array
) -> None:
    def finish(records: list[Record]) -> tuple[Array, Array]:
        keys, values = zip(*records, strict=True)
        return collect(keys, (len(keys),)), collect(values, (len(values),))

    wait(context, done, lambda tell: reader.read(queue, tell, int(n)), finish)


@define("ReaderReset", dtypes={"reader": HANDLE})
def reader_reset(reader: TensorSpec) -> tuple[TensorSpec, ...]:
    """Forget the open file and the counts; reads that wait are cancelled."""
    return ()


@reader_reset.asynchronous
def _reset_kernel(context: KernelContext, done: Any, reader: Reader) -> None:
    wait(context, done, reader.reset)


@define("ReaderNumRecordsProduced", dtypes={"reader": HANDLE}, read_only=True)
def reader_num_records_produced(reader: TensorSpec) -> TensorSpec:
    """How many records were read since the reader was made or reset, int64."""
    return TensorSpec((), int64)


@reader_num_records_produced.effect
def _records_kernel(context: KernelContext, reader: Reader) -> Array:
    return np.asarray(reader.num_records_produced, np.int64)


@define("ReaderNumWorkUnitsCompleted", dtypes={"reader": HANDLE}, read_only=True)
def reader_num_work_units_completed(reader: TensorSpec) -> TensorSpec:
    """How many files were read to their end, int64."""
    return TensorSpec((), int64)


@reader_num_work_units_completed.effect
def _work_units_kernel(context: KernelContext, reader: Reader) -> Array:
    return np.asarray(reader.num_work_units_completed, np.int64)


for _op in (
    reader,
    reader_read,
    reader_read_up_to,
    reader_reset,
    reader_num_records_produced,
    reader_num_work_units_completed,
):
    _op.grad(no_gradient)
