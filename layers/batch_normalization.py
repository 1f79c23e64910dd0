"""Batch normalization: the statistics of each channel over the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from laminar import ops
from laminar.config import epsilon as default_epsilon
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.nn.normalization import batch_norm
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .batch_renormalization import Renormalization, checked_clipping
from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, keep, known_dim, make_weight


class BatchNormalization(Layer):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel.

    In training, mean and (biased) variance are those of the batch, and the moving ones follow them:
    moving = momentum * moving + (1 - momentum) * batch. Otherwise, and when `trainable` is false,
    the moving ones are used, and stay.

    Args:
        axis: the axis of the channels.
        momentum: of the moving statistics.
        epsilon: added to the variance.
        center: whether beta is added.
        scale: whether gamma is multiplied with.
        beta_initializer: of beta, (channels,), likewise the others.
        gamma_initializer: of gamma.
        moving_mean_initializer: of the moving mean.
        moving_variance_initializer: of the moving variance.
        beta_regularizer: penalty on beta.
        gamma_regularizer: penalty on gamma.
        beta_constraint: projection of beta after each update.
        gamma_constraint: likewise of gamma.
        renorm: whether batches are renormalized in training: scaled and moved by r and d towards
            statistics of a momentum of their own, for small batches (`batch_renormalization.py`).
        renorm_clipping: limits "rmax", "rmin" of r and "dmax" of d; none by default.
        renorm_momentum: of the statistics that r and d come from.
        synchronized: whether, where several devices share a batch, the statistics are those of the
            whole batch. Otherwise each device has those of its share, and the moving ones of a step
            are the mean over the devices.

    Call arguments:
        inputs: any floating tensor.
        training: whether the statistics are those of the batch.
        mask: of the shape of the inputs without the last axis; where it is false, the numbers are
            left out of the statistics.

    Shapes:
        x: any -> y: the same

    Raises:
        InvalidArgumentError: limits of `renorm_clipping` that cannot be.

    Source: Ioffe and Szegedy, "Batch Normalization", 2015, arXiv:1502.03167, algorithms 1 and 2.

    Examples:
        >>> layer = layers.BatchNormalization()
        >>> layer(np.array([[1.0], [3.0]]), training=True)
        Tensor([[-0.9995],
                [ 0.9995]], shape=(2, 1), dtype=float32)
        >>> layer.moving_mean.numpy()  # a hundredth of the way from 0 to 2
        array([0.02], dtype=float32)
    """

    # With renorm=True alone.
    moving_stddev: Variable
    renorm_mean: Variable
    renorm_stddev: Variable

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike = "zeros",
        gamma_initializer: InitializerLike = "ones",
        moving_mean_initializer: InitializerLike = "zeros",
        moving_variance_initializer: InitializerLike = "ones",
        beta_regularizer: RegularizerLike | None = None,
        gamma_regularizer: RegularizerLike | None = None,
        beta_constraint: ConstraintLike | None = None,
        gamma_constraint: ConstraintLike | None = None,
        renorm: bool = False,
        renorm_clipping: Mapping[str, float] | None = None,
        renorm_momentum: float = 0.99,
        synchronized: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise InvalidArgumentError(f"{who(self)}: axis must be a whole number, got {axis!r}")
        self.axis = int(axis)
        self.momentum = float(momentum)
        self.epsilon = float(epsilon)
        self.center = center
        self.scale = scale
        keep(
            self,
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            moving_mean_initializer=moving_mean_initializer,
            moving_variance_initializer=moving_variance_initializer,
            beta_regularizer=beta_regularizer,
            gamma_regularizer=gamma_regularizer,
            beta_constraint=beta_constraint,
            gamma_constraint=gamma_constraint,
        )
        self.renorm = bool(renorm)
        self.renorm_clipping = (
            checked_clipping(self, renorm_clipping) if renorm else renorm_clipping
        )
        self.renorm_momentum = renorm_momentum
        self.synchronized = bool(synchronized)
        self.supports_masking = True

    def build(self, input_shape: Shape) -> None:
        size = known_dim(self, input_shape, self.axis, "the number of channels")
        shape = (size,)
        self.gamma = make_weight(self, "gamma", shape, autocast=False) if self.scale else None
        self.beta = make_weight(self, "beta", shape, autocast=False) if self.center else None
        self.moving_mean, self.moving_variance = (
            make_weight(self, name, shape, trainable=False, autocast=False)
            for name in ("moving_mean", "moving_variance")
        )
        self._laminar_renormalization = (
            Renormalization(self, shape, self.renorm_clipping or {}, self.renorm_momentum)
            if self.renorm
            else None
        )
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: size})

    def call(self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None) -> Any:
        if not inputs.dtype.is_floating:
            inputs = ops.cast(inputs, self.compute_dtype)
        if not training or not self.trainable:
            return self._normalize(inputs, self.moving_mean, self.moving_variance)
        if self._laminar_renormalization is not None:
            return self._renormalize(inputs, mask, self._laminar_renormalization)
        if mask is None:
            gamma, beta = (None if v is None else v.value for v in (self.gamma, self.beta))
            y, mean, variance = batch_norm(
                inputs, gamma, beta, axis=self.axis, epsilon=self.epsilon
            )
        else:
            mean, variance = self._masked_moments(inputs, mask)
            y = self._normalize(inputs, mean, variance)
        for moving, batch in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(moving * self.momentum + batch * (1 - self.momentum))
        return y

    def _renormalize(self, x: Tensor, mask: Tensor | None, by: Renormalization) -> Any:
        dtype = self.moving_mean.dtype
        if mask is None:
            axes = [i for i in range(len(x.shape)) if i != self.axis % len(x.shape)]
            mean, variance = ops.moments(ops.cast(x, dtype), axes)
        else:
            mean, variance = self._masked_moments(x, mask)
        scale, offset = by.corrected(mean, variance, self.gamma, self.beta)
        by.follow(mean, variance)
        return ops.batch_normalization(
            x, mean, variance, self.axis, offset=offset, scale=scale, epsilon=self.epsilon
        )

    def _normalize(self, x: Tensor, mean: Tensor | Variable, variance: Tensor | Variable) -> Any:
        return ops.batch_normalization(
            x,
            mean,
            variance,
            self.axis,
            offset=self.beta,
            scale=self.gamma,
            epsilon=self.epsilon,
        )

    def _masked_moments(self, x: Tensor, mask: Tensor) -> tuple[Any, Any]:
        """Mean and variance over the places where the mask is true."""
        if len(mask.shape) != len(x.shape) - 1:
            raise ShapeError(
                f"{who(self)}: the mask {tuple(mask.shape)} must have one axis less than the "
                f"inputs {tuple(x.shape)}"
            )
        dtype = self.moving_mean.dtype
        x = ops.cast(x, dtype)
        weights = ops.expand_dims(ops.cast(mask, dtype), -1)
        axes = [i for i in range(len(x.shape)) if i != self.axis % len(x.shape)]
        total = ops.sum(ops.broadcast_to(weights, ops.shape(x)), axes, keepdims=True)
        total = total + default_epsilon()
        mean = ops.sum(x * weights, axes, keepdims=True) / total
        variance = ops.sum(ops.square(x - mean) * weights, axes, keepdims=True) / total
        return ops.squeeze(mean, axes), ops.squeeze(variance, axes)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "axis",
            "momentum",
            "epsilon",
            "center",
            "scale",
            "beta_initializer",
            "gamma_initializer",
            "moving_mean_initializer",
            "moving_variance_initializer",
            "beta_regularizer",
            "gamma_regularizer",
            "beta_constraint",
            "gamma_constraint",
            "synchronized",
            "renorm",
            "renorm_clipping",
            "renorm_momentum",
        )
