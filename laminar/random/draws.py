"""Numbers, choices and orders drawn at random.

All take `seed`: a whole number gives the same numbers at every call, a `SeedGenerator` other ones
each time, None those of the global generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsInt

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Dim, DType, Tensor, as_dtype
from laminar.engine.ops.nn import dropout as engine_dropout
from laminar.engine.ops.random import draws as engine
from laminar.ops.arguments import dtype_or_float, floating, tensor, whole
from laminar.ops.recording import public

from ..typing import DTypeLike, ShapeLike, TensorLike
from .seeds import SeedLike, draw_seed


def _float(who: str, dtype: DTypeLike | None) -> DType:
    found = dtype_or_float(dtype)
    if not found.is_floating:
        raise InvalidArgumentError(
            f"{who}: dtype must be a floating type, got {found}",
            remedy="use randint for integers, or cast the result",
        )
    return found


def _bound(value: Any) -> Any:
    """A parameter: a number as it is, anything else as a tensor."""
    return value if isinstance(value, int | float) else tensor(value)


@public
def normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Normal numbers.

    Args:
        shape: ints or scalar integer tensors.
        mean: of the numbers.
        stddev: standard deviation.
        dtype: a floating type, by default the default float.
        seed: see above.

    Examples:
        >>> x = laminar.random.normal((10000,), mean=2.0, stddev=3.0, seed=1)
        >>> round(float(ops.mean(x))), round(float(ops.std(x)))
        (2, 3)
    """
    found = _float("normal", dtype)
    return engine.random_normal(draw_seed(seed), shape, _bound(mean), _bound(stddev), found)


@public
def truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Normal numbers, drawn again where they lie more than two standard deviations off the mean.

    Args:
        shape: ints or scalar integer tensors.
        mean: of the numbers.
        stddev: standard deviation before truncation.
        dtype: a floating type, by default the default float.
        seed: see above.

    Examples:
        >>> x = laminar.random.truncated_normal((1000,), stddev=1.0, seed=1)
        >>> bool(ops.max(ops.abs(x)) <= 2)
        True
    """
    found = _float("truncated_normal", dtype)
    return engine.random_truncated_normal(
        draw_seed(seed), shape, _bound(mean), _bound(stddev), found
    )


@public
def uniform(
    shape: ShapeLike,
    minval: TensorLike = 0.0,
    maxval: TensorLike = 1.0,
    dtype: DTypeLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers uniform in [minval, maxval).

    Args:
        shape: ints or scalar integer tensors.
        minval: lower bound.
        maxval: upper bound, itself left out.
        dtype: a floating type, by default the default float.
        seed: see above.

    Examples:
        >>> x = laminar.random.uniform((1000,), minval=-1.0, maxval=1.0, seed=1)
        >>> bool(ops.all((x >= -1) & (x < 1)))
        True
    """
    found = _float("uniform", dtype)
    return engine.random_uniform(draw_seed(seed), shape, _bound(minval), _bound(maxval), found)


@public
def randint(
    shape: ShapeLike,
    minval: SupportsInt | Tensor,
    maxval: SupportsInt | Tensor,
    dtype: DTypeLike = "int32",
    seed: SeedLike | None = None,
) -> Tensor:
    """Whole numbers uniform in [minval, maxval).

    Args:
        shape: ints or scalar integer tensors.
        minval: lower bound.
        maxval: upper bound, itself left out.
        dtype: an integer type.
        seed: see above.

    Raises:
        InvalidArgumentError: the dtype is not an integer one, or the range is empty.

    Examples:
        >>> x = laminar.random.randint((100,), 0, 3, seed=1)
        >>> ops.unique(x)
        Tensor([0, 1, 2], shape=(3,), dtype=int32)
    """
    found = as_dtype(dtype)
    if not found.is_integer:
        raise InvalidArgumentError(
            f"randint: dtype must be an integer type, got {found}",
            remedy="use uniform for fractions",
        )
    low, high = (
        v if isinstance(v, Tensor) else whole("randint", "a bound", v) for v in (minval, maxval)
    )
    return engine.random_int(draw_seed(seed), shape, low, high, found)


