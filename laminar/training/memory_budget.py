"""How much of a network is computed again in the backward pass, for a step to keep to a budget."""

from __future__ import annotations

from typing import Any

from laminar.callbacks.display import format_bytes
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import value_of
from laminar.engine.source import warn
from laminar.naming import who
from laminar.tree import flatten

from .batches import size_of
from .step import Step


class MemoryBudget:
    """Chooses in how many parts the network of a model keeps only what enters them.

    A step is compiled with 1 part (all is kept), then 2, 4, 8, ..., before it runs; the first whose
    intermediate values fit is taken. More parts compute nothing more than twice; but what enters
    them is kept, so where none fits, the one that needs least is taken, with a warning.

    Args:
        num_bytes: for the intermediate values of a training step: what is needed at once of all
            that is neither given, nor a variable, nor a result.

    Source: Chen et al., "Training deep nets with sublinear memory cost", 2016, arXiv:1604.06174.
    """

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self._largest = 0  # the bytes of the largest batch that was looked at

    def choose(self, model: Any, batch: Any) -> None:
        """Make the train step of `model` such that it fits on `batch`.

        Raises:
            InvalidArgumentError: the model has no network of layers, or its step is not compiled.
        """
        size = sum(value_of(x).nbytes for x in flatten(batch) if x is not None)
        if size <= self._largest:
            return
        network = model._laminar_network
        if network is None:
            raise InvalidArgumentError(
                f'{who(model)}: remat="auto" needs a model of layers, one that is Sequential or '
                "made of inputs and outputs",
                remedy="choose the parts yourself: laminar.remat in call(), or RematScope",
            )
        parts = network.parts
        needs = {parts: self._needed(model, batch, parts)}
        while needs[parts] > self.num_bytes and 2 * parts <= len(network.nodes):
            parts *= 2
            needs[parts] = self._needed(model, batch, parts)
            if needs[parts] >= needs[parts // 2]:
                break  # what enters more parts would take more than they save
        if needs[parts] > self.num_bytes:
            parts = min(needs, key=needs.__getitem__)
            warn(
                f"{who(model)}: a training step needs {format_bytes(needs[parts])} for its "
                f"intermediate values, more than memory_budget, {format_bytes(self.num_bytes)}, "
                f"though {parts} parts of the model are computed again: use smaller batches"
            )
        if network.parts != parts:
            self._needed(model, batch, parts)
        self._largest = size

    def _needed(self, model: Any, batch: Any, parts: int) -> int:
        """The bytes that a step works in with so many parts; the model has that step then."""
        model._laminar_network.parts = parts
        model._laminar_forget_steps()
        step = model.make_train_function()
        found = []
        if isinstance(step, Step):
            step.prepare(batch, (size_of(batch),))
            found = step.compiles
        if not found:
            raise InvalidArgumentError(
                f'{who(model)}: remat="auto" needs a training step that is compiled, whose memory '
                "is known before it runs; this one is not",
                remedy="leave out what keeps it from that (run_eagerly, jit_compile=False, "
                "a strategy, stateful layers), or remat",
            )
        return sum(event.arena_bytes for event in found)


def memory_budget(remat: Any, num_bytes: Any) -> MemoryBudget | None:
    """What the arguments of `compile` ask for.

    Raises:
        InvalidArgumentError: another value, or one of both alone.
    """
    if remat is None and num_bytes is None:
        return None
    if remat != "auto":
        raise InvalidArgumentError(
            f'compile: remat must be "auto" or None, got {remat!r}',
            remedy='write remat="auto" with memory_budget; without a budget, '
            "use RematScope or laminar.remat",
        )
    if isinstance(num_bytes, bool) or not isinstance(num_bytes, int) or num_bytes < 1:
        raise InvalidArgumentError(
            f"compile: memory_budget must be a positive number of bytes, got {num_bytes!r}",
            remedy="write 512 * 2**20 for 512 MiB",
        )
    return MemoryBudget(num_bytes)
