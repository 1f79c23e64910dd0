"""Embedding: a learned vector for each of a number of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from laminar import ops
from laminar.constraints import ConstraintLike
from laminar.engine.graph import Tensor
from laminar.engine.source import warn
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.quantizers import QuantizationLike
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape, TensorLike

from .contraction import TransposedProduct
from .main_weight import MainWeight
from .options import config_of, keep, whole
from .weight_integers import Int4Mode, Int8Mode, IntegerMode
from .weight_modes import LargeWeight, WeightMode


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

    Examples:
        >>> layer = layers.Embedding(10, 4)
        >>> layer(np.array([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    _main: ClassVar[str] = "embeddings"
    _embeddings: Variable
    _modes: ClassVar[Sequence[type[WeightMode]]] = (Int8Mode, Int4Mode)

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
        if kwargs.pop("input_length", None) is not None:  # Keras 2 had it
            warn(
                "Embedding: input_length is deprecated, the length follows from the input: omit it"
            )
        super().__init__(**kwargs)
        self._laminar_keep_main(lora_rank, lora_alpha, quantization_config)
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
            self._laminar_make_main((self.input_dim, self.output_dim))
            self._laminar_main_made()

    @property
    def embeddings(self) -> Any:
        """The vectors, (input_dim, output_dim), with their update of low rank.

        Of a layer that is quantized, the whole numbers that stand for them.
        """
        return self._laminar_main_value()

    def call(self, inputs: Tensor) -> Any:
        ids = _as_ids(inputs)
        y = ops.cast(ops.take(self._embeddings, ids, axis=0), self.compute_dtype)
        return self._laminar_with_update(y, ids)

    def quantized_call(self, inputs: Tensor) -> Any:
        """The call of a layer that is quantized."""
        kept, ids = self._laminar_kept_weight(), _as_ids(inputs)
        assert isinstance(kept, IntegerMode)
        return self._laminar_with_update(kept.rows(ids), ids)

    def _laminar_with_update(self, y: Any, ids: Any) -> Any:
        """Vectors with their update of low rank."""
        if not self.lora_enabled:
            return y
        update = ops.matmul(ops.take(self._laminar_a, ids, axis=0), self._laminar_b)
        return ops.add(y, ops.cast(self._laminar_scaled(update), self.compute_dtype))

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
            | self._laminar_main_config()
        )

    def _laminar_saved_names(self, templates: Sequence[str]) -> list[str]:
        return [name for name in super()._laminar_saved_names(templates) if name != "bias"]

    def _laminar_large_weights(self, shape: tuple[int, ...]) -> list[LargeWeight]:
        name, product = "embeddings", TransposedProduct()
        rows, columns = shape
        matrix = (rows, columns)
        return [LargeWeight(name, f"_{name}", shape, matrix, product, group_axis=1)]


def _as_ids(inputs: Tensor) -> Tensor:
    return inputs if inputs.dtype in ("int32", "int64") else ops.cast(inputs, "int32")
