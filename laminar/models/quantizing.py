"""Quantizing the layers of a model, all that can be or some of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.layers.layer import Layer
from laminar.layers.lora_int8 import MainWeight
from laminar.naming import who

from ..quantizers import QuantizationLike

Filters: TypeAlias = "str | Iterable[str] | Callable[[Layer], bool] | None"


def quantize_layers(
    model: Any, mode: str | None, config: QuantizationLike | None, filters: Filters
) -> list[Layer]:
    """Keep the weights of layers in 8 bits; gives those layers. Arguments as of `Model.quantize`.

    Raises:
        FailedPreconditionError: a layer is not built.
        InvalidArgumentError: another mode, or filters of another kind.
    """
    wanted = _as_function(filters, who(model))
    found: list[Layer] = [
        layer
        for layer in model._laminar_flatten_layers()
        if isinstance(layer, MainWeight) and layer.quantization_mode is None and wanted(layer)
    ]
    unbuilt = [layer.name for layer in found if not layer.built]
    if unbuilt:
        raise FailedPreconditionError(
            f"{who(model)}: quantize() needs built layers, {unbuilt[0]!r} is not built",
            remedy="call the model on data, or build(input_shape), first",
        )
    for layer in found:
        layer.quantize(mode, config=config)
    return found


def _as_function(filters: Filters, who: str) -> Callable[[Layer], bool]:
    if filters is None:
        return lambda layer: True
    if callable(filters):
        return filters
    patterns = [filters] if isinstance(filters, str) else list(filters)
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise InvalidArgumentError(
            f"{who}: filters must be a pattern of names, several, or a function of a layer, "
            f"got {filters!r}"
        )
    return lambda layer: any(re.search(pattern, layer.name) for pattern in patterns)
