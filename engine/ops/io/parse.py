"""Parse serialized Example messages into tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import DataLossError, DTypeError, InvalidArgumentError, ShapeError
from ...graph import STRING, Array, TensorShape, TensorSpec, as_dtype, float32, int64, string
from ...io.example import Feature, decode_example
from ..core.registry import define, no_gradient
from ..text.string import collect

FEATURE_TYPES = frozenset({float32, int64, string})


@define("ParseExample", dtypes={"serialized": STRING})
def parse_examples(
    serialized: TensorSpec,
    *defaults: TensorSpec,
    dense_keys: tuple[str, ...],
    dense_dtypes: tuple[str, ...],
    dense_shapes: tuple[TensorShape, ...],
    defaulted: tuple[bool, ...],
    sparse_keys: tuple[str, ...],
    sparse_dtypes: tuple[str, ...],
) -> tuple[TensorSpec, ...]:
    """Dense features, serialized.shape + the shape of each; then for each sparse one three tensors.

    Those are indices int64 (n, axes of serialized + 1), values (n) and the dense shape int64.
    `serialized` is a scalar or a vector. `defaults` are for the dense features that `defaulted`
    marks, in order.
    """
    if serialized.shape.rank not in (0, 1):
        raise ShapeError(f"ParseExample: expected a scalar or a vector, got {serialized}")
    if len(defaults) != sum(defaulted) or not (
        len(dense_keys) == len(dense_dtypes) == len(dense_shapes) == len(defaulted)
    ):
        raise InvalidArgumentError("ParseExample: the attributes of dense features do not agree")
    if len(sparse_keys) != len(sparse_dtypes):
        raise InvalidArgumentError("ParseExample: the attributes of sparse features do not agree")
    if not dense_keys and not sparse_keys:
        raise InvalidArgumentError("ParseExample: no feature is asked for")
    twice = len({*dense_keys, *sparse_keys}) < len(dense_keys) + len(sparse_keys)
    if twice:
        raise InvalidArgumentError("ParseExample: a feature is asked for twice")
    given = iter(defaults)
    for key, dtype, shape, has_default in zip(
        dense_keys, dense_dtypes, dense_shapes, defaulted, strict=True
    ):
        check_type(key, dtype)
        if not shape.is_fully_defined:
            raise ShapeError(f"ParseExample: the shape of feature {key!r} must be known: {shape}")
        if has_default:
            default = next(given)
            fits = default.shape.rank == 0 or default.shape.is_compatible_with(shape)
            if default.dtype != dtype or not fits:
                raise InvalidArgumentError(
                    f"ParseExample: feature {key!r} is {dtype}{shape}, its default is {default}"
                )
    batch = serialized.shape
    outputs = [
        TensorSpec([*batch, *shape], as_dtype(dtype))
        for dtype, shape in zip(dense_dtypes, dense_shapes, strict=True)
    ]
    for key, dtype in zip(sparse_keys, sparse_dtypes, strict=True):
        check_type(key, dtype)
        axes = len(batch) + 1
        outputs.append(TensorSpec([None, axes], int64))
        outputs.append(TensorSpec([None], as_dtype(dtype)))
        outputs.append(TensorSpec([axes], int64))
    return tuple(outputs)


def check_type(key: str, dtype: str) -> None:
    """DTypeError unless features can be of a type."""
    if as_dtype(dtype) not in FEATURE_TYPES:
        raise DTypeError(
            f"ParseExample: feature {key!r} must be float32, int64 or string, got {dtype}",
            remedy="parse it as one of these, and cast",
        )


@parse_examples.kernel("cpu")
def _parse_kernel(
    serialized: Array,
    *defaults: Array,
    dense_keys: tuple[str, ...],
    dense_dtypes: tuple[str, ...],
    dense_shapes: tuple[TensorShape, ...],
    defaulted: tuple[bool, ...],
    sparse_keys: tuple[str, ...],
    sparse_dtypes: tuple[str, ...],
) -> Any:
    examples = decoded(serialized, decode_example)
    outputs: list[Array] = []
    given = iter(defaults)
    for key, dtype, shape, has_default in zip(
        dense_keys, dense_dtypes, dense_shapes, defaulted, strict=True
    ):
        sizes = tuple(n or 0 for n in shape)
        size = int(np.prod(sizes, dtype=np.int64))
        out = np.empty((len(examples), size), as_dtype(dtype).numpy)
        default = next(given) if has_default else None
        for row, example in enumerate(examples):
            feature = example.get(key)
            if feature is None or not len(feature):
                if default is None and size:
                    raise InvalidArgumentError(
                        f"parse_example: example {row} has no feature {key!r}, and there is no "
                        f"default",
                        remedy="give default_value=, or write the feature",
                    )
                if default is not None:
                    out[row] = default.reshape(-1)
                continue
            values = typed(key, feature, dtype)
            if len(values) != size:
                raise InvalidArgumentError(
                    f"parse_example: feature {key!r} of example {row} must have {size} values "
                    f"(shape {list(sizes)}), it has {len(values)}"
                )
            out[row] = values
        outputs.append(out.reshape(serialized.shape + sizes))
    for key, dtype in zip(sparse_keys, sparse_dtypes, strict=True):
        found = [typed(key, example.get(key, []), dtype) for example in examples]
        outputs += _sparse(found, dtype, bool(serialized.ndim))
    return outputs if len(outputs) > 1 else outputs[0]


def decoded(serialized: Array, decode: Callable[[bytes], Any]) -> list[Any]:
    """What `decode` makes of each string; DataLossError says which one is damaged."""
    examples = []
    for number, data in enumerate(serialized.ravel().tolist()):
        try:
            examples.append(decode(data))
        except DataLossError as cause:
            message = f"parse_example: example {number}: {cause.message}"
            raise DataLossError(message, remedy=cause.remedy) from cause
    return examples


def typed(key: str, feature: Feature, dtype: str) -> Array | list[bytes]:
    """The values of a feature; InvalidArgumentError if they are of another type."""
    if not len(feature):
        return []
    found = "string" if isinstance(feature, list) else str(feature.dtype)
    if found != dtype:
        raise InvalidArgumentError(
            f"parse_example: feature {key!r} holds {found}, it is asked for as {dtype}"
        )
    return feature


def _sparse(found: Sequence[Any], dtype: str, batched: bool) -> list[Array]:
    lengths = np.array([len(values) for values in found], np.int64)
    widest = int(lengths.max(initial=0))
    items = [item for values in found for item in values]
    kind = as_dtype(dtype)
    values = collect(items, (len(items),), kind.numpy)
    column = np.concatenate([np.arange(n) for n in lengths]) if len(lengths) else lengths
    column = column.astype(np.int64)
    if not batched:
        return [column[:, None], values, np.array([widest], np.int64)]
    row = np.repeat(np.arange(len(lengths)), lengths)
    shape = np.array([len(lengths), widest], np.int64)
    return [np.stack([row, column], axis=1).astype(np.int64), values, shape]


parse_examples.grad(no_gradient)
