"""Numbers in 8 bits: x is kept as round(x * scale), with a scale for each row or for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import ml_dtypes

from . import ops
from .engine.errors import InvalidArgumentError
from .engine.graph import as_dtype
from .serialization import deserialize_keras_object, list_builtins, lookup, serialize_keras_object
from .typing import TensorLike

Axes = int | Sequence[int] | None


def abs_max_quantize(
    inputs: TensorLike,
    axis: Axes,
    value_range: tuple[int, int] = (-127, 127),
    dtype: str = "int8",
    epsilon: float = 1e-7,
    to_numpy: bool = False,
) -> tuple[Any, Any]:
    """Whole numbers that stand for floats, and their scale: x is about outputs / scale.

    scale = value_range[1] / (max |x| + epsilon), outputs = clip(round(x * scale), *value_range).

    Args:
        inputs: floats.
        axis: over which the maximum is taken, so that they have one scale; None for all axes.
        value_range: the smallest and the largest output.
        dtype: of the outputs.
        epsilon: keeps the scale finite.
        to_numpy: whether to give NumPy arrays.

    Returns:
        The outputs, and the scale, whose `axis` has size 1.
    """
    x = ops.convert_to_tensor(inputs)
    most = ops.max(ops.abs(x), axis=axis, keepdims=True)
    scale = ops.divide(value_range[1], ops.add(most, epsilon))
    scale = ops.cast(scale, x.dtype)
    outputs = ops.cast(ops.clip(ops.round(ops.multiply(x, scale)), *value_range), dtype)
    if to_numpy:
        return ops.convert_to_numpy(outputs), ops.convert_to_numpy(scale)
    return outputs, scale


def quantize_and_dequantize(
    inputs: TensorLike, scale: Any, quantized_dtype: str, compute_dtype: str
) -> Any:
    """`inputs / scale`, clipped to what `quantized_dtype` holds and kept in it, times `scale`.

    Raises:
        InvalidArgumentError: `quantized_dtype` is no element type with a sign.
    """
    most = _largest(quantized_dtype)
    x = ops.divide(ops.cast(inputs, compute_dtype), ops.cast(scale, compute_dtype))
    x = ops.clip(x, -most, most)
    if quantized_dtype.startswith("int"):
        x = ops.round(x)
    kept = ops.cast(ops.cast(x, quantized_dtype), compute_dtype)
    return ops.multiply(kept, ops.cast(scale, compute_dtype))


class Quantizer:
    """What makes whole numbers of floats: called on floats, it gives (outputs, scale).

    Args:
        output_dtype: of the outputs.
    """

    def __init__(self, output_dtype: str = "int8") -> None:
        self.output_dtype = output_dtype

    def __call__(self, x: TensorLike) -> Any:
        """The numbers as they are: derived classes say otherwise."""
        return x

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {"output_dtype": self.output_dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Quantizer:
        """The quantizer that `get_config` described."""
        return cls(**config)


class AbsMaxQuantizer(Quantizer):
    """`abs_max_quantize` with its arguments."""

    def __init__(
        self,
        axis: Axes = None,
        value_range: tuple[int, int] = (-127, 127),
        epsilon: float = 1e-7,
        output_dtype: str = "int8",
    ) -> None:
        super().__init__(output_dtype)
        self.axis = (axis,) if isinstance(axis, int) else None if axis is None else tuple(axis)
        self.value_range = tuple(value_range)
        self.epsilon = epsilon

    def __call__(self, x: TensorLike, axis: Axes = None, to_numpy: bool = False) -> tuple[Any, Any]:
        """The outputs and their scale; `axis` instead of the one that it was made with."""
        low, high = self.value_range
        return abs_max_quantize(
            x,
            self.axis if axis is None else axis,
            (low, high),
            self.output_dtype,
            self.epsilon,
            to_numpy,
        )

    def get_config(self) -> dict[str, Any]:
        config = {
            "value_range": self.value_range,
            "epsilon": self.epsilon,
            "output_dtype": self.output_dtype,
        }
        return config if self.axis is None else {**config, "axis": self.axis}


class QuantizationConfig:
    """How a layer is quantized.

    Args:
        weight_quantizer: of the weights; None for the layer's own choice.
        activation_quantizer: of the inputs; None to leave them as they are.
    """

    mode: str = ""

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = None) -> None:
        self.weight_quantizer = get(weight_quantizer)
        self.activation_quantizer = get(activation_quantizer)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {
            "weight_quantizer": serialize(self.weight_quantizer),
            "activation_quantizer": serialize(self.activation_quantizer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        """The configuration that `get_config` described."""
        return cls(**config)


class Int8QuantizationConfig(QuantizationConfig):
    """Weights in 8 bits, with a scale for each output; by default inputs too, with one a row."""

    mode = "int8"

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = "default") -> None:
        if activation_quantizer == "default":
            activation_quantizer = AbsMaxQuantizer()
        super().__init__(weight_quantizer, activation_quantizer)


_QUANTIZERS: dict[str, Any] = {
    "AbsMaxQuantizer": AbsMaxQuantizer,
    "Int8QuantizationConfig": Int8QuantizationConfig,
    "QuantizationConfig": QuantizationConfig,
    "Quantizer": Quantizer,
}
_ALIASES = {"abs_max_quantizer": AbsMaxQuantizer}

list_builtins("keras.quantizers", _QUANTIZERS)


def serialize(quantizer: Any) -> Any:
    """A quantizer, or a configuration, as plain data."""
    return serialize_keras_object(quantizer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """What `serialize` described."""
    return deserialize_keras_object(config, custom_objects, module_objects=_QUANTIZERS)


# A quantizer or configuration, or its name, class or config.
QuantizationLike: TypeAlias = (
    Quantizer
    | QuantizationConfig
    | type[Quantizer]
    | type[QuantizationConfig]
    | str
    | dict[str, Any]
)


def get(identifier: QuantizationLike | None) -> Any:
    """A quantizer: given as such, by its name or its config; None stays None.

    Raises:
        InvalidArgumentError: the name is not known.
    """
    if identifier is None or isinstance(identifier, Quantizer | QuantizationConfig):
        return identifier
    return lookup("quantizer", identifier, {**_QUANTIZERS, **_ALIASES})


def as_config(
    mode: str | QuantizationConfig | None, config: QuantizationLike | None, who: str
) -> QuantizationConfig:
    """How a layer is to be quantized, from the arguments of its `quantize`.

    Raises:
        InvalidArgumentError: another mode than "int8", or a configuration of another.
    """
    found = get(config)
    if isinstance(mode, QuantizationConfig):
        found, mode = mode, mode.mode
    mode = mode or (found.mode if found is not None else None)
    if mode != "int8" or (found is not None and found.mode != mode):
        raise InvalidArgumentError(
            f"{who}: quantize() takes the mode 'int8', got mode={mode!r}, config={config!r}",
            remedy="call quantize('int8')",
        )
    return Int8QuantizationConfig() if found is None else found


def _largest(dtype: str) -> float:
    """The largest finite number of an element type."""
    kind = as_dtype(dtype)
    if kind.is_floating:
        return float(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]  # it has no hints
    if kind.is_integer and not kind.startswith("u"):
        return float(2 ** (8 * kind.size - 1) - 1)
    raise InvalidArgumentError(
        f"quantize_and_dequantize: expected a type of numbers with a sign, got {dtype!r}"
    )
