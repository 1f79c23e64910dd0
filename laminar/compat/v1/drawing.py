"""Random numbers under the arguments of TensorFlow 1.

In a graph each draw has a generator of its own, which a session keeps, as in TensorFlow: other
numbers at each run, the same ones again in a new session where a seed says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.graph import Tensor
from laminar.engine.ops.array.slicing import slice_at
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .values import as_kind, static, tensor


@v1()
def random_uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32", seed: Any = None
) -> Tensor:
    """Numbers uniform in [minval, maxval); of integers, maxval is needed."""
    kind, size = as_kind(dtype), static(shape)
    if kind.is_integer:
        if maxval is None:
            raise ValueError("random_uniform: integers need a maxval")
        low, high = static(minval), static(maxval)
        return draws.random_int(draw_state(seed), size, low, high, kind)
    high = 1.0 if maxval is None else maxval
    return draws.random_uniform(draw_state(seed), size, minval, high, kind)


def _normal(draw: Callable[..., Tensor]) -> Callable[..., Any]:
    @v1()
    def normal(
        shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32", seed: Any = None
    ) -> Tensor:
        return draw(draw_state(seed), static(shape), mean, stddev, as_kind(dtype))

    normal.__doc__ = draw.__doc__
    return normal


random_normal = _normal(draws.random_normal)
truncated_normal = _normal(draws.random_truncated_normal)


@v1()
def random_shuffle(value: Any, seed: Any = None) -> Tensor:
    """The rows in random order."""
    return draws.random_shuffle(draw_state(seed), tensor(value))


@v1()
def random_gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = "float32", seed: Any = None
) -> Tensor:
    """Numbers of the gamma distribution, `shape` of them for each alpha."""
    kind = as_kind(dtype)
    a = tensor(alpha, kind)
    size = [*static(shape), *a.shape]
    found = draws.random_gamma(draw_state(seed), size, a, kind)
    return found if beta is None else found / tensor(beta, kind)


@v1()
def random_poisson(lam: Any, shape: Any, dtype: Any = "float32", seed: Any = None) -> Tensor:
    """Numbers of the Poisson distribution, `shape` of them for each mean."""
    kind = as_kind(dtype)
    mean = tensor(lam, kind)
    return draws.random_poisson(draw_state(seed), [*static(shape), *mean.shape], mean, kind)


@v1()
def multinomial(
    logits: Any, num_samples: Any, seed: Any = None, output_dtype: Any = "int64"
) -> Tensor:
    """Classes drawn with the probabilities softmax(logits), for each row."""
    return draws.random_categorical(
        draw_state(seed), tensor(logits), static(num_samples), as_kind(output_dtype)
    )


@v1()
def random_crop(value: Any, size: Any, seed: Any = None) -> Tensor:
    """A block of `size` at a random place."""
    x, wanted = tensor(value), static(size)
    starts = [
        draws.random_int(draw_state(seed), [], 0, int(whole or 0) - int(part) + 1)
        for whole, part in zip(x.shape, wanted, strict=True)
    ]
    for axis, (start, part) in enumerate(zip(starts, wanted, strict=True)):
        x = _window(x, axis, start, int(part))
    return x


def _window(x: Tensor, axis: int, start: Tensor, size: int) -> Tensor:
    begin: list[Any] = [0] * len(x.shape)
    begin[axis] = start
    return slice_at(x, begin, [size if a == axis else -1 for a in range(len(x.shape))])
