"""`tf.distributions`: probability distributions."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    **{
        name: f".continuous_distributions:{name}"
        for name in (
            "Beta",
            "Dirichlet",
            "Exponential",
            "Gamma",
            "Laplace",
            "Normal",
            "StudentT",
            "Uniform",
        )
    },
    **{
        name: f".discrete_distributions:{name}"
        for name in ("Bernoulli", "Categorical", "Multinomial")
    },
    **{
        name: f".distribution:{name}"
        for name in (
            "Distribution",
            "FULLY_REPARAMETERIZED",
            "NOT_REPARAMETERIZED",
            "RegisterKL",
            "ReparameterizationType",
            "kl_divergence",
        )
    },
}

__getattr__, __dir__ = face(__name__, NAMES)
