"""Attention: values weighted by how well their keys fit a query."""

from __future__ import annotations

import math

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, bool_
from laminar.engine.ops.array import axes, rearrange
from laminar.engine.ops.array.creation import arange
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import greater_equal, logical_and, where
from laminar.engine.ops.math.elementary import tanh
from laminar.engine.ops.nn.normalize import statistics_dtype
from laminar.engine.ops.nn.softmax import softmax

from ..typing import TensorLike
from .arguments import floating, tensor, tensors
from .recording import public

__all__ = ["dot_product_attention"]

# In shapes: b batch, t queries, s keys, n heads, h features.
_TO_HEADS = (0, 2, 1, 3)  # b t n h -> b n t h


@public
def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """softmax(query . key * scale + bias) applied to the values, for each head.

    Half types: products and softmax are computed in float32.

    Args:
        query: (batch, queries, heads, features).
        key: (batch, keys, heads, features); with fewer heads, each serves several of the query's
            in a row.
        value: (batch, keys, heads, outputs), with the heads of the key.
        bias: added to the logits; broadcasts to (batch, heads, queries, keys). With three axes it
            has no heads.
        mask: bools, false forbids a pair; the shape as of `bias`.
        scale: of the products, by default 1 / sqrt(features).
        is_causal: whether a query sees no keys behind its own place.
        flash_attention: must not be true: there is no separate kernel to ask for.
        attn_logits_soft_cap: c, where given: the logits become c * tanh(logits / c).

    Returns:
        (batch, queries, heads, outputs).

    Raises:
        ShapeError: an argument has not four axes.
        InvalidArgumentError: flash_attention is true.

    Source: Vaswani et al., "Attention Is All You Need", 2017, arXiv:1706.03762, equation 1.

    Examples:
        >>> q = np.ones((1, 1, 1, 2), "float32")  # (batch, time, heads, size)
        >>> v = np.array([[[[1.0, 0.0]], [[3.0, 4.0]]]], "float32")
        >>> ops.dot_product_attention(q, np.zeros((1, 2, 1, 2), "float32"), v)[0, 0]
        Tensor([[2., 2.]], shape=(1, 2), dtype=float32)
    """
    if flash_attention:
        raise InvalidArgumentError(
            "dot_product_attention: there is no separate kernel for flash_attention",
            remedy="leave it out: the compiler fuses attention where it can",
        )
    q, k, v = (floating(x) for x in tensors((query, key, value)))
    for x in (q, k, v):
        if x.shape.rank != 4:
            raise ShapeError(
                f"dot_product_attention: expected (batch, time, heads, features), got {x.spec}"
            )
    if scale is None:
        scale = _default_scale(q)
    k, v = _for_heads(k, q), _for_heads(v, q)
    wide = statistics_dtype(q.dtype)
    q_bnth, k_bnsh, v_bnsh = (axes.transpose(cast(x, wide), _TO_HEADS) for x in (q, k, v))
    logits = matmul(q_bnth, k_bnsh, transpose_b=True)
    logits = arithmetic.multiply(logits, tensor(scale, wide))
    if bias is not None:
        logits = arithmetic.add(logits, _with_heads(tensor(bias, wide)))
    if attn_logits_soft_cap is not None:
        cap = tensor(float(attn_logits_soft_cap), wide)
        logits = arithmetic.multiply(cap, tanh(arithmetic.divide(logits, cap)))
    allowed = _allowed(mask, q, k, is_causal)
    if allowed is not None:
        logits = where(allowed, logits, tensor(_FORBIDDEN, wide))
    y_bnth = matmul(cast(cast(softmax(logits), q.dtype), wide), v_bnsh)
    return cast(axes.transpose(y_bnth, _TO_HEADS), q.dtype)


# So low that exp() of it is 0, and so far from the least float32 that a sum does not overflow.
_FORBIDDEN = -0.7 * (2 - 2.0**-23) * 2.0**127


def _default_scale(q: Tensor) -> float:
    features = q.shape[-1]
    if features is None:
        raise ShapeError(
            f"dot_product_attention: the features of the query {q.spec} must be known",
            remedy="give the last axis a size, or pass scale=",
        )
    return 1.0 / math.sqrt(max(features, 1))  # without features all logits are 0


def _for_heads(x: Tensor, q: Tensor) -> Tensor:
    """`x` with its heads repeated to as many as the query has."""
    heads, wanted = x.shape[2], q.shape[2]
    if heads is None or wanted is None or heads == wanted:
        return x
    if wanted % heads:
        raise ShapeError(
            f"dot_product_attention: {heads} heads of keys and values cannot be shared evenly by "
            f"{wanted} heads of queries",
            remedy="make the number of query heads a multiple",
        )
    return rearrange.repeat(x, wanted // heads, 2)


def _with_heads(x: Tensor) -> Tensor:
    return axes.expand_dims(x, 1) if x.shape.rank == 3 else x


def _allowed(mask: TensorLike | None, q: Tensor, k: Tensor, is_causal: bool) -> Tensor | None:
    """Which pairs of query and key count, None for all."""
    allowed = None if mask is None else _with_heads(cast(tensor(mask), bool_))
    if not is_causal:
        return allowed
    rows, columns = (
        arange(dim_of(x, axis=1) if x.shape[1] is None else x.shape[1], dtype="int32")
        for x in (q, k)
    )
    causal = greater_equal(axes.expand_dims(rows, 1), columns)
    return causal if allowed is None else logical_and(allowed, causal)
