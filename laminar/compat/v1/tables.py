"""`tf.lookup`, where TensorFlow 1 has other arguments."""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.state import tables

from .adapting import v1


class TextFileIndex:
    """What stands for a line of a file, besides the number of a column."""

    WHOLE_LINE = tables.WHOLE_LINE
    LINE_NUMBER = tables.LINE_NUMBER


@v1()
def KeyValueTensorInitializer(  # noqa: N802  # its name there
    keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: Any = None
) -> engine.KeyValueTensorInitializer:
    """Keys and values for a table."""
    return engine.KeyValueTensorInitializer(keys, values, key_dtype, value_dtype)


@v1()
def TextFileInitializer(  # noqa: N802  # its name there
    filename: Any,
    key_dtype: Any,
    key_index: int,
    value_dtype: Any,
    value_index: int,
    vocab_size: int | None = None,
    delimiter: str = "\t",
    name: Any = None,
) -> engine.TextFileInitializer:
    """A file whose lines have keys and values for a table."""
    if isinstance(filename, str | bytes) and not filename:
        raise InvalidArgumentError("TextFileInitializer: the filename is empty")
    return engine.TextFileInitializer(
        filename, key_dtype, key_index, value_dtype, value_index, vocab_size, delimiter
    )


@v1()
def StaticHashTable(  # noqa: N802  # its name there
    initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
) -> engine.HashTable:
    """A table that does not change; see `laminar.engine.HashTable`."""
    return engine.HashTable(initializer, default_value, shared_name, name or "hash_table")
