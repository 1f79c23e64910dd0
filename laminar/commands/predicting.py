"""laminar predict: what a model gives for inputs of a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.export import Exported
from laminar.tree import flatten

from .arrays import FORMATS, as_data, read_array, write_results
from .found import Found
from .opening import open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", help="a .keras model, or a .laminar export")
    parser.add_argument(
        "--input",
        action="append",
        required=True,
        metavar="FILE",
        help=f"{FORMATS}; - for JSON from the standard input; again for each further argument",
    )
    parser.add_argument("--output", metavar="FILE", help=f"{FORMATS}; otherwise it is printed")
    parser.add_argument("--endpoint", help="the function of an export, by default the first")
    parser.add_argument("--batch-size", type=int, default=32, help="of a model (default: 32)")


def run(options: argparse.Namespace) -> Found:
    """Call the model on the inputs."""
    call = caller(open_model(options.file), options.endpoint, options.batch_size)
    results = call(*(read_array(path) for path in options.input))
    shapes = [list(np.shape(y)) for y in flatten(results)]
    if options.output is not None:
        write_results(options.output, results)
        return Found({"output": options.output, "shapes": shapes}, [f"{options.output}: {shapes}"])
    data = as_data(results)
    return Found(data, [str(np.asarray(y)) for y in flatten(results)])


def caller(model: Any, endpoint: str | None = None, batch_size: int = 32) -> Callable[..., Any]:
    """What computes the results of a model, or of an export, for arrays.

    Raises:
        InvalidArgumentError: there is no such endpoint; by what is returned, it takes other inputs.
    """
    if not isinstance(model, Exported):
        if endpoint is not None:
            raise InvalidArgumentError("a model has no endpoints", remedy="leave out --endpoint")
        if batch_size < 1:
            raise InvalidArgumentError(f"the batch size is at least 1, got {batch_size}")

        def predict(*inputs: Any) -> Any:
            x = inputs[0] if len(inputs) == 1 else list(inputs)
            return model.predict(x, batch_size=batch_size, verbose=0)

        return predict
    name = next(iter(model.endpoints)) if endpoint is None else endpoint
    if name not in model.endpoints:
        raise InvalidArgumentError(
            f"there is no endpoint {name!r}", remedy=f"it has {', '.join(model.endpoints)}"
        )
    found = model.endpoints[name]

    def call(*inputs: Any) -> Any:
        return found(*inputs)

    return call
