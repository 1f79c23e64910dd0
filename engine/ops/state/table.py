"""Lookup tables as ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DataLossError, DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    INTEGER,
    STRING,
    Array,
    TensorShape,
    TensorSpec,
    as_dtype,
    int64,
    resource,
)
from ...io.places import local_path
from ...io.records import open_input
from ...resources.tables import Table
from ..core.effects import HANDLE, held
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from ..text.string import collect

NO_AXES = TensorShape(())
# A column of a text file that is none: the whole line, or its number.
WHOLE_LINE, LINE_NUMBER = -2, -1


@define("HashTable", stateful=True)
def hash_table(
    *,
    key_dtype: str,
    value_dtype: str,
    value_shape: TensorShape,
    fixed: bool,
    container: str,
    shared_name: str,
    key_shape: TensorShape = NO_AXES,
    reserved: Array | None = None,
) -> TensorSpec:
    """The handle of a table; a `fixed` one is filled once, by an initialiser.

    `key_shape` is of one key; the `reserved` keys cannot be used.
    """
    if as_dtype(key_dtype) not in INTEGER | STRING:
        raise DTypeError(f"HashTable: keys are integers or strings, not {key_dtype}")
    if as_dtype(value_dtype) not in ANY:
        raise DTypeError(f"HashTable: values cannot be {value_dtype}")
    if not value_shape.is_fully_defined:
        raise ShapeError(f"HashTable: the shape of a value must be known, got {value_shape}")
    return TensorSpec((), resource)


@hash_table.effect
def _table_kernel(
    context: KernelContext,
    *,
    key_dtype: str,
    value_dtype: str,
    value_shape: TensorShape,
    fixed: bool,
    container: str,
    shared_name: str,
    key_shape: TensorShape,
    reserved: Array | None,
) -> Table:
    def make() -> Table:
        key, value = as_dtype(key_dtype).numpy, as_dtype(value_dtype).numpy
        rows = tuple(n for n in value_shape if n is not None)
        one = tuple(n for n in key_shape if n is not None)
        return Table(shared_name, key, value, rows, key_shape=one, reserved=reserved, fixed=fixed)

    declared = (str(key_dtype), str(value_dtype), str(value_shape), str(key_shape), fixed)
    return held(context, container, shared_name, Table, declared, make)


def _check_values(
    who: str, keys: TensorSpec, values: TensorSpec, key_dtype: str, value_dtype: str
) -> None:
    if keys.dtype != key_dtype or values.dtype != value_dtype:
        raise DTypeError(
            f"{who}: the table goes from {key_dtype} to {value_dtype}, "
            f"got keys {keys} and values {values}"
        )


def _entries(
    keys: TensorSpec, value_shape: TensorShape, key_shape: TensorShape = NO_AXES
) -> TensorShape:
    if keys.shape.rank is None:
        return TensorShape(None)
    rank = len(keys.shape) - len(key_shape)
    if rank < 0 or not TensorShape(keys.shape[rank:]).is_compatible_with(key_shape):
        raise ShapeError(f"a key of the table has shape {key_shape}, got keys {keys}")
    return TensorShape([*keys.shape[:rank], *value_shape])


@define("TableInitialize", dtypes={"table": HANDLE, "keys": ANY, "values": ANY}, same_dtype=False)
def table_initialize(
    table: TensorSpec, keys: TensorSpec, values: TensorSpec, *, key_dtype: str, value_dtype: str
) -> tuple[TensorSpec, ...]:
    """Fill a fixed table; once more with the same entries changes nothing."""
    _check_values("TableInitialize", keys, values, key_dtype, value_dtype)
    return ()


@table_initialize.effect
def _initialize_kernel(
    context: KernelContext,
    table: Table,
    keys: Array,
    values: Array,
    *,
    key_dtype: Any,
    value_dtype: Any,
) -> Any:
    if values.shape != keys.shape + table.value_shape:
        raise ShapeError(
            f"TableInitialize: the values of {list(keys.shape)} keys must have shape "
            f"{list(keys.shape + table.value_shape)}, got {list(values.shape)}"
        )
    table.initialize(keys, values)
    return ()


@define("TableInitializeFromFile", dtypes={"table": HANDLE, "filename": STRING}, same_dtype=False)
def table_initialize_from_file(
    table: TensorSpec,
    filename: TensorSpec,
    *,
    key_index: int,
    value_index: int,
    delimiter: str,
    vocab_size: int | None,
) -> tuple[TensorSpec, ...]:
    """Fill a fixed table from the lines of a text file.

    Key and value are columns, from 0, cut at `delimiter`; -1 is the number of the line, from 0,
    and -2 the whole line. With `vocab_size`, only so many lines are read.
    """
    for index in (key_index, value_index):
        if index < WHOLE_LINE:
            raise InvalidArgumentError(
                f"TableInitializeFromFile: a column is a number from 0, -1 (line number) or -2 "
                f"(whole line), got {index}"
            )
    if len(delimiter.encode()) != 1:
        raise InvalidArgumentError(
            f"TableInitializeFromFile: the delimiter is one byte, got {delimiter!r}"
        )
    if not filename.shape.is_compatible_with(()):
        raise ShapeError(f"TableInitializeFromFile: the file name is a scalar, got {filename}")
    return ()


@table_initialize_from_file.effect
def _from_file_kernel(
    context: KernelContext,
    table: Table,
    filename: Array,
    *,
    key_index: int,
    value_index: int,
    delimiter: str,
    vocab_size: int | None,
) -> Any:
    path, cut = context.files(local_path(filename.item())), delimiter.encode()
    keys: list[Any] = []
    values: list[Any] = []
    with open_input(path) as file:
        for number, line in enumerate(file):
            if vocab_size is not None and number >= vocab_size:
                break
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            columns = text.split(cut) if max(key_index, value_index) >= 0 else []
            for into, index in ((keys, key_index), (values, value_index)):
                if index >= len(columns):
                    raise DataLossError(
                        f"{path!r}, line {number + 1}: expected at least {index + 1} columns, "
                        f"found {len(columns)}"
                    )
                special = number if index == LINE_NUMBER else text
                into.append(columns[index] if index >= 0 else special)
    if vocab_size is not None and len(keys) < vocab_size:
        raise InvalidArgumentError(f"{path!r} has {len(keys)} lines, vocab_size is {vocab_size}")
    table.initialize(_parse(path, keys, table.key_dtype), _parse(path, values, table.value_dtype))
    return ()


def _parse(path: str, items: list[Any], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "O":
        return collect([i if isinstance(i, bytes) else b"%d" % i for i in items], (len(items),))
    try:
        read = int if dtype.kind in "iu" else float
        return np.array([read(i) for i in items], dtype)
    except (ValueError, OverflowError) as cause:
        raise DataLossError(f"{path!r}: {cause}", remedy=f"the column must hold {dtype}") from None


@define(
    "TableFind",
    dtypes={"table": HANDLE, "keys": ANY, "default": ANY},
    same_dtype=False,
    read_only=True,
)
def table_find(
    table: TensorSpec,
    keys: TensorSpec,
    default: TensorSpec,
    *,
    key_dtype: str,
    value_dtype: str,
    key_shape: TensorShape = NO_AXES,
) -> TensorSpec:
    """The value of each key, `default` for those that the table does not have."""
    _check_values("TableFind", keys, default, key_dtype, value_dtype)
    return TensorSpec(_entries(keys, default.shape, key_shape), default.dtype)


@table_find.effect
def _find_kernel(
    context: KernelContext,
    table: Table,
    keys: Array,
    default: Array,
    *,
    key_dtype: Any,
    value_dtype: Any,
    key_shape: TensorShape,
) -> Array:
    if default.shape != table.value_shape:
        raise ShapeError(
            f"TableFind: a value has shape {list(table.value_shape)}, "
            f"the default {list(default.shape)}"
        )
    return table.find(keys, default)


@define("TableInsert", dtypes={"table": HANDLE, "keys": ANY, "values": ANY}, same_dtype=False)
def table_insert(
    table: TensorSpec, keys: TensorSpec, values: TensorSpec, *, key_dtype: str, value_dtype: str
) -> tuple[TensorSpec, ...]:
    """Put entries into the table, or replace them."""
    _check_values("TableInsert", keys, values, key_dtype, value_dtype)
    return ()


@table_insert.effect
def _insert_kernel(
    context: KernelContext,
    table: Table,
    keys: Array,
    values: Array,
    *,
    key_dtype: Any,
    value_dtype: Any,
) -> Any:
    table.insert(keys, values)
    return ()


@define("TableRemove", dtypes={"table": HANDLE, "keys": ANY}, same_dtype=False)
def table_remove(table: TensorSpec, keys: TensorSpec, *, key_dtype: str) -> tuple[TensorSpec, ...]:
    """Take entries out of the table; keys that it does not have are passed over."""
    if keys.dtype != key_dtype:
        raise DTypeError(f"TableRemove: the keys of the table are {key_dtype}, got {keys}")
    return ()


@table_remove.effect
def _remove_kernel(context: KernelContext, table: Table, keys: Array, *, key_dtype: Any) -> Any:
    table.remove(keys)
    return ()


@define("TableExport", dtypes={"table": HANDLE}, read_only=True)
def table_export(
    table: TensorSpec,
    *,
    key_dtype: str,
    value_dtype: str,
    value_shape: TensorShape,
    key_shape: TensorShape = NO_AXES,
) -> tuple[TensorSpec, TensorSpec]:
    """All keys and all values."""
    keys = TensorSpec([None, *key_shape], as_dtype(key_dtype))
    return keys, TensorSpec([None, *value_shape], as_dtype(value_dtype))


@table_export.effect
def _export_kernel(
    context: KernelContext,
    table: Table,
    *,
    key_dtype: Any,
    value_dtype: Any,
    value_shape: Any,
    key_shape: Any,
) -> tuple[Array, Array]:
    return table.export()


@define("TableSize", dtypes={"table": HANDLE}, read_only=True)
def table_size(table: TensorSpec) -> TensorSpec:
    """The number of entries, int64."""
    return TensorSpec((), int64)


@table_size.effect
def _size_kernel(context: KernelContext, table: Table) -> Array:
    return np.asarray(table.size, np.int64)


for _op in (
    hash_table,
    table_initialize,
    table_initialize_from_file,
    table_find,
    table_insert,
    table_remove,
    table_export,
    table_size,
):
    _op.grad(no_gradient)
