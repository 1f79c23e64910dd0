"""`tf.random.stateless_...`: the same seeds give the same numbers, at every call.

The seed is two whole numbers, which are the key of the generator. The numbers are not those of
TensorFlow's generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws

from .adapting import v1
from .values import as_kind, static, tensor


def _state(seed: Any) -> Tensor:
    """The state of a generator: a counter of 0, and the seed as its key."""
    given = tensor(seed, "int64")
    if given.shape.rank not in (None, 1) or given.shape[0] not in (None, 2):
        raise ShapeError(f"a seed has two whole numbers, got {given.spec}")
    key = cast(given, "uint32")
    return concat([key, tensor([0, 0], "uint32")], 0)


@v1()
def stateless_random_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32"
) -> Tensor:
    """Numbers uniform in [minval, maxval); of integers, maxval is needed."""
    kind, size = as_kind(dtype), static(shape)
    if kind.is_integer:
        if maxval is None:
            raise ValueError("stateless_random_uniform: integers need a maxval")
        return draws.random_int(_state(seed), size, static(minval), static(maxval), kind)
    high = 1.0 if maxval is None else maxval
    return draws.random_uniform(_state(seed), size, minval, high, kind)


def _normal(draw: Callable[..., Tensor]) -> Callable[..., Any]:
    @v1()
    def normal(
        shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32"
    ) -> Tensor:
        return draw(_state(seed), static(shape), mean, stddev, as_kind(dtype))

    normal.__doc__ = draw.__doc__
    return normal


stateless_random_normal = _normal(draws.random_normal)
stateless_truncated_normal = _normal(draws.random_truncated_normal)


@v1(output_dtype="dtype")
def stateless_multinomial(logits: Any, num_samples: Any, seed: Any, dtype: Any = "int64") -> Tensor:
    """Classes drawn by the log-probabilities of each row: (rows, num_samples)."""
    found = draws.random_categorical(_state(seed), tensor(logits), static(num_samples))
    return cast(found, as_kind(dtype))
