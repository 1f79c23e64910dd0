"""Tables of a vocabulary: from words to their numbers, and back; unknown words go to buckets."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

from ..errors import DTypeError, InvalidArgumentError
from ..graph import INTEGER, Operation, Tensor, as_dtype, building, int64, string
from ..ops.array.creation import arange
from ..ops.array.shape import size_of
from ..ops.core.basic import constant, no_op
from ..ops.core.convert import convert_to_tensor
from ..ops.math.arithmetic import add
from ..ops.math.cast import cast_op
from ..ops.math.compare import equal, where
from ..ops.sparse.sparse_values import SparseValues
from ..ops.text.farmhash import fingerprint, fingerprint_bucket
from ..ops.text.siphash import to_hash_bucket_strong
from ..ops.text.string import as_string
from .handles import as_tensor
from .tables import (
    LINE_NUMBER,
    WHOLE_LINE,
    HashTable,
    KeyValueTensorInitializer,
    TextFileInitializer,
)


class HasherSpec(NamedTuple):
    """How words that a table does not have are spread over buckets.

    Attributes:
        hasher: "fasthash" (FarmHash) or "stronghash" (SipHash, which needs a key).
        key: of "stronghash": two whole numbers.

    Examples:
        >>> engine.HasherSpec("fasthash", None).hasher
        'fasthash'
    """

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


def StrongHashSpec(key: Any) -> HasherSpec:  # noqa: N802  # its name in TensorFlow
    """A hash that nobody can foresee without its key, two whole numbers.

    Raises:
        InvalidArgumentError: they are not two.
        DTypeError: they are no whole numbers.

    Examples:
        >>> engine.StrongHashSpec((1, 2)).key
        [1, 2]
    """
    if len(key) != 2:
        raise InvalidArgumentError(f"StrongHashSpec: the key is two numbers, got {key!r}")
    if not all(isinstance(k, int) and not isinstance(k, bool) for k in key):
        raise DTypeError(f"StrongHashSpec: the key is two whole numbers, got {key!r}")
    return HasherSpec("stronghash", list(key))


class IdTableWithHashBuckets:
    """Numbers of words: those of a table, and behind them a bucket for each word that it lacks.

    Args:
        table: from strings or int64 to int64; None has buckets alone.
        num_oov_buckets: how many buckets there are.
        hasher_spec: how unknown words are spread over them.
        name: of the operations.
        key_dtype: of what is looked up; by default that of the table's keys, or strings.

    Attributes:
        key_dtype, value_dtype: of what is looked up, and int64.
        initializer: in a graph, the operation that fills the table.

    Raises:
        DTypeError: keys that are neither strings nor whole numbers, or another hasher.
        InvalidArgumentError: there are no buckets, and no table.

    Examples:
        >>> pairs = engine.KeyValueTensorInitializer(["a"], engine.constant([0], "int64"))
        >>> table = engine.IdTableWithHashBuckets(
        ...     engine.HashTable(pairs, default_value=-1), num_oov_buckets=1
        ... )
        >>> table.lookup(engine.constant(["a", "other"]))
        Tensor([0, 1], shape=(2,), dtype=int64)
    """

    def __init__(
        self,
        table: HashTable | None,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if num_oov_buckets < 0 or (table is None and not num_oov_buckets):
            raise InvalidArgumentError(
                f"a vocabulary: num_oov_buckets is positive without a table, and not negative "
                f"with one; got {num_oov_buckets}"
            )
        if not isinstance(hasher_spec, HasherSpec):
            raise DTypeError(f"a vocabulary: hasher_spec is a HasherSpec, got {hasher_spec!r}")
        own = string if table is None else table.key_dtype
        self.key_dtype = own if key_dtype is None else as_dtype(key_dtype)
        self.value_dtype = int64
        if (self.key_dtype in INTEGER) != (own in INTEGER) and table is not None:
            raise DTypeError(f"a vocabulary: its keys are {own}, not {self.key_dtype}")
        if self.key_dtype not in INTEGER and self.key_dtype != string:
            raise DTypeError(f"a vocabulary: keys are strings or integers, not {self.key_dtype}")
        self.table = table
        self.num_oov_buckets = num_oov_buckets
        self.hasher_spec = hasher_spec
        self.name = name or (
            f"{'' if table is None else table.name}_{num_oov_buckets}_{hasher_spec.hasher}"
        )

    @property
    def resource_handle(self) -> Tensor | None:
        """The handle of the table, None without one."""
        return None if self.table is None else self.table.handle

    @property
    def initializer(self) -> Operation | None:
        """The operation that fills the table; outside of graphs None."""
        if self.table is not None:
            return self.table.initializer
        return None if building() is None else no_op()

    def size(self, name: str | None = None) -> Tensor:
        """How many numbers there are, with the buckets, int64."""
        buckets = constant(self.num_oov_buckets, int64)
        return buckets if self.table is None else add(self.table.size(), buckets, name=name)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The number of each word: int64, of the shape of `keys`; sparse, if they are.

        Raises:
            DTypeError: the keys are of another type.
            InvalidArgumentError: the hasher is unknown.
        """
        if isinstance(keys, SparseValues):
            return keys.with_values(self.lookup(keys.values, name))
        words = as_tensor(keys, self.key_dtype)
        if words.dtype != self.key_dtype:
            raise DTypeError(f"{self.name}: the keys are {self.key_dtype}, got {words.spec}")
        if self.table is not None and words.dtype != self.table.key_dtype:
            words = cast_op(words, dtype=self.table.key_dtype)
        if self.table is None:
            return self._bucket(words)
        numbers = self.table.lookup(words)
        if not self.num_oov_buckets:
            return numbers
        with self.table.beside() if building() is not None else nullcontext():
            own = add(self._bucket(words), self.table.size())
            return where(equal(numbers, self.table.default_value), own, numbers)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def _bucket(self, words: Tensor) -> Tensor:
        text = words if words.dtype == string else as_string(words)
        kind, key = self.hasher_spec
        if kind == "fasthash":
            return fingerprint_bucket(fingerprint(text), self.num_oov_buckets)
        if kind == "stronghash":
            return to_hash_bucket_strong(text, self.num_oov_buckets, (key[0], key[1]))
        raise InvalidArgumentError(f'{self.name}: "fasthash" or "stronghash", not {kind!r}')


