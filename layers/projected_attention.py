"""What attention with several heads has in common: projections, masks, weighted sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops, regularizers
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .activation import Softmax
from .attention_masks import all_of, causal_mask, of_keys, of_queries, window_mask
from .dropout import Dropout
from .einsum_dense import EinsumDense
from .layer import Layer
from .masking import get_mask, set_mask
from .options import config_of, fraction, keep, whole

# The options that all kinds have, as in their configs.
OPTIONS = (
    "dropout",
    "use_bias",
    "use_gate",
    "sliding_window",
    "kernel_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "bias_regularizer",
    "kernel_constraint",
    "bias_constraint",
    "seed",
)


class ProjectedAttention(Layer):
    """Attention between projections of query, key and value. Abstract: `build` makes these parts.

    Attributes:
        _query_dense, _key_dense, _value_dense: the projections to (batch, ..., heads, features).
        _gate_dense: one from the query, whose result the output of the heads is multiplied with;
            only with `use_gate`.
        _output_dense: the projection of all heads to the output.
        _scores_equation, _output_equation: as `ops.einsum` takes them, of (query, key) and of
            (scores, value).
        _scale: of the products of queries and keys.
    """

    _query_dense: EinsumDense
    _key_dense: EinsumDense
    _value_dense: EinsumDense
    _gate_dense: EinsumDense
    _output_dense: EinsumDense
    _scores_equation: str
    _output_equation: str
    _scale: float
    attention_axes: Sequence[int] | None = (1,)
    kernel_initializer: Any
    bias_initializer: Any
    kernel_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    bias_constraint: Any

    def _begin(
        self,
        *,
        dropout: float,
        use_bias: bool,
        use_gate: bool,
        sliding_window: int | None,
        flash_attention: bool | None,
        activity_regularizer: RegularizerLike | None,
        seed: int | None,
        **options: Any,
    ) -> None:
        """Check and keep the arguments that all kinds have."""
        self.dropout = fraction(self, "dropout", dropout)
        self.use_bias = use_bias
        self.use_gate = use_gate
        self.sliding_window = (
            None if sliding_window is None else whole(self, "sliding_window", sliding_window)
        )
        if flash_attention:
            raise InvalidArgumentError(
                f"{who(self)}: there is no separate kernel for flash_attention",
                remedy="leave it out: the compiler fuses attention where it can",
            )
        self._activity_regularizer = regularizers.get(activity_regularizer)
        self.seed = seed
        keep(self, **options)
        self.supports_masking = True

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, *OPTIONS)

    def _projection(
        self,
        name: str,
        equation: str,
        output_shape: Sequence[int | None],
        bias_axes: str,
        activation: str | None = None,
    ) -> EinsumDense:
        return EinsumDense(
            equation,
            output_shape,
            activation=activation,
            bias_axes=bias_axes if self.use_bias else None,
            kernel_initializer=_another(self.kernel_initializer),
            bias_initializer=_another(self.bias_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            activity_regularizer=self._activity_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            dtype=self.dtype_policy,
            name=name,
        )

    def _make_weighting(self, axes: int | Sequence[int]) -> None:
        """The parts between scores and weights: softmax along `axes`, dropout."""
        self._softmax = Softmax(axis=axes, dtype=self.dtype_policy)
        self._dropout_layer = Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: Tensor | None = None,
        value_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        own_mask = get_mask(query)
        allowed = all_of(
            attention_mask,
            of_queries(self._mask_for_scores(own_mask, query_mask)),
            of_keys(get_mask(value) if value_mask is None else value_mask),
            of_keys(get_mask(key) if key_mask is None and key is not None else key_mask),
            *self._masks_of_places(query, value, use_causal_mask),
        )
        q = self._query_dense(query)
        k = self._for_heads(self._key_dense(value if key is None else key))
        v = self._for_heads(self._value_dense(value))
        y, scores = self._compute_attention(q, k, v, allowed, training, return_attention_scores)
        if self.use_gate:
            y = ops.multiply(y, self._gate_dense(query))
        y = self._output_dense(y)
        mask = query_mask if own_mask is None else own_mask
        if mask is not None:
            set_mask(y, ops.cast(mask, "bool"))
        return (y, scores) if return_attention_scores else y

    def _mask_for_scores(self, own: Tensor | None, given: Tensor | None) -> Any:
        """The mask of queries that keeps pairs apart: of what comes with the query and is given."""
        return own if given is None else given

    def _for_heads(self, x: Tensor) -> Any:
        """Keys or values with as many heads as the query has."""
        return x

    def _masks_of_places(self, query: Tensor, value: Tensor, causal: bool) -> list[Any]:
        """The masks that follow from the places of queries and keys alone."""
        masks: list[Any] = []
        if not causal and self.sliding_window is None:
            return masks
        axes = self.attention_axes or ()
        if len(axes) != 1:
            raise InvalidArgumentError(
                f"{who(self)}: use_causal_mask and sliding_window go by the order along one axis, "
                f"attention_axes are {tuple(axes)}",
                remedy="pass an attention_mask",
            )
        if causal:
            masks.append(causal_mask(query, value, axis=axes[0]))
        if self.sliding_window is not None:
            masks.append(window_mask(query, value, self.sliding_window, axis=axes[0]))
        return masks

    def _compute_attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> tuple[Any, Any]:
        """The output of each head, and the weights if they are wanted or had to be made.

        Override it for another kind of attention. `use_causal_mask` says that keys that come later
        than a query do not count, beside what the mask says. Where no key is allowed, all count
        the same; but nothing does when the weights are made, for the caller or for dropout.
        """
        rank = len(query.shape)
        if use_causal_mask:
            attention_mask = all_of(attention_mask, causal_mask(query, value))
        if self.dropout == 0 and not return_attention_scores and rank == 4:
            mask = self._for_scores(attention_mask, rank)
            y = ops.dot_product_attention(query, key, value, mask=mask, scale=self._scale)
            return y, None
        query = ops.multiply(query, ops.cast(self._scale, query.dtype))
        scores = ops.einsum(self._scores_equation, query, key)
        weights = self._softmax(scores, mask=self._for_scores(attention_mask, len(scores.shape)))
        kept = self._dropout_layer(weights, training=training) if self.dropout > 0 else weights
        return ops.einsum(self._output_equation, kept, value), weights

    def _for_scores(self, mask: Tensor | None, rank: int) -> Any:
        """A mask with axes of size 1 put in before those of queries and keys."""
        if mask is None:
            return None
        last = 2 * len(self.attention_axes or ())
        if len(mask.shape) < last:
            raise ShapeError(
                f"{who(self)}: the attention mask must have at least {last} axes, of queries and "
                f"keys, got shape {tuple(mask.shape)}"
            )
        for _ in range(rank - len(mask.shape)):
            mask = ops.expand_dims(mask, -last - 1)
        return mask

    def _check_lengths(self, value_shape: Shape, key_shape: Shape) -> None:
        """Refuse keys and values of different numbers.

        Raises:
            ShapeError: they differ.
        """
        if tuple(value_shape[1:-1]) != tuple(key_shape[1:-1]):
            raise ShapeError(
                f"{who(self)}: all dimensions of value and key but the last must be equal, "
                f"got {tuple(value_shape)} and {tuple(key_shape)}"
            )


def _another(initializer: InitializerLike) -> Any:
    """An initializer of the same config: without a seed it gives other numbers."""
    return initializer.clone() if hasattr(initializer, "clone") else initializer
