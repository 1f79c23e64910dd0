"""What computes as it is asked to, and is differentiated otherwise; and `tf.print`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.functions.remat import remat
from laminar.engine.tree import map_structure

from .adapting import in_graph, v1
from .values import symbol


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives what `f` gives, and computes it once more for its gradient."""
    again = remat(f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with in_graph():
            return again(*args, **kwargs)

    return call


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives what `f` gives, with the gradient of the identity of its argument."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with in_graph():
            (x,) = map(symbol, args)
            apart = map_structure(engine.stop_gradient, f(engine.stop_gradient(x), **kwargs))
            return map_structure(lambda y: y + (x - engine.stop_gradient(x)), apart)

    return call


@v1()
def print(  # its name there
    *inputs: Any,
    output_stream: Any = None,
    summarize: int | None = None,
    sep: str = " ",
    end: str = "\n",
) -> Any:
    """Write values to the standard error, or another stream; in a graph, an operation that does.

    Args:
        inputs: tensors, and anything else, which is written as it is now.
        output_stream: sys.stdout, sys.stderr, or "file://" and a path, to the end of which it goes.
        summarize: how many items of each end of an axis are written, 3 unless told; -1 for all.
        sep: what stands between two.
        end: what stands at the end.
    """
    tensors = [symbol(x) for x in inputs if isinstance(x, engine.Tensor | engine.Variable)]
    edge = 3 if summarize is None else summarize

    def write(*arrays: Any) -> Any:
        given = iter(arrays)
        texts = []
        for x in inputs:
            if not isinstance(x, engine.Tensor | engine.Variable):
                texts.append(str(x))
                continue
            most = sys.maxsize if edge < 0 else 2 * edge
            options: Any = {"threshold": most, "edgeitems": max(edge, 1)}
            texts.append(_text(next(given), options))
        line = sep.join(texts) + end
        if isinstance(output_stream, str) and output_stream.startswith("file://"):
            with open(output_stream.removeprefix("file://"), "a", encoding="utf-8") as file:
                file.write(line)
        else:
            (output_stream or sys.stderr).write(line)
        return [np.zeros(0, "int32")]

    done = engine.host_function(write, tensors, [engine.TensorSpec([0], "int32")])[0]
    return getattr(done, "op", None)


def _text(array: Any, options: Any) -> str:
    if array.dtype == object:
        array = np.vectorize(lambda b: b.decode(errors="replace"), otypes=[str])(array)
    return str(array) if not array.shape else np.array2string(array, **options)
