"""Group normalization: the statistics of groups of channels within each example."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.ops.nn.normalization import group_norm
from laminar.engine.ops.nn.normalize import statistics_dtype
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, keep, known_dim, make_weight, whole


class GroupNormalization(Layer):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta.

    Mean and variance are taken for each example over all positions and the channels of a group.

    Args:
        groups: into how many groups the channels are divided; -1 for a group for each channel
            (instance normalization).
        axis: the axis of the channels.
        epsilon: added to the variance.
        center: whether beta is added.
        scale: whether gamma is multiplied with.
        beta_initializer: of beta, (channels,).
        gamma_initializer: of gamma, likewise.
        beta_regularizer: penalty on beta.
        gamma_regularizer: penalty on gamma.
        beta_constraint: projection of beta after each update.
        gamma_constraint: likewise of gamma.

    Shapes:
        x: (batch, ...) -> y: the same

    Raises:
        InvalidArgumentError: the number of groups is neither -1 nor positive, or does not divide
            the channels.

    Source: Wu and He, "Group Normalization", 2018, arXiv:1803.08494, equations 1 to 7.

    Examples:
        >>> layers.GroupNormalization(groups=2)(np.array([[1.0, 3.0, 10.0, 30.0]]))
        Tensor([[-0.9995,  0.9995, -1.    ,  1.    ]], shape=(1, 4), dtype=float32)
    """

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike = "zeros",
        gamma_initializer: InitializerLike = "ones",
        beta_regularizer: RegularizerLike | None = None,
        gamma_regularizer: RegularizerLike | None = None,
        beta_constraint: ConstraintLike | None = None,
        gamma_constraint: ConstraintLike | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.autocast = False  # inputs in halves of greater ones would overflow
        self.groups = groups if groups == -1 else whole(self, "groups", groups)
        self.axis = axis
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        keep(
            self,
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            beta_regularizer=beta_regularizer,
            gamma_regularizer=gamma_regularizer,
            beta_constraint=beta_constraint,
            gamma_constraint=gamma_constraint,
        )
        self.supports_masking = True

    def build(self, input_shape: Shape) -> None:
        size = known_dim(self, input_shape, self.axis, "the number of channels")
        if self.groups == -1:
            self.groups = size
        if size % self.groups:
            raise InvalidArgumentError(
                f"{who(self)}: the {size} channels of the input {tuple(input_shape)} cannot be "
                f"divided into {self.groups} groups",
                remedy="choose a number of groups that divides them",
            )
        self.gamma = make_weight(self, "gamma", (size,), autocast=False) if self.scale else None
        self.beta = make_weight(self, "beta", (size,), autocast=False) if self.center else None
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: size})

    def call(self, inputs: Tensor) -> Any:
        dtype = statistics_dtype(inputs.dtype)  # float64 for float64, else float32
        gamma, beta = (None if v is None else ops.cast(v, dtype) for v in (self.gamma, self.beta))
        last = self.axis in (-1, len(inputs.shape) - 1)
        x = inputs if last else ops.moveaxis(inputs, self.axis, -1)
        y = group_norm(x, self.groups, gamma, beta, epsilon=self.epsilon)
        return ops.cast(y if last else ops.moveaxis(y, -1, self.axis), self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "groups",
            "axis",
            "epsilon",
            "center",
            "scale",
            "beta_initializer",
            "gamma_initializer",
            "beta_regularizer",
            "gamma_regularizer",
            "beta_constraint",
            "gamma_constraint",
        )