class StaticVocabularyTable(IdTableWithHashBuckets):
    """Numbers of words, from what fills a table; unknown ones go to buckets behind them.

    Args:
        initializer: from strings or int64 to int64, or None for buckets alone.
        num_oov_buckets: how many buckets there are, at least one.
        lookup_key_dtype: of what is looked up; by default that of the keys.
        name: of the operations.

    Examples:
        >>> pairs = engine.KeyValueTensorInitializer(["a"], engine.constant([0], "int64"))
        >>> engine.StaticVocabularyTable(pairs, num_oov_buckets=1).lookup(
        ...     engine.constant(["a", "other"])
        ... )
        Tensor([0, 1], shape=(2,), dtype=int64)
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets < 1:
            raise InvalidArgumentError(
                f"StaticVocabularyTable: num_oov_buckets is at least 1, got {num_oov_buckets}"
            )
        table = None
        if initializer is not None:
            table = HashTable(initializer, -1, name=name or "hash_table")
            if table.value_dtype != int64:
                raise DTypeError(
                    f"StaticVocabularyTable: the values are int64, not {table.value_dtype}"
                )
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)


def TextFileIdTableInitializer(  # noqa: N802  # its name in TensorFlow
    filename: Any,
    key_column_index: int = WHOLE_LINE,
    value_column_index: int = LINE_NUMBER,
    vocab_size: int | None = None,
    delimiter: str = "\t",
    name: str | None = None,
    key_dtype: Any = string,
) -> TextFileInitializer:
    r"""Fills a table from words to numbers: lines, and their numbers from 0.

    Args:
        filename: the file.
        key_column_index: the column of the words, from 0, or WHOLE_LINE.
        value_column_index: the column of the numbers, from 0, or LINE_NUMBER.
        vocab_size: how many lines are read; by default all.
        delimiter: what stands between the columns, one byte.
        name: not used.
        key_dtype: strings or integers.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("words.txt").write_text("cat\ndog\n")
        >>> words = engine.TextFileIdTableInitializer("words.txt")
        >>> engine.HashTable(words, default_value=-1).lookup(engine.constant(["dog"]))
        Tensor([1], shape=(1,), dtype=int64)
    """
    return TextFileInitializer(
        filename, key_dtype, key_column_index, int64, value_column_index, vocab_size, delimiter
    )


def TextFileStringTableInitializer(  # noqa: N802  # its name in TensorFlow
    filename: Any,
    key_column_index: int = LINE_NUMBER,
    value_column_index: int = WHOLE_LINE,
    vocab_size: int | None = None,
    delimiter: str = "\t",
    name: str | None = None,
) -> TextFileInitializer:
    r"""Fills a table from numbers, from 0, to words: the lines of a file.

    Args:
        filename: the file.
        key_column_index: the column of the numbers, from 0, or LINE_NUMBER.
        value_column_index: the column of the words, from 0, or WHOLE_LINE.
        vocab_size: how many lines are read; by default all.
        delimiter: what stands between the columns, one byte.
        name: not used.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("words.txt").write_text("cat\ndog\n")
        >>> words = engine.TextFileStringTableInitializer("words.txt")
        >>> engine.HashTable(words, default_value="?").lookup(engine.constant([1], "int64"))
        Tensor([b'dog'], shape=(1,), dtype=string)
    """
    return TextFileInitializer(
        filename, int64, key_column_index, string, value_column_index, vocab_size, delimiter
    )


def _checked(who: str, num_oov_buckets: int, dtype: Any, vocab_size: int | None = None) -> Any:
    """The type of the table's keys."""
    if num_oov_buckets < 0:
        raise InvalidArgumentError(f"{who}: num_oov_buckets is negative: {num_oov_buckets}")
    if vocab_size is not None and vocab_size < 1:
        raise InvalidArgumentError(f"{who}: vocab_size is at least 1, got {vocab_size}")
    kind = as_dtype(dtype)
    if kind not in INTEGER and kind != string:
        raise DTypeError(f"{who}: words are strings or integers, not {kind}")
    return int64 if kind in INTEGER else kind


