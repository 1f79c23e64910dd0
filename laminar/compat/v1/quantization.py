"""`tf.quantization`: numbers as they are once they are stored in few bits."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    name: f".fake_quantization:{name}"
    for name in (
        "fake_quant_with_min_max_args",
        "fake_quant_with_min_max_args_gradient",
        "fake_quant_with_min_max_vars",
        "fake_quant_with_min_max_vars_per_channel",
    )
}

__getattr__, __dir__ = face(__name__, NAMES)
