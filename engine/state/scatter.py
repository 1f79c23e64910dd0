"""Updates of parts of variables, and counting, as functions."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..graph import Tensor
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.state.variable_scatter import count_up_to as count_op
from ..ops.state.variable_scatter import variable_scatter
from .variable import Variable


def _scatter(
    mode: str, ref: Variable, indices: Any, updates: Any, name: str | None, nd: bool = False
) -> Tensor:
    places = convert_to_tensor(indices)
    dtype = ref._dtype  # its own, whatever it is read as under a policy
    values = convert_to_tensor(updates, dtype)
    axes = None
    if nd:
        axes = places.shape[-1] if places.shape.rank else None
        if axes is None:
            raise ShapeError(
                f"scatter_nd_{mode}: the last axis of the indices must be known, got {places.spec}"
            )
    attrs = {"mode": mode, "axes": axes, "shape": ref.shape, "dtype": dtype}
    return apply(variable_scatter, (ref.handle, places, values), attrs, name)[0]


def scatter_update(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i...]] = updates[i...]; gives the new value of the variable.

    Args:
        ref: (n, q...).
        indices: (i...), integers; where one comes twice, the last of its updates stays.
        updates: (i..., q...), or a scalar for all.
        name: of the operation.

    Raises:
        FailedPreconditionError: the variable is not initialised.
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: the updates do not fit.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_update(v, [0, 2], [10, 20])
        Tensor([10,  2, 20], shape=(3,), dtype=int32)
    """
    return _scatter("update", ref, indices, updates, name)


def scatter_add(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i...]] += updates[i...]; see `scatter_update`. Equal indices add up.

    Args:
        ref: (n, q...); numbers.
        indices: (i...), integers; negative ones count from the end, and where one comes twice, each
            of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: the updates do not fit.
        DTypeError: the variable holds bools.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_add(v, [0, 2], [10, 20])
        Tensor([11,  2, 23], shape=(3,), dtype=int32)
    """
    return _scatter("add", ref, indices, updates, name)


def scatter_sub(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i...]] -= updates[i...]; see `scatter_update`.

    Args:
        ref: (n, q...); numbers.
        indices: (i...), integers; negative ones count from the end, and where one comes twice, each
            of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: the updates do not fit.
        DTypeError: the variable holds bools.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_sub(v, [0, 2], [10, 20])
        Tensor([ -9,   2, -17], shape=(3,), dtype=int32)
    """
    return _scatter("sub", ref, indices, updates, name)


def scatter_mul(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i...]] *= updates[i...]; see `scatter_update`.

    Args:
        ref: (n, q...); numbers.
        indices: (i...), integers; negative ones count from the end, and where one comes twice, each
            of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: the updates do not fit.
        DTypeError: the variable holds bools.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_mul(v, [0, 2], [10, 20])
        Tensor([10,  2, 60], shape=(3,), dtype=int32)
    """
    return _scatter("mul", ref, indices, updates, name)


def scatter_div(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i...]] /= updates[i...], for real variables; see `scatter_update`.

    Args:
        ref: (n, q...); floats.
        indices: (i...), integers; negative ones count from the end, and where one comes twice, each
            of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: the updates do not fit.
        DTypeError: the variable holds no floats.

    Examples:
        >>> v = engine.Variable([1.0, 2.0, 3.0])
        >>> engine.scatter_div(v, [0, 2], [2.0, 2.0])
        Tensor([0.5, 2. , 1.5], shape=(3,), dtype=float32)
    """
    return _scatter("div", ref, indices, updates, name)


