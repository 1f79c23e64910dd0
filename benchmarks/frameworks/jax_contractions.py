"""Products and convolutions in bare JAX: all results of a call from one jitted function."""

from __future__ import annotations

from typing import Any

import jax
from jax import numpy as jnp

from .. import contractions
from ..contractions import Contraction, Products, Shape
from ..problems import Problem
from .jax_networks import convolve


def products(problem: Problem) -> Products:
    a, b = jnp.array(problem.x), jnp.array(problem.weights["b"][0])

    compute = jax.jit(lambda a, b: [a @ b, a.T @ b, a @ b.T, a.T @ b.T])
    return Products(lambda: compute(a, b), jax.block_until_ready)


def convolution(shape: Shape, problem: Problem) -> Contraction:
    weights = problem.weights
    x, w, dy = map(jnp.array, (problem.x, weights["filters"][0], weights["gradient"][0]))

    def forward(x: Any, w: Any) -> Any:
        return convolve(w, x, stride=shape.stride, padding=shape.padding)

    def all_three(x: Any, w: Any, dy: Any) -> list[Any]:
        y, back = jax.vjp(forward, x, w)
        return [y, *back(dy)]

    compute = jax.jit(all_three)
    return Contraction(lambda: compute(x, w, dy), jax.block_until_ready)


CASES = contractions.cases(products, convolution)
