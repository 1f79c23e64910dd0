"""What the scripts share: data, weights for any model, and what is compared of a model."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def data(seed: str, *shape: int) -> Any:
    """Normal numbers, the same at every call."""
    return _generator(seed).normal(size=shape).astype("float32")


def labels(seed: str, count: int, classes: int) -> Any:
    """Class numbers, the same at every call."""
    return _generator(seed).integers(0, classes, count)


def _generator(seed: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(seed.encode()))


def fill(model: Any, scale: float = 0.3) -> Any:
    """Set all weights to numbers that depend on their place and shape alone."""
    values = [
        scale * np.abs(data(f"{i}{w.shape}", *w.shape))
        if "variance" in v.name
        else scale * data(f"{i}{w.shape}", *w.shape)
        for i, (v, w) in enumerate(zip(model.weights, model.get_weights(), strict=True))
    ]
    model.set_weights(values)
    return model


def describe(model: Any) -> dict[str, Any]:
    """Names and shapes of a model and of its layers and weights."""
    return {
        "name": model.name,
        "layers": [(type(layer).__name__, layer.name) for layer in model.layers],
        "weights": [(w.path, tuple(w.shape), str(w.dtype)) for w in model.weights],
        "trainable": [w.path for w in model.trainable_weights],
        "non_trainable": [w.path for w in model.non_trainable_weights],
        "params": model.count_params(),
    }


def texts(model: Any, **options: Any) -> str:
    """What `summary` prints."""
    lines: list[str] = []
    model.summary(print_fn=lines.append, **options)
    return "\n".join(lines)