def scatter_min(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i...]] = min(ref[indices[i...]], updates[i...]); see `scatter_update`.

    Args:
        ref: (n, q...); numbers.
        indices: (i...), integers; negative ones count from the end, and where one comes twice, each
            of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: the updates do not fit.
        DTypeError: the variable holds bools.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_min(v, [0, 2], [2, 1])
        Tensor([1, 2, 1], shape=(3,), dtype=int32)
    """
    return _scatter("min", ref, indices, updates, name)


def scatter_max(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i...]] = max(ref[indices[i...]], updates[i...]); see `scatter_update`.

    Args:
        ref: (n, q...); numbers.
        indices: (i...), integers; negative ones count from the end, and where one comes twice, each
            of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: the updates do not fit.
        DTypeError: the variable holds bools.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_max(v, [0, 2], [2, 1])
        Tensor([2, 2, 3], shape=(3,), dtype=int32)
    """
    return _scatter("max", ref, indices, updates, name)


def scatter_nd_update(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """ref[indices[i..., 0], ..., indices[i..., k - 1]] = updates[i...].

    Args:
        ref: (n_0, ..., n_k-1, q...).
        indices: (i..., k), integers.
        updates: (i..., q...), or a scalar for all.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: indices or updates do not fit.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_nd_update(v, [[0], [2]], [10, 20])
        Tensor([10,  2, 20], shape=(3,), dtype=int32)
    """
    return _scatter("update", ref, indices, updates, name, nd=True)


def scatter_nd_add(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Add `updates` at places; see `scatter_nd_update`. Equal places add up.

    Args:
        ref: (n_0, ..., n_k-1, q...); numbers.
        indices: (i..., k), integers; where a place comes twice, each of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: indices or updates do not fit.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_nd_add(v, [[0], [2]], [10, 20])
        Tensor([11,  2, 23], shape=(3,), dtype=int32)
    """
    return _scatter("add", ref, indices, updates, name, nd=True)


def scatter_nd_sub(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Subtract `updates` at places; see `scatter_nd_update`.

    Args:
        ref: (n_0, ..., n_k-1, q...); numbers.
        indices: (i..., k), integers; where a place comes twice, each of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: indices or updates do not fit.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_nd_sub(v, [[0], [2]], [10, 20])
        Tensor([ -9,   2, -17], shape=(3,), dtype=int32)
    """
    return _scatter("sub", ref, indices, updates, name, nd=True)


def scatter_nd_min(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """The least of value and update at places; see `scatter_nd_update`.

    Args:
        ref: (n_0, ..., n_k-1, q...); numbers.
        indices: (i..., k), integers; where a place comes twice, each of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: indices or updates do not fit.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_nd_min(v, [[0], [2]], [2, 1])
        Tensor([1, 2, 1], shape=(3,), dtype=int32)
    """
    return _scatter("min", ref, indices, updates, name, nd=True)


def scatter_nd_max(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """The greatest of value and update at places; see `scatter_nd_update`.

    Args:
        ref: (n_0, ..., n_k-1, q...); numbers.
        indices: (i..., k), integers; where a place comes twice, each of its updates has its effect.
        updates: (i..., q...), or a scalar for all; of the type of the variable.
        name: of the operation.

    Raises:
        InvalidArgumentError: an index is out of range; nothing is changed.
        ShapeError: indices or updates do not fit.

    Examples:
        >>> v = engine.Variable([1, 2, 3])
        >>> engine.scatter_nd_max(v, [[0], [2]], [2, 1])
        Tensor([2, 2, 3], shape=(3,), dtype=int32)
    """
    return _scatter("max", ref, indices, updates, name, nd=True)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """The value of an integer variable, which rises by 1.

    Args:
        ref: a scalar integer variable.
        limit: the value that it does not pass.
        name: of the operation.

    Returns:
        The value before it rose.

    Raises:
        DTypeError: the variable holds no integer.
        ShapeError: the variable is no scalar.
        OutOfRangeError: it has reached `limit`; it stays there.

    Examples:
        >>> v = engine.Variable(0)
        >>> engine.count_up_to(v, 3), v.numpy()
        (Tensor(0, shape=(), dtype=int32), array(1, dtype=int32))
    """
    attrs = {"limit": int(limit), "dtype": ref._dtype}
    return apply(count_op, (ref.handle,), attrs, name)[0]
