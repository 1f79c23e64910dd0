"""Metric: a quantity that is gathered over the batches of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from laminar.engine.errors import UnimplementedError
from laminar.engine.graph import DType, Tensor, as_dtype
from laminar.engine.ops.core.lattice import result_type
from laminar.engine.state import Variable, set_to_zero
from laminar.layers.holding import holding
from laminar.layers.tracking import Tracked

from .. import config, initializers
from ..copying import Copied
from ..dtype_policies import Policy
from ..initializers import InitializerLike
from ..losses.loss import dtype_of
from ..naming import auto_name, who
from ..recorded import Recorded
from ..typing import DTypeLike, Shape


class Metric(Tracked, Recorded, Copied):
    """A quantity over many batches. Abstract: write `__init__`, `update_state` and `result`.

    `__init__` makes variables with `add_variable`, `update_state` adds what a batch contributes,
    `result` computes the quantity from the variables, and `reset_state` sets them to 0 again. All
    of it works on eager values and inside a function that is being traced.

    Args:
        dtype: type of the variables and of the computation, by default `config.floatx()`.
        name: by default the class name in snake case, with a number from the second on.

    Examples:
        >>> class Largest(laminar.metrics.Metric):
        ...     def __init__(self, **options):
        ...         super().__init__(**options)
        ...         self.value = self.add_variable(shape=(), initializer="zeros", name="value")
        ...
        ...     def update_state(self, y_true, y_pred, sample_weight=None):
        ...         self.value.assign(ops.maximum(self.value, ops.max(ops.abs(y_true - y_pred))))
        ...
        ...     def result(self):
        ...         return self.value
        >>> metric = Largest()
        >>> metric.update_state(np.array([1.0, 2.0]), np.array([1.5, 5.0]))
        >>> metric.result().numpy()
        array(3., dtype=float32)
    """

    def __init__(self, dtype: DTypeLike | Policy | None = None, name: str | None = None) -> None:
        self.name = name or auto_name(type(self).__name__)
        self._dtype = as_dtype(config.floatx()) if dtype is None else dtype_of(dtype)

    @property
    def dtype(self) -> DType:
        """The type of the variables and of the computation."""
        return self._dtype

    @property
    def variables(self) -> list[Variable]:
        """What the metric remembers: its variables, and those of metrics it holds."""
        found = {id(v): v for v in self._laminar_own_variables}
        for metric in self._laminar_find(Metric):
            found.update((id(v), v) for v in metric.variables)
        return list(found.values())

    def add_variable(
        self,
        shape: Shape,
        initializer: InitializerLike | None,
        dtype: DTypeLike | Policy | None = None,
        aggregation: str = "sum",
        name: str | None = None,
    ) -> Variable:
        """Make a variable that belongs to the metric.

        Args:
            shape: its dimensions.
            initializer: name or object; None for zeros.
            dtype: by default `config.floatx()`, float64 in a metric of float64: counts in 16 bits
                would stop growing.
            aggregation: how replicas combine it: "sum", "mean" or "only_first_replica".
            name: last part of its path.
        """
        variable = Variable(
            initializers.get(initializer or "zeros"),
            tuple(shape),
            dtype=result_type(self.dtype, as_dtype(config.floatx()))
            if dtype is None
            else dtype_of(dtype),
            trainable=False,
            autocast=False,
            aggregation=aggregation,
            name=name,
        )
        variable.path = f"{self.name}/{variable.name}"
        self.__dict__.setdefault("_laminar_own", []).append(variable)
        return variable

    def add_weight(
        self,
        shape: Shape = (),
        initializer: InitializerLike | None = None,
        dtype: DTypeLike | Policy | None = None,
        name: str | None = None,
    ) -> Variable:
        """Make a variable that belongs to the metric, and that `reset_state` sets to 0.

        Args:
            shape: of the variable.
            initializer: of its value, by default 0.
            dtype: by default that of the metric.
            name: of the variable.
        """
        return self.add_variable(shape, initializer, dtype=dtype, name=name)

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add what a batch contributes.

        Args:
            args: what the class takes: values, or labels and predictions.
            kwargs: such as `sample_weight`.

        Raises:
            UnimplementedError: the class does not write it.
        """
        raise UnimplementedError(f"{type(self).__name__} has no update_state()")

    def result(self) -> Any:
        """The quantity as of now: a tensor, or a dict of tensors.

        Raises:
            UnimplementedError: the class does not write it.
        """
        raise UnimplementedError(f"{type(self).__name__} has no result()")

    def reset_state(self) -> None:
        """Forget all batches: set the variables to 0."""
        set_to_zero(self.variables)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add what a batch contributes, and give the result."""
        self.update_state(*args, **kwargs)
        return self.result()

    # Without state: the values of the variables come and go as arguments

    def stateless_update_state(
        self, metric_variables: Sequence[Any], *args: Any, **kwargs: Any
    ) -> list[Tensor]:
        """The values that the variables would have after `update_state`, had they been these.

        Args:
            metric_variables: one value for each of `variables`.
            *args: passed to `update_state`.
            **kwargs: passed to `update_state`.

        Raises:
            InvalidArgumentError: another number of values.
        """
        with holding(self.variables, metric_variables, who(self)):
            self.update_state(*args, **kwargs)
            return [v.read_value() for v in self.variables]

    def stateless_result(self, metric_variables: Sequence[Any]) -> Any:
        """The result if the variables had these values."""
        with holding(self.variables, metric_variables, who(self)):
            return self.result()

    def stateless_reset_state(self) -> list[Tensor]:
        """The values of the variables after `reset_state`."""
        with holding(self.variables, self.variables, who(self)):
            self.reset_state()
            return [v.read_value() for v in self.variables]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this metric again, as plain data."""
        return {"name": self.name, "dtype": str(self.dtype)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """The metric that `get_config` describes."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


# A name, a metric, its class, a function of labels and predictions, or a config.
MetricLike: TypeAlias = str | Metric | Callable[..., Any] | Mapping[str, Any]
