"""Batch renormalization: batches normalized so that small ones agree with the moving statistics.

Source: Ioffe, "Batch Renormalization", 2017, arXiv:1702.03275, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar import initializers, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.naming import who
from laminar.typing import Shape

from .layer import Layer

_LIMITS = ("rmax", "rmin", "dmax")


def checked_clipping(layer: Layer, clipping: Mapping[str, float] | None) -> dict[str, float]:
    """The limits of the corrections.

    Raises:
        InvalidArgumentError: an unknown one, rmax below rmin, or dmax below 0.
    """
    found = dict(clipping or {})
    low, high = found.get("rmin", 0.0), found.get("rmax", float("inf"))
    if set(found) - set(_LIMITS) or high < low or found.get("dmax", 0.0) < 0:
        raise InvalidArgumentError(
            f"{who(layer)}: renorm_clipping has limits of {', '.join(_LIMITS)}, with rmax at "
            f"least rmin and dmax at least 0, got {found}"
        )
    return found


class Renormalization:
    """The statistics beside the moving ones of a BatchNormalization, and what they correct.

    Args:
        layer: that has `moving_mean` and `moving_variance`; it gets the weights `moving_stddev`,
            whose square is the moving variance + epsilon, `renorm_mean` and `renorm_stddev`.
        shape: of the weights.
        clipping: the limits of the corrections.
        momentum: of `renorm_mean` and `renorm_stddev`.
    """

    def __init__(
        self, layer: Any, shape: Shape, clipping: Mapping[str, float], momentum: float
    ) -> None:
        self._layer = layer
        self._clipping = clipping
        self._momentum = momentum

        def stddev(shape: Shape, dtype: Any = None) -> Tensor:
            return ops.sqrt(_again(layer.moving_variance_initializer)(shape, dtype=dtype))

        for name, initializer in (
            ("moving_stddev", stddev),
            ("renorm_mean", _again(layer.moving_mean_initializer)),
            ("renorm_stddev", stddev),
        ):
            made = layer.add_weight(shape, initializer, trainable=False, autocast=False, name=name)
            setattr(layer, name, made)

    def corrected(self, mean: Any, variance: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
        """Scale and offset that make of (x - mean) / stddev what renormalization does.

        ((x - mean) / stddev * r + d) * gamma + beta, with r and d taken for constants.
        """
        layer, limits = self._layer, self._clipping
        at_least = ops.sqrt(ops.convert_to_tensor(layer.epsilon, mean.dtype))
        stddev = ops.maximum(layer.renorm_stddev, at_least)  # not 0 in the first steps
        r = ops.sqrt(variance + layer.epsilon) / stddev
        d = (mean - layer.renorm_mean) / stddev
        if "rmin" in limits:
            r = ops.maximum(r, limits["rmin"])
        if "rmax" in limits:
            r = ops.minimum(r, limits["rmax"])
        if "dmax" in limits:
            d = ops.clip(d, -limits["dmax"], limits["dmax"])
        scale, offset = ops.stop_gradient(r), ops.stop_gradient(d)
        if gamma is not None:
            scale, offset = scale * gamma, offset * gamma
        return scale, offset if beta is None else offset + beta

    def follow(self, mean: Any, variance: Any) -> None:
        """Move all statistics towards those of a batch."""
        layer = self._layer
        stddev = ops.sqrt(variance + layer.epsilon)
        _move(layer.renorm_mean, mean, self._momentum)
        _move(layer.renorm_stddev, stddev, self._momentum)
        _move(layer.moving_mean, mean, layer.momentum)
        moved = _move(layer.moving_stddev, stddev, layer.momentum)
        layer.moving_variance.assign(ops.relu(moved * moved - layer.epsilon))


def _move(moving: Variable, batch: Any, momentum: float) -> Any:
    return moving.assign(moving * momentum + batch * (1 - momentum))


def _again(initializer: Any) -> Any:
    """An initializer that gives what this one gives, however often that was asked."""
    return initializer.clone() if isinstance(initializer, initializers.Initializer) else initializer
