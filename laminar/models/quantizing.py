"""Quantizing the layers of a model, all that can be or some of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

from laminar import ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from laminar.engine.source import warn
from laminar.layers.layer import Layer
from laminar.layers.main_weight import MainWeight
from laminar.layers.weight_calibrated import CalibratedMode
from laminar.naming import who
from laminar.quantizers import AWQConfig, GPTQConfig, QuantizationConfig
from laminar.quantizers.calibration import calibration_sequences
from laminar.recorded import is_ours

Filters: TypeAlias = "str | Iterable[str] | Callable[[Layer], bool] | None"


def quantize_layers(
    model: Any, config: QuantizationConfig, filters: Filters, *, type_check: bool
) -> None:
    """Keep the weights of layers in few bits. Arguments as of `Model.quantize`.

    Raises:
        InvalidArgumentError: a layer is not built, or quantized already; filters of another kind;
            or nothing says in which order a mode that looks at data goes through the layers.
    """
    wanted = _as_function(filters, who(model))
    if isinstance(config, GPTQConfig | AWQConfig):
        _calibrate(model, config, wanted)
        return
    for layer in model._laminar_flatten_layers():
        if wanted(layer) and _has_no_parts(layer):
            _quantize(layer, config, type_check)


def _has_no_parts(layer: Any) -> bool:
    return len(layer._laminar_flatten_layers()) == 1


def _quantize(layer: Any, config: QuantizationConfig, type_check: bool) -> None:
    """Quantize a layer that can be; warn of one of the user's own that would seem to be."""
    try:
        layer.quantize(config.mode, type_check=type_check, config=config)
    except UnimplementedError as error:
        if not is_ours(type(layer)) and layer.weights:
            warn(f"{who(layer)} stays as it is: {error.message}")


def _as_function(filters: Filters, who: str) -> Callable[[Layer], bool]:
    if filters is None:
        return lambda layer: True
    if callable(filters):
        return filters
    is_known = isinstance(filters, str | list | tuple)
    patterns = [filters] if isinstance(filters, str) else list(filters) if is_known else []
    if not is_known or not all(isinstance(pattern, str) for pattern in patterns):
        raise InvalidArgumentError(
            f"{who}: filters must be a pattern of names, several, or a function of a layer, "
            f"got {filters!r}"
        )
    return lambda layer: any(re.search(pattern, layer.name) for pattern in patterns)


def _calibrate(model: Any, config: GPTQConfig | AWQConfig, wanted: Callable[[Layer], bool]) -> None:
    """Round the layers of one block after the other, for what the blocks before give."""
    before, blocks = _structure(model, config)
    if config.dataset is None or config.tokenizer is None:
        raise InvalidArgumentError(
            f"{who(model)}: the mode {config.mode!r} looks at data",
            remedy=f"give {type(config).__name__} a dataset and a tokenizer",
        )
    sequences = calibration_sequences(
        config.dataset, config.tokenizer, config.num_samples, config.sequence_length
    )
    samples = [ops.convert_to_tensor(ids) for ids in sequences]
    for layer in before:
        samples = [layer(x) for x in samples]
    for block in blocks:
        _round_block(block, samples, config, wanted)
        samples = [block(x) for x in samples]


def _structure(model: Any, config: GPTQConfig | AWQConfig) -> tuple[Sequence[Any], Sequence[Any]]:
    """The layers before the blocks, and the blocks."""
    found = config.quantization_layer_structure
    if found is None:
        found = model.get_quantization_layer_structure(config.mode)
    blocks = found.get("sequential_blocks") if isinstance(found, Mapping) else None
    if not blocks:
        raise InvalidArgumentError(
            f"{who(model)}: For {config.mode!r} mode, a valid quantization structure must be "
            f"provided, got {found!r}",
            remedy="give the configuration quantization_layer_structure={'pre_block_layers': "
            "[...], 'sequential_blocks': [...]}, or write get_quantization_layer_structure(mode)",
        )
    return found.get("pre_block_layers") or (), blocks


def _round_block(
    block: Any, samples: Sequence[Any], config: Any, wanted: Callable[[Layer], bool]
) -> None:
    """Round the weights in a block, for inputs that come from its samples."""
    found: list[tuple[CalibratedMode, Any]] = []
    for layer in block._laminar_flatten_layers():
        if not isinstance(layer, MainWeight) or not wanted(layer):
            continue
        _quantize(layer, config, type_check=True)
        for kept in layer._laminar_kept:
            if isinstance(kept, CalibratedMode):
                found.append((kept, kept.observer()))
    with ExitStack() as stack:
        for kept, observer in found:
            stack.enter_context(kept.observed_by(observer))
        for x in samples:
            block(x)
    for kept, observer in found:
        if not observer.count:
            raise FailedPreconditionError(
                f"{who(kept.layer)}: the samples did not come to it, so it cannot be rounded",
                remedy="leave it out with filters, or put it into the structure",
            )
        kept.calibrate(observer)
