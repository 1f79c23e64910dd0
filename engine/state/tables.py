"""Lookup tables as a user has them in hand."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidArgumentError, ShapeError
from ..graph import (
    GraphTensor,
    Operation,
    Tensor,
    TensorShape,
    as_dtype,
    eager_scope,
    get_default_graph,
    string,
)
from ..ops.core.basic import group
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.effects import perform
from ..ops.sparse.sparse_values import SparseValues
from ..ops.state import table as ops
from .collections import GraphKeys
from .handles import Handle, as_tensor
from .home import outside_of_bodies

WHOLE_LINE, LINE_NUMBER = ops.WHOLE_LINE, ops.LINE_NUMBER


class KeyValueTensorInitializer(NamedTuple):
    """Fills a table from two tensors of one shape.

    Attributes:
        keys, values: the entries.
        key_dtype, value_dtype: by default those of the tensors.

    Examples:
        >>> pairs = engine.KeyValueTensorInitializer(["a", "b"], engine.constant([1, 2], "int64"))
        >>> engine.HashTable(pairs, default_value=-1).lookup(engine.constant(["b", "c"]))
        Tensor([ 2, -1], shape=(2,), dtype=int64)
    """

    keys: Any
    values: Any
    key_dtype: Any = None
    value_dtype: Any = None


class TextFileInitializer(NamedTuple):
    r"""Fills a table from the lines of a text file.

    Attributes:
        filename: the file.
        key_dtype, value_dtype: integers, reals or strings.
        key_index, value_index: the columns, from 0; or LINE_NUMBER, from 0, or WHOLE_LINE.
        vocab_size: how many lines are read; by default all.
        delimiter: what stands between the columns, one byte.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("pairs.txt").write_text("cat\t7\n")
        >>> pairs = engine.TextFileInitializer("pairs.txt", "string", 0, "int64", 1)
        >>> engine.HashTable(pairs, default_value=-1).lookup(engine.constant(["cat"]))
        Tensor([7], shape=(1,), dtype=int64)
    """

    filename: Any
    key_dtype: Any
    key_index: int
    value_dtype: Any
    value_index: int
    vocab_size: int | None = None
    delimiter: str = "\t"


class _Table(Handle):
    """What both kinds share: keys of one type, values of one type and shape."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        fixed: bool,
        shared_name: str | None,
        name: str,
        reserved: Any = None,
    ) -> None:
        self.key_dtype = as_dtype(key_dtype)
        self.value_dtype = as_dtype(value_dtype)
        self.default_value = convert_to_tensor(default_value, self.value_dtype)
        attrs = {
            "key_dtype": self.key_dtype,
            "value_dtype": self.value_dtype,
            "value_shape": self.default_value.shape,
            "fixed": fixed,
        }
        self.key_shape = ops.NO_AXES
        if reserved is not None:
            self.key_shape = TensorShape(reserved.shape[1:])
            attrs |= {"key_shape": self.key_shape, "reserved": reserved}
        super().__init__(ops.hash_table, attrs, name, shared_name)

    @property
    def _types(self) -> dict[str, Any]:
        return {"key_dtype": self.key_dtype, "value_dtype": self.value_dtype}

    @property
    def value_shape(self) -> TensorShape:
        """The shape of one value."""
        return self.default_value.shape

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The value of each key, the default for those that are not there.

        Args:
            keys: (...), or sparse.
            name: of the operation.

        Returns:
            (..., shape of a value); of sparse keys, sparse values at their places.

        Raises:
            FailedPreconditionError: the table is not initialised.
        """
        if isinstance(keys, SparseValues):
            return keys.with_values(self.lookup(keys.values, name))
        inputs = [self.handle, as_tensor(keys, self.key_dtype), self.default_value]
        with self.beside():
            attrs = {**self._types, "key_shape": self.key_shape}
            return apply(ops.table_find, inputs, attrs, name)[0]

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries, int64."""
        with self.beside():
            return apply(ops.table_size, [self.handle], {}, name)[0]

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and the value of each."""
        attrs = {**self._types, "value_shape": self.value_shape, "key_shape": self.key_shape}
        with self.beside():
            found = apply(ops.table_export, [self.handle], attrs, name)
        return found[0], found[1]


class HashTable(_Table):
    """A table that is filled once.

    In a graph `tables_initializer()` fills it; elsewhere it is filled at once.

    Args:
        initializer: its entries.
        default_value: for keys that it does not have.
        shared_name: the name under which sessions share it in a container.
        name: of the operation.

    Attributes:
        initializer: in a graph, the operation that fills it.

    Raises:
        ShapeError: there is not one value for each key.

    Examples:
        >>> pairs = engine.KeyValueTensorInitializer(["a", "b"], engine.constant([1, 2], "int64"))
        >>> table = engine.HashTable(pairs, default_value=-1)
        >>> table.lookup(engine.constant(["b", "c"]))
        Tensor([ 2, -1], shape=(2,), dtype=int64)
    """

    def __init__(
        self,
        initializer: KeyValueTensorInitializer | TextFileInitializer,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "hash_table",
    ) -> None:
        if isinstance(initializer, KeyValueTensorInitializer):
            keys = convert_to_tensor(initializer.keys, initializer.key_dtype)
            values = convert_to_tensor(initializer.values, initializer.value_dtype)
            types: tuple[Any, Any] = keys.dtype, values.dtype
            rank = keys.shape.rank
            known = None not in (rank, values.shape.rank)
            if known and not keys.shape.is_compatible_with(values.shape[:rank]):
                raise ShapeError(
                    f"{type(self).__name__}: the values of {keys.shape} keys must have a shape "
                    f"that begins with that of the keys, got {values.shape}",
                    remedy="give one value for each key",
                )
        else:
            types = initializer.key_dtype, initializer.value_dtype
        super().__init__(*types, default_value, True, shared_name, name)
        # The entries are put in where the handle is: at once, also while a function is traced, or
        # in the graph around branches and bodies.
        with ExitStack() as place:
            if isinstance(self.handle, GraphTensor):
                place.enter_context(outside_of_bodies(self.handle.graph))
                place.enter_context(self.beside())
            else:
                place.enter_context(eager_scope())
            if isinstance(initializer, KeyValueTensorInitializer):
                inputs = [self.handle, keys, values]
                made = perform(ops.table_initialize, inputs, self._types, f"{name}_initializer")
            else:
                filename = as_tensor(initializer.filename, string)
                attrs = {
                    "key_index": int(initializer.key_index),
                    "value_index": int(initializer.value_index),
                    "delimiter": initializer.delimiter,
                    "vocab_size": initializer.vocab_size,
                }
                made = perform(
                    ops.table_initialize_from_file,
                    [self.handle, filename],
                    attrs,
                    f"{name}_initializer",
                )
        self.initializer: Operation | None = made
        if made is not None:
            made.graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)


class MutableHashTable(_Table):
    """A table whose entries change.

    Args:
        key_dtype: integers or strings.
        value_dtype: any type.
        default_value: for keys that it does not have; its shape is that of all values.
        shared_name: the name under which sessions share it in a container.
        name: of the operation.
        checkpoint: whether a Saver of a graph that is given no variables saves it.

    Examples:
        >>> table = engine.MutableHashTable("string", "int64", -1)
        >>> _ = table.insert(engine.constant(["a"]), engine.constant([1], "int64"))
        >>> table.lookup(engine.constant(["a", "b"]))
        Tensor([ 1, -1], shape=(2,), dtype=int64)
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "mutable_hash_table",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, False, shared_name, name)
        self._save_with_graph(checkpoint)

    def _save_with_graph(self, checkpoint: bool) -> None:
        if checkpoint and isinstance(self.handle, GraphTensor):
            self.handle.graph.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation | None:
        """Put entries in, or replace them.

        Args:
            keys: (...).
            values: (..., shape of a value).
            name: of the operation.
        """
        inputs = [
            self.handle,
            as_tensor(keys, self.key_dtype),
            as_tensor(values, self.value_dtype),
        ]
        with self.beside():
            return perform(ops.table_insert, inputs, self._types, name)

    def remove(self, keys: Any, name: str | None = None) -> Operation | None:
        """Take entries out; keys that are not there are passed over."""
        inputs = [self.handle, as_tensor(keys, self.key_dtype)]
        with self.beside():
            return perform(ops.table_remove, inputs, {"key_dtype": self.key_dtype}, name)


