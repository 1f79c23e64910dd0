"""The base of `tf.distributions`, and divergences between two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import AlreadyExistsError, UnimplementedError
from laminar.engine.graph import DType, Tensor, TensorShape
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.state.random_source import draw_state

from .adapting import in_graph
from .arrays import shape as shape_of
from .values import dims_of, operands, static, tensor


class ReparameterizationType:
    """How draws depend on the parameters: FULLY_REPARAMETERIZED or NOT_REPARAMETERIZED."""

    def __init__(self, rep_type: str) -> None:
        self._name = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._name}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """A probability distribution, or a batch of them with parameters of one shape.

    A subclass sets `_parameters` (tensors, in the order of its arguments), and computes `_draw` and
    `_log_prob`; what else it does not define is an error.
    """

    reparameterization_type = FULLY_REPARAMETERIZED
    _event_axes = 0

    def __init__(self, name: str, **parameters: Any) -> None:
        self._name = name
        with in_graph():
            given = {key: value for key, value in parameters.items() if value is not None}
            typed = operands(*given.values())
            if not typed[0].dtype.is_floating:
                typed = [cast(x, "float32") for x in typed]
            self._parameters: dict[str, Tensor] = dict(zip(given, typed, strict=True))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.__dict__.get("_parameters", {}):
            return self._parameters[name]
        raise AttributeError(f"{type(self).__name__} has no {name!r}", name=name, obj=self)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Its parameters by their names."""
        return dict(self._parameters)

    @property
    def dtype(self) -> DType:
        """The type of draws."""
        return next(iter(self._parameters.values())).dtype

    # Shapes

    def _whole(self) -> Any:
        """Zeros of the shape of the batch and an event."""
        total: Any = None
        for x in self._parameters.values():
            zeros = lookup("ZerosLike")(x)
            total = zeros if total is None else total + zeros
        found: Tensor = total
        return found

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the batch of distributions."""
        with in_graph():
            whole = self._whole().shape
        return whole if whole.rank is None else TensorShape(whole[: whole.rank - self._event_axes])

    @property
    def event_shape(self) -> TensorShape:
        """The shape of one draw of one distribution."""
        with in_graph():
            whole = self._whole().shape
        if whole.rank is None:
            return TensorShape([None] * self._event_axes)
        return TensorShape(whole[whole.rank - self._event_axes :])

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """`batch_shape` as a vector, also where a run knows it."""
        with in_graph():
            sizes: Any = shape_of(self._whole())
            return sizes[: len(sizes) - self._event_axes]

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        """`event_shape` as a vector, also where a run knows it."""
        with in_graph():
            sizes: Any = shape_of(self._whole())
            return sizes[len(sizes) - self._event_axes :]

    # Draws and densities

    def sample(self, sample_shape: Any = (), seed: Any = None, name: str = "sample") -> Any:
        """Draws: (*sample_shape, *batch_shape, *event_shape)."""
        with in_graph():
            wanted = static(sample_shape)
            if isinstance(wanted, Tensor):
                wanted = [wanted] if not wanted.shape.rank else lookup("Unstack").many(wanted)
            leading = [wanted] if isinstance(wanted, int) else list(wanted)
            found = self._draw([*leading, *dims_of(self._whole())], draw_state(seed))
            if self.reparameterization_type is not FULLY_REPARAMETERIZED:
                found = lookup("StopGradient")(found)
            return found

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the density, or of the probability, of values."""
        with in_graph():
            return self._log_prob(self._value(value))

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The density, or the probability, of values."""
        with in_graph():
            return lookup("Exp")(self._log_prob(self._value(value)))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of no more than each value."""
        with in_graph():
            return self._cdf(self._value(value))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        """The logarithm of `cdf`."""
        return lookup("Log")(self.cdf(value))

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """The probability of more than each value."""
        return 1.0 - self.cdf(value)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        """The logarithm of `survival_function`."""
        return lookup("Log")(self.survival_function(value))

    def entropy(self, name: str = "entropy") -> Any:
        """-E[log_prob(x)]."""
        with in_graph():
            return self._entropy()

    def mean(self, name: str = "mean") -> Any:
        """E[x]."""
        with in_graph():
            return self._mean()

    def variance(self, name: str = "variance") -> Any:
        """E[(x - mean)**2]."""
        with in_graph():
            return self._variance()

    def stddev(self, name: str = "stddev") -> Any:
        """The square root of the variance."""
        return lookup("Sqrt")(self.variance())

    def mode(self, name: str = "mode") -> Any:
        """Where the density is greatest."""
        with in_graph():
            return self._mode()

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The inverse of `cdf`."""
        with in_graph():
            return self._quantile(self._value(value))

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Any:
        """E[log p(x) - log q(x)] over x of this distribution, q being `other`."""
        return kl_divergence(self, other)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Any:
        """-E[log q(x)] over x of this distribution, q being `other`."""
        return self.entropy() + self.kl_divergence(other)

    def _value(self, value: Any) -> Any:
        x = tensor(value, self.dtype)
        kind = next(iter(self._parameters.values())).dtype
        return x if x.dtype == kind else cast(x, kind)

    def _full(self, number: Any) -> Any:
        """A number for each distribution."""
        found: Tensor = self._whole() + number
        return found

    def _missing(self, what: str) -> UnimplementedError:
        return UnimplementedError(f"tf.distributions.{type(self).__name__} has no {what}")

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        raise self._missing("draws")

    def _log_prob(self, x: Tensor) -> Any:
        raise self._missing("density")

    def _cdf(self, x: Tensor) -> Any:
        raise self._missing("cdf")

    def _quantile(self, p: Tensor) -> Any:
        raise self._missing("quantile")

    def _entropy(self) -> Any:
        raise self._missing("entropy")

    def _mean(self) -> Any:
        raise self._missing("mean")

    def _variance(self) -> Any:
        raise self._missing("variance")

    def _mode(self) -> Any:
        raise self._missing("mode")

    def __repr__(self) -> str:
        return f"tf.distributions.{type(self).__name__}({self._name!r}, {self.batch_shape})"


Divergence = Callable[..., Any]
_divergences: dict[tuple[type[Any], type[Any]], Divergence] = {}


class RegisterKL:
    """Decorator: a function (p, q, name=None) computes the divergence of two classes.

    Raises:
        AlreadyExistsError: there is one for the pair.
    """

    def __init__(self, dist_cls_a: type[Any], dist_cls_b: type[Any]) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Divergence) -> Divergence:
        if self._key in _divergences:
            a, b = self._key
            raise AlreadyExistsError(
                f"there is a divergence of {a.__name__} from {b.__name__} already"
            )
        _divergences[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution,
    distribution_b: Distribution,
    allow_nan_stats: bool = True,
    name: str | None = None,
) -> Any:
    """E[log a(x) - log b(x)] over x of the first distribution.

    Raises:
        UnimplementedError: there is no formula for these two classes.

    Source: Kullback and Leibler, "On information and sufficiency", 1951.
    """
    for a in type(distribution_a).__mro__:
        for b in type(distribution_b).__mro__:
            if (a, b) in _divergences:
                with in_graph():
                    return _divergences[a, b](distribution_a, distribution_b, name=name)
    raise UnimplementedError(
        f"there is no divergence of {type(distribution_a).__name__} from "
        f"{type(distribution_b).__name__}",
        remedy="define one: @tf.distributions.RegisterKL(A, B)",
    )
