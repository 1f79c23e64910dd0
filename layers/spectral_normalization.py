"""Spectral normalization: a kernel divided by its largest singular value."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.initializers import TruncatedNormal
from laminar.naming import who
from laminar.typing import Shape

from .layer import Layer
from .layer_options import LayerOptions
from .options import whole
from .wrapper import Wrapper


class SpectralNormalization(Wrapper):
    """The layer inside with its kernel divided by its spectral norm, at each training step.

    The norm is estimated by power iteration: v = u @ kernel^T, u = v @ kernel, each of length 1;
    norm = v @ kernel @ u^T. The kernel is a matrix with the outputs as columns.

    Args:
        layer: a layer with a `kernel` or `embeddings`.
        power_iterations: steps of the iteration at each call.

    Shapes:
        those of the layer inside

    Raises:
        InvalidArgumentError: the layer has no kernel, or the number of steps is below 1.

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018,
        arXiv:1802.05957, algorithm 1.

    Examples:
        >>> dense = layers.Dense(2, kernel_initializer="ones")
        >>> layer = layers.SpectralNormalization(dense, power_iterations=3)
        >>> y = layer(np.ones((1, 2)), training=True)
        >>> dense.kernel.numpy()  # its largest singular value is 1
        array([[0.5, 0.5],
               [0.5, 0.5]], dtype=float32)
    """

    def __init__(
        self, layer: Layer, power_iterations: int = 1, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(layer, **kwargs)
        self.power_iterations = whole(self, "power_iterations", power_iterations)

    def build(self, input_shape: Shape | None = None) -> None:
        super().build(input_shape)
        kernel = getattr(self.layer, "kernel", getattr(self.layer, "embeddings", None))
        if not isinstance(kernel, Variable):
            raise InvalidArgumentError(
                f"{who(self)}: {who(self.layer)} has neither a kernel nor embeddings",
                remedy="wrap a layer that has, such as Dense or Conv2D",
            )
        self.kernel = kernel
        self.vector_u = self.add_weight(
            (1, kernel.shape[-1]),
            TruncatedNormal(stddev=0.02),
            dtype=kernel.dtype,
            trainable=False,
            name="vector_u",
        )

    def call(self, inputs: Tensor, training: bool = False) -> Any:
        if training:
            u, kernel = self.normalized_weights()
            self.vector_u.assign(u)
            self.kernel.assign(kernel)
        y = self.layer(inputs)
        return ops.cast(y, inputs.dtype) if inputs.dtype.is_floating else y

    def normalized_weights(self) -> tuple[Any, Any]:
        """The next estimate of u, and the kernel divided by its norm; a kernel of zeros stays."""
        kernel, old_u = self.kernel.read_value(), self.vector_u.read_value()
        matrix = ops.reshape(kernel, (-1, kernel.shape[-1]))
        u = old_u
        for _ in range(self.power_iterations):
            v = ops.normalize(ops.matmul(u, ops.transpose(matrix)), axis=-1)
            u = ops.normalize(ops.matmul(v, matrix), axis=-1)
        norm = ops.matmul(ops.matmul(v, matrix), ops.transpose(u))
        is_zero = ops.all(ops.equal(kernel, 0))
        norm = ops.reshape(ops.where(is_zero, ops.ones_like(norm), norm), ())
        return ops.where(is_zero, old_u, u), kernel / norm

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"power_iterations": self.power_iterations}
