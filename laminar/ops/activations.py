"""Activation functions. Integers become the default float first."""

from __future__ import annotations

from laminar.engine.graph import Tensor, canonical_axis
from laminar.engine.ops.array import join
from laminar.engine.ops.array.creation import arange
from laminar.engine.ops.array.shape import dim_of, reshape
from laminar.engine.ops.array.sort import sort
from laminar.engine.ops.math import arithmetic, cumulative, reduce
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import greater
from laminar.engine.ops.math.elementary import sigmoid as engine_sigmoid
from laminar.engine.ops.nn import activations as engine
from laminar.engine.ops.nn import softmax as engine_softmax

from ..typing import AxisLike, TensorLike
from .arguments import floating, known_rank, numeric, tensor
from .recording import public

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh_shrink",
    "threshold",
]


@public
def relu(x: TensorLike) -> Tensor:
    """max(x, 0).

    Examples:
        >>> ops.relu([-1.0, 2.0])
        Tensor([0., 2.], shape=(2,), dtype=float32)
    """
    return engine.relu(numeric(x))


@public
def relu6(x: TensorLike) -> Tensor:
    """min(max(x, 0), 6).

    Examples:
        >>> ops.relu6([-1.0, 2.0, 9.0])
        Tensor([0., 2., 6.], shape=(3,), dtype=float32)
    """
    return engine.relu6(floating(x))


@public
def leaky_relu(x: TensorLike, negative_slope: float = 0.2) -> Tensor:
    """x where x > 0, negative_slope * x elsewhere.

    Args:
        x: of any shape; integers and bools become the default float.
        negative_slope: what negative elements are multiplied by.

    Returns:
        Shape and float type of `x`.

    Raises:
        DTypeError: `x` is complex, or no number.

    Examples:
        >>> ops.leaky_relu([-1.0, 2.0])
        Tensor([-0.2,  2. ], shape=(2,), dtype=float32)
    """
    return engine.leaky_relu(floating(x), negative_slope=float(negative_slope))


@public
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere.

    Args:
        x: of any shape; integers and bools become the default float.
        alpha: the result is near -alpha where x is far below 0.

    Returns:
        Shape and float type of `x`.

    Source: Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by
        exponential linear units", 2016, arXiv:1511.07289.

    Examples:
        >>> ops.elu([-1.0, 2.0])
        Tensor([-0.6321,  2.    ], shape=(2,), dtype=float32)
    """
    return engine.elu(floating(x), alpha=float(alpha))


@public
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)).

    Args:
        x: of any shape; integers and bools become the default float.
        alpha: the result is near -alpha where x is far below 0; 0 gives NaN at x = 0.

    Returns:
        Shape and float type of `x`.

    Source: Barron, "Continuously differentiable exponential linear units", 2017, arXiv:1704.07483.

    Examples:
        >>> ops.celu([-1.0, 2.0])
        Tensor([-0.6321,  2.    ], shape=(2,), dtype=float32)
    """
    return engine.celu(floating(x), alpha=float(alpha))


@public
def selu(x: TensorLike) -> Tensor:
    """scale * x where x > 0, scale * alpha * (exp(x) - 1) elsewhere.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017, arXiv:1706.02515.

    Examples:
        >>> ops.selu([-1.0, 1.0])
        Tensor([-1.1113,  1.0507], shape=(2,), dtype=float32)
    """
    return engine.selu(floating(x))


@public
def gelu(x: TensorLike, approximate: bool = True) -> Tensor:
    """x times the probability that a standard normal number is below x.

    Args:
        x: any tensor.
        approximate: whether to use 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))).

    Returns:
        Shape and float type of `x`; integers give the default float.

    Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016, arXiv:1606.08415.

    Examples:
        >>> ops.gelu([-1.0, 1.0])
        Tensor([-0.1588,  0.8412], shape=(2,), dtype=float32)
    """
    return engine.gelu(floating(x), approximate=bool(approximate))