class DenseHashTable(MutableHashTable):
    """A MutableHashTable with two keys that no entry may have, whose keys may be vectors.

    Args:
        key_dtype: integers or strings.
        value_dtype: any type.
        default_value: for keys that it does not have; its shape is that of all values.
        empty_key, deleted_key: scalars, or vectors, as all keys then are; known when it is made,
            and different.
        initial_num_buckets: taken for TensorFlow's sake; the table grows as it needs to.
        shared_name: the name under which sessions share it in a container.
        name: of the operation.
        checkpoint: as for MutableHashTable.

    Raises:
        InvalidArgumentError: the two keys are the same, or have different shapes. Run with one of
            them as a key, an operation raises it, too.

    Examples:
        >>> table = engine.DenseHashTable("int64", "int64", -1, empty_key=-2, deleted_key=-3)
        >>> _ = table.insert(engine.constant([5], "int64"), engine.constant([50], "int64"))
        >>> table.lookup(engine.constant([5, 6], "int64"))
        Tensor([50, -1], shape=(2,), dtype=int64)
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        shared_name: str | None = None,
        name: str = "dense_hash_table",
        checkpoint: bool = True,
    ) -> None:
        kind = as_dtype(key_dtype)
        empty, deleted = (_known("DenseHashTable", k, kind) for k in (empty_key, deleted_key))
        if empty.shape != deleted.shape or empty.ndim > 1 or (empty == deleted).all():
            raise InvalidArgumentError(
                "DenseHashTable: the empty and the deleted key are two scalars or vectors of one "
                f"length, and differ; got {empty.tolist()} and {deleted.tolist()}"
            )
        buckets = initial_num_buckets
        if buckets is not None and (buckets < 1 or buckets & (buckets - 1)):
            raise InvalidArgumentError(
                f"DenseHashTable: initial_num_buckets is a power of two, got {buckets}"
            )
        _Table.__init__(
            self,
            kind,
            value_dtype,
            default_value,
            False,
            shared_name,
            name,
            np.stack([empty, deleted]),
        )
        self._save_with_graph(checkpoint)


def _known(who: str, value: Any, dtype: Any) -> Any:
    """An array of a value that is known while the graph is built."""
    if isinstance(value, GraphTensor):
        if value.op.type != "Const":
            raise InvalidArgumentError(f"{who}: expected a known key, got {value!r}")
        return value.op.attrs["value"]
    return convert_to_tensor(value, dtype).numpy()


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables of the default graph.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     table = engine.index_table_from_tensor(["cat", "dog"])
        ...     index = table.lookup(engine.constant(["dog"]))
        ...     session.run(engine.tables_initializer())
        ...     session.run(index)
        array([1])
    """
    made = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    found: Operation = group(*made, name=name)
    return found
