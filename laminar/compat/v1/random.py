"""`tf.random`: draws that a session keeps the state of."""

from __future__ import annotations

from .face import Line, face
from .nn import NAMES as NEURAL

NAMES: dict[str, Line] = {
    "uniform": ".drawing:random_uniform",
    "normal": ".drawing:random_normal",
    "truncated_normal": ".drawing:truncated_normal",
    "get_seed": ".framework:get_seed",
    "log_uniform_candidate_sampler": NEURAL["log_uniform_candidate_sampler"],
    "stateless_categorical": ".stateless:stateless_multinomial",
    "stateless_multinomial": ".stateless:stateless_multinomial",
    "stateless_normal": ".stateless:stateless_random_normal",
    "stateless_truncated_normal": ".stateless:stateless_truncated_normal",
    "stateless_uniform": ".stateless:stateless_random_uniform",
    "uniform_candidate_sampler": NEURAL["uniform_candidate_sampler"],
    "shuffle": ".drawing:random_shuffle",
    "gamma": ".drawing:random_gamma",
    "poisson": ".drawing:random_poisson",
    "categorical": ".drawing:multinomial",
    "multinomial": ".drawing:multinomial",
    "set_random_seed": ".variables:set_random_seed",
}

__getattr__, __dir__ = face(__name__, NAMES)
