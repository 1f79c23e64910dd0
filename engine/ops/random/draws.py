"""Random numbers as pure ops: the same state gives the same numbers, on every device.

Each op takes `state` (see random_state.py) and a shape, in which each None is given at run time by
one of `dims`. Nothing changes the state: a generator keeps it in a variable and gives each draw the
next one (`next_state`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    FLOATING,
    Array,
    Dim,
    DType,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    bool_,
    broadcast_shapes,
    canonical_axis,
    float32,
    float64,
    int32,
)
from ..array.creation import arange
from ..array.shape import is_open, reshape_to_shape, runtime_shape, split_shape
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads, OpDef
from ..core.registry import define, no_gradient
from ..math.arithmetic import add, multiply, subtract
from ..math.cast import cast
from ..math.reduce import reduce_prod
from . import distributions, rejection
from .random_state import STATE, check_state, own_key, stream


def _standard(type: str, doc: str, draw: Callable[..., Array]) -> OpDef:
    """An op that fills a shape with numbers of a standard distribution."""

    @define(type, dtypes=STATE)
    def op(state: TensorSpec, *dims: TensorSpec, shape: tuple[Dim, ...], dtype: str) -> TensorSpec:
        check_state(type, state)
        if not as_dtype(dtype).is_floating:
            raise DTypeError(
                f"{type}: expected a floating dtype, got {dtype}",
                remedy="draw float32 and cast, or draw integers with random_int",
            )
        return TensorSpec(shape, as_dtype(dtype))

    op.doc = doc

    @op.reference
    def kernel(xp: Any, state: Array, *dims: Array, shape: tuple[Dim, ...], dtype: str) -> Array:
        size = runtime_shape(shape, dims)
        return draw(xp, n=math.prod(size), dtype=dtype, **stream(state)).reshape(size)

    op.grad(no_gradient)
    return op


_uniform = _standard("RandomUniform", "Numbers uniform in [0, 1).", distributions.uniform)
_normal = _standard("RandomNormal", "Normal numbers, mean 0, variance 1.", distributions.normal)
_truncated = _standard(
    "RandomTruncatedNormal",
    "Numbers of the standard normal distribution cut off at two deviations on either side.",
    distributions.truncated_normal,
)


@define("RandomInt", dtypes=STATE)
def _int(
    state: TensorSpec,
    *dims: TensorSpec,
    shape: tuple[Dim, ...],
    low: int | None,
    high: int | None,
    dtype: str,
) -> TensorSpec:
    """Integers uniform in [low, high). A bound of None is given at run time, after the dims."""
    check_state("RandomInt", state)
    found = as_dtype(dtype)
    if not found.is_integer:
        raise DTypeError(f"RandomInt: expected an integer dtype, got {dtype}")
    if low is not None and high is not None and low >= high:
        raise InvalidArgumentError(
            f"RandomInt: expected low < high, got low={low} and high={high}",
            remedy="the upper bound is not drawn itself: make it at least low + 1",
        )
    return TensorSpec(shape, found)


@_int.reference
def _int_kernel(
    xp: Any,
    state: Array,
    *dims: Array,
    shape: tuple[Dim, ...],
    low: int | None,
    high: int | None,
    dtype: str,
) -> Array:
    *size, first, last = runtime_shape((*shape, low, high), dims)
    n = math.prod(size)
    drawn = distributions.randint(xp, n=n, low=first, high=last, dtype=dtype, **stream(state))
    return drawn.reshape(size)


_int.grad(no_gradient)


def _parametric(
    type: str, doc: str, parameters: int, draw: Callable[..., Array], result: DType | None = None
) -> OpDef:
    """An op that fills a shape with numbers whose distribution has parameters, broadcast to it.

    `draw(xp, state, n, parameters, dtype)` gets each parameter as an array (n,).
    """

    @define(type, dtypes=STATE)
    def op(
        state: TensorSpec, *inputs: TensorSpec, shape: tuple[Dim, ...], dtype: str
    ) -> TensorSpec:
        check_state(type, state)
        target = TensorShape(shape)
        for p in inputs[:parameters]:
            if not p.dtype.is_floating:
                raise DTypeError(
                    f"{type}: the parameters must be floating, got {p}", remedy="cast them first"
                )
            if not broadcast_shapes(type, p.shape, target).is_compatible_with(target):
                raise ShapeError(
                    f"{type}: the parameter {p} does not broadcast to the shape {target}",
                    remedy="give a shape that ends in that of the parameters",
                )
        return TensorSpec(target, result or as_dtype(dtype))

    op.doc = doc

    @op.reference
    def kernel(xp: Any, state: Array, *inputs: Array, shape: tuple[Dim, ...], dtype: str) -> Array:
        size = runtime_shape(shape, inputs[parameters:])
        spread = [xp.broadcast_to(p, size).reshape(-1) for p in inputs[:parameters]]
        return draw(xp, state, math.prod(size), spread, dtype).reshape(size)

    op.grad(no_gradient)
    return op


def _by_rejection(fn: Callable[..., Array]) -> Callable[..., Array]:
    def draw(xp: Any, state: Array, n: int, parameters: Sequence[Array], dtype: str) -> Array:
        return fn(xp, own_key(xp, state), n, *parameters, dtype)

    return draw


def _bernoulli_draw(
    xp: Any, state: Array, n: int, parameters: Sequence[Array], dtype: str
) -> Array:
    return distributions.bernoulli(xp, n=n, p=parameters[0], **stream(state))


_bernoulli = _parametric(
    "RandomBernoulli", "Bools, true with probability p.", 1, _bernoulli_draw, bool_
)
_gamma = _parametric(
    "RandomGamma",
    "Numbers of the gamma distribution of shape alpha > 0 and scale 1; NaN for other alphas.",
    1,
    _by_rejection(rejection.gamma),
)
_beta = _parametric(
    "RandomBeta",
    "Numbers of the beta distribution of alpha and beta > 0; NaN for others.",
    2,
    _by_rejection(rejection.beta),
)
_binomial = _parametric(
    "RandomBinomial",
    "How many of `counts` trials succeed with probability p each; NaN for p outside [0, 1].",
    2,
    _by_rejection(rejection.binomial),
)
_poisson = _parametric(
    "RandomPoisson",
    "Numbers of the Poisson distribution of the given mean >= 0; NaN for other means.",
    1,
    _by_rejection(rejection.poisson),
)


@define("RandomCategorical", dtypes={**STATE, "logits": FLOATING}, same_dtype=False)
def _categorical(
    state: TensorSpec, logits: TensorSpec, *, num_samples: int, dtype: str
) -> TensorSpec:
    """For each row of logits, `num_samples` classes drawn with probabilities softmax(logits)."""
    check_state("RandomCategorical", state)
    if logits.shape.rank is None:
        return TensorSpec([None, num_samples], as_dtype(dtype))
    if len(logits.shape) != 2 or logits.shape[1] == 0:
        raise ShapeError(
            f"RandomCategorical: logits must be (batch, classes) with a class, got {logits}",
            remedy="reshape the leading axes to one",
        )
    return TensorSpec([logits.shape[0], num_samples], as_dtype(dtype))


@_categorical.reference
def _categorical_kernel(
    xp: Any, state: Array, logits: Array, *, num_samples: int, dtype: str
) -> Array:
    return distributions.categorical(
        xp, logits=logits, num_samples=num_samples, dtype=dtype, **stream(state)
    )


_categorical.grad(no_gradient)


@define("RandomShuffle", dtypes={**STATE, "x": ANY}, same_dtype=False)
def _shuffle(state: TensorSpec, x: TensorSpec, *, axis: int, inverse: bool) -> TensorSpec:
    """`x` with its entries along `axis` in random order; with `inverse`, back in their own."""
    check_state("RandomShuffle", state)
    if x.shape.rank is not None:
        canonical_axis("RandomShuffle", axis, len(x.shape))
    return x


@_shuffle.reference
def _shuffle_kernel(xp: Any, state: Array, x: Array, *, axis: int, inverse: bool) -> Array:
    order = distributions.permutation(xp, n=x.shape[axis], **stream(state))
    return xp.take(x, xp.argsort(order) if inverse else order, axis=axis)


@_shuffle.grad
def _shuffle_grad(op: OpView, dy: Tensor) -> Grads:
    inverse = not op.attrs["inverse"]
    return None, _shuffle(op.inputs[0], dy, axis=op.attrs["axis"], inverse=inverse)


def _drawn(op: OpDef, state: Tensor, shape: Any, *inputs: Tensor, **attrs: Any) -> Tensor:
    if is_open(shape):
        return reshape_to_shape(_drawn(op, state, [reduce_prod(shape)], *inputs, **attrs), shape)
    attribute, dims = split_shape(shape)
    return op(state, *inputs, *dims, shape=attribute, **attrs)


def random_uniform(
    state: Tensor, shape: Any, minval: Any = 0, maxval: Any = 1, dtype: Any = float32
) -> Tensor:
    """Numbers uniform in [minval, maxval), up to the rounding of minval + u * (maxval - minval).

    Args:
        state: uint32[4], see random_state.py.
        shape: of the result; entries may be scalar tensors.
        minval: the lower bound, a number or a tensor that broadcasts to the shape.
        maxval: the upper bound, likewise.
        dtype: a floating type.
    """
    u = _drawn(_uniform, state, shape, dtype=as_dtype(dtype))
    return _scaled(u, minval, maxval, is_width=False)


def random_normal(
    state: Tensor, shape: Any, mean: Any = 0, stddev: Any = 1, dtype: Any = float32
) -> Tensor:
    """Normal numbers; `mean` and `stddev` are numbers or tensors, through which gradients flow."""
    return _scaled(_drawn(_normal, state, shape, dtype=as_dtype(dtype)), mean, stddev)


def random_truncated_normal(
    state: Tensor, shape: Any, mean: Any = 0, stddev: Any = 1, dtype: Any = float32
) -> Tensor:
    """Normal numbers within two standard deviations of the mean; see `random_normal`."""
    return _scaled(_drawn(_truncated, state, shape, dtype=as_dtype(dtype)), mean, stddev)


def _scaled(x: Tensor, start: Any, other: Any, *, is_width: bool = True) -> Tensor:
    """start + x * width, with the width `other` or, for an upper bound `other`, other - start."""
    lower, width = (convert_to_tensor(v, x.dtype) for v in (start, other))
    if not is_width:
        width = subtract(width, lower)
    if not (isinstance(start, int | float) and isinstance(other, int | float)):
        return add(lower, multiply(x, width))
    if float(other) - (0 if is_width else start) != 1:
        x = multiply(x, width)
    return add(lower, x) if start != 0 else x


def random_int(
    state: Tensor, shape: Any, minval: int | Tensor, maxval: int | Tensor, dtype: Any = int32
) -> Tensor:
    """Integers uniform in [minval, maxval); the bounds are integers or scalar tensors of them.

    Raises:
        InvalidArgumentError: there is no such integer, or the bounds do not fit the dtype.
    """
    if is_open(shape):
        found = random_int(state, [reduce_prod(shape)], minval, maxval, dtype)
        return reshape_to_shape(found, shape)
    attribute, dims = split_shape(shape)
    bounds = [v for v in (minval, maxval) if isinstance(v, Tensor)]
    low, high = (None if isinstance(v, Tensor) else int(v) for v in (minval, maxval))
    return _int(state, *dims, *bounds, shape=attribute, low=low, high=high, dtype=as_dtype(dtype))


def random_bernoulli(state: Tensor, shape: Any, p: Any = 0.5) -> Tensor:
    """Bools, true with probability `p`: a number, or a tensor that broadcasts to the shape."""
    return _drawn(_bernoulli, state, shape, _parameter(p), dtype=bool_)


def random_gamma(state: Tensor, shape: Any, alpha: Any, dtype: Any = float32) -> Tensor:
    """Numbers of the gamma distribution of shape `alpha` and scale 1; no gradient for alpha."""
    return _drawn(_gamma, state, shape, _parameter(alpha), dtype=as_dtype(dtype))


def random_beta(state: Tensor, shape: Any, alpha: Any, beta: Any, dtype: Any = float32) -> Tensor:
    """Numbers of the beta distribution; no gradient for its parameters."""
    parameters = (_parameter(alpha), _parameter(beta))
    return _drawn(_beta, state, shape, *parameters, dtype=as_dtype(dtype))


def random_binomial(
    state: Tensor, shape: Any, counts: Any, probabilities: Any, dtype: Any = float32
) -> Tensor:
    """How many of `counts` trials succeed, each with its probability."""
    parameters = (_parameter(counts), _parameter(probabilities))
    return _drawn(_binomial, state, shape, *parameters, dtype=as_dtype(dtype))


def random_poisson(state: Tensor, shape: Any, mean: Any, dtype: Any = float32) -> Tensor:
    """Numbers of the Poisson distribution of the given mean."""
    return _drawn(_poisson, state, shape, _parameter(mean), dtype=as_dtype(dtype))


def _parameter(value: Any) -> Tensor:
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype.is_floating else cast(tensor, float64)


def random_categorical(
    state: Tensor, logits: Tensor, num_samples: int, dtype: Any = int32
) -> Tensor:
    """Classes drawn from each row of (batch, classes) with probabilities softmax(logits).

    Returns:
        (batch, num_samples), integers. A class of logit -inf is never drawn.
    """
    return _categorical(state, logits, num_samples=int(num_samples), dtype=as_dtype(dtype))


def random_shuffle(state: Tensor, x: Tensor, axis: int = 0) -> Tensor:
    """`x` with its entries along `axis` in random order."""
    return _shuffle(state, x, axis=axis, inverse=False)


def random_permutation(state: Tensor, n: int | Tensor) -> Tensor:
    """The numbers 0 to n - 1 in random order, int32."""
    return random_shuffle(state, arange(n, dtype=int32))
