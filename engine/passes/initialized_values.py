"""Where a step runs an initializer, what depends on the variable's initial value comes after it.

InitializedValue is what a variable holds, or else its initial value. In a step that assigns just
that it is the initial value itself, and whatever else takes the variable waits for the assignment:
so variables whose initial values depend on each other are initialised together in any order.
"""

from __future__ import annotations

from ..graph import GraphTensor, Operation
from ..ops.state.variable import assign, ensure_initialized, initialized_value
from .step_graph import StepGraph

_ASKS = (initialized_value, ensure_initialized)


def initializes_and_asks(step: StepGraph) -> bool:
    """Whether a step is to be ordered so."""
    return any(op.definition in _ASKS for op in step.operations) and bool(_initializers(step))


def order_initializers(step: StepGraph) -> None:
    """Have initial values that depend on variables see what the step initialises these to."""
    initializers = _initializers(step)
    pairs: list[tuple[GraphTensor, GraphTensor]] = []
    ensured: set[int] = set()
    for op in step.operations:
        initializer = initializers.get(id(op.inputs[0])) if op.inputs else None
        if initializer is None or op is initializer:
            continue
        if op.definition is initialized_value:
            pairs.append((op.outputs[0], op.inputs[1]))
        elif op.definition is ensure_initialized:
            ensured.add(op.id)
    for op in step.operations:
        waits = [c for c in op.control_inputs if c.id not in ensured]
        if op.definition not in _ASKS:
            for x in op.inputs:
                first = initializers.get(id(x), op)
                if first not in (op, *waits):
                    waits.append(first)
        op.control_inputs = waits
    step.replace(pairs)
    step.trim()


def _initializers(step: StepGraph) -> dict[int, Operation]:
    """By the id of a variable's handle, what initialises it in this step."""
    values = {id(op.inputs[0]): op.inputs[1] for op in step.operations if op.definition in _ASKS}
    return {
        id(op.inputs[0]): op
        for op in step.operations
        if op.definition is assign and values.get(id(op.inputs[0])) is op.inputs[1]
    }