def _filename(who: str, vocabulary_file: Any) -> Any:
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise InvalidArgumentError(f"{who}: vocabulary_file is missing")
    return vocabulary_file


def _with_buckets(
    initializer: Any, buckets: int, default: int, spec: HasherSpec, name: str | None, dtype: Any
) -> HashTable | IdTableWithHashBuckets:
    table = HashTable(initializer, default, name=name or "hash_table")
    if not buckets and as_dtype(dtype) == table.key_dtype:
        return table
    return IdTableWithHashBuckets(table, buckets, spec, name, dtype)


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: Any = string,
    name: str | None = None,
    key_column_index: int = WHOLE_LINE,
    value_column_index: int = LINE_NUMBER,
    delimiter: str = "\t",
) -> HashTable | IdTableWithHashBuckets:
    r"""A table from the words of a file to the numbers of their lines, from 0.

    Args:
        vocabulary_file: one word in each line.
        num_oov_buckets: how many buckets there are for other words.
        vocab_size: how many lines are read; by default all.
        default_value: the number of other words, where there are no buckets.
        hasher_spec: how other words are spread over buckets.
        key_dtype: strings or integers.
        name: of the operations.
        key_column_index, value_column_index, delimiter: as for `TextFileInitializer`.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("words.txt").write_text("cat\ndog\n")
        >>> engine.index_table_from_file("words.txt").lookup(engine.constant(["dog", "fish"]))
        Tensor([ 1, -1], shape=(2,), dtype=int64)
    """
    who = "index_table_from_file"
    kind = _checked(who, num_oov_buckets, key_dtype, vocab_size)
    initializer = TextFileIdTableInitializer(
        _filename(who, vocabulary_file),
        key_column_index,
        value_column_index,
        vocab_size,
        delimiter,
        key_dtype=kind,
    )
    return _with_buckets(initializer, num_oov_buckets, default_value, hasher_spec, name, key_dtype)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = string,
    name: str | None = None,
) -> HashTable | IdTableWithHashBuckets:
    """A table from the words of a vector to their places; see `index_table_from_file`.

    Args:
        vocabulary_list: a vector of words, each once.
        num_oov_buckets: how many buckets there are for other words, numbered after the vocabulary.
        default_value: the number of other words, where there are no buckets.
        hasher_spec: how other words are spread over buckets.
        dtype: strings or integers.
        name: of the operations.

    Raises:
        InvalidArgumentError: a word comes twice, or `num_oov_buckets` is negative.
        DTypeError: the words are neither strings nor integers.

    Examples:
        >>> table = engine.index_table_from_tensor(["cat", "dog"])
        >>> table.lookup(engine.constant(["dog", "fish"]))
        Tensor([ 1, -1], shape=(2,), dtype=int64)
    """
    who = "index_table_from_tensor"
    if vocabulary_list is None:
        raise InvalidArgumentError(f"{who}: vocabulary_list is missing")
    kind = _checked(who, num_oov_buckets, dtype)
    words = _words(who, vocabulary_list, dtype)
    keys = cast_op(words, dtype=kind) if words.dtype != kind else words
    initializer = KeyValueTensorInitializer(keys, _numbers(keys), kind, int64)
    return _with_buckets(initializer, num_oov_buckets, default_value, hasher_spec, name, dtype)


