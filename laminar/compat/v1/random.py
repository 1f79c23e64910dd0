"""`tf.random`: draws that a session keeps the state of."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "uniform": ".drawing:random_uniform",
    "normal": ".drawing:random_normal",
    "truncated_normal": ".drawing:truncated_normal",
    "shuffle": ".drawing:random_shuffle",
    "gamma": ".drawing:random_gamma",
    "poisson": ".drawing:random_poisson",
    "categorical": ".drawing:multinomial",
    "multinomial": ".drawing:multinomial",
    "set_random_seed": ".variables:set_random_seed",
}

__getattr__, __dir__ = face(__name__, NAMES)