@public
def categorical(
    logits: TensorLike, num_samples: int, dtype: DTypeLike = "int32", seed: SeedLike | None = None
) -> Tensor:
    """Classes drawn with the probabilities softmax(logits).

    Args:
        logits: (batch, classes).
        num_samples: how many to draw for each row.
        dtype: an integer type.
        seed: see above.

    Returns:
        (batch, num_samples).

    Examples:
        >>> laminar.random.categorical(np.log([[0.001, 0.999]]), num_samples=3, seed=1)
        Tensor([[1, 1, 1]], shape=(1, 3), dtype=int32)
    """
    x = floating(logits)
    if x.shape.rank not in (2, None):
        raise ShapeError(f"categorical: logits must be (batch, classes), got {x.spec}")
    count = whole("categorical", "num_samples", num_samples)
    return engine.random_categorical(draw_seed(seed), x, count, as_dtype(dtype))


@public
def gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    dtype: DTypeLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the gamma distribution of scale 1.

    Args:
        shape: ints or scalar integer tensors.
        alpha: shape parameter, broadcasts to `shape`.
        dtype: a floating type, by default the default float.
        seed: see above.

    Examples:
        >>> laminar.random.gamma((2,), alpha=3.0, seed=1).shape
        (2,)
    """
    found = _float("gamma", dtype)
    return engine.random_gamma(draw_seed(seed), shape, tensor(alpha), found)


@public
def beta(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike,
    dtype: DTypeLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """Numbers of the beta distribution.

    Args:
        shape: ints or scalar integer tensors.
        alpha: first parameter, broadcasts to `shape`.
        beta: second parameter, likewise.
        dtype: a floating type, by default the default float.
        seed: see above.

    Examples:
        >>> laminar.random.beta((2, 3), alpha=2.0, beta=5.0, seed=1).shape
        (2, 3)
    """
    found = _float("beta", dtype)
    return engine.random_beta(draw_seed(seed), shape, tensor(alpha), tensor(beta), found)


@public
def binomial(
    shape: ShapeLike,
    counts: TensorLike,
    probabilities: TensorLike,
    dtype: DTypeLike | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """How many of some trials succeed.

    Args:
        shape: ints or scalar integer tensors.
        counts: numbers of trials, broadcast to `shape`.
        probabilities: of success, likewise.
        dtype: by default the default float.
        seed: see above.

    Examples:
        >>> draws = laminar.random.binomial((1000,), counts=10, probabilities=0.5, seed=1)
        >>> float(ops.max(draws)) <= 10
        True
    """
    found = _float("binomial", dtype)
    parameters = (tensor(counts), tensor(probabilities))
    return engine.random_binomial(draw_seed(seed), shape, *parameters, found)


@public
def shuffle(x: TensorLike, axis: int = 0, seed: SeedLike | None = None) -> Tensor:
    """`x` with its entries along `axis` in random order.

    Examples:
        >>> x = laminar.random.shuffle(np.arange(5), seed=1)
        >>> ops.sort(x)
        Tensor([0, 1, 2, 3, 4], shape=(5,), dtype=int64)
    """
    return engine.random_shuffle(draw_seed(seed), tensor(x), axis)


@public
def dropout(
    inputs: TensorLike,
    rate: float | Tensor,
    noise_shape: Sequence[Any] | None = None,
    seed: SeedLike | None = None,
) -> Tensor:
    """`inputs` with numbers set to 0 at random, the others divided by 1 - rate.

    Args:
        inputs: any tensor; integers become the default float.
        rate: the probability of a number to be dropped; a number, or a scalar tensor.
        noise_shape: 1 on each axis along which numbers are dropped together; elsewhere the size of
            the inputs, or None.
        seed: see above.

    Raises:
        InvalidArgumentError: the rate is not from 0 to 1.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
        2014, section 4.

    Examples:
        >>> y = laminar.random.dropout(np.ones((1000,), "float32"), rate=0.5, seed=1)
        >>> ops.unique(y)
        Tensor([0., 2.], shape=(2,), dtype=float32)
    """
    x = floating(inputs)
    if isinstance(rate, Tensor) or hasattr(rate, "__laminar_tensor__"):
        rate = tensor(rate)
        if not rate.shape.is_compatible_with(()):
            raise ShapeError(f"dropout: the rate must be a scalar, got {rate.spec}")
    else:
        if not 0 <= rate <= 1:
            raise InvalidArgumentError(f"dropout: the rate must be from 0 to 1, got {rate}")
        if rate == 0:
            return x
        rate = float(rate)
    shape: list[Dim] | None = None
    if noise_shape is not None:
        shape = [d if isinstance(d, int) else None for d in noise_shape]
    return engine_dropout.dropout(x, draw_seed(seed), rate, shape)
