"""Normalization: features shifted and scaled to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias, Unpack

import numpy as np

from laminar import ops
from laminar.config import epsilon
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.naming import who
from laminar.typing import DataLike, TensorLike

from .data_layer import DataLayer, as_array, batches, is_array
from .layer_options import LayerOptions

# A number, or one for each index of the axes.
Numbers: TypeAlias = float | Sequence[Any] | np.ndarray[Any, Any]


class Normalization(DataLayer):
    """y = (x - mean) / max(sqrt(variance), epsilon), with mean and variance of given data.

    They are given, or measured by `adapt`. epsilon is `config.epsilon()`.

    Args:
        axis: the axes with a mean and a variance for each of their indices; None for one in all.
        mean: a number, or one for each index, instead of `adapt`.
        variance: likewise.
        invert: compute the inverse, mean + x * max(sqrt(variance), epsilon).

    Shapes:
        x: any, of any numbers -> y: the same, in the compute dtype

    Examples:
        >>> layer = layers.Normalization()
        >>> layer.adapt(np.array([[1.0], [3.0]]))
        >>> layer(np.array([[1.0], [2.0], [3.0]]))
        Tensor([[-1.],
                [ 0.],
                [ 1.]], shape=(3, 1), dtype=float32)
    """

    def __init__(
        self,
        axis: int | Sequence[int] | None = -1,
        mean: Numbers | None = None,
        variance: Numbers | None = None,
        invert: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.axis: tuple[int, ...] = ()
        if axis is not None:
            self.axis = (axis,) if isinstance(axis, int) else tuple(axis)
        self.input_mean = mean
        self.input_variance = variance
        self.invert = invert
        self.supports_masking = True
        if (mean is None) != (variance is None):
            raise InvalidArgumentError(
                f"{who(self)}: mean and variance belong together, "
                f"got mean={mean} and variance={variance}",
                remedy="give both, or neither and call adapt()",
            )
        if mean is None or variance is None:
            return
        if np.shape(mean) != np.shape(variance):
            raise ShapeError(
                f"{who(self)}: mean has shape {np.shape(mean)}, variance {np.shape(variance)}"
            )
        if len(np.shape(mean)) > len(self.axis):
            raise ShapeError(
                f"{who(self)}: mean has shape {np.shape(mean)}, more axes than axis={self.axis}"
            )

    def build(self, input_shape: Any) -> None:
        rank = len(input_shape)
        if any(not -rank <= a < rank for a in self.axis):
            raise ShapeError(
                f"{who(self)}: axis={self.axis} does not exist in the input shape {input_shape}"
            )
        self._kept = tuple(sorted(a % rank for a in self.axis))
        for a in self._kept:
            if input_shape[a] is None:
                raise ShapeError(
                    f"{who(self)}: axis {a} has its own mean for each index, "
                    f"but its size is unknown in the input shape {input_shape}",
                    remedy="give Input a full shape, or leave the axis out",
                )
        self._reduced = tuple(a for a in range(rank) if a not in self._kept)
        self._spread = tuple(input_shape[a] if a in self._kept else 1 for a in range(rank))
        shape = tuple(input_shape[a] for a in self._kept)
        if self.input_mean is not None:
            self._given = [self._arranged(v) for v in (self.input_mean, self.input_variance)]
            return
        self.adapt_mean = self.add_weight(shape, "zeros", trainable=False, name="mean")
        self.adapt_variance = self.add_weight(shape, "ones", trainable=False, name="variance")
        # Nothing counts with it; it is in the files.
        self.count = self.add_weight((), "zeros", "int32", trainable=False, name="count")

    def _arranged(self, value: Any) -> np.ndarray[Any, Any]:
        """Given numbers with the axes of the input; the last axes come last."""
        array = np.asarray(value, np.float64)
        shape = [1] * len(self._spread)
        for size, axis in zip(reversed(array.shape), reversed(self._kept), strict=False):
            shape[axis] = size
        try:
            return np.broadcast_to(array.reshape(shape), self._spread)
        except ValueError as cause:
            raise ShapeError(
                f"{who(self)}: mean and variance of shape {array.shape} do not fit the sizes "
                f"{tuple(self._spread[a] for a in self._kept)} of axis={self.axis}"
            ) from cause

    @property
    def mean(self) -> Any:
        """The mean, with the axes of the input; None before the layer is built."""
        return self._statistic(0) if self.built else None

    @property
    def variance(self) -> Any:
        """The variance, with the axes of the input; None before the layer is built."""
        return self._statistic(1) if self.built else None

    def _statistic(self, i: int) -> Any:
        if self.input_mean is not None:
            return ops.convert_to_tensor(self._given[i], self.compute_dtype)
        found = (self.adapt_mean, self.adapt_variance)[i]
        return ops.reshape(ops.cast(found, self.compute_dtype), self._spread)

    def adapt(self, data: DataLike) -> None:
        """Measure mean and variance of data, in place of those it had.

        Args:
            data: an array, or an iterable of batches: arrays, or tuples that begin with one.

        Raises:
            InvalidArgumentError: the layer was given its mean; or there are no batches.
            ShapeError: a batch does not fit the layer, or the batches each other.
            DTypeError: the data is no array, nor an iterable of arrays.

        Source: for batches, Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm
            for computing sample variances", 1979, equation 2.1.
        """
        if self.input_mean is not None:
            raise InvalidArgumentError(
                f"{who(self)}: adapt() would have no effect, mean and variance were given",
                remedy="make the layer without them",
            )
        total, mean, variance = 0, np.zeros(()), np.zeros(())
        for batch in [data] if is_array(data) else batches(data, None):
            array = self._checked(batch)
            count = prod(array.shape[a] for a in self._reduced)
            total += count
            if not count:
                continue
            share = count / total
            change = array.mean(self._reduced) - mean
            mean = mean + share * change
            variance = (1 - share) * (variance + share * change**2)
            variance = variance + share * array.var(self._reduced)
        if not total:
            raise InvalidArgumentError(
                f"{who(self)}: adapt() got no data",
                remedy="pass an array, or batches of arrays",
            )
        self.adapt_mean.assign(mean)
        self.adapt_variance.assign(variance)

    def _checked(self, batch: Any) -> np.ndarray[Any, Any]:
        if not hasattr(batch, "shape"):
            raise DTypeError(
                f"{who(self)}: adapt() takes an array or batches of arrays, "
                f"got {type(batch).__name__}",
                remedy="make an array of it: np.array(data)",
            )
        array = as_array(batch)
        if not self.built:
            self.build(array.shape)
        rank = len(self._spread)
        if array.ndim != rank or any(array.shape[a] != self._spread[a] for a in self._kept):
            raise ShapeError(
                f"{who(self)}: adapt() got data of shape {array.shape}, the layer was built for "
                f"{tuple(self._spread[a] if a in self._kept else None for a in range(rank))}"
            )
        return array.astype(np.float64)

    def call(self, inputs: TensorLike) -> Any:
        x = ops.cast(inputs, self.compute_dtype)
        deviation = ops.maximum(ops.sqrt(self._statistic(1)), epsilon())
        if self.invert:
            return self._statistic(0) + x * deviation
        return (x - self._statistic(0)) / deviation

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "axis": self.axis,
            "invert": self.invert,
            "mean": np.array(self.input_mean).tolist(),
            "variance": np.array(self.input_variance).tolist(),
        }
