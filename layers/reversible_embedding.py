"""ReversibleEmbedding: from ids to vectors, and from vectors to scores of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import DTypeLike, Shape

from .contraction import MatrixProduct
from .embedding import Embedding
from .masking import set_mask
from .options import config_of, make_weight
from .weight_modes import LargeWeight


class ReversibleEmbedding(Embedding):
    """y = embeddings[x]; with reverse=True, y = x @ transpose(embeddings).

    Args:
        input_dim: the number of ids: the largest is input_dim - 1.
        output_dim: the size of a vector.
        tie_weights: whether both directions have the same weights.
        embeddings_initializer: of the vectors, (input_dim, output_dim).
        embeddings_regularizer: penalty on the vectors.
        embeddings_constraint: projection of the vectors after each update.
        mask_zero: whether id 0 stands for padding: the output then has the mask x != 0.
        reverse_dtype: in which scores are computed, by default the compute dtype.
        logit_soft_cap: c, if scores are c tanh(score / c).

    Call arguments:
        inputs: ids, or vectors with reverse=True.
        reverse: whether scores of ids are computed.

    Shapes:
        x: any, of integers -> y: (*shape of x, output_dim); reversed, (..., output_dim) ->
        (..., input_dim)

    Raises:
        InvalidArgumentError: a size that is not a positive whole number, or a cap of 0 or less.

    Examples:
        >>> layer = layers.ReversibleEmbedding(10, 4)
        >>> hidden = layer(np.array([[1, 2]]))
        >>> hidden.shape, layer(hidden, reverse=True).shape
        ((1, 2, 4), (1, 2, 10))
    """

    embeddings_initializer: Any

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: bool = True,
        embeddings_initializer: InitializerLike = "uniform",
        embeddings_regularizer: RegularizerLike | None = None,
        embeddings_constraint: ConstraintLike | None = None,
        mask_zero: bool = False,
        reverse_dtype: DTypeLike | None = None,
        logit_soft_cap: float | None = None,
        **kwargs: Any,
    ) -> None:
        self.tie_weights = tie_weights
        super().__init__(
            input_dim,
            output_dim,
            embeddings_initializer,
            embeddings_regularizer,
            embeddings_constraint,
            mask_zero,
            **kwargs,
        )
        if logit_soft_cap is not None and logit_soft_cap <= 0:
            raise InvalidArgumentError(
                f"{who(self)}: logit_soft_cap must be above 0, got {logit_soft_cap!r}"
            )
        self.reverse_dtype = reverse_dtype
        self.logit_soft_cap = logit_soft_cap

    def build(self, input_shape: Shape | None = None) -> None:
        if self.built:
            return
        super().build(input_shape)
        if not self.tie_weights and not self._laminar_kept:
            self.reverse_embeddings = make_weight(
                self,
                "reverse_embeddings",
                (self.output_dim, self.input_dim),
                initializer=self.embeddings_initializer,
            )

    def call(self, inputs: Tensor, reverse: bool = False) -> Any:
        if not reverse:
            y = super().call(inputs)
            if self.mask_zero:
                set_mask(y, ops.not_equal(inputs, 0))
            return y
        dtype = self.reverse_dtype or self.compute_dtype
        table = ops.transpose(self.embeddings) if self.tie_weights else self.reverse_embeddings
        return self._laminar_capped(ops.matmul(ops.cast(inputs, dtype), ops.cast(table, dtype)))

    def quantized_call(self, inputs: Tensor, reverse: bool = False) -> Any:
        """The call of a layer that is quantized."""
        if reverse:
            index = 0 if self.tie_weights else 1
            return self._laminar_capped(self._laminar_multiply(inputs, index=index))
        y = super().quantized_call(inputs)
        if self.mask_zero:
            set_mask(y, ops.not_equal(inputs, 0))
        return y

    def _laminar_capped(self, y: Any) -> Any:
        cap = self.logit_soft_cap
        return y if cap is None else ops.multiply(ops.tanh(ops.divide(y, cap)), cap)

    def _laminar_large_weights(self, shape: tuple[int, ...]) -> list[LargeWeight]:
        weights = super()._laminar_large_weights(shape)
        if not self.tie_weights:
            name, turned = "reverse_embeddings", (shape[1], shape[0])
            product = MatrixProduct()
            weights.append(LargeWeight(name, name, turned, turned, product, pack_axis=0))
        return weights

    def _laminar_saved_names(self, templates: Sequence[str]) -> list[str]:
        names = super()._laminar_saved_names(templates)
        if not self.tie_weights:
            own = [name for name in templates if "{}" in name]
            names += [name.format("reverse_embeddings") for name in own]
        return names

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        """None: the call sets the mask, since it depends on the direction."""
        return None

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self, "tie_weights", "reverse_dtype", "logit_soft_cap"
        )
