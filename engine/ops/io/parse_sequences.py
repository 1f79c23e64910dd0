"""Parse what serialized examples have any number of: rows of values, lists of features.

A feature of an Example is a sequence of rows, one after the other; a list of features of a
SequenceExample is a sequence of features, each of which is a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import STRING, Array, TensorShape, TensorSpec, as_dtype, int32, int64
from ...io.example import Feature, decode_example, decode_feature_lists
from ..core.registry import define, no_gradient
from ..text.string import collect
from .parse import check_type, decoded, typed


@define("ParseSequences", dtypes={"serialized": STRING})
def parse_sequences(
    serialized: TensorSpec,
    *fillers: TensorSpec,
    keys: tuple[str, ...],
    dtypes: tuple[str, ...],
    shapes: tuple[TensorShape, ...],
    optional: tuple[bool, ...],
    lists: bool,
) -> tuple[TensorSpec, ...]:
    """For each key two tensors: serialized.shape + (steps,) + its shape, and int32 lengths.

    Those that are shorter than the longest are filled up with their scalar of `fillers`.
    `optional` tells which keys may be missing; `lists` whether they are lists of features.
    """
    _check(serialized, keys, dtypes)
    if not len(fillers) == len(shapes) == len(optional) == len(keys):
        raise InvalidArgumentError("ParseSequences: the attributes do not agree")
    outputs = []
    for key, dtype, shape, filler in zip(keys, dtypes, shapes, fillers, strict=True):
        if not shape.is_fully_defined:
            raise ShapeError(f"ParseSequences: the shape of feature {key!r} must be known: {shape}")
        if filler.dtype != dtype or filler.shape.rank != 0:
            raise InvalidArgumentError(
                f"ParseSequences: feature {key!r} is filled up with a scalar {dtype}, got {filler}"
            )
        outputs.append(TensorSpec([*serialized.shape, None, *shape], as_dtype(dtype)))
        outputs.append(TensorSpec(serialized.shape, int32))
    return tuple(outputs)


def _check(serialized: TensorSpec, keys: tuple[str, ...], dtypes: tuple[str, ...]) -> None:
    if serialized.shape.rank not in (0, 1):
        raise ShapeError(f"ParseExample: expected a scalar or a vector, got {serialized}")
    if not keys or len({*keys}) < len(keys) or len(dtypes) != len(keys):
        raise InvalidArgumentError(
            f"ParseExample: expected features, each once, each of a type, got {keys} of {dtypes}"
        )
    for key, dtype in zip(keys, dtypes, strict=True):
        check_type(key, dtype)


@parse_sequences.kernel("cpu")
def _sequences_kernel(
    serialized: Array,
    *fillers: Array,
    keys: tuple[str, ...],
    dtypes: tuple[str, ...],
    shapes: tuple[TensorShape, ...],
    optional: tuple[bool, ...],
    lists: bool,
) -> Any:
    examples = decoded(serialized, decode_feature_lists if lists else decode_example)
    outputs: list[Array] = []
    for key, dtype, shape, filler, may_miss in zip(
        keys, dtypes, shapes, fillers, optional, strict=True
    ):
        sizes = tuple(n or 0 for n in shape)
        found = []
        for number, example in enumerate(examples):
            if key not in example and not may_miss:
                raise InvalidArgumentError(
                    f"parse_example: example {number} has no feature {key!r}",
                    remedy="set allow_missing=True, or write the feature",
                )
            rows = _rows_of_list if lists else _rows_of_feature
            found.append(rows(key, number, example.get(key, []), dtype, sizes))
        lengths = np.array([len(rows) for rows in found], np.int32)
        shape_of_all = (len(found), int(lengths.max(initial=0)), *sizes)
        padded = np.full(shape_of_all, filler[()], as_dtype(dtype).numpy)
        for i, rows in enumerate(found):
            padded[i, : len(rows)] = rows
        outputs.append(padded.reshape(serialized.shape + padded.shape[1:]))
        outputs.append(lengths.reshape(serialized.shape))
    return outputs


def _rows_of_feature(
    key: str, number: int, feature: Feature, dtype: str, sizes: tuple[int, ...]
) -> Array:
    """The values of a feature, row by row."""
    values = typed(key, feature, dtype)
    each = int(np.prod(sizes, dtype=np.int64))
    if len(values) % each if each else len(values):
        raise InvalidArgumentError(
            f"parse_example: feature {key!r} of example {number} must have rows of {each} values "
            f"(shape {list(sizes)}), it has {len(values)}"
        )
    count = len(values) // each if each else 0
    return collect(values, (count, *sizes), as_dtype(dtype).numpy)


def _rows_of_list(
    key: str, number: int, features: list[Feature], dtype: str, sizes: tuple[int, ...]
) -> Array:
    """The values of the features of a list, each a row."""
    each = int(np.prod(sizes, dtype=np.int64))
    rows = np.empty((len(features), each), as_dtype(dtype).numpy)
    for step, feature in enumerate(features):
        values = typed(key, feature, dtype)
        if len(values) != each:
            raise InvalidArgumentError(
                f"parse_example: step {step} of {key!r} of example {number} must have {each} "
                f"values (shape {list(sizes)}), it has {len(values)}"
            )
        rows[step] = values
    return rows.reshape(len(features), *sizes)


parse_sequences.grad(no_gradient)


@define("ParseSparseLists", dtypes={"serialized": STRING})
def parse_sparse_lists(
    serialized: TensorSpec, *, keys: tuple[str, ...], dtypes: tuple[str, ...]
) -> tuple[TensorSpec, ...]:
    """For each list of features three tensors: indices int64 (n, axes of serialized + 2), values
    (n), and the dense shape int64. The last two axes are the step, and the place in its feature.
    """
    _check(serialized, keys, dtypes)
    axes = len(serialized.shape) + 2
    outputs = []
    for dtype in dtypes:
        outputs.append(TensorSpec([None, axes], int64))
        outputs.append(TensorSpec([None], as_dtype(dtype)))
        outputs.append(TensorSpec([axes], int64))
    return tuple(outputs)


@parse_sparse_lists.kernel("cpu")
def _sparse_lists_kernel(
    serialized: Array, *, keys: tuple[str, ...], dtypes: tuple[str, ...]
) -> Any:
    examples = decoded(serialized, decode_feature_lists)
    outputs: list[Array] = []
    for key, dtype in zip(keys, dtypes, strict=True):
        places: list[Array] = []
        items: list[Any] = []
        steps = widest = 0
        for i, example in enumerate(examples):
            features = example.get(key, [])
            steps = max(steps, len(features))
            for t, feature in enumerate(features):
                values = typed(key, feature, dtype)
                n = len(values)
                widest = max(widest, n)
                places.append(np.stack([np.full(n, i), np.full(n, t), np.arange(n)], axis=1))
                items.extend(values)
        indices = np.concatenate(places) if places else np.empty((0, 3))
        shape = np.array([len(examples), steps, widest], np.int64)
        first = 0 if serialized.ndim else 1
        outputs.append(indices[:, first:].astype(np.int64))
        outputs.append(collect(items, (len(items),), as_dtype(dtype).numpy))
        outputs.append(shape[first:])
    return outputs


parse_sparse_lists.grad(no_gradient)
