"""`tf.data`: data sets of files of records and of tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from laminar import datasets, engine
from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.engine.graph import TensorSpec, as_dtype, string
from laminar.engine.io.places import local_path
from laminar.engine.io.records import open_input

from .adapting import in_graph
from .inputs import compression
from .pipeline_walks import Transform, generated
from .pipelines import Dataset, tf_record_dataset, values_of


def _names(filenames: Any) -> list[str]:
    found = np.ravel(np.asarray(values_of(filenames), object)).tolist()
    return [local_path(name) for name in found]


def FixedLengthRecordDataset(  # noqa: N802  # its name there
    filenames: Any,
    record_bytes: int,
    header_bytes: int | None = None,
    footer_bytes: int | None = None,
    buffer_size: int | None = None,
    compression_type: Any = None,
    num_parallel_reads: int | None = None,
) -> Dataset:
    """The records of files, each of so many bytes, without the header and footer of each file.

    Raises:
        DataLossError: in a walk: a file does not hold a whole number of records.
    """
    size, before, behind = int(record_bytes), int(header_bytes or 0), int(footer_bytes or 0)
    if size < 1 or before < 0 or behind < 0:
        raise InvalidArgumentError(
            f"FixedLengthRecordDataset: {size} bytes, {before} before and {behind} behind"
        )

    def walk() -> Iterator[bytes]:
        for name in _names(filenames):
            with open_input(name, compression(compression_type)) as file:
                whole = file.read()
            inside = whole[before : len(whole) - behind]
            if len(inside) % size:
                raise DataLossError(f"{name}: {len(inside)} bytes are no records of {size} bytes")
            for begin in range(0, len(inside), size):
                yield inside[begin : begin + size]

    return generated("FixedLengthRecordDataset", walk, TensorSpec([], string))


def _rows(names: list[str], kind: Any, delimiter: str, quotes: bool, header: bool) -> Iterator[Any]:
    for name in names:
        with open_input(name, compression(kind)) as file:
            text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="")
            quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
            rows = csv.reader(text, delimiter=delimiter, quoting=quoting)
            for number, row in enumerate(rows):
                if row and not (header and number == 0):
                    yield name, row


def _field(who: str, text: str, kind: Any, default: Any, na_value: str) -> Any:
    if text in ("", na_value):
        if default is None:
            raise InvalidArgumentError(f"{who}: a field is empty, and has no default")
        return default
    if kind == string:
        return text.encode("utf-8", "surrogateescape")
    try:
        return int(text) if kind.is_integer else float(text)
    except ValueError:
        raise InvalidArgumentError(f"{who}: {text!r} is no {kind}") from None


def _defaults(record_defaults: Sequence[Any]) -> list[tuple[Any, Any]]:
    """(type, default or None) of each column."""
    found: list[tuple[Any, Any]] = []
    for given in record_defaults:
        if isinstance(given, engine.DType):
            found.append((given, None))
            continue
        value = np.asarray(values_of(given))
        kind = string if value.dtype.kind in "OSU" else as_dtype(str(value.dtype))
        if value.dtype == np.float64 and not isinstance(given, np.ndarray | np.generic):
            kind = engine.float32
        flat = value.ravel()
        item = flat[0] if flat.size else None
        found.append((kind, item.encode() if isinstance(item, str) else item))
    return found


def CsvDataset(  # noqa: N802  # its name there
    filenames: Any,
    record_defaults: Sequence[Any],
    compression_type: Any = None,
    buffer_size: int | None = None,
    header: bool = False,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> Dataset:
    """The rows of files of comma-separated values, as tuples of scalars.

    Args:
        filenames: of the files.
        record_defaults: for each column its type, or the value of empty fields.
        compression_type: "ZLIB", "GZIP" or none.
        buffer_size: accepted.
        header: whether the first line of each file is none of the rows.
        field_delim: stands between fields.
        use_quote_delim: whether quotation marks may stand around a field.
        na_value: another text for an empty field.
        select_cols: the numbers of the columns, all by default.

    Raises:
        InvalidArgumentError: in a walk: a field is no value of its type, or is missing.
    """
    columns = _defaults(record_defaults)

    def walk() -> Iterator[Any]:
        rows = _rows(_names(filenames), compression_type, field_delim, use_quote_delim, header)
        for name, row in rows:
            chosen = row if select_cols is None else [row[i] for i in select_cols if i < len(row)]
            if len(chosen) != len(columns):
                raise InvalidArgumentError(
                    f"{name}: a row has {len(chosen)} fields, expected {len(columns)}"
                )
            yield tuple(
                _field(name, text, kind, default, na_value)
                for text, (kind, default) in zip(chosen, columns, strict=True)
            )

    return generated("CsvDataset", walk, tuple(TensorSpec([], kind) for kind, _ in columns))


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int = 1,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
) -> Dataset:
    """Batches of the rows of files of comma-separated values, as dictionaries of columns.

    Args:
        file_pattern: names of files, with * and ?.
        batch_size: rows of a batch.
        column_names: of the columns; by default the first line of the files.
        column_defaults: for each column its type, or the value of empty fields; by default the
            types are found out from the rows.
        label_name: the column that stands apart: elements are then (others, it).
        select_columns: names or numbers of columns, all by default.
        field_delim, use_quote_delim, na_value, header, compression_type: see `CsvDataset`.
        num_epochs: how often all comes, None for without end.
        shuffle, shuffle_buffer_size, shuffle_seed: whether and how rows are mixed.
        prefetch_buffer_size: batches that are made ahead.
        num_parallel_reads, sloppy: accepted.
        num_rows_for_inference: how many rows say the types, None for all.
    """
    patterns = _names(file_pattern)
    names = sorted(
        {n.decode() for n in datasets.Dataset.list_files(patterns, False).as_numpy_iterator()}
    )
    options = (compression_type, field_delim, use_quote_delim)
    if column_names is None:
        _, column_names = next(_rows(names, *options, False))
    every = [str(c) for c in column_names]
    chosen = list(range(len(every)))
    if select_columns is not None:
        chosen = [every.index(c) if isinstance(c, str) else int(c) for c in select_columns]
    kept = [every[i] for i in chosen]
    if label_name is not None and label_name not in kept:
        raise InvalidArgumentError(
            f"make_csv_dataset: {label_name!r} is none of the columns {kept}"
        )
    if column_defaults is None:
        column_defaults = _inferred(
            names, options, header, chosen, na_value, num_rows_for_inference
        )
    elif select_columns is not None and len(column_defaults) == len(every):
        column_defaults = [column_defaults[i] for i in chosen]

    def by_name(*values: Any) -> Any:
        row = dict(zip(kept, values, strict=True))
        return row if label_name is None else (row, row.pop(label_name))

    found: Any = CsvDataset(
        names, column_defaults, compression_type, None, header, field_delim, use_quote_delim,
        na_value, chosen,
    )  # fmt: skip
    if shuffle:
        found = found.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = found.repeat(num_epochs).map(by_name).batch(batch_size, num_epochs is None)
    return batches.prefetch(prefetch_buffer_size or 1)  # type: ignore[no-any-return]  # a Dataset


def _inferred(
    names: list[str],
    options: tuple[Any, str, bool],
    header: bool,
    chosen: list[int],
    na: str,
    most: int | None,
) -> list[Any]:
    """The narrowest type, of int32, int64, float32, float64 and strings, that takes a column."""
    kinds = [0] * len(chosen)
    for number, (_, row) in enumerate(_rows(names, *options, header)):
        if number == most:
            break
        for place, column in enumerate(chosen):
            kinds[place] = max(kinds[place], _kind(row[column], na))
    return [np.array([default], _KINDS[k]) for k in kinds for default in [b"" if k == 4 else 0]]


_KINDS = (np.int32, np.int64, np.float32, np.float64, object)


def _kind(text: str, na_value: str) -> int:
    if text in ("", na_value):
        return 0
    try:
        return 0 if abs(int(text)) < 1 << 31 else 1
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return 4
    return 2 if not np.isfinite(value) or abs(value) < np.finfo(np.float32).max else 3


def parse_example_dataset(features: Any, num_parallel_calls: int | None = 1) -> Transform:
    """Batches of serialized Examples as dictionaries of features."""
    if not features:
        raise ValueError("parse_example_dataset: there are no features")

    def transform(dataset: Any) -> Any:
        return dataset.map(lambda x: engine.parse_example(x, features), num_parallel_calls)

    return transform


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Callable[..., Any] | None = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of the Examples in files of records, as dictionaries of features.

    Args:
        file_pattern: names of files, with * and ?.
        batch_size: examples of a batch.
        features: by name; see `parse_example`.
        reader: of a data set of names of files; TFRecordDataset by default.
        label_key: the feature that stands apart: elements are then (others, it).
        reader_args: of the reader, behind the names.
        num_epochs: how often all comes, None for without end.
        shuffle, shuffle_buffer_size, shuffle_seed: whether and how examples are mixed.
        prefetch_buffer_size: batches that are made ahead.
        reader_num_threads, parser_num_threads, sloppy_ordering: accepted.
        drop_final_batch: whether a smaller last batch is left out.
    """
    found = list(datasets.Dataset.list_files(_names(file_pattern), False).as_numpy_iterator())
    records = (reader or tf_record_dataset)(sorted(found), *(reader_args or ()))
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = records.repeat(num_epochs).batch(batch_size, drop_final_batch or num_epochs is None)
    parsed = parse_example_dataset(features)(batches)
    if label_key is not None:
        if label_key not in features:
            raise ValueError(f"make_batched_features_dataset: {label_key!r} is no feature")
        parsed = parsed.map(lambda row: (row, row.pop(label_key)))
    return parsed.prefetch(prefetch_buffer_size or 1)  # type: ignore[no-any-return]  # a Dataset


class TFRecordWriter:
    """Writes the strings of a data set as a file of records.

    Args:
        filename: of the file.
        compression_type: "ZLIB", "GZIP" or none.
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = filename
        self._compression = compression(compression_type)

    def write(self, dataset: Any) -> Any:
        """Write all elements; in a graph, the operation that does."""
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype != string or spec.shape.rank:
            raise TypeError(f"TFRecordWriter: a data set of strings is written, not of {spec}")

        def write(name: Any) -> list[Any]:
            with engine.RecordWriter(local_path(name.item()), self._compression) as writer:
                for record in dataset.as_numpy_iterator():
                    writer.write(record)
            return [np.zeros(0, np.int32)]

        with in_graph():
            name = engine.convert_to_tensor(self._filename, string)
            done = engine.host_function(write, [name], [TensorSpec([0], "int32")])[0]
            return getattr(done, "op", None)
