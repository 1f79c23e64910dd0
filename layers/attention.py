"""Attention and AdditiveAttention: values weighted by how well their keys fit a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops, random
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.typing import Shape

from .attention_masks import causal_mask
from .layer import Layer
from .layer_options import LayerOptions
from .masking import set_mask
from .options import config_of, fraction, known_dim, one_of


class Attention(Layer):
    """y = softmax(scores(query, key)) @ value.

    The scores are query @ key^T ("dot"), or the sum of tanh(query + key) over the features
    ("concat").

    Args:
        use_scale: whether the scores ("concat": the argument of tanh) have a learned factor.
        score_mode: "dot" or "concat".
        dropout: the part of the weights that is set to 0 in training.
        seed: of the dropout.

    Call arguments:
        inputs: [query, value] or [query, value, key]; the value is the key by default.
        mask: [query mask, value mask]: the output is 0 where a query does not count; a value that
            does not count has no part in the output.
        return_attention_scores: whether (y, weights) is returned.
        training: whether weights are dropped.
        use_causal_mask: whether a query sees no values behind its own place.

    Shapes:
        [(batch, queries, features), (batch, values, outputs), (batch, values, features)]
        -> y: (batch, queries, outputs), weights: (batch, queries, values)

    Raises:
        InvalidArgumentError: another score mode, or inputs or masks that are not such a list.

    Source: Luong, Pham and Manning, "Effective approaches to attention-based neural machine
        translation", 2015, arXiv:1508.04025, equations 7 and 8.

    Examples:
        >>> query = np.array([[[9.0, 0.0]]])
        >>> value = np.array([[[9.0, 0.0], [0.0, 9.0]]])
        >>> layers.Attention()([query, value])  # nearly all from the first value
        Tensor([[[9., 0.]]], shape=(1, 1, 2), dtype=float32)
    """

    def __init__(
        self,
        use_scale: bool = False,
        score_mode: str = "dot",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale
        self.score_mode = one_of(self, "score_mode", score_mode, ("dot", "concat"))
        self.dropout = fraction(self, "dropout", dropout)
        self.seed = seed
        self.supports_masking = True
        if self.dropout > 0:
            self.seed_generator = random.SeedGenerator(seed)

    def build(self, input_shape: Sequence[Shape]) -> None:
        self._check_list("inputs", input_shape)
        self.scale = self.add_weight((), "ones", name="scale") if self.use_scale else None
        self.concat_score_weight = (
            self.add_weight((), "ones", name="concat_score_weight")
            if self.score_mode == "concat"
            else None
        )

    def _check_list(self, name: str, value: Any) -> None:
        if not isinstance(value, list):
            raise InvalidArgumentError(
                f"{who(self)} must be called on a list of {name}, got {type(value).__name__}",
                remedy=f"pass {name} as [query, value] or [query, value, key]",
            )
        if not 2 <= len(value) <= 3:
            raise InvalidArgumentError(
                f"{who(self)} takes a list of {name} of length 2 or 3, got {len(value)}",
                remedy=f"pass {name} as [query, value] or [query, value, key]",
            )

    def _check_mask(self, mask: Any) -> None:
        if mask is None:
            return
        if not isinstance(mask, list):
            raise InvalidArgumentError(
                f"{who(self)}: the layer mask must be a list, got {type(mask).__name__}",
                remedy="pass [query_mask, value_mask], None for one that is not there",
            )
        self._check_list("mask", mask)

    def call(
        self,
        inputs: Sequence[Tensor],
        mask: Sequence[Tensor | None] | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        self._check_list("inputs", inputs)
        self._check_mask(mask)
        query, value = inputs[:2]
        key = inputs[2] if len(inputs) > 2 else value
        query_mask, value_mask = mask[:2] if mask else (None, None)
        weights = self._weights(query, key, value_mask, use_causal_mask)
        if training and self.dropout > 0:
            weights = random.dropout(weights, self.dropout, seed=self.seed_generator)
        y = ops.matmul(weights, value)
        if query_mask is not None:
            query_mask = ops.cast(query_mask, "bool")
            y = ops.where(ops.expand_dims(query_mask, -1), y, 0)
            set_mask(y, query_mask)
        return (y, weights) if return_attention_scores else y

    def _weights(self, query: Tensor, key: Tensor, value_mask: Any, causal: bool) -> Any:
        """How much each value (axis -1) counts for each query (axis -2)."""
        scores = self._scores(query, key)
        allowed = None
        if value_mask is not None:
            allowed = ops.cast(value_mask, "bool")
            if len(allowed.shape) == 2 or causal:
                allowed = ops.expand_dims(allowed, -2)
        if causal:
            before = causal_mask(query, key, axis=-2)
            allowed = before if allowed is None else ops.logical_and(allowed, before)
        if allowed is not None:
            # Taken off, not put in: where nothing is allowed the weights follow what is left of
            # the scores. 65504 is the largest float16.
            far = 65504.0 if scores.dtype == "float16" else 1e9
            scores = ops.where(allowed, scores, scores - far)
        return ops.softmax(scores, axis=-1)

    def _scores(self, query: Tensor, key: Tensor) -> Any:
        if self.concat_score_weight is None:
            scores = ops.matmul(query, ops.swapaxes(key, -2, -1))
            return scores if self.scale is None else scores * self.scale
        total = _each_pair(query, key)
        if self.scale is not None:
            total = total * self.scale
        return self.concat_score_weight * ops.sum(ops.tanh(total), axis=-1)

    def compute_mask(
        self, inputs: Sequence[Tensor], mask: Sequence[Tensor | None] | None = None
    ) -> Any:
        """The mask of the query."""
        self._check_list("inputs", inputs)
        self._check_mask(mask)
        return mask[0] if mask else None

    def compute_output_shape(self, input_shape: Sequence[Shape]) -> Any:
        """The shape of the queries, with the features of the values."""
        query, value = input_shape[:2]
        return (*query[:-1], value[-1])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "use_scale", "score_mode", "dropout", "seed")


class AdditiveAttention(Attention):
    """y = softmax(scores) @ value, scores the sum of scale * tanh(query + key) over the features.

    Args:
        use_scale: whether there is a learned scale, a factor for each feature.
        dropout: the part of the weights that is set to 0 in training.

    Call arguments: those of `Attention`.

    Shapes:
        [(batch, queries, features), (batch, values, outputs), (batch, values, features)]
        -> y: (batch, queries, outputs), weights: (batch, queries, values)

    Source: Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
        translate", 2015, arXiv:1409.0473, appendix A.1.2, the products with weights left to the
        layers before.

    Examples:
        >>> query, value = np.zeros((1, 2, 4)), np.zeros((1, 3, 4))
        >>> layers.AdditiveAttention()([query, value]).shape
        (1, 2, 4)
    """

    def __init__(
        self, use_scale: bool = True, dropout: float = 0.0, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(use_scale=use_scale, dropout=dropout, **kwargs)

    def build(self, input_shape: Sequence[Shape]) -> None:
        self._check_list("inputs", input_shape)
        self.scale = None
        if self.use_scale:
            features = known_dim(self, input_shape[0], -1, "the number of features")
            self.scale = self.add_weight((features,), "glorot_uniform", name="scale")

    def _scores(self, query: Tensor, key: Tensor) -> Any:
        y = ops.tanh(_each_pair(query, key))
        return ops.sum(y if self.scale is None else self.scale * y, axis=-1)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["score_mode"]
        return config


def _each_pair(query: Tensor, key: Tensor) -> Any:
    """query + key for each pair of them: (..., queries, keys, features)."""
    return ops.expand_dims(query, -2) + ops.expand_dims(key, -3)
