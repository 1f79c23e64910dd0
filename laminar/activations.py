"""Activation functions, and the names under which layers take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from laminar.engine.graph import Tensor

from . import ops
from .ops.nn import celu as celu
from .ops.nn import elu as elu
from .ops.nn import glu as glu
from .ops.nn import hard_shrink as hard_shrink
from .ops.nn import hard_sigmoid as hard_sigmoid
from .ops.nn import hard_silu as hard_silu
from .ops.nn import hard_tanh as hard_tanh
from .ops.nn import leaky_relu as leaky_relu
from .ops.nn import log_sigmoid as log_sigmoid
from .ops.nn import log_softmax as log_softmax
from .ops.nn import relu6 as relu6
from .ops.nn import selu as selu
from .ops.nn import sigmoid as sigmoid
from .ops.nn import silu as silu
from .ops.nn import soft_shrink as soft_shrink
from .ops.nn import softmax as softmax
from .ops.nn import softplus as softplus
from .ops.nn import softsign as softsign
from .ops.nn import sparse_plus as sparse_plus
from .ops.nn import sparse_sigmoid as sparse_sigmoid
from .ops.nn import sparsemax as sparsemax
from .ops.nn import squareplus as squareplus
from .ops.nn import tanh_shrink as tanh_shrink
from .ops.nn import threshold as threshold
from .ops.numpy import tanh as tanh
from .ops.recording import public
from .registration import list_builtins
from .serialization import deserialize_keras_object, lookup, serialize_keras_object
from .typing import TensorLike

# What layers take as an activation: a name, a function or layer, or a config.
ActivationLike: TypeAlias = str | Callable[..., Any] | Mapping[str, Any]


@public
def relu(
    x: TensorLike,
    negative_slope: float = 0.0,
    max_value: float | None = None,
    threshold: float = 0.0,
) -> Tensor:
    """The rectifier: x where x > threshold, else negative_slope * (x - threshold).

    Args:
        x: any tensor.
        negative_slope: slope below the threshold.
        max_value: upper bound of the result.
        threshold: values up to it count as negative.

    Source: Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines", 2010.

    Examples:
        >>> laminar.activations.relu(ops.array([-1.0, 9.0]), negative_slope=0.1, max_value=6.0)
        Tensor([-0.1,  6. ], shape=(2,), dtype=float32)
    """
    x = ops.convert_to_tensor(x)
    if negative_slope and max_value is None and not threshold:
        return ops.leaky_relu(x, negative_slope)
    positive = ops.where(ops.greater(x, threshold), x, 0) if threshold else ops.relu(x)
    if max_value is not None:
        positive = ops.clip(positive, 0, max_value)
    if not negative_slope:
        return positive
    below = ops.relu(ops.subtract(threshold, x))
    return ops.subtract(positive, ops.multiply(negative_slope, below))


@public
def gelu(x: TensorLike, approximate: bool = False) -> Tensor:
    """x times the probability that a standard normal number is below x.

    Args:
        x: any tensor.
        approximate: whether to use 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))).

    Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016, arXiv:1606.08415.

    Examples:
        >>> laminar.activations.gelu(ops.array([-1.0, 1.0]))
        Tensor([-0.1587,  0.8413], shape=(2,), dtype=float32)
    """
    return ops.gelu(x, approximate)


@public
def exponential(x: TensorLike) -> Tensor:
    """exp(x).

    Examples:
        >>> laminar.activations.exponential(ops.array([0.0, 1.0]))
        Tensor([1.    , 2.7183], shape=(2,), dtype=float32)
    """
    return ops.exp(x)


def linear(x: TensorLike) -> Any:
    """`x` itself.

    Examples:
        >>> laminar.activations.linear(ops.array([-1.0, 1.0]))
        Tensor([-1.,  1.], shape=(2,), dtype=float32)
    """
    return x


@public
def mish(x: TensorLike) -> Tensor:
    """x * tanh(softplus(x)).

    Source: Misra, "Mish: a self regularized non-monotonic activation function", 2019,
        arXiv:1908.08681.

    Examples:
        >>> laminar.activations.mish(ops.array([-1.0, 1.0]))
        Tensor([-0.3034,  0.8651], shape=(2,), dtype=float32)
    """
    x = ops.convert_to_tensor(x)
    return ops.multiply(x, ops.tanh(ops.softplus(x)))


swish, hard_swish = silu, hard_silu

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    celu,
    elu,
    exponential,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    leaky_relu,
    linear,
    log_sigmoid,
    log_softmax,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    sparsemax,
    squareplus,
    tanh,
    tanh_shrink,
    threshold,
)
_NAMES: dict[str, Any] = {
    **{fn.__name__: fn for fn in _FUNCTIONS},
    "swish": silu,
    "hard_swish": hard_silu,
}
list_builtins("keras.activations", _NAMES)


def serialize(activation: Callable[..., Any]) -> Any:
    """The name of a built-in activation, the config of any other.

    Args:
        activation: an activation, or a registered function.

    Returns:
        a dict with its class and config, as JSON can hold it; for a function its name.

    Examples:
        >>> laminar.activations.serialize(laminar.activations.mish)
        'mish'
    """
    name = getattr(activation, "__name__", None)
    module = getattr(activation, "__module__", "")
    if name in _NAMES and (module == __name__ or module.startswith("laminar.ops.")):
        return name
    return serialize_keras_object(activation)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The activation that `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        an activation, or the function.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> laminar.activations.deserialize("mish") is laminar.activations.mish
        True
    """
    if isinstance(config, str):
        return get(config)
    return deserialize_keras_object(config, custom_objects, module_objects=_NAMES)


def get(identifier: ActivationLike | None) -> Any:
    """An activation: by name, config, or as a callable; None is `linear`.

    Args:
        identifier: an activation, its name, class or config, or a function.

    Returns:
        an activation, or the function; None for None.

    Raises:
        InvalidArgumentError: nothing of that name exists.

    Examples:
        >>> laminar.activations.get("relu")(ops.array([-1.0, 1.0]))
        Tensor([0., 1.], shape=(2,), dtype=float32)
    """
    return linear if identifier is None else lookup("activation", identifier, _NAMES)
