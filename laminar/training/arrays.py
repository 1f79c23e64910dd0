"""Arrays as the data of a model: checked, converted, counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from laminar import config
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import EagerTensor, GraphTensor
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.state import Variable
from laminar.tree import flatten, flatten_with_path, map_structure


def as_arrays(value: Any, what: str) -> Any:
    """A structure of arrays with the batch first; floats become the default floating type.

    Raises:
        InvalidArgumentError: a leaf is no array.
        DTypeError: an array of objects.
    """
    leaves = flatten(value)
    if isinstance(value, list | tuple) and all(isinstance(v, bool | int | float) for v in leaves):
        return _as_array(value, what)  # numbers in nested lists are one array
    return map_structure(lambda leaf: _as_array(leaf, what), value)


def _as_array(leaf: Any, what: str) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, GraphTensor) or getattr(leaf, "is_keras_tensor", False):
        raise InvalidArgumentError(
            f"{what}: expected data, got the symbolic tensor {leaf!r}",
            remedy="pass arrays; symbolic tensors are for building models",
        )
    if isinstance(leaf, str | bytes):
        raise InvalidArgumentError(
            f"{what}: expected an array, got {type(leaf).__name__} {leaf!r:.40}",
            remedy="load the file first",
        )
    if hasattr(leaf, "to_numpy"):  # pandas
        leaf = _from_frame(leaf)
    if isinstance(leaf, EagerTensor | Variable):
        array = np.asarray(leaf)
    else:
        try:
            array = convert_to_tensor(leaf, copy=False).value  # type: ignore[attr-defined]  # eager
        except DTypeError as cause:
            raise DTypeError(
                f"{what}: {cause.message}", remedy="convert the column to numbers"
            ) from cause
        except (TypeError, ValueError) as cause:
            message = getattr(cause, "message", str(cause))
            raise InvalidArgumentError(
                f"{what}: {message}", remedy="pass a NumPy array with the examples first"
            ) from cause
    if array.ndim == 0:
        raise ShapeError(
            f"{what}: expected an array with the examples along its first axis, got a scalar"
        )
    if array.dtype.kind == "f" and array.dtype != config.floatx():
        array = array.astype(config.floatx())
    return array


def _from_frame(frame: Any) -> Any:
    """The values of a pandas frame or series; columns of different numbers become floats."""
    values = frame.to_numpy()
    if values.dtype == object:
        found = getattr(frame, "dtypes", None)
        kinds = [getattr(dtype, "kind", "O") for dtype in np.atleast_1d(np.asarray(found))]
        if all(kind in "biuf" for kind in kinds):
            return frame.to_numpy(dtype=config.floatx())
    return values


def count_examples(parts: Mapping[str, Any]) -> int:
    """The number of examples, which all arrays must share.

    Raises:
        InvalidArgumentError: the arrays have different lengths, or none.
    """
    sizes = sizes_of(parts)
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise InvalidArgumentError(
            f"the arrays must have the same number of examples: {listed}",
            remedy="pair each example with its label",
        )
    return next(iter(sizes.values()))


def sizes_of(parts: Mapping[str, Any]) -> dict[str, int]:
    """The number of examples of each array, by its place.

    Raises:
        InvalidArgumentError: there are none.
    """
    sizes = {
        _label(name, path): len(leaf)
        for name, value in parts.items()
        for path, leaf in flatten_with_path(value)
        if leaf is not None
    }
    if not sizes:
        raise InvalidArgumentError("fit: no data", remedy="pass x=")
    return sizes


def _label(name: str, path: tuple[Any, ...]) -> str:
    return name + "".join(f"[{key!r}]" for key in path)


def combined_weights(y: Any, given: Any, weights: Mapping[int, float], who: str) -> Any:
    """The weight of each example by its class; labels may be numbers or one-hot rows.

    Args:
        y: labels.
        given: sample weights; must be None.
        weights: the weight of each class; 1 for those that are left out.
        who: for errors.

    Raises:
        InvalidArgumentError: there are sample weights too, or several targets.
    """
    if given is not None:
        raise InvalidArgumentError(
            f"{who}: give class_weight or sample_weight, not both",
            remedy="multiply the two yourself",
        )
    leaves = [] if y is None else flatten(y)
    if len(leaves) != 1:
        raise InvalidArgumentError(
            f"{who}: class_weight needs one target, got {len(leaves)}",
            remedy="use sample_weight for several outputs",
        )
    labels = np.asarray(leaves[0])
    if labels.ndim > 1 and labels.shape[-1] > 1:
        labels = labels.argmax(-1)
    labels = labels.reshape(len(labels), -1)[:, 0].astype(np.int64)
    _check_class_weight(weights, who)
    table = np.ones(max(int(labels.max(initial=0)), *weights, 0) + 1, config.floatx())
    for label, weight in weights.items():
        table[int(label)] = weight
    return table[labels]


def _check_class_weight(weights: Any, who: str) -> None:
    if not isinstance(weights, Mapping):
        raise InvalidArgumentError(
            f"{who}: class_weight must be a dict of numbers by class, got {weights!r}",
            remedy="class_weight={0: 1.0, 1: 5.0}",
        )
    for label, weight in weights.items():
        is_class = isinstance(label, int | np.integer) and label >= 0
        if not is_class or not isinstance(weight, int | float | np.number):
            raise InvalidArgumentError(
                f"{who}: class_weight has a number for each class number, "
                f"got {label!r}: {weight!r}",
                remedy="number the classes from 0 on",
            )


def nan_report(batch: Any) -> str | None:
    """Where a batch holds NaN, as a sentence; None when it does not."""
    parts = batch if isinstance(batch, tuple) else (batch,)
    for name, part in zip(("x", "y", "sample_weight"), parts, strict=False):
        for path, leaf in flatten_with_path(part):
            array = None if leaf is None else np.asarray(leaf)
            if array is not None and array.dtype.kind == "f":
                bad = np.argwhere(np.isnan(array))
                if len(bad):
                    return (
                        f"{_label(name, path)} contains NaN: {len(bad)} of {array.size} values, "
                        f"the first at {tuple(int(i) for i in bad[0])} of the batch"
                    )
    return None