@public
def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + exp(-x)).

    Examples:
        >>> ops.sigmoid([0.0, 2.0])
        Tensor([0.5   , 0.8808], shape=(2,), dtype=float32)
    """
    return engine_sigmoid(floating(x))


@public
def log_sigmoid(x: TensorLike) -> Tensor:
    """log(1 / (1 + exp(-x))).

    Examples:
        >>> ops.log_sigmoid([0.0, 2.0])
        Tensor([-0.6931, -0.1269], shape=(2,), dtype=float32)
    """
    return engine.log_sigmoid(floating(x))


@public
def hard_sigmoid(x: TensorLike) -> Tensor:
    """min(max(x + 3, 0), 6) / 6.

    Examples:
        >>> ops.hard_sigmoid([-4.0, 0.0, 1.5])
        Tensor([0.  , 0.5 , 0.75], shape=(3,), dtype=float32)
    """
    return engine.hard_sigmoid(floating(x))


@public
def sparse_sigmoid(x: TensorLike) -> Tensor:
    """min(max((x + 1) / 2, 0), 1).

    Examples:
        >>> ops.sparse_sigmoid([-2.0, 0.0, 2.0])
        Tensor([0. , 0.5, 1. ], shape=(3,), dtype=float32)
    """
    return engine.sparse_sigmoid(floating(x))


@public
def silu(x: TensorLike) -> Tensor:
    """x * sigmoid(x), also called swish.

    Source: Ramachandran, Zoph and Le, "Searching for activation functions", 2017, arXiv:1710.05941.

    Examples:
        >>> ops.silu([-1.0, 2.0])
        Tensor([-0.2689,  1.7616], shape=(2,), dtype=float32)
    """
    return engine.silu(floating(x))


swish = silu


@public
def hard_silu(x: TensorLike) -> Tensor:
    """x * min(max(x + 3, 0), 6) / 6, also called hard swish.

    Source: Howard et al., "Searching for MobileNetV3", 2019, arXiv:1905.02244, section 5.2.

    Examples:
        >>> ops.hard_silu([-4.0, 1.0, 4.0])
        Tensor([-0.    ,  0.6667,  4.    ], shape=(3,), dtype=float32)
    """
    return engine.hard_silu(floating(x))


hard_swish = hard_silu


@public
def softplus(x: TensorLike) -> Tensor:
    """log(1 + exp(x)).

    Examples:
        >>> ops.softplus([0.0, 2.0])
        Tensor([0.6931, 2.1269], shape=(2,), dtype=float32)
    """
    return engine.softplus(floating(x))


@public
def sparse_plus(x: TensorLike) -> Tensor:
    """0 where x <= -1, x where x >= 1, (x + 1)**2 / 4 between.

    Examples:
        >>> ops.sparse_plus([-2.0, 0.0, 2.0])
        Tensor([0.  , 0.25, 2.  ], shape=(3,), dtype=float32)
    """
    return engine.sparse_plus(floating(x))


@public
def squareplus(x: TensorLike, b: float = 4) -> Tensor:
    """(x + sqrt(x**2 + b)) / 2.

    Args:
        x: of any shape; integers and bools become the default float.
        b: how round the bend at 0 is: the result there is sqrt(b) / 2.

    Returns:
        Shape and float type of `x`.

    Source: Barron, "Squareplus: a softplus-like algebraic rectifier", 2021, arXiv:2112.11687.

    Examples:
        >>> ops.squareplus([0.0, 2.0])
        Tensor([1.    , 2.4142], shape=(2,), dtype=float32)
    """
    return engine.squareplus(floating(x), b=float(b))


@public
def softsign(x: TensorLike) -> Tensor:
    """x / (1 + |x|).

    Examples:
        >>> ops.softsign([-1.0, 3.0])
        Tensor([-0.5 ,  0.75], shape=(2,), dtype=float32)
    """
    return engine.softsign(floating(x))


@public
def hard_tanh(x: TensorLike) -> Tensor:
    """min(max(x, -1), 1).

    Examples:
        >>> ops.hard_tanh([-4.0, 0.5, 4.0])
        Tensor([-1. ,  0.5,  1. ], shape=(3,), dtype=float32)
    """
    return engine.hard_tanh(floating(x))


@public
def tanh_shrink(x: TensorLike) -> Tensor:
    """x - tanh(x).

    Examples:
        >>> ops.tanh_shrink([0.0, 1.0])
        Tensor([0.    , 0.2384], shape=(2,), dtype=float32)
    """
    return engine.tanh_shrink(floating(x))


@public
def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """x moved towards 0 by `threshold`, and 0 where |x| is not more than that.

    Args:
        x: of any shape; integers and bools become the default float.
        threshold: the distance, at least 0.

    Returns:
        Shape and float type of `x`.

    Examples:
        >>> ops.soft_shrink([-1.0, 0.2, 1.0])
        Tensor([-0.5,  0. ,  0.5], shape=(3,), dtype=float32)
    """
    return engine.soft_shrink(floating(x), threshold=float(threshold))


@public
def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """0 where |x| <= threshold, x elsewhere.

    Args:
        x: of any shape; integers and bools become the default float.
        threshold: the greatest size that becomes 0.

    Returns:
        Shape and float type of `x`.

    Examples:
        >>> ops.hard_shrink([-1.0, 0.2, 1.0])
        Tensor([-1.,  0.,  1.], shape=(3,), dtype=float32)
    """
    return engine.hard_shrink(floating(x), threshold=float(threshold))


@public
def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor:
    """x where x > threshold, `default_value` elsewhere.

    Args:
        x: of any shape; integers and bools become the default float.
        threshold: the bound; an element equal to it is replaced.
        default_value: what stands for the elements that are not above it.

    Returns:
        Shape and float type of `x`.

    Examples:
        >>> ops.threshold([0.5, 2.0], 1.0, -1.0)
        Tensor([-1.,  2.], shape=(2,), dtype=float32)
    """
    return engine.threshold(floating(x), threshold=float(threshold), value=float(default_value))


@public
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """The first half of `x` along `axis` times the sigmoid of the second half.

    Args:
        x: of any shape; integers and bools become the default float.
        axis: the axis that is halved; its size must be even.

    Returns:
        The shape of `x`, with half the size along `axis`.

    Raises:
        ShapeError: the size along `axis` is odd, or the axis does not exist.

    Source: Dauphin et al., "Language modeling with gated convolutional networks", 2017,
        arXiv:1612.08083, equation 1.

    Examples:
        >>> ops.glu([1.0, 2.0, 0.0, 0.0])
        Tensor([0.5, 1. ], shape=(2,), dtype=float32)
    """
    value, gate = join.split(floating(x), 2, axis)
    return arithmetic.multiply(value, engine_sigmoid(gate))


@public
def softmax(x: TensorLike, axis: AxisLike | None = -1) -> Tensor:
    """exp(x) / sum(exp(x)) over one axis, or several together; half types in float32.

    None stands for all axes.

    Args:
        x: of any shape; integers and bools become the default float.
        axis: one axis, or several over which the sum is taken together; None for all.

    Returns:
        Shape and float type of `x`; the entries along `axis` are at least 0 and sum to 1.

    Raises:
        ShapeError: an axis does not exist.
        DTypeError: `x` is complex.

    Examples:
        >>> ops.softmax([1.0, 1.0, 2.0])
        Tensor([0.2119, 0.2119, 0.5761], shape=(3,), dtype=float32)
    """
    return engine_softmax.softmax(*_along(x, axis))


@public
def log_softmax(x: TensorLike, axis: AxisLike | None = -1) -> Tensor:
    """log(softmax(x)), exact where softmax rounds to 0.

    Args:
        x: of any shape; integers and bools become the default float.
        axis: one axis, or several over which the sum is taken together; None for all.

    Returns:
        Shape and float type of `x`.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.log_softmax([0.0, 0.0])
        Tensor([-0.6931, -0.6931], shape=(2,), dtype=float32)
    """
    return engine_softmax.log_softmax(*_along(x, axis))


def _along(x: TensorLike, axis: AxisLike | None) -> tuple[Tensor, AxisLike]:
    """A floating tensor, and the axes that are meant: all of them for None."""
    found = floating(x)
    return found, tuple(range(known_rank("softmax", found))) if axis is None else axis


@public
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """The point of the probability simplex nearest to `x`: small entries become 0.

    With z the entries in falling order and k the greatest number for which 1 + k z[k] > z[1] + ...
    + z[k]: max(x - tau, 0), where tau = (z[1] + ... + z[k] - 1) / k.

    Args:
        x: of any shape with at least one axis; integers and bools become the default float.
        axis: the axis along which the result sums to 1.

    Returns:
        Shape and float type of `x`.

    Raises:
        ShapeError: the axis does not exist.

    Source: Martins and Astudillo, "From softmax to sparsemax", 2016, arXiv:1602.02068, algorithm 1.

    Examples:
        >>> ops.sparsemax([1.0, 1.0, -2.0])
        Tensor([0.5, 0.5, 0. ], shape=(3,), dtype=float32)
    """
    x = floating(x)
    rank = known_rank("sparsemax", x)
    place = canonical_axis("sparsemax", axis, rank)
    size = x.shape[place]
    count = dim_of(x, axis=place) if size is None else size
    along = [-1 if i == place else 1 for i in range(rank)]
    ordered = sort(x, place, descending=True)
    k = cast(reshape(arange(1, count + 1, dtype="int32"), along), x.dtype)
    total = cumulative.cumsum(ordered, place)
    one = tensor(1.0, x.dtype)
    inside = greater(arithmetic.add(one, arithmetic.multiply(k, ordered)), total)
    support = cast(inside, x.dtype)
    taken = reduce.reduce_sum(arithmetic.multiply(support, ordered), place, keepdims=True)
    number = reduce.reduce_sum(support, place, keepdims=True)
    tau = arithmetic.divide(arithmetic.subtract(taken, one), number)
    return engine.relu(arithmetic.subtract(x, tau))
