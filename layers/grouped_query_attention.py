"""GroupedQueryAttention: heads of queries that share heads of keys and values."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .layer_options import CommonOptions
from .options import config_of, known_dim, whole
from .projected_attention import ProjectedAttention


class GroupedQueryAttention(ProjectedAttention):
    """Multi-head attention in which several heads of queries share one of keys and values.

    Args:
        head_dim: features of a head.
        num_query_heads: heads of queries, a multiple of the next.
        num_key_value_heads: heads of keys and values.
        dropout: the part of the weights that is set to 0 in training.
        use_bias: whether the projections have a bias.
        sliding_window: a query meets the keys less than so many places away; None for all.
        flash_attention: must not be true: there is no separate kernel to ask for.
        kernel_initializer: of the kernels of the projections.
        bias_initializer: of their biases.
        kernel_regularizer: penalty on the kernels.
        bias_regularizer: penalty on the biases.
        activity_regularizer: penalty on the output, and on that of each projection.
        kernel_constraint: projection of the kernels after each update.
        bias_constraint: likewise of the biases.
        use_gate: whether the output of the heads is multiplied with sigmoid(a further projection
            of the query).
        seed: of the dropout.

    Call arguments:
        as of `MultiHeadAttention`; a `query_mask` that is given also keeps pairs apart.

    Shapes:
        y: those of the query, weights: (batch, num_query_heads, queries, keys)

    Raises:
        InvalidArgumentError: a size that is not a positive whole number, or heads that cannot be
            shared evenly.
        ShapeError: key and value differ in number.

    Source: Ainslie et al., "GQA: training generalized multi-query transformer models from
        multi-head checkpoints", 2023, arXiv:2305.13245, section 2.2.

    Examples:
        >>> layer = layers.GroupQueryAttention(head_dim=4, num_query_heads=4, num_key_value_heads=2)
        >>> x = np.zeros((2, 5, 8))
        >>> layer(x, x).shape
        (2, 5, 8)
    """

    _scores_equation = "bquh,bkuh->buqk"
    _output_equation = "buqk,bkuh->bquh"

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        use_gate: bool = False,
        seed: int | None = None,
        **kwargs: Unpack[CommonOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._begin(
            dropout=dropout,
            use_bias=use_bias,
            use_gate=use_gate,
            sliding_window=sliding_window,
            flash_attention=flash_attention,
            activity_regularizer=activity_regularizer,
            seed=seed,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
        )
        self.head_dim = whole(self, "head_dim", head_dim)
        self.num_query_heads = whole(self, "num_query_heads", num_query_heads)
        self.num_key_value_heads = whole(self, "num_key_value_heads", num_key_value_heads)
        if self.num_query_heads % self.num_key_value_heads:
            raise InvalidArgumentError(
                f"{who(self)}: num_query_heads must be divisible by num_key_value_heads, "
                f"got {num_query_heads} and {num_key_value_heads}"
            )
        self.num_repeats = self.num_query_heads // self.num_key_value_heads
        self._scale = self.head_dim**-0.5

    def build(  # type: ignore[override]  # a shape for each input
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        self._check_lengths(value_shape, key_shape)
        self.feature_dim = known_dim(self, query_shape, -1, "the number of features")
        queries, keys, size = self.num_query_heads, self.num_key_value_heads, self.head_dim
        self._query_dense = self._to_heads("query", query_shape, queries)
        self._key_dense = self._to_heads("key", key_shape, keys)
        if self.use_gate:
            self._gate_dense = self._to_heads("gate", query_shape, queries, "sigmoid")
        self._value_dense = self._to_heads("value", value_shape, keys)
        self._make_weighting(-1)
        self._output_dense = self._projection(
            "attention_output", "bquh,uhm->bqm", (None, self.feature_dim), "m"
        )
        self._output_dense.build((None, None, queries, size))

    def _to_heads(self, name: str, shape: Any, heads: int, activation: str | None = None) -> Any:
        sizes = (None, heads, self.head_dim)
        dense = self._projection(name, "btm,muh->btuh", sizes, "uh", activation)
        dense.build(shape)
        return dense

    def _for_heads(self, x: Tensor) -> Any:
        return x if self.num_repeats == 1 else ops.repeat(x, self.num_repeats, axis=2)

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> tuple[int | None, ...]:
        """The shape of the queries."""
        self._check_lengths(value_shape, value_shape if key_shape is None else key_shape)
        return tuple(query_shape)

    def get_config(self) -> dict[str, Any]:
        names = ("head_dim", "num_query_heads", "num_key_value_heads", "activity_regularizer")
        return super().get_config() | config_of(self, *names)


GroupQueryAttention = GroupedQueryAttention  # the name that Keras lists it under
