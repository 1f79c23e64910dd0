"""Embedding: a learned vector for each of a number of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from laminar import ops
from laminar.constraints import ConstraintLike
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.quantizers import QuantizationLike
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape, TensorLike

from .lora_int8 import MainWeight
from .options import config_of, keep, whole


class Embedding(MainWeight):
    """y = embeddings[x].

    The gradient is an IndexedSlices: what a step costs does not grow with `input_dim` where the
    optimizer updates rows (SGD, Adagrad, and those made with `lazy=True`).

    Args:
        input_dim: the number of ids: the largest is input_dim - 1.
        output_dim: the size of a vector.
        embeddings_initializer: of the vectors, (input_dim, output_dim).
        embeddings_regularizer: penalty on the vectors.
        embeddings_constraint: projection of the vectors after each update.
        mask_zero: whether id 0 stands for padding: the output then has the mask x != 0.
        weights: the first vectors, instead of initial ones.
        lora_rank: freezes the vectors and trains an update of this rank, see `enable_lora`.
        lora_alpha: the update is multiplied by lora_alpha / lora_rank.
        quantization_config: how `quantize` goes about it.

    Shapes:
        x: any, of integers -> y: (*shape of x, output_dim)

    Raises:
        InvalidArgumentError: a size that is not a positive whole number.
    """

    _main: ClassVar[str] = "embeddings"

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: InitializerLike = "uniform",
        embeddings_regularizer: RegularizerLike | None = None,
        embeddings_constraint: ConstraintLike | None = None,
        mask_zero: bool = False,
        weights: Sequence[TensorLike] | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        quantization_config: QuantizationLike | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("input_length", None)  # Keras 2 had it: the length follows from the input
        super().__init__(**kwargs)
        self._keep_main(lora_rank, lora_alpha, quantization_config)
        self.input_dim = whole(self, "input_dim", input_dim)
        self.output_dim = whole(self, "output_dim", output_dim)
        keep(
            self,
            embeddings_initializer=embeddings_initializer,
            embeddings_regularizer=embeddings_regularizer,
            embeddings_constraint=embeddings_constraint,
        )
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero
        self.autocast = False  # ids are not to be rounded
        if weights is not None:
            self.build(None)
            self.set_weights(weights if isinstance(weights, list) else [weights])

    def build(self, input_shape: Shape | None = None) -> None:
        if not self.built:
            self.embeddings = self._make_main((self.input_dim, self.output_dim))
            self._main_made((self.input_dim,))

    def call(self, inputs: Tensor) -> Any:
        if inputs.dtype not in ("int32", "int64"):
            inputs = ops.cast(inputs, "int32")
        y = ops.cast(ops.take(self.embeddings, inputs, axis=0), self.compute_dtype)
        if self._scale is not None:
            return ops.divide(y, ops.expand_dims(ops.take(self._scale, inputs, axis=0), -1))
        if self.lora_enabled:
            y = ops.add(y, self._lora_update(ops.take(self._lora_a, inputs, axis=0)))
        return y

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        """Where the ids are not 0, with `mask_zero`."""
        return ops.not_equal(inputs, 0) if self.mask_zero else None

    def get_config(self) -> dict[str, Any]:
        return (
            super().get_config()
            | config_of(
                self,
                "input_dim",
                "output_dim",
                "embeddings_initializer",
                "embeddings_regularizer",
                "activity_regularizer",
                "embeddings_constraint",
                "mask_zero",
            )
            | self._main_config()
        )

    def _main_axes(self) -> tuple[int, ...]:
        return (1,)

    def _scale_shape(self) -> tuple[int, ...]:
        return (self.input_dim,)
