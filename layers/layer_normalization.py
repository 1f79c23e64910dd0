"""Normalization within each example: by mean and variance, by mean square, by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.constraints import ConstraintLike
from laminar.engine.errors import DTypeError
from laminar.engine.graph import Tensor
from laminar.engine.source import warn
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, keep, known_dim, make_weight

Axes = int | Sequence[int]


def _axes(layer: Layer, axis: Any) -> Any:
    """One axis, or several as a list, by their numbers: -1 comes before 1, as in files of Keras."""
    several = isinstance(axis, list | tuple)
    given = list(axis) if several else [axis]
    if any(isinstance(a, bool) or not hasattr(a, "__index__") for a in given):
        raise DTypeError(f"{who(layer)}: axis must be a whole number, or several, got {axis!r}")
    return sorted(int(a) for a in given) if several else int(axis)


def _sizes(layer: Layer, axis: Any, input_shape: Shape) -> list[int]:
    """The sizes of the normalized axes, in their order: the shape that weights have in files."""
    axes = axis if isinstance(axis, list) else [axis]
    return [known_dim(layer, input_shape, a, "a normalized axis") for a in axes]


def _from_first_to_last(weight: Any, axis: Any, x: Tensor) -> Any:
    """The elements of a weight, which are those of the normalized axes from first to last."""
    if weight is None or not isinstance(axis, list):
        return weight
    places = [a % len(x.shape) for a in axis]
    order = sorted(range(len(axis)), key=places.__getitem__)
    if order == list(range(len(axis))):
        return weight
    return ops.reshape(weight, [weight.shape[i] for i in order])


class LayerNormalization(Layer):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta; mean and variance over `axis`.

    Args:
        axis: one axis, or several.
        epsilon: added to the variance.
        center: whether beta is added.
        scale: whether gamma is multiplied with.
        beta_initializer: of beta, of the size of `axis`.
        gamma_initializer: of gamma, likewise.
        beta_regularizer: penalty on beta.
        gamma_regularizer: penalty on gamma.
        beta_constraint: projection of beta after each update.
        gamma_constraint: likewise of gamma.
        rms_scaling: in `kwargs`, as older files of Keras have it: y = x / sqrt(variance + epsilon)
            * gamma, without beta. What its name says is `RMSNormalization`.

    Shapes:
        x: any -> y: the same

    Raises:
        DTypeError: `axis` is not made of whole numbers.

    Source: Ba, Kiros and Hinton, "Layer Normalization", 2016, arXiv:1607.06450, equation 3.

    Examples:
        >>> layers.LayerNormalization()(np.array([[1.0, 2.0, 3.0]]))
        Tensor([[-1.2238,  0.    ,  1.2238]], shape=(1, 3), dtype=float32)
    """

    def __init__(
        self,
        axis: Axes = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike = "zeros",
        gamma_initializer: InitializerLike = "ones",
        beta_regularizer: RegularizerLike | None = None,
        gamma_regularizer: RegularizerLike | None = None,
        beta_constraint: ConstraintLike | None = None,
        gamma_constraint: ConstraintLike | None = None,
        **kwargs: Any,
    ) -> None:
        self.rms_scaling = bool(kwargs.pop("rms_scaling", False))
        if self.rms_scaling:
            warn(
                "LayerNormalization: rms_scaling is deprecated, it scales by the variance and not "
                "by the root mean square: use RMSNormalization"
            )
        super().__init__(**kwargs)
        self.autocast = False  # inputs in halves of greater ones would overflow
        self.axis = _axes(self, axis)
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
        shape = _sizes(self, self.axis, input_shape)
        scales, centers = self.scale or self.rms_scaling, self.center and not self.rms_scaling
        self.gamma = make_weight(self, "gamma", shape, autocast=False) if scales else None
        self.beta = make_weight(self, "beta", shape, autocast=False) if centers else None

    def call(self, inputs: Tensor) -> Any:
        y = ops.layer_normalization(
            inputs,
            _from_first_to_last(self.gamma, self.axis, inputs),
            _from_first_to_last(self.beta, self.axis, inputs),
            axis=self.axis,
            epsilon=self.epsilon,
            rms_scaling=self.rms_scaling,
        )
        return ops.cast(y, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "axis",
            "epsilon",
            "center",
            "scale",
            "rms_scaling",
            "beta_initializer",
            "gamma_initializer",
            "beta_regularizer",
            "gamma_regularizer",
            "beta_constraint",
            "gamma_constraint",
        )


class RMSNormalization(Layer):
    """y = x / sqrt(mean of x**2 over `axis` + epsilon) * scale.

    Args:
        axis: one axis, or several.
        epsilon: added to the mean square.

    Shapes:
        x: any -> y: the same

    Raises:
        DTypeError: `axis` is not made of whole numbers.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019, arXiv:1910.07467,
        equation 4.

    Examples:
        >>> layers.RMSNormalization()(np.array([[3.0, 4.0]]))
        Tensor([[0.8485, 1.1314]], shape=(1, 2), dtype=float32)
    """

    def __init__(
        self, axis: Axes = -1, epsilon: float = 1e-6, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.axis = _axes(self, axis)
        self.epsilon = epsilon
        self.supports_masking = True

    def build(self, input_shape: Shape) -> None:
        shape = _sizes(self, self.axis, input_shape)
        self.scale = self.add_weight(shape, "ones", name="scale")

    def call(self, x: Tensor) -> Any:
        scale = _from_first_to_last(self.scale, self.axis, x)
        return ops.rms_normalization(x, scale=scale, axis=self.axis, epsilon=self.epsilon)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "axis", "epsilon")


class UnitNormalization(Layer):
    """y = x / length of x along `axis`.

    Args:
        axis: one axis, or several.

    Shapes:
        x: any -> y: the same

    Raises:
        DTypeError: `axis` is not made of whole numbers.

    Examples:
        >>> layers.UnitNormalization()(np.array([[3.0, 4.0]]))
        Tensor([[0.6, 0.8]], shape=(1, 2), dtype=float32)
    """

    _laminar_stateless = True

    def __init__(self, axis: Axes = -1, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.axis = _axes(self, axis)
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        return ops.normalize(inputs, axis=self.axis, order=2, epsilon=1e-12)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "axis")