def _words(who: str, vocabulary_list: Any, dtype: Any) -> Tensor:
    empty = isinstance(vocabulary_list, list | tuple) and not vocabulary_list
    given = convert_to_tensor(vocabulary_list, dtype if empty else None)
    if (given.dtype in INTEGER) != (as_dtype(dtype) in INTEGER) or (
        given.dtype not in INTEGER and given.dtype != string
    ):
        raise DTypeError(f"{who}: the words are {dtype}, got {given.spec}")
    return given


def _numbers(words: Tensor) -> Tensor:
    return arange(convert_to_tensor(0, int64), size_of(words), convert_to_tensor(1, int64))


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = LINE_NUMBER,
    value_column_index: int = WHOLE_LINE,
    delimiter: str = "\t",
) -> HashTable:
    r"""A table from the numbers of lines, from 0, to the words in them; `default_value` for others.

    Args:
        vocabulary_file: one word in each line.
        vocab_size: how many lines are read; by default all.
        default_value: for other numbers.
        name: of the operations.
        key_column_index, value_column_index, delimiter: as for `TextFileInitializer`.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("words.txt").write_text("cat\ndog\n")
        >>> table = engine.index_to_string_table_from_file("words.txt")
        >>> table.lookup(engine.constant([1, 9], "int64"))
        Tensor([b'dog', b'UNK'], shape=(2,), dtype=string)
    """
    who = "index_to_string_table_from_file"
    _checked(who, 0, string, vocab_size)
    initializer = TextFileStringTableInitializer(
        _filename(who, vocabulary_file), key_column_index, value_column_index, vocab_size, delimiter
    )
    return HashTable(initializer, default_value, name=name or "hash_table")


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: str = "UNK", name: str | None = None
) -> HashTable:
    """A table from the places in a vector to the words there; `default_value` for others.

    Args:
        vocabulary_list: a vector of words.
        default_value: the word for other numbers.
        name: of the operations.

    Returns:
        the table; its keys are int64.

    Examples:
        >>> table = engine.index_to_string_table_from_tensor(["cat", "dog"])
        >>> table.lookup(engine.constant([1, 9], "int64"))
        Tensor([b'dog', b'UNK'], shape=(2,), dtype=string)
    """
    who = "index_to_string_table_from_tensor"
    if vocabulary_list is None:
        raise InvalidArgumentError(f"{who}: vocabulary_list is missing")
    words = _words(who, vocabulary_list, string)
    initializer = KeyValueTensorInitializer(_numbers(words), words, int64, string)
    return HashTable(initializer, default_value, name=name or "hash_table")
