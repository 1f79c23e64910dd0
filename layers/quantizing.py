"""What holds before any layer is quantized, whoever wrote its `quantize`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from laminar import quantizers
from laminar.engine.errors import InvalidArgumentError
from laminar.naming import who
from laminar.quantizers import QuantizationLike


def mark_quantized(layer: Any) -> None:
    """From now on the layer counts as quantized. Packages that write `quantize` set the same."""
    layer._is_quantized = True


def is_quantized(layer: Any) -> bool:
    """Whether the variables of the layer are those of its mode."""
    return bool(getattr(layer, "_is_quantized", False))


def checked(quantize: Callable[..., None]) -> Callable[..., None]:
    """Decorator of a layer's `quantize`: it gets a mode and its configuration, for a built layer.

    Raises:
        InvalidArgumentError: another mode or configuration; or the layer is not built, is
            quantized already, or computes in float16, which does not hold sums of "int8".
    """

    @functools.wraps(quantize)
    def wrapped(
        self: Any,
        mode: str | None = None,
        config: QuantizationLike | None = None,
        **kwargs: Any,
    ) -> None:
        found = quantizers.as_config(mode, config, who(self))
        if not self.built:
            raise InvalidArgumentError(
                f"{who(self)}: Cannot quantize a layer that isn't yet built.",
                remedy="call the layer on data, or build(input_shape), first",
            )
        if is_quantized(self):
            policy = self._laminar_own_policy.name
            raise InvalidArgumentError(
                f"{who(self)} is already quantized with dtype_policy={policy!r}"
            )
        if found.mode == "int8" and self.compute_dtype == "float16":
            raise InvalidArgumentError(
                f"{who(self)}: the mode 'int8' is too wide for float16",
                remedy="make the layer with another policy, such as mixed_bfloat16",
            )
        quantize(self, mode=found.mode, config=found, **kwargs)

    return wrapped
