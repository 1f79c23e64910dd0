"""Numbers in few bits: quantizers, configurations of layers, and what they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..engine.errors import InvalidArgumentError
from ..registration import list_builtins
from ..serialization import deserialize_keras_object, lookup, serialize_keras_object
from .configs import AWQConfig as AWQConfig
from .configs import Float8QuantizationConfig as Float8QuantizationConfig
from .configs import GPTQConfig as GPTQConfig
from .configs import Int4QuantizationConfig as Int4QuantizationConfig
from .configs import Int8QuantizationConfig as Int8QuantizationConfig
from .configs import QuantizationConfig as QuantizationConfig
from .fake_quant import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from .float8 import compute_float8_amax_history as compute_float8_amax_history
from .float8 import compute_float8_scale as compute_float8_scale
from .nibbles import pack_int4 as pack_int4
from .nibbles import unpack_int4 as unpack_int4
from .quantizer import AbsMaxQuantizer as AbsMaxQuantizer
from .quantizer import Quantizer as Quantizer
from .rounding import abs_max_quantize as abs_max_quantize
from .rounding import (
    abs_max_quantize_grouped_with_zero_point as abs_max_quantize_grouped_with_zero_point,
)
from .rounding import quantize_and_dequantize as quantize_and_dequantize

_QUANTIZERS: dict[str, Any] = {
    "AWQConfig": AWQConfig,
    "AbsMaxQuantizer": AbsMaxQuantizer,
    "Float8QuantizationConfig": Float8QuantizationConfig,
    "GPTQConfig": GPTQConfig,
    "Int4QuantizationConfig": Int4QuantizationConfig,
    "Int8QuantizationConfig": Int8QuantizationConfig,
    "QuantizationConfig": QuantizationConfig,
    "Quantizer": Quantizer,
}
_CONFIGS: dict[Any, Any] = {
    "int8": Int8QuantizationConfig,
    "int4": Int4QuantizationConfig,
    "float8": Float8QuantizationConfig,
    "gptq": GPTQConfig,
    "awq": AWQConfig,
}
_NEEDS_CONFIG = ("gptq", "awq")  # data says how weights are rounded
_ALIASES = {"abs_max_quantizer": AbsMaxQuantizer}

list_builtins("keras.quantizers", _QUANTIZERS)


def serialize(quantizer: Any) -> Any:
    """A quantizer, or a configuration, as plain data.

    Args:
        quantizer: a quantizer.

    Returns:
        a dict with its class and config, as JSON can hold it.

    Examples:
        >>> laminar.quantizers.serialize(laminar.quantizers.AbsMaxQuantizer(axis=0))["class_name"]
        'AbsMaxQuantizer'
    """
    return serialize_keras_object(quantizer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """What `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        a quantizer.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> config = laminar.quantizers.serialize(laminar.quantizers.AbsMaxQuantizer(axis=0))
        >>> laminar.quantizers.deserialize(config).axis
        (0,)
    """
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

    Args:
        identifier: a quantizer, its name, class or config.

    Returns:
        a quantizer.

    Raises:
        InvalidArgumentError: the name is not known.

    Examples:
        >>> laminar.quantizers.get("abs_max_quantizer").value_range
        (-127, 127)
    """
    if identifier is None or isinstance(identifier, Quantizer | QuantizationConfig):
        return identifier
    return lookup("quantizer", identifier, {**_QUANTIZERS, **_ALIASES})


def as_config(
    mode: str | QuantizationConfig | None, config: QuantizationLike | None, who: str
) -> QuantizationConfig:
    """How a layer is to be quantized, from the arguments of its `quantize`.

    Raises:
        InvalidArgumentError: another mode, a configuration of another one, or none where the mode
            needs one.

    Examples:
        >>> laminar.quantizers.as_config("int8", None, "dense").mode
        'int8'
    """
    if isinstance(config, str):  # the mode, as older programs pass it
        mode, config = config, None
    found = mode if isinstance(mode, QuantizationConfig) else get(config)
    if found is None and mode in _NEEDS_CONFIG:
        raise InvalidArgumentError(
            f"{who}: the mode {mode!r} needs a configuration",
            remedy=f"quantize(config=quantizers.{_CONFIGS[mode].__name__}(dataset, tokenizer))",
        )
    if found is None and mode in _CONFIGS:
        found = _CONFIGS[mode]()
    if not isinstance(found, QuantizationConfig) or found.mode not in _CONFIGS:
        raise InvalidArgumentError(
            f"{who}: Invalid quantization mode. Expected one of {', '.join(_CONFIGS)}, "
            f"got mode={mode!r}, config={config!r}",
        )
    if mode not in (None, found, found.mode):
        raise InvalidArgumentError(
            f"{who}: Contradictory arguments: the mode is {mode!r}, that of the configuration "
            f"{found.mode!r}"
        )
    return found
