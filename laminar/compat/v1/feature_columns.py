"""Columns of features: numbers, categories, and what stands for categories.

A column is an immutable description. A categorical one gives, of a batch of features by name, the
numbers of the categories as a sparse matrix (batch, entries), and their weights; a dense one gives
a tensor (batch, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.graph import DType, float32, int64, string
from laminar.engine.ops.array.creation import one_hot
from laminar.engine.ops.array.gather import gather_nd
from laminar.engine.ops.array.search import argwhere, searchsorted
from laminar.engine.ops.core.checks import check
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.text import farmhash
from laminar.engine.ops.text import string as strings

from .embeddings import safe_embedding_lookup_sparse
from .init_ops import TruncatedNormal
from .maths import reduce_sum
from .values import symbol
from .variables import get_variable

Features = Mapping[Any, Any]


class Column:
    """What all columns have."""

    @property
    def name(self) -> str:
        """What it is called in scopes, and what columns are ordered by."""
        raise NotImplementedError

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How its features are read from Examples."""
        raise NotImplementedError


class DenseColumn(Column):
    """A column that is a tensor of numbers."""

    def size(self) -> int:
        """The numbers of an example."""
        raise NotImplementedError

    def dense(self, features: Features, trainable: bool) -> Any:
        """(batch, size)."""
        raise NotImplementedError


class CategoricalColumn(Column):
    """A column that is categories, of which an example may have any number."""

    def count(self) -> int:
        """How many categories there are."""
        raise NotImplementedError

    def ids(self, features: Features) -> tuple[Any, Any]:
        """The numbers of the categories, sparse, and their weights, or None for ones."""
        raise NotImplementedError


def _feature(features: Features, key: str) -> Any:
    if key not in features:
        raise ValueError(
            f"the column of {key!r}: there is no such feature among {sorted(features)}"
        )
    return features[key]


