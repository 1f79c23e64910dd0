"""Dense layers: each output is a weighted sum of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from laminar import ops
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.quantizers import QuantizationLike
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .contraction import MatrixProduct
from .input_spec import InputSpec
from .layer_options import CommonOptions
from .main_weight import MainWeight
from .options import config_of, keep, known_dim, make_weight, whole
from .weight_modes import LargeWeight


class Dense(MainWeight):
    """y = activation(x @ kernel + bias).

    Args:
        units: size of the output's last axis.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias.
        kernel_initializer: of the kernel, (features, units).
        bias_initializer: of the bias, (units,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.
        lora_rank: freezes the kernel and trains an update of this rank, see `enable_lora`.
        lora_alpha: the update is multiplied by lora_alpha / lora_rank.
        quantization_config: how `quantize` goes about it.

    Shapes:
        x: (batch, ..., features) -> y: (batch, ..., units)

    Raises:
        InvalidArgumentError: `units` is not a positive whole number.

    Examples:
        >>> layer = layers.Dense(2, kernel_initializer="ones", bias_initializer="ones")
        >>> layer(np.array([[1.0, 2.0, 3.0]]))
        Tensor([[7., 7.]], shape=(1, 2), dtype=float32)
    """

    activation: Callable[[Any], Any]

    def __init__(
        self,
        units: int,
        activation: ActivationLike | None = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        quantization_config: QuantizationLike | None = None,
        **kwargs: Unpack[CommonOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._laminar_keep_main(lora_rank, lora_alpha, quantization_config)
        self.units = whole(self, "units", units)
        self.use_bias = use_bias
        keep(
            self,
            activation=activation,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
        )
        self.input_spec = InputSpec(min_ndim=2)
        self.supports_masking = True

    def build(self, input_shape: Shape) -> None:
        features = known_dim(self, input_shape, -1, "the number of features")
        self._laminar_make_main((features, self.units))
        self.bias = make_weight(self, "bias", (self.units,)) if self.use_bias else None
        self.input_spec = InputSpec(min_ndim=2, axes={-1: features})
        self._laminar_main_made()

    @property
    def kernel(self) -> Any:
        """The kernel: (features, units), with its update of low rank.

        Of a layer that is quantized, the whole numbers that stand for it.
        """
        return self._laminar_main_value()

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        return self._laminar_finish(ops.matmul(inputs, self.kernel))

    def get_config(self) -> dict[str, Any]:
        return (
            super().get_config()
            | config_of(
                self,
                "units",
                "activation",
                "use_bias",
                "kernel_initializer",
                "bias_initializer",
                "kernel_regularizer",
                "bias_regularizer",
                "kernel_constraint",
                "bias_constraint",
            )
            | self._laminar_main_config()
        )

    def _laminar_large_weights(self, shape: tuple[int, ...]) -> list[LargeWeight]:
        features, units = shape
        return [LargeWeight("kernel", "_kernel", shape, (features, units), MatrixProduct())]
