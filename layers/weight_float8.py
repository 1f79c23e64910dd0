"""Products of numbers in 8 bits of floating point, whose scales are learnt in training."""

from __future__ import annotations

from typing import Any

from laminar import ops, quantizers
from laminar.dtype_policies import QuantizedFloat8DTypePolicy
from laminar.engine.functions import custom_gradient
from laminar.quantizers.float8 import FLOAT8

from .weight_modes import WeightMode

# What is rounded, each with a scale and the largest magnitudes that came last.
_ROUNDED = ("inputs", "kernel", "outputs_grad")
_FORWARD, _BACKWARD = "float8_e4m3fn", "float8_e5m2"


class Float8Mode(WeightMode):
    """The weight stays in floating point; factors of products are rounded to float8.

    Inputs and the weight are rounded to 4 bits of exponent and 3 of mantissa, gradients of outputs
    to 5 and 2, with scales that follow the largest magnitudes of the last steps. The "gradients"
    of the scales, and of these magnitudes, are their next values.

    Source: Micikevicius et al., "FP8 formats for deep learning", 2022, arXiv:2209.05433, section 5.
    """

    name = "float8"
    saved = ("{}", "bias", *(f"{x}_{y}" for x in _ROUNDED for y in ("scale", "amax_history")))
    floats_made = floats_stay = True

    def build(self) -> None:
        default = QuantizedFloat8DTypePolicy.default_amax_history_length
        length = getattr(self.layer._laminar_own_policy, "amax_history_length", default)
        for what in _ROUNDED:
            for suffix, shape, initializer in (
                ("scale", (), "ones"),
                ("amax_history", (length,), "zeros"),
            ):
                name = f"{what}_{suffix}"
                made = self.layer.add_weight(
                    shape,
                    initializer,
                    dtype="float32",
                    autocast=False,
                    overwrite_with_gradient=True,
                    name=name,
                )
                setattr(self.layer, name, made)

    def dequantized(self) -> Any:
        return self.variable()

    def multiply(self, x: Any, training: bool | None) -> Any:
        x, weight = (
            self._rounded_forward(value, what, bool(training))
            for value, what in ((x, "inputs"), (self.variable(), "kernel"))
        )
        return self._rounded_backward(self.product(x, weight))

    def add_bias(self, y: Any, bias: Any) -> Any:
        # The bias is rounded as products on float8 units take it.
        if self.layer.compute_dtype == "float32":
            bias = ops.cast(ops.cast(bias, "bfloat16"), "float32")
        return ops.add(y, bias)

    def _state(self, what: str) -> tuple[Any, Any]:
        scale, history = (
            ops.convert_to_tensor(getattr(self.layer, f"{what}_{suffix}"))
            for suffix in ("scale", "amax_history")
        )
        return scale, history

    def _kept(self, x: Any, scale: Any, dtype: str) -> Any:
        return quantizers.quantize_and_dequantize(x, scale, dtype, self.layer.compute_dtype)

    def _rounded_forward(self, x: Any, what: str, training: bool) -> Any:
        @custom_gradient
        def rounded(x: Any, scale: Any, history: Any) -> Any:
            after = _updated(x, scale, history, _FORWARD) if training else (None, None)
            return self._kept(x, scale, _FORWARD), lambda dy: (dy, *after)

        return rounded(ops.convert_to_tensor(x), *self._state(what))

    def _rounded_backward(self, y: Any) -> Any:
        @custom_gradient
        def passed(y: Any, scale: Any, history: Any) -> Any:
            def backward(dy: Any) -> Any:
                kept = self._kept(dy, scale, _BACKWARD)
                return kept, *_updated(dy, scale, history, _BACKWARD)

            return y, backward

        return passed(y, *self._state("outputs_grad"))


def _updated(x: Any, scale: Any, history: Any, dtype: str) -> tuple[Any, Any]:
    """The scale and the magnitudes for the next step."""
    most = ops.max(history, axis=0)
    return (
        quantizers.compute_float8_scale(most, scale, FLOAT8[dtype].largest),
        quantizers.compute_float8_amax_history(x, history),
    )
