"""Layers that apply a function to each number, or along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from laminar import activations, ops
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.source import warn
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .masking import get_mask
from .options import at_least_0, config_of, keep, known_dim, make_weight


class Activation(Layer):
    """y = activation(x).

    Args:
        activation: the name of an activation, or a function of a tensor.

    Shapes:
        x: any -> y: the same

    Examples:
        >>> layers.Activation("relu")(np.array([-1.0, 2.0]))
        Tensor([0., 2.], shape=(2,), dtype=float32)
    """

    _laminar_stateless = True

    activation: Callable[[Any], Any]

    def __init__(self, activation: ActivationLike, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        keep(self, activation=activation)
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        return self.activation(inputs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "activation")


class ReLU(Layer):
    """y = x where x >= threshold, else negative_slope * (x - threshold); at most max_value.

    Args:
        max_value: upper bound, None for none.
        negative_slope: slope below the threshold.
        threshold: values below it count as negative.

    Shapes:
        x: any -> y: the same

    Raises:
        InvalidArgumentError: an argument below 0.

    Source: Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines", 2010.

    Examples:
        >>> layers.ReLU(max_value=3.0)(np.array([-1.0, 2.0, 9.0]))
        Tensor([0., 2., 3.], shape=(3,), dtype=float32)
    """

    _laminar_stateless = True

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.max_value = None if max_value is None else at_least_0(self, "max_value", max_value)
        self.negative_slope = at_least_0(self, "negative_slope", negative_slope)
        self.threshold = at_least_0(self, "threshold", threshold)
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        return activations.relu(
            inputs,
            negative_slope=self.negative_slope,
            max_value=self.max_value,
            threshold=self.threshold,
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "max_value", "negative_slope", "threshold")


class LeakyReLU(Layer):
    """y = x where x >= 0, else negative_slope * x.

    Args:
        negative_slope: slope below 0; Keras 2 called it `alpha`.

    Shapes:
        x: any -> y: the same

    Raises:
        InvalidArgumentError: the slope is below 0.

    Source: Maas, Hannun and Ng, "Rectifier nonlinearities improve neural network acoustic models",
        2013, section 2.

    Examples:
        >>> layers.LeakyReLU(0.1)(np.array([-1.0, 2.0]))
        Tensor([-0.1,  2. ], shape=(2,), dtype=float32)
    """

    _laminar_stateless = True

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any) -> None:
        if "alpha" in kwargs:
            negative_slope = kwargs.pop("alpha")
            warn("LeakyReLU: alpha is deprecated, use negative_slope")
        super().__init__(**kwargs)
        self.negative_slope = at_least_0(self, "negative_slope", negative_slope)
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        return activations.leaky_relu(inputs, negative_slope=self.negative_slope)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "negative_slope")


class PReLU(Layer):
    """y = x where x >= 0, else alpha * x, with a learned alpha for each number of an example.

    Args:
        alpha_initializer: of alpha.
        alpha_regularizer: penalty on alpha.
        alpha_constraint: projection of alpha after each update.
        shared_axes: axes (the batch is 0) along which alpha is the same, such as (1, 2) for images.

    Shapes:
        x: (batch, ...) -> y: the same

    Source: He et al., "Delving deep into rectifiers", 2015, arXiv:1502.01852, equation 1.

    Examples:
        >>> layer = layers.PReLU(alpha_initializer=laminar.initializers.Constant(0.25))
        >>> layer(np.array([[-1.0, 2.0]]))
        Tensor([[-0.25,  2.  ]], shape=(1, 2), dtype=float32)
    """

    def __init__(
        self,
        alpha_initializer: InitializerLike = "Zeros",
        alpha_regularizer: RegularizerLike | None = None,
        alpha_constraint: ConstraintLike | None = None,
        shared_axes: int | Sequence[int] | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        keep(
            self,
            alpha_initializer=alpha_initializer,
            alpha_regularizer=alpha_regularizer,
            alpha_constraint=alpha_constraint,
        )
        if isinstance(shared_axes, int):
            shared_axes = [shared_axes]
        self.shared_axes = None if shared_axes is None else list(shared_axes)
        self.supports_masking = True

    def build(self, input_shape: Shape) -> None:
        rank = len(input_shape)
        shared = {axis % rank for axis in self.shared_axes or ()}
        sizes = {
            axis: known_dim(self, input_shape, axis, "an axis of alpha")
            for axis in range(1, rank)
            if axis not in shared
        }
        self.alpha = make_weight(self, "alpha", [sizes.get(axis, 1) for axis in range(1, rank)])
        self.input_spec = InputSpec(ndim=rank, axes=sizes)

    def call(self, inputs: Tensor) -> Any:
        return ops.relu(inputs) - self.alpha * ops.relu(-inputs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self, "alpha_initializer", "alpha_regularizer", "alpha_constraint", "shared_axes"
        )


class ELU(Layer):
    """y = x where x > 0, else alpha * (exp(x) - 1).

    Args:
        alpha: minus the limit for small x.

    Shapes:
        x: any -> y: the same

    Source: Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by
        exponential linear units", 2016, arXiv:1511.07289, equation 15.

    Examples:
        >>> layers.ELU()(np.array([-1.0, 2.0]))
        Tensor([-0.6321,  2.    ], shape=(2,), dtype=float32)
    """

    _laminar_stateless = True

    def __init__(self, alpha: float = 1.0, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        return activations.elu(inputs, alpha=self.alpha)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "alpha")


class Softmax(Layer):
    """y = exp(x) / sum of exp(x) along `axis`.

    Args:
        axis: one axis, or several that are normalized together.

    Call arguments:
        inputs: any floating tensor.
        mask: of a shape that broadcasts to the inputs; where it is false, y is 0. A mask of time
            steps that comes with the inputs, and has fewer axes, is passed on and not applied.

    Shapes:
        x: any -> y: the same

    Raises:
        ShapeError: the mask does not broadcast to the inputs.

    Examples:
        >>> layers.Softmax()(np.array([1.0, 1.0, 2.0]))
        Tensor([0.2119, 0.2119, 0.5761], shape=(3,), dtype=float32)
    """

    _laminar_stateless = True

    def __init__(self, axis: int | Sequence[int] = -1, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self.supports_masking = True

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        axis = tuple(self.axis) if isinstance(self.axis, Sequence) else self.axis
        if mask is get_mask(inputs) and mask is not None and len(mask.shape) < len(inputs.shape):
            mask = None
        if mask is None:
            return activations.softmax(inputs, axis=axis)
        self._check_mask(mask, inputs)
        if mask.dtype != "bool":
            mask = ops.greater(mask, 0.5)
        # Any number far below the others does; where all are masked, the result is set to 0.
        least = -3e4 if inputs.dtype == "float16" else -1e9
        y = activations.softmax(ops.where(mask, inputs, least), axis=axis)
        return ops.where(mask, y, 0)

    def _check_mask(self, mask: Any, inputs: Any) -> None:
        pairs = zip(reversed(mask.shape), reversed(inputs.shape), strict=False)
        if len(mask.shape) > len(inputs.shape) or any(
            None not in (m, n) and m not in (1, n) for m, n in pairs
        ):
            raise ShapeError(
                f"{who(self)}: the mask {tuple(mask.shape)} does not broadcast to the inputs "
                f"{tuple(inputs.shape)}"
            )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "axis")
