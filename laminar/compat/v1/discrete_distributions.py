"""Distributions of classes and counts, given by logits or by probabilities.

Source of the formulas: Johnson, Kemp and Kotz, "Univariate Discrete Distributions", 3rd edition,
2005; Johnson, Kotz and Balakrishnan, "Discrete Multivariate Distributions", 1997.
"""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.graph import DType, Tensor, TensorShape, as_dtype
from laminar.engine.ops.array.creation import one_hot
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws

from .adapting import in_graph
from .distribution import NOT_REPARAMETERIZED, Distribution, RegisterKL
from .maths import reduce_sum
from .values import dims_of, tensor

_log, _log1p, _exp = (lookup(n) for n in ("Log", "Log1p", "Exp"))
_softplus, _sigmoid, _lgamma = (lookup(n) for n in ("Softplus", "Sigmoid", "Lgamma"))


class _Discrete(Distribution):
    """Draws are of a type of their own."""

    reparameterization_type = NOT_REPARAMETERIZED
    _kind: DType

    def _of_one(self, name: str, logits: Any, probs: Any) -> None:
        if (logits is None) == (probs is None):
            raise ValueError(f"tf.distributions.{type(self).__name__}: give logits or probs")
        Distribution.__init__(self, name, logits=logits, probs=probs)

    @property
    def dtype(self) -> DType:
        """The type of draws."""
        return self._kind


class Bernoulli(_Discrete):
    """1 with the probability `probs` = sigmoid(logits), else 0."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = "int32",
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        self._of_one(name, logits, probs)
        self._kind = as_dtype(dtype)

    @property
    def logits(self) -> Any:
        """log(p / (1 - p))."""
        given = self._parameters
        found: Tensor = (
            given["logits"]
            if "logits" in given
            else (_log(given["probs"]) - _log1p(-given["probs"]))
        )
        return found

    @property
    def probs(self) -> Any:
        """p."""
        given = self._parameters
        found: Tensor = given["probs"] if "probs" in given else _sigmoid(given["logits"])
        return found

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        u = draws.random_uniform(state, sizes, 0.0, 1.0, self.probs.dtype)
        return cast(lookup("Less")(u, self.probs + 0.0 * u), self._kind)

    def _log_prob(self, x: Tensor) -> Any:
        return -x * _softplus(-self.logits) - (1.0 - x) * _softplus(self.logits)

    def _entropy(self) -> Any:
        x = self.logits
        return _sigmoid(x) * _softplus(-x) + _sigmoid(-x) * _softplus(x)

    def _mean(self) -> Any:
        return lookup("Identity")(self.probs)

    def _variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Any:
        p = self.probs
        return cast(lookup("Greater")(p, p * 0.0 + 0.5), self._kind)


@RegisterKL(Bernoulli, Bernoulli)
def _bernoulli_from_bernoulli(p: Bernoulli, q: Bernoulli, name: str | None = None) -> Any:
    one = _softplus(-q.logits) - _softplus(-p.logits)
    zero = _softplus(q.logits) - _softplus(p.logits)
    return _sigmoid(p.logits) * one + _sigmoid(-p.logits) * zero


class _Classes(_Discrete):
    """Probabilities of classes, over the last axis."""

    _event_axes = 1

    @property
    def logits(self) -> Any:
        """Logarithms of the probabilities, up to a number."""
        given = self._parameters
        found: Tensor = given["logits"] if "logits" in given else _log(given["probs"])
        return found

    @property
    def probs(self) -> Any:
        """The probabilities."""
        given = self._parameters
        found: Tensor = given["probs"] if "probs" in given else ops.softmax(given["logits"])
        return found

    def _log_probs(self) -> Any:
        found: Tensor = ops.log_softmax(self.logits)
        return found

    def _classes(self, state: Tensor, count: Any, sizes: list[Any]) -> Any:
        """`count` classes of each distribution, before its axes: (count, *batch)."""
        logits = self.logits
        rows = ops.reshape(logits, (-1, dims_of(logits)[-1]))
        drawn = draws.random_categorical(state, rows, count)
        found: Tensor = ops.reshape(ops.transpose(drawn, (1, 0)), sizes)
        return found


class Categorical(_Classes):
    """The class k with the probability probs[k], probs = softmax(logits)."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = "int32",
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        self._of_one(name, logits, probs)
        self._kind = as_dtype(dtype)

    @property
    def event_size(self) -> Any:
        """The number of classes."""
        with in_graph():
            return tensor(dims_of(self.logits)[-1], "int32")

    @property
    def event_shape(self) -> TensorShape:
        """(): a draw is one number."""
        return TensorShape(())

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        """A vector of no numbers."""
        with in_graph():
            return lookup("Const")(value=tensor([], "int32").numpy())

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        batch = len(self.batch_shape)
        *wanted, _ = sizes
        count: Any = 1
        for size in wanted[: len(wanted) - batch]:
            count = count * size
        return cast(self._classes(state, count, wanted), self._kind)

    def _log_prob(self, x: Tensor) -> Any:
        log_probs = self._log_probs()
        chosen = one_hot(cast(x, "int64"), int(log_probs.shape[-1] or 0), -1, log_probs.dtype)
        found: Tensor = reduce_sum(lookup("Where")(
            lookup("Greater")(chosen, chosen * 0.0), log_probs + chosen * 0.0, chosen * 0.0
        ), [-1])  # fmt: skip
        return found

    def _entropy(self) -> Any:
        log_probs = self._log_probs()
        found: Tensor = -reduce_sum(self.probs * log_probs, [-1])
        return found

    def _mode(self) -> Any:
        return cast(ops.argmax(self.logits, -1), self._kind)


@RegisterKL(Categorical, Categorical)
def _categorical_from_categorical(p: Categorical, q: Categorical, name: str | None = None) -> Any:
    ours = p._log_probs()
    return reduce_sum(_exp(ours) * (ours - q._log_probs()), [-1])


class Multinomial(_Classes):
    """How often each class comes among `total_count` draws of a Categorical."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        self._of_one(name, logits, probs)
        self._kind = self.logits.dtype
        with in_graph():
            self.total_count = tensor(total_count, self._kind)
        if not isinstance(total_count, int | float):
            raise ValueError("tf.distributions.Multinomial: total_count must be one Python number")
        self._count = int(total_count)

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        *wanted, classes = sizes
        batch = len(self.batch_shape)
        count: Any = self._count
        for size in wanted[: len(wanted) - batch]:
            count = count * size
        drawn = self._classes(state, count, [self._count, *wanted])
        found: Tensor = reduce_sum(one_hot(drawn, int(classes), -1, self._kind), [0])
        return found

    def _log_prob(self, x: Tensor) -> Any:
        ways = _lgamma(self.total_count + 1.0) - reduce_sum(_lgamma(x + 1.0), [-1])
        found: Tensor = ways + reduce_sum(lookup("Xlogy")(x, _exp(self._log_probs())), [-1])
        return found

    def _mean(self) -> Any:
        return self.total_count * self.probs

    def _variance(self) -> Any:
        return self.total_count * self.probs * (1.0 - self.probs)
