"""`tf.random`: draws that a session keeps the state of."""

from __future__ import annotations

import importlib
from typing import Any

from .face import Line, face

NAMES: dict[str, Line] = {
    "uniform": ".drawing:random_uniform",
    "normal": ".drawing:random_normal",
    "truncated_normal": ".drawing:truncated_normal",
    "get_seed": ".framework:get_seed",
    **{
        f"{kind}_candidate_sampler": f".sampling:{kind}_candidate_sampler"
        for kind in ("all", "fixed_unigram", "log_uniform", "uniform")
    },
    "stateless_categorical": ".stateless:stateless_multinomial",
    "stateless_multinomial": ".stateless:stateless_multinomial",
    "stateless_normal": ".stateless:stateless_random_normal",
    "stateless_truncated_normal": ".stateless:stateless_truncated_normal",
    "stateless_uniform": ".stateless:stateless_random_uniform",
    "shuffle": ".drawing:random_shuffle",
    "gamma": ".drawing:random_gamma",
    "poisson": ".drawing:random_poisson",
    "categorical": ".drawing:multinomial",
    "multinomial": ".drawing:multinomial",
    "set_random_seed": ".variables:set_random_seed",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return importlib.import_module(".random_experimental", __package__)
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "experimental"})
