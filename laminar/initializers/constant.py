"""Values that no chance is in: constants, the identity, waves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor

from .. import ops
from ..serialization import deserialize_keras_object, serialize_keras_object
from ..settings import floatx
from ..typing import DTypeLike, TensorLike
from ..windows import window_points
from .initializer import Initializer


class Constant(Initializer):
    """One value everywhere.

    Args:
        value: a number, or an array that broadcasts to the shape.

    Examples:
        >>> laminar.initializers.Constant(3.0)((2,))
        Tensor([3., 3.], shape=(2,), dtype=float32)
    """

    def __init__(self, value: TensorLike = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return ops.full(shape, self.value, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"value": serialize_keras_object(self.value)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Constant:
        return cls(deserialize_keras_object(config["value"]))


class Zeros(Initializer):
    """0 everywhere.

    Examples:
        >>> laminar.initializers.Zeros()((2,))
        Tensor([0., 0.], shape=(2,), dtype=float32)
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return ops.zeros(shape, dtype)


class Ones(Initializer):
    """1 everywhere.

    Examples:
        >>> laminar.initializers.Ones()((2,))
        Tensor([1., 1.], shape=(2,), dtype=float32)
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return ops.ones(shape, dtype)


class Identity(Initializer):
    """`gain` on the main diagonal of a matrix, 0 elsewhere.

    Args:
        gain: the value on the diagonal.

    Examples:
        >>> laminar.initializers.Identity()((2, 2))
        Tensor([[1., 0.],
                [0., 1.]], shape=(2, 2), dtype=float32)
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        if len(shape) != 2:
            raise ShapeError(f"Identity: expected the shape of a matrix, got {tuple(shape)}")
        return ops.multiply(ops.eye(shape[0], shape[1], dtype=dtype), self.gain)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain}


class STFT(Initializer):
    """Kernels of a convolution that computes a short-time Fourier transform.

    For a shape (length, 1, bins), kernel[t, 0, f] = window[t] cos(w t f) / scale with
    w = pi / (bins - 1), or -sin for the imaginary parts.

    Args:
        side: "real" or "imag": which part of the complex numbers.
        window: by which a stretch is multiplied: a name (see `laminar.windows`), the points
            themselves, or None.
        scaling: the scale: "density" (the root of the sum of squares of the window), "spectrum"
            (the sum of its absolute values), or None for 1.
        periodic: as SciPy's `fftbins`: whether the window is one period, and not symmetric.

    Raises:
        InvalidArgumentError: another side, scaling or name.

    Examples:
        >>> laminar.initializers.STFT("real", window=None)((4, 1, 3))[:, 0, 1]
        Tensor([ 1.,  0., -1., -0.], shape=(4,), dtype=float32)
    """

    def __init__(
        self,
        side: str = "real",
        window: str | TensorLike | None = "hann",
        scaling: str | None = "density",
        periodic: bool = False,
    ) -> None:
        if side not in ("real", "imag"):
            raise InvalidArgumentError(f"STFT: side must be 'real' or 'imag', got {side!r}")
        if scaling not in (None, "density", "spectrum"):
            raise InvalidArgumentError(
                f"STFT: scaling must be 'density', 'spectrum' or None, got {scaling!r}"
            )
        if isinstance(window, str):
            window_points("STFT", window, 1, periodic)  # its name is known
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        if len(shape) != 3 or shape[2] < 2:
            raise ShapeError(f"STFT: expected a shape (length, 1, bins), got {tuple(shape)}")
        length, _, bins = shape
        turns = np.arange(length).reshape(-1, 1, 1) * np.arange(bins) * (math.pi / (bins - 1))
        kernel = np.cos(turns) if self.side == "real" else -np.sin(turns)
        if self.window is not None:
            points = window_points("STFT", self.window, length, self.periodic)
            scales = {
                "density": math.sqrt(np.square(points).sum()),
                "spectrum": np.abs(points).sum(),
            }
            scale = 1.0 if self.scaling is None else scales[self.scaling]
            kernel = kernel * points.reshape(-1, 1, 1) / scale
        return ops.cast(np.broadcast_to(kernel, tuple(shape)), dtype or floatx())

    def get_config(self) -> dict[str, Any]:
        return {
            "side": self.side,
            "window": self.window,
            "periodic": self.periodic,
            "scaling": self.scaling,
        }
