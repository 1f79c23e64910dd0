"""A call of `laminar.ops`, and numbers for it.

They are rounded to three decimals, so that every float type and the text of a JSON file hold the
same in all places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(42)


class Case(NamedTuple):
    """One call.

    Attributes:
        name: of the function, "image.resize" for one of a sub-namespace.
        args: positional arguments.
        kwargs: keyword arguments.
        rtol: tolerance, relative and absolute.
        static: whether it needs the size of the first axis while a graph is built.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    rtol: float = 2e-5
    static: bool = False

    @property
    def id(self) -> str:
        """What stands for the case in the reference file."""
        parts = [_text(a) for a in self.args]
        parts += [f"{key}={_text(value)}" for key, value in self.kwargs.items()]
        return f"{self.name}({', '.join(parts)})"


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}".replace(" ", "")
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(v) for v in value) + "]"
    return repr(value)


def names(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def f(*shape: int) -> Array:
    """Normal numbers."""
    return np.round(rng.normal(size=shape), 3).astype("float32")


def u(*shape: int) -> Array:
    """Numbers between 0.1 and 0.9."""
    return np.round(rng.uniform(0.1, 0.9, shape), 3).astype("float32")


def i(*shape: int) -> Array:
    """Whole numbers from 1 to 5."""
    return rng.integers(1, 6, shape).astype("int32")


def b(*shape: int) -> Array:
    """Bools."""
    return rng.integers(0, 2, shape).astype(bool)


def c(name: str, *args: Any, rtol: float = 2e-5, static: bool = False, **kwargs: Any) -> Case:
    """A case."""
    return Case(name, args, kwargs, rtol, static)
