"""Which inputs a symbolic tensor is made of."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import DTypeError
from laminar.layers.symbolic import is_keras_tensor


def get_source_inputs(tensor: Any) -> list[Any]:
    """The inputs that a symbolic tensor of the functional API depends on, first met first.

    Args:
        tensor: what `layers.Input`, or a layer or an op called on such, gives.

    Returns:
        a list of what `layers.Input` gave, each once.

    Raises:
        DTypeError: `tensor` is no symbolic tensor.

    Examples:
        >>> x = layers.Input((3,), name="x")
        >>> laminar.utils.get_source_inputs(layers.Dense(2)(x))[0] is x
        True
    """
    if not is_keras_tensor(tensor):
        raise DTypeError(
            f"get_source_inputs: expected a symbolic tensor, got {tensor!r}",
            remedy="pass the output of a layer called on keras.Input(...)",
        )
    found: dict[int, Any] = {}
    seen: set[int] = set()
    todo = [tensor]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        made_of = []
        if one.has_history:
            operation, index, _ = one.history
            made_of = operation.inbound_nodes[index].inputs
        if not made_of:
            found[id(one)] = one
        todo.extend(reversed(made_of))
    return list(found.values())
