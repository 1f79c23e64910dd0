"""Lines of comma-separated values as columns. On the host."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    STRING,
    Array,
    Tensor,
    TensorSpec,
    float32,
    float64,
    int32,
    int64,
    string,
)
from ..core.convert import convert_to_tensor
from ..core.registry import define, no_gradient
from ..text.string import collect, decode, encode

_TYPES = frozenset({float32, float64, int32, int64, string})


@define("DecodeCSV", dtypes={"records": STRING})
def _decode_csv(
    records: TensorSpec,
    *defaults: TensorSpec,
    delimiter: str,
    quotes: bool,
    na_value: str,
    columns: tuple[int, ...] | None,
) -> tuple[TensorSpec, ...]:
    """One tensor for each column of the lines, of the type of its default.

    A default is a scalar, which stands for an empty field or one that is `na_value`; or an empty
    vector: then the field must be there. `columns` are those to take, in rising order.
    """
    if not defaults:
        raise InvalidArgumentError("DecodeCSV: there must be a default for each column, got none")
    for i, default in enumerate(defaults):
        if default.dtype not in _TYPES:
            raise DTypeError(
                f"DecodeCSV: column {i} must be one of {', '.join(sorted(_TYPES))}, "
                f"its default is {default}"
            )
        if default.shape.rank not in (0, 1, None) or default.shape.dims == (None,):
            continue
        if default.shape.rank == 1 and default.shape[0] not in (0, 1):
            raise ShapeError(f"DecodeCSV: the default of column {i} is a scalar, got {default}")
    if len(delimiter) != 1 or delimiter in '"\n\r':
        raise InvalidArgumentError(
            f"DecodeCSV: the delimiter is one character that is no quote or line end, "
            f"got {delimiter!r}"
        )
    if columns is not None and (
        len(columns) != len(defaults) or list(columns) != sorted({*columns}) or min(columns) < 0
    ):
        raise InvalidArgumentError(
            f"DecodeCSV: the columns must rise, one for each of the {len(defaults)} defaults, "
            f"got {columns}"
        )
    return tuple(TensorSpec(records.shape, d.dtype) for d in defaults)


def _parser(lines: list[str], delimiter: str, quotes: bool) -> Iterator[list[str]]:
    if quotes:
        return csv.reader(lines, delimiter=delimiter, strict=True)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)


@_decode_csv.kernel("cpu")
def _decode_csv_kernel(
    records: Array,
    *defaults: Array,
    delimiter: str,
    quotes: bool,
    na_value: str,
    columns: tuple[int, ...] | None,
) -> Any:
    lines = [decode(item) for item in records.ravel().tolist()]
    rows = []
    for number, line in enumerate(lines):
        try:
            (row,) = _parser([line], delimiter, quotes)
        except (csv.Error, ValueError) as cause:
            raise InvalidArgumentError(
                f"decode_csv: record {number} is no line of CSV: {line[:80]!r}"
            ) from cause
        if columns is None and len(row) != len(defaults):
            raise InvalidArgumentError(
                f"decode_csv: expected {len(defaults)} fields, record {number} has {len(row)}"
            )
        if columns is not None:
            if columns[-1] >= len(row):
                raise InvalidArgumentError(
                    f"decode_csv: column {columns[-1]} is asked for, record {number} has {len(row)}"
                )
            row = [row[c] for c in columns]
        rows.append(row)
    fields = list(zip(*rows, strict=True)) if rows else [()] * len(defaults)
    found = [
        _csv_column(i, list(column), default, na_value).reshape(records.shape)
        for i, (column, default) in enumerate(zip(fields, defaults, strict=True))
    ]
    return found if len(found) > 1 else found[0]


def _csv_column(index: int, fields: list[str], default: Array, na_value: str) -> Array:
    present = [field not in ("", na_value) for field in fields]
    missing = default.reshape(-1)
    if not all(present) and not missing.size:
        raise InvalidArgumentError(
            f"decode_csv: column {index} has no default, and record {present.index(False)} "
            f"has nothing in it"
        )
    if default.dtype.kind == "O":
        values: list[Any] = [
            encode(f) if p else missing[0] for f, p in zip(fields, present, strict=True)
        ]
        return collect(values, (len(values),))
    read = int if default.dtype.kind == "i" else float
    try:
        values = [read(f) if p else missing[0] for f, p in zip(fields, present, strict=True)]
        return np.array(values, default.dtype)
    except (ValueError, OverflowError) as cause:
        raise InvalidArgumentError(
            f"decode_csv: column {index} must hold {default.dtype}: {cause}"
        ) from None


_decode_csv.grad(no_gradient)


def decode_csv(
    records: Tensor,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """The columns of lines of comma-separated values.

    Args:
        records: (...), strings, one line each.
        record_defaults: for each column a value of its type (float32, float64, int32, int64 or
            string), which stands for empty fields; or an empty list or tensor: then the field
            must be there. A list has its one value in it.
        field_delim: what stands between the fields.
        use_quote_delim: whether fields may stand in double quotes.
        na_value: what else means an empty field.
        select_cols: the columns to take, rising; by default all.

    Returns:
        a tensor (...) for each column.

    Raises:
        InvalidArgumentError: a line has another number of fields, or a field is no number.

    Source: Shafranovich, "Common format and MIME type for comma-separated values", RFC 4180, 2005.

    Examples:
        >>> engine.decode_csv(engine.constant(["1,2.5", "3,"]), record_defaults=[[0], [0.5]])
        [Tensor([1, 3], shape=(2,), dtype=int32), Tensor([2.5, 0.5], shape=(2,), dtype=float32)]
    """
    columns = None if select_cols is None else tuple(int(c) for c in select_cols)
    defaults = [convert_to_tensor(d) for d in record_defaults]
    return list(
        _decode_csv.many(
            records,
            *defaults,
            name=name,
            delimiter=field_delim,
            quotes=bool(use_quote_delim),
            na_value=na_value,
            columns=columns,
        )
    )
