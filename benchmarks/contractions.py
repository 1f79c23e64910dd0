"""Products of matrices and convolutions by themselves, as each framework has its users write them.

`python -m benchmarks.kernels` measures more of them, kernel against kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .cases import Case
from .problems import SEED, Array, Problem

SIZES = (128, 256, 512, 1024, 2048)
TRANSPOSITIONS = 4  # of neither, one, the other, and both operands


class Shape(NamedTuple):
    """Of a convolution: square images of `size`, windows of `window`; padded at stride 1 alone."""

    images: int
    size: int
    channels: int
    filters: int
    window: int
    stride: int
    padding: int

    @property
    def output(self) -> int:
        """The size of the images that come out."""
        return (self.size + 2 * self.padding - self.window) // self.stride + 1

    @property
    def title(self) -> str:
        """What it is."""
        inputs = f"{self.images} of {self.size}x{self.size}x{self.channels}"
        window = f"{self.window}x{self.window} to {self.filters}"
        return f"{inputs}, {window}" + (f", stride {self.stride}" if self.stride > 1 else "")


CONVOLUTIONS = {
    "16": Shape(32, 32, 16, 16, 3, 1, 1),
    "32": Shape(32, 16, 32, 32, 3, 1, 1),
    "64": Shape(32, 8, 64, 64, 3, 1, 1),
    "56x56": Shape(8, 56, 64, 64, 3, 1, 1),
    "stride-2": Shape(32, 33, 16, 32, 3, 2, 0),
    "1-channel": Shape(128, 28, 1, 32, 3, 1, 0),
    "digits": Shape(128, 26, 32, 64, 3, 1, 0),
}


def matrices(size: int) -> Problem:
    """Two square matrices."""
    draw = np.random.default_rng(SEED)
    a, b = (draw.standard_normal((size, size), "float32") for _ in range(2))
    return Problem(a, np.zeros(size, "int32"), {"b": [b]}, batch=size)


def images(shape: Shape) -> Problem:
    """Images, filters, and a gradient of the output."""
    draw = np.random.default_rng(SEED)
    n, size, channels, filters, window = shape[:5]

    def normal(*sizes: int) -> Array:
        return draw.standard_normal(sizes, "float32")

    weights = {
        "filters": [normal(window, window, channels, filters)],
        "gradient": [normal(n, shape.output, shape.output, filters)],
    }
    return Problem(normal(n, size, size, channels), np.zeros(n, "int32"), weights, batch=n)


def tiny(shape: Shape) -> Shape:
    """The same kind of convolution, small."""
    return shape._replace(images=2, size=2 * shape.stride + 5, filters=4)


def workloads() -> Iterator[tuple[str, str, Callable[[], Problem], Callable[[], Problem]]]:
    """Name, title, problem, and tiny problem of each."""
    for n in SIZES:
        title = f"product of {n}x{n} matrices, mean of all transpositions"
        yield f"matmul-{n}", title, lambda n=n: matrices(n), lambda: matrices(5)  # type: ignore[misc]  # mypy takes n for an argument
    for name, shape in CONVOLUTIONS.items():
        title = f"convolution and both gradients, {shape.title}"
        yield f"conv-{name}", title, lambda s=shape: images(s), lambda s=shape: images(tiny(s))  # type: ignore[misc]  # as above


class Contraction(Case):
    """What computes a list of results again and again; `compute` gives them."""

    def __init__(self, compute: Callable[[], list[Any]], wait: Callable[[Any], object]) -> None:
        self.compute, self.wait = compute, wait

    def checks(self) -> list[float]:
        """The beginning and the end of each result, channels last."""
        found = [np.asarray(y).ravel() for y in self.compute()]
        return [float(number) for y in found for number in (*y[:3], *y[-3:], y.mean())]

    def run(self) -> None:
        self.wait(self.compute())


class Products(Contraction):
    """Four products; the time is that of one."""

    steps = TRANSPOSITIONS


def cases(
    products: Callable[[Problem], Case], convolution: Callable[[Shape, Problem], Case]
) -> dict[str, Callable[[Problem], Case]]:
    """The cases of a framework, by the names of their workloads."""
    found: dict[str, Callable[[Problem], Case]] = {f"matmul-{n}": products for n in SIZES}
    for name, shape in CONVOLUTIONS.items():
        found[f"conv-{name}"] = lambda p, shape=shape: convolution(shape, p)  # type: ignore[misc]  # as above
    return found
