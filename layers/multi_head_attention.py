"""MultiHeadAttention."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, Unpack

from laminar import regularizers
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import AxisLike, Shape

from .layer_options import CommonOptions
from .options import config_of, whole
from .projected_attention import ProjectedAttention


class MultiHeadAttention(ProjectedAttention):
    """y = output(the heads side by side), head = softmax(q @ k^T / sqrt(key_dim)) @ v.

    q, k and v are projections of query, key and value, others for each head.

    Args:
        num_heads: how many heads.
        key_dim: features of a head's queries and keys.
        value_dim: features of a head's values, by default `key_dim`.
        dropout: the part of the weights that is set to 0 in training.
        use_bias: whether the projections have a bias.
        output_shape: the features of the output, by default those of the query.
        attention_axes: the axes (the batch is 0) of the inputs along which queries and keys meet;
            by default all but batch and features.
        sliding_window: a query meets the keys less than so many places away; None for all.
        flash_attention: must not be true: there is no separate kernel to ask for.
        kernel_initializer: of the kernels of the projections.
        bias_initializer: of their biases.
        kernel_regularizer: penalty on the kernels.
        bias_regularizer: penalty on the biases.
        activity_regularizer: penalty on the output of each projection.
        kernel_constraint: projection of the kernels after each update.
        bias_constraint: likewise of the biases.
        use_gate: whether the output of the heads is multiplied with sigmoid(a further projection
            of the query).
        seed: of the dropout.

    Call arguments:
        query: (batch, queries, features).
        value: (batch, keys, features).
        key: (batch, keys, features), by default the value.
        query_mask: which queries count, passed on as the mask of the output. As in Keras, only
            the mask that a query carries itself also keeps pairs of query and key apart.
        value_mask: which values count, by default the mask that `value` carries.
        key_mask: which keys count, by default the mask that `key` carries.
        attention_mask: bools, (batch, queries, keys), false forbids a pair; may have an axis for
            the heads after the batch, or no batch.
        return_attention_scores: whether (y, weights) is returned.
        training: whether weights are dropped.
        use_causal_mask: whether a query sees no keys behind its own place.

    Shapes:
        y: (batch, queries, *output_shape), weights: (batch, heads, queries, keys)

    Raises:
        InvalidArgumentError: a size that is not a positive whole number.
        ShapeError: key and value differ in number.

    Source: Vaswani et al., "Attention is all you need", 2017, arXiv:1706.03762, section 3.2.2; the
        gate: Qiu et al., "Gated attention for large language models", 2025, arXiv:2505.06708.

    Examples:
        >>> layer = layers.MultiHeadAttention(num_heads=2, key_dim=4)
        >>> x = np.zeros((2, 5, 8))
        >>> y, scores = layer(x, x, return_attention_scores=True)
        >>> y.shape, scores.shape
        ((2, 5, 8), (2, 2, 5, 5))
    """

    attention_axes: Sequence[int] | None

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | Sequence[int] | None = None,
        attention_axes: int | Sequence[int] | None = None,
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
        super().__init__(**kwargs)
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
        self.num_heads = whole(self, "num_heads", num_heads)
        self.key_dim = whole(self, "key_dim", key_dim)
        self.value_dim = self.key_dim if value_dim is None else whole(self, "value_dim", value_dim)
        self._output_shape = self._numbers("output_shape", output_shape)
        self.attention_axes = self._numbers("attention_axes", attention_axes)
        self._scale = self.key_dim**-0.5

    def _numbers(self, name: str, value: AxisLike | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        numbers = (value,) if hasattr(value, "__index__") else value
        if not isinstance(numbers, list | tuple) or not all(
            hasattr(n, "__index__") for n in numbers
        ):
            raise InvalidArgumentError(
                f"{who(self)}: {name} must be a whole number or a sequence of them, got {value!r}"
            )
        return tuple(int(n) for n in numbers)

    def build(  # type: ignore[override]  # a shape for each input
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        self._check_lengths(value_shape, key_shape)
        heads = self.num_heads
        self._query_dense = self._to_heads("query", query_shape, self.key_dim)
        self._key_dense = self._to_heads("key", key_shape, self.key_dim)
        if self.use_gate:
            self._gate_dense = self._to_heads("gate", query_shape, self.value_dim, "sigmoid")
        self._value_dense = self._to_heads("value", value_shape, self.value_dim)
        self._make_attention(len(query_shape) + 1)
        sizes = self._output_shape or (query_shape[-1],)
        free = len(query_shape) - 1
        equation, bias_axes = _projection_equation(free, 2, len(sizes))
        self._output_dense = self._projection(
            "attention_output", equation, [None] * (free - 1) + list(sizes), bias_axes
        )
        self._output_dense.build((*query_shape[:-1], heads, self.value_dim))
        # Files know the parts by these names.
        self.query_dense, self.key_dense = self._query_dense, self._key_dense
        self.value_dense, self.output_dense = self._value_dense, self._output_dense

    def _to_heads(self, name: str, shape: Any, features: int, activation: str | None = None) -> Any:
        free = len(shape) - 1
        equation, bias_axes = _projection_equation(free, 1, 2)
        sizes = [None] * (free - 1) + [self.num_heads, features]
        dense = self._projection(name, equation, sizes, bias_axes, activation)
        dense.build(shape)
        return dense

    def _make_attention(self, rank: int) -> None:
        """Set up the sums for projections with `rank` axes."""
        inner = range(1, rank - 2)
        axes = inner if self.attention_axes is None else self.attention_axes
        self.attention_axes = tuple(a if a >= 0 else a + rank - 1 for a in axes)
        if not set(self.attention_axes) <= set(inner):
            raise InvalidArgumentError(
                f"{who(self)}: attention_axes must lie between batch and features, "
                f"got {tuple(axes)} for inputs of {rank - 1} axes"
            )
        self._scores_equation, self._output_equation = _attention_equations(
            rank, self.attention_axes
        )
        self._make_weighting([-1 - i for i in reversed(range(len(self.attention_axes)))])

    def _mask_for_scores(self, own: Tensor | None, given: Tensor | None) -> Any:
        return own

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> tuple[int | None, ...]:
        """The shape of the queries, with the features of the output."""
        self._check_lengths(value_shape, value_shape if key_shape is None else key_shape)
        return (*query_shape[:-1], *(self._output_shape or (query_shape[-1],)))

    def get_config(self) -> dict[str, Any]:
        names = ("num_heads", "key_dim", "value_dim", "attention_axes")
        return (
            super().get_config()
            | config_of(self, *names)
            | {
                "output_shape": self._output_shape,
                "activity_regularizer": regularizers.serialize(self._activity_regularizer),
            }
        )


def _projection_equation(free: int, summed: int, made: int) -> tuple[str, str]:
    """For EinsumDense: sum over the last `summed` axes of the input, and make others of them.

    Returns:
        the equation, and the names of the axes that are made.
    """
    letters = iter(string.ascii_lowercase)
    kept, inner, outer = ("".join(next(letters) for _ in range(n)) for n in (free, summed, made))
    return f"{kept}{inner},{inner}{outer}->{kept}{outer}", outer


def _attention_equations(rank: int, axes: Sequence[int]) -> tuple[str, str]:
    """The sums over features, and over keys.

    The scores have the axes that queries and keys share (batch, heads, those that attention leaves
    alone), then the `axes` of queries, then those of keys.
    """
    letters = iter(string.ascii_lowercase)
    query = [next(letters) for _ in range(rank)]
    key = [next(letters) if i in axes else name for i, name in enumerate(query)]
    shared = [name for i, name in enumerate(query[:-1]) if i not in axes]
    scores = "".join([*shared, *(query[i] for i in axes), *(key[i] for i in axes)])
    q, k = "".join(query), "".join(key)
    return f"{q},{k}->{scores}", f"{scores},{k}->{q}"
