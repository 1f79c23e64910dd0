"""Loss: what all losses have in common, and the losses that wrap a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from laminar.engine.errors import DTypeError, UnimplementedError
from laminar.engine.functions import converted_in_graph
from laminar.engine.graph import DType, Tensor, as_dtype
from laminar.layers.masking import get_mask

from .. import config, dtype_policies, ops, tree
from ..dtype_policies import Policy
from ..naming import auto_name
from ..recorded import Recorded
from ..serialization import deserialize_keras_object, serialize_keras_object
from ..typing import DTypeLike, TensorLike, TensorStructure
from .alignment import squeeze_or_expand_to_same_rank
from .reduction import Reduction, reduce_weighted_values, standardize_reduction

_NEVER = object()  # equal to no value of an option


class Loss(Recorded):
    """A number that says how far predictions are from labels. Abstract: write `call`.

    Args:
        name: by default the class name in snake case.
        reduction: how the values of a batch become one number: "sum_over_batch_size" (or "mean"),
            "sum", "mean_with_sample_weight", or "none" (or None) to keep them; see `reduce_values`.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> class Cubic(laminar.losses.Loss):
        ...     def call(self, y_true, y_pred):
        ...         return ops.mean(ops.abs(y_true - y_pred) ** 3, axis=-1)
        >>> Cubic()([[1.0], [2.0]], [[2.0], [4.0]])
        Tensor(4.5, shape=(), dtype=float32)
        >>> Cubic(reduction="sum")([[1.0], [2.0]], [[2.0], [4.0]])
        Tensor(9., shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = None,
        reduction: Reduction | None = "sum_over_batch_size",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        self.name = name or auto_name(type(self).__name__)
        self.reduction = standardize_reduction(reduction)
        self._laminar_dtype = None if dtype is None else dtype_of(dtype)

    @property
    def dtype(self) -> DType:
        """The type in which the loss is computed."""
        return self._laminar_dtype or as_dtype(config.floatx())

    def __call__(
        self,
        y_true: TensorStructure,
        y_pred: TensorStructure,
        sample_weight: TensorLike | None = None,
    ) -> Tensor:
        """The reduced loss of predictions.

        Args:
            y_true: labels: an array, or a structure of arrays like `y_pred`.
            y_pred: predictions: (batch, ...).
            sample_weight: a number, or one weight for each sample or for each value of `call`.

        Raises:
            ShapeError: labels and predictions do not belong together.
        """
        mask = get_mask(y_pred)
        y_pred = _map_arrays(lambda y: ops.convert_to_tensor(y, dtype=self.dtype), y_pred)
        y_true = _map_arrays(self._laminar_convert_labels, y_true)
        values = converted_in_graph(self.call)(y_true, y_pred)
        out_mask = get_mask(values)
        if mask is None:
            mask = out_mask
        elif out_mask is not None:
            mask = ops.logical_and(mask, out_mask)
        return reduce_weighted_values(
            values, sample_weight, mask, reduction=self.reduction, dtype=self.dtype
        )

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each sample: (batch, ...).

        Args:
            y_true: labels.
            y_pred: predictions, of the same shape unless the class says otherwise.

        Raises:
            UnimplementedError: the class does not write it.
        """
        raise UnimplementedError(
            f"{type(self).__name__} has no call(self, y_true, y_pred)",
            remedy="write it: it gives one value for each sample",
        )

    def _laminar_refuse_text(self, y_true: TensorLike) -> None:
        if str(getattr(y_true, "dtype", "")) == "string":
            raise DTypeError(
                f"{type(self).__name__} {self.name!r}: the labels are text",
                remedy="number the classes first, such as with "
                "layers.StringLookup(vocabulary=classes, num_oov_indices=0)",
            )

    def _laminar_convert_labels(self, y_true: TensorLike) -> Tensor:
        self._laminar_refuse_text(y_true)
        return ops.convert_to_tensor(y_true, dtype=self.dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this loss again, as plain data."""
        given: dict[str, Any] = {"name": self.name, "reduction": self.reduction}
        if self._laminar_dtype is not None:
            given["dtype"] = str(self._laminar_dtype)
        return given

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """The loss that `get_config` describes."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, reduction {self.reduction!r}>"


# A name, a loss, its class, a function of labels and predictions, or a config.
LossLike: TypeAlias = str | Loss | Callable[..., Any] | Mapping[str, Any]


class LossFunctionWrapper(Loss):
    """A function (y_true, y_pred, **options) -> values of (batch, ...) as a `Loss`.

    Args:
        fn: the function.
        reduction: see `Loss`.
        name: by default that of the function.
        dtype: see `Loss`.
        **kwargs: options of the function.

    Examples:
        >>> distance = lambda y_true, y_pred, power: ops.abs(y_true - y_pred) ** power
        >>> laminar.losses.LossFunctionWrapper(distance, power=3)([1.0, 2.0], [2.0, 4.0])
        Tensor(4.5, shape=(), dtype=float32)
    """

    # Options that Keras never writes to a config: here they are written unless they are these.
    _unwritten: ClassVar[dict[str, Any]] = {}
    # Where Keras keeps it, for files that Keras is to read.
    _keras_module: ClassVar[str | None] = "keras.src.losses.losses"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._keras_module = None

    def __init__(
        self,
        fn: Callable[..., Any],
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn = fn
        self._options = kwargs

    def __getattr__(self, name: str) -> Any:
        # only what the instance has not is looked for here: its options can be read
        options = self.__dict__.get("_options", {})
        if name in options:
            return options[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def call(self, y_true: Any, y_pred: Any) -> Any:
        fn = converted_in_graph(self.fn)
        if tree.is_nested(y_pred) or tree.is_nested(y_true):
            return fn(y_true, y_pred, **self._options)
        return fn(*squeeze_or_expand_to_same_rank(y_true, y_pred), **self._options)

    def get_config(self) -> dict[str, Any]:
        given = super().get_config()
        if type(self) is LossFunctionWrapper:
            options = serialize_keras_object(self._options)
            return {**given, "fn": serialize_keras_object(self.fn), **options}
        written = {k: v for k, v in self._options.items() if self._unwritten.get(k, _NEVER) != v}
        return given | written

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        return cls(**deserialize_keras_object(config))


class ClassNumberLoss(LossFunctionWrapper):
    """A `LossFunctionWrapper` whose labels are class numbers: they keep their type and shape.

    As floats, those above 256 would be rounded in bfloat16.
    """

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.fn(y_true, y_pred, **self._options)

    def _laminar_convert_labels(self, y_true: TensorLike) -> Tensor:
        self._laminar_refuse_text(y_true)
        return ops.convert_to_tensor(y_true)


def _map_arrays(fn: Callable[[Any], Any], x: TensorStructure) -> Any:
    """Apply `fn` to each array of a structure; nested lists of numbers are one array."""
    if all(isinstance(leaf, bool | int | float) for leaf in tree.flatten(x)):
        return fn(x)
    return tree.map_structure(fn, x)


def dtype_of(dtype: DTypeLike | Policy) -> DType:
    """The element type that a name, dtype or dtype policy means."""
    policy = dtype_policies.get(dtype) if isinstance(dtype, str) else dtype
    return as_dtype(getattr(policy, "compute_dtype", policy))