def as_sparse(x: Any, empty: Any) -> Any:
    """A feature as a sparse matrix: of a tensor, what is not `empty`, which is -1 or ""."""
    if isinstance(x, engine.SparseValues):
        return x
    t = symbol(x)
    if t.shape.rank == 1:
        t = t[:, None]
    there = lookup("NotEqual")(t, symbol(empty, t.dtype))
    places = argwhere(there)
    sizes = lookup("Shape")(t, dtype=int64)
    return engine.SparseValues(places, gather_nd(t, places), sizes)


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Numbers as they are."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[..., Any] | None

    @property
    def name(self) -> str:
        """The key of the feature."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A feature of that shape."""
        return {self.key: engine.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def size(self) -> int:
        """The numbers of an example."""
        return int(np.prod(self.shape))

    def numbers(self, features: Features) -> Any:
        """(batch, size), float32."""
        x = symbol(_feature(features, self.key))
        if self.normalizer_fn is not None:
            x = self.normalizer_fn(x)
        return cast(lookup("Reshape")(x, shape=(-1, self.size())), float32)

    def dense(self, features: Features, trainable: bool) -> Any:
        """(batch, size), float32."""
        return self.numbers(features)


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """Which of several intervals a number lies in."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        """That of the numbers, and what became of them."""
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the numbers."""
        return self.source_column.parse_example_spec

    def _buckets(self, features: Features) -> Any:
        x = self.source_column.numbers(features)
        return searchsorted(symbol(np.array(self.boundaries, np.float32)), x, "right")

    def size(self) -> int:
        """One number for each interval of each number."""
        return (len(self.boundaries) + 1) * self.source_column.size()

    def dense(self, features: Features, trainable: bool) -> Any:
        """1 for the interval, else 0."""
        found = one_hot(self._buckets(features), len(self.boundaries) + 1)
        return lookup("Reshape")(found, shape=(-1, self.size()))

    def count(self) -> int:
        """The intervals of all numbers."""
        return self.size()

    def ids(self, features: Features) -> tuple[Any, Any]:
        """The number of each interval, those of further numbers behind."""
        found = cast(self._buckets(features), int64)
        width = self.source_column.size()
        shift = np.arange(width, dtype=np.int64) * (len(self.boundaries) + 1)
        return as_sparse(found + symbol(shift), -1), None


@dataclass(frozen=True)
class IdentityColumn(CategoricalColumn):
    """Whole numbers that are the numbers of categories."""

    key: str
    num_buckets: int
    default_value: int | None

    @property
    def name(self) -> str:
        """The key of the feature."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """Any number of whole numbers."""
        return {self.key: engine.VarLenFeature(int64)}

    def count(self) -> int:
        """How many categories there are."""
        return self.num_buckets

    def ids(self, features: Features) -> tuple[Any, Any]:
        """The numbers; those out of range are the default, or an error."""
        x = as_sparse(_feature(features, self.key), -1)
        values = cast(symbol(x.values), int64)
        low = lookup("Less")(values, symbol(0, int64))
        high = lookup("GreaterEqual")(values, symbol(self.num_buckets, int64))
        outside = lookup("LogicalOr")(low, high)
        if self.default_value is None:
            message = f"{self.key}: a category is not below {self.num_buckets}"
            held = check(lookup("LogicalNot")(outside), message, [values])
            values = values * cast(held, int64)
        else:
            default = lookup("OnesLike")(values) * symbol(self.default_value, int64)
            values = lookup("Where")(outside, default, values)
        return x.with_values(values), None


@dataclass(frozen=True)
class HashedColumn(CategoricalColumn):
    """Categories by the hash of a text or a whole number."""

    key: str
    hash_bucket_size: int
    dtype: DType

    @property
    def name(self) -> str:
        """The key of the feature."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """Any number of values."""
        return {self.key: engine.VarLenFeature(self.dtype)}

    def count(self) -> int:
        """How many buckets there are."""
        return self.hash_bucket_size

    def ids(self, features: Features) -> tuple[Any, Any]:
        """The bucket of each value."""
        x = as_sparse(_feature(features, self.key), "" if self.dtype == string else -1)
        text = symbol(x.values)
        text = text if text.dtype == string else strings.as_string(text)
        bucket = farmhash.fingerprint_bucket(farmhash.fingerprint(text), self.hash_bucket_size)
        return x.with_values(bucket), None


@dataclass(frozen=True)
class VocabularyColumn(CategoricalColumn):
    """Categories by their places in a list or a file of words."""

    key: str
    words: tuple[Any, ...] | None
    file: str | None
    length: int
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def name(self) -> str:
        """The key of the feature."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """Any number of words."""
        return {self.key: engine.VarLenFeature(self.dtype)}

    def count(self) -> int:
        """How many words and buckets there are."""
        return self.length + self.num_oov_buckets

    def ids(self, features: Features) -> tuple[Any, Any]:
        """The place of each word; others are in buckets, or the default."""
        x = as_sparse(_feature(features, self.key), "" if self.dtype == string else -1)
        name = f"{self.key}_lookup"
        table: Any
        if self.words is None:
            table = engine.index_table_from_file(
                self.file, self.num_oov_buckets, self.length, self.default_value,
                key_dtype=self.dtype, name=name,
            )  # fmt: skip
        else:
            table = engine.index_table_from_tensor(
                list(self.words), self.num_oov_buckets, self.default_value, dtype=self.dtype,
                name=name,
            )  # fmt: skip
        return table.lookup(x), None


@dataclass(frozen=True)
class WeightedColumn(CategoricalColumn):
    """Categories with weights, which are another feature."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """Both features."""
        own = {self.weight_feature_key: engine.VarLenFeature(self.dtype)}
        return {**self.categorical_column.parse_example_spec, **own}

    def count(self) -> int:
        """How many categories there are."""
        return self.categorical_column.count()

    def ids(self, features: Features) -> tuple[Any, Any]:
        """The numbers of the categories, and their weights."""
        numbers, _ = self.categorical_column.ids(features)
        weights = _feature(features, self.weight_feature_key)
        if not isinstance(weights, engine.SparseValues):
            found = symbol(weights)
            found = found[:, None] if found.shape.rank == 1 else found
            weights = numbers.with_values(lookup("Reshape")(cast(found, float32), shape=(-1,)))
        return numbers, weights.with_values(cast(symbol(weights.values), float32))


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """For each category how often it comes."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        """That of the categories, and what became of them."""
        return f"{self.categorical_column.name}_indicator"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the categories."""
        return self.categorical_column.parse_example_spec

    def size(self) -> int:
        """A number for each category."""
        return self.categorical_column.count()

    def dense(self, features: Features, trainable: bool) -> Any:
        """The sum of the weights of each category."""
        numbers, weights = self.categorical_column.ids(features)
        hot = one_hot(engine.sparse_tensor_to_dense(numbers, -1), self.size())
        if weights is not None:
            hot = hot * engine.sparse_tensor_to_dense(weights)[..., None]
        return lookup("Reshape")(reduce_sum(hot, [-2]), shape=(-1, self.size()))


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
    """Vectors that are learned, one for each category; of several, combined."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    max_norm: Any
    trainable: bool

    @property
    def name(self) -> str:
        """That of the categories, and what became of them."""
        return f"{self.categorical_column.name}_embedding"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the categories."""
        return self.categorical_column.parse_example_spec

    def size(self) -> int:
        """The length of a vector."""
        return self.dimension

    def dense(self, features: Features, trainable: bool) -> Any:
        """The vectors; zeros for an example without categories."""
        numbers, weights = self.categorical_column.ids(features)
        table = get_variable(
            "embedding_weights",
            [self.categorical_column.count(), self.dimension],
            float32,
            self.initializer or TruncatedNormal(0.0, 1 / np.sqrt(self.dimension)),
            trainable=self.trainable and trainable,
        )
        found = safe_embedding_lookup_sparse(
            table, numbers, weights, self.combiner, max_norm=self.max_norm
        )
        return lookup("Reshape")(found, shape=(-1, self.dimension))
