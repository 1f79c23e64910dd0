"""`tf.feature_column`: the functions that describe columns; see feature_columns.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laminar.engine.graph import as_dtype, float32, int64, string

from .feature_columns import (
    BucketizedColumn,
    CategoricalColumn,
    EmbeddingColumn,
    HashedColumn,
    IdentityColumn,
    IndicatorColumn,
    NumericColumn,
    VocabularyColumn,
    WeightedColumn,
)


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = float32,
    normalizer_fn: Callable[..., Any] | None = None,
) -> NumericColumn:
    """Numbers as they are.

    Args:
        key: of the feature.
        shape: of the numbers of an example.
        default_value: what stands for a feature that an Example does not have.
        dtype: of the feature.
        normalizer_fn: what is done with the numbers first.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if any(n < 1 for n in sizes):
        raise ValueError(f"numeric_column {key!r}: sizes are at least 1, got {sizes}")
    kind = as_dtype(dtype)
    if not (kind.is_floating or kind.is_integer):
        raise ValueError(f"numeric_column {key!r}: a type of numbers is needed, got {kind}")
    default = None if default_value is None else np.broadcast_to(default_value, sizes).tolist()
    return NumericColumn(key, sizes, default, kind, normalizer_fn)


def bucketized_column(
    source_column: NumericColumn, boundaries: Sequence[float]
) -> BucketizedColumn:
    """Which interval a number lies in: below the first boundary, from it to the next, ..."""
    edges = tuple(float(b) for b in boundaries)
    if not isinstance(source_column, NumericColumn) or len(source_column.shape) > 1:
        raise ValueError(f"bucketized_column: a numeric column of one axis, got {source_column}")
    if list(edges) != sorted(set(edges)):
        raise ValueError(f"bucketized_column: boundaries must rise, got {boundaries}")
    return BucketizedColumn(source_column, edges)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityColumn:
    """Whole numbers below `num_buckets` as categories; others are the default, or an error."""
    if num_buckets < 1 or (default_value is not None and not 0 <= default_value < num_buckets):
        raise ValueError(f"{key!r}: {num_buckets} categories, default {default_value}")
    return IdentityColumn(key, num_buckets, default_value)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = string
) -> HashedColumn:
    """Categories by the hash of a text or a whole number."""
    if hash_bucket_size is None or hash_bucket_size < 1:
        raise ValueError(f"{key!r}: hash_bucket_size is at least 1, got {hash_bucket_size}")
    return HashedColumn(key, hash_bucket_size, as_dtype(dtype))


def _checked(key: str, length: int, default_value: int, num_oov_buckets: int) -> None:
    if length < 1 or num_oov_buckets < 0:
        raise ValueError(f"{key!r}: {length} words and {num_oov_buckets} buckets")
    if num_oov_buckets and default_value != -1:
        raise ValueError(f"{key!r}: give a default or buckets for other words, not both")


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyColumn:
    """Categories by their places in a list; other words are the default, or in buckets."""
    words = tuple(vocabulary_list)
    _checked(key, len(words), default_value, num_oov_buckets)
    if len(set(words)) != len(words):
        raise ValueError(f"{key!r}: a word stands twice in {words}")
    kind = as_dtype(dtype) if dtype else (string if isinstance(words[0], str | bytes) else int64)
    return VocabularyColumn(key, words, None, len(words), kind, default_value, num_oov_buckets)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = string,
) -> VocabularyColumn:
    """Categories by the numbers of the lines of a file."""
    if vocabulary_size is None:
        with open(vocabulary_file, "rb") as file:
            vocabulary_size = sum(1 for _ in file)
    default = -1 if default_value is None else default_value
    _checked(key, vocabulary_size, default, num_oov_buckets)
    return VocabularyColumn(
        key, None, vocabulary_file, vocabulary_size, as_dtype(dtype), default, num_oov_buckets
    )


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = float32
) -> WeightedColumn:
    """Categories with weights, which are another feature."""
    return WeightedColumn(categorical_column, weight_feature_key, as_dtype(dtype))


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """For each category how often it comes."""
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: Any = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Vectors that are learned, one for each category.

    Args:
        categorical_column: the categories.
        dimension: the length of a vector.
        combiner: how those of several categories become one: "mean", "sqrtn" or "sum".
        initializer: of the vectors; normal with the deviation 1 / sqrt(dimension) by default.
        ckpt_to_load_from, tensor_name_in_ckpt: not taken; see `tf.train.init_from_checkpoint`.
        max_norm: longer vectors are shortened to it.
        trainable: whether they are trained.

    Raises:
        NotImplementedError: a checkpoint is named.
    """
    if dimension is None or dimension < 1:
        raise ValueError(f"embedding_column: the dimension is at least 1, got {dimension}")
    if ckpt_to_load_from is not None or tensor_name_in_ckpt is not None:
        raise NotImplementedError("embedding_column: use tf.train.init_from_checkpoint")
    return EmbeddingColumn(
        categorical_column, dimension, combiner, initializer, max_norm, trainable
    )
