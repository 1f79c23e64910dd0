"""What a network is called with, matched with its symbolic inputs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape, as_dtype
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.cast import cast
from laminar.layers.input import InputLayer
from laminar.layers.symbolic import KerasTensor
from laminar.tree import flatten, is_nested, map_structure


def is_input(tensor: KerasTensor) -> bool:
    """Whether `Input` made the tensor."""
    return tensor.has_history and isinstance(tensor.history.operation, InputLayer)


def name_of(tensor: KerasTensor) -> str:
    """The name of what made the tensor, or its own."""
    return tensor.history.operation.name if tensor.has_history else tensor.name


def matched(
    inputs: Any, structure: Any, symbols: Sequence[KerasTensor], who: str, told: set[str]
) -> list[Any]:
    """The values in `inputs` for each of `symbols`, cast and checked; None for one left out.

    A dict is matched by keys: those of `structure`, or the names of the inputs where that is no
    dict. Everything else is taken in order, with a warning where it nests in another way; lists
    and tuples are the same here, and a list of one is what is in it.

    Args:
        inputs: what a network is called with.
        structure: how its symbolic inputs nest.
        symbols: the symbolic inputs, flat.
        who: the network, for errors.
        told: the structures of which there was a warning, each once; changed in place.

    Raises:
        InvalidArgumentError: a value is missing, there are more or fewer, or None stands for an
            input that is not optional.
        ShapeError: a value has another shape.
    """
    names = [name_of(x) for x in symbols]
    if isinstance(inputs, dict) and not isinstance(structure, dict):
        flat = [_entry(inputs, name, who) for name in names]
    else:
        is_one = len(symbols) == 1 and not is_nested(inputs)
        if not is_one and form(inputs) != form(structure):
            kept = _less(inputs, structure, who)
            if (nested := str(form(inputs))) not in told:
                told.add(nested)
                _warn_of_structure(inputs, structure, who)
            inputs = kept
        flat = flatten(inputs)
    if len(flat) != len(symbols):
        raise InvalidArgumentError(
            f"{who}: expected {len(symbols)} input{'s' if len(symbols) != 1 else ''} "
            f"({', '.join(names)}), got {len(flat)}"
        )
    return [_fit(x, v, n, who) for x, v, n in zip(symbols, flat, names, strict=True)]


def _entry(inputs: dict[Any, Any], key: Any, who: str) -> Any:
    if key not in inputs:
        raise InvalidArgumentError(
            f"{who}: the input {key!r} is missing, got {', '.join(map(str, inputs))}",
            remedy="name the data after the inputs of the model",
        )
    return inputs[key]


def form(structure: Any) -> Any:
    """How a structure nests: lists and tuples alike, a list of one as what is in it."""
    if not is_nested(structure):
        return None
    if isinstance(structure, dict):
        return {key: form(part) for key, part in structure.items()}
    return form(structure[0]) if len(structure) == 1 else [form(part) for part in structure]


def _warn_of_structure(inputs: Any, structure: Any, who: str) -> None:
    """Say how the inputs nest and should; it begins as Keras's warning, for filters of those."""
    expected = map_structure(name_of, structure)
    found = map_structure(lambda x: f"shape {tuple(x.shape)}" if hasattr(x, "shape") else x, inputs)
    warnings.warn(
        f"The structure of `inputs` doesn't match the expected structure of {who}: "
        f"expected {expected}, got {found}",
        stacklevel=2,
    )


def _less(inputs: Any, structure: Any, who: str) -> Any:
    """`inputs` less the entries of dicts that `structure` does not have."""
    if isinstance(structure, dict) and isinstance(inputs, dict):
        return {key: _less(_entry(inputs, key, who), part, who) for key, part in structure.items()}
    if isinstance(structure, list | tuple) and isinstance(inputs, list | tuple):
        if len(structure) == len(inputs):
            return [_less(x, part, who) for x, part in zip(inputs, structure, strict=True)]
    elif isinstance(structure, dict) and list(structure) != sorted(structure):
        raise InvalidArgumentError(
            f"{who}: the inputs are a dict of {', '.join(map(str, structure))}, "
            f"got {type(inputs).__name__}, whose order says nothing of the names",
            remedy="pass a dict",
        )
    return inputs


def _fit(x: KerasTensor, value: Any, name: str, who: str) -> Any:
    if value is None:
        if is_input(x) and not getattr(x.history.operation, "optional", False):
            raise InvalidArgumentError(
                f"{who}: the input {name!r} is None, and is not optional",
                remedy=f"pass a value, or make it with Input(..., name={name!r}, optional=True)",
            )
        return None
    if not isinstance(value, KerasTensor):
        value = convert_to_tensor(value)
    shape = value.shape
    if shape.rank is None:
        return value
    wanted = x.shape
    if len(shape) == len(wanted) - 1 and wanted[-1] == 1:
        return ops.expand_dims(value, -1)
    if len(shape) == len(wanted) + 1 and shape[-1] == 1:
        return ops.squeeze(value, -1)
    if not TensorShape(shape[1:]).is_compatible_with(wanted[1:]) or len(shape) != len(wanted):
        raise ShapeError(
            f"{who}: the input {name!r} must have shape {_batch(wanted)}, got {_batch(shape)}",
            remedy=_shape_remedy(wanted, shape),
        )
    if isinstance(value, Tensor) and value.dtype != x.dtype:
        if value.dtype.is_floating or value.dtype.is_integer or value.dtype == "bool":
            return cast(value, as_dtype(x.dtype)) if x.dtype != "string" else value
        raise InvalidArgumentError(
            f"{who}: the input {name!r} must be {x.dtype}, got {value.dtype}",
            remedy=_TEXT if value.dtype == "string" else "give real numbers",
        )
    return value


_TEXT = (
    "make numbers of the text first, with layers.StringLookup or layers.TextVectorization; inside "
    'the model, behind Input(..., dtype="string")'
)


def _batch(shape: TensorShape) -> str:
    return "(" + ", ".join("?" if d is None else str(d) for d in shape) + ")"


def _shape_remedy(wanted: TensorShape, got: TensorShape) -> str:
    if len(got) == len(wanted) - 1 and TensorShape(got).is_compatible_with(wanted[1:]):
        return "add the batch axis: x[None]"
    if len(got) == len(wanted) - 1:
        return "an axis is missing: add channels with x[..., None], or change Input(shape=...)"
    return "reshape the data, or change Input(shape=...)"
