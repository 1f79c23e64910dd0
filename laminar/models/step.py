"""A step of training, evaluation or prediction as one traced function.

The batch dimension is unknown in the trace, so a short last batch or another batch size runs the
same graph. `_concrete[form]` is the graph for batches of one form (structure, dtypes, sizes),
and what puts its outputs in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.graph import EagerTensor, GraphTensor, Tensor, TensorSpec
from laminar.engine.runtime import Machine
from laminar.tree import map_structure

Pack: TypeAlias = "Callable[[Sequence[Tensor]], Any]"


class Step:
    """`step(batch)` on tensors: traced once for each form of batch, or run op by op.

    Args:
        step: what a batch goes through.
        eager: whether to run it op by op, for debugging.
        native: whether to run native code where there is some.
        machine: the devices to run on, by default those of the process.
    """

    def __init__(
        self,
        step: Callable[[Any], Any],
        *,
        eager: bool,
        native: bool = True,
        machine: Machine | None = None,
    ) -> None:
        self._machine = machine
        self._step = step
        self._native = native
        self._function = None if eager else Function(step)
        self._concrete: dict[Any, tuple[ConcreteFunction, Pack]] = {}

    def __call__(self, batch: Any) -> Any:
        """Run the step."""
        if self._function is None:
            return self._step(batch)
        tensors: list[EagerTensor] = []
        form = _form(batch, tensors)
        found = self._concrete.get(form)
        if found is None:
            found = self._concrete[form] = self._trace(batch)
        concrete, pack = found
        return pack(concrete.call_matching(tensors))

    @property
    def compiles(self) -> list[Any]:
        """What was compiled for the batches so far, and why (engine/compiler/report.py)."""
        bodies = [b for concrete, _ in self._concrete.values() for b in concrete.clusters]
        return [event for body in bodies for event in getattr(body.native, "events", ())]

    def traced(self) -> Step:
        """This step if it is traced; else one that is."""
        if self._function is not None:
            return self
        return Step(self._step, eager=False, native=self._native, machine=self._machine)

    def trace(self, batch: Any) -> ConcreteFunction | None:
        """The graph for batches of this form, made if it is not there; None when run op by op."""
        if self._function is None:
            return None
        form = _form(batch, [])
        if form not in self._concrete:
            self._concrete[form] = self._trace(batch)
        return self._concrete[form][0]

    def _trace(self, batch: Any) -> tuple[ConcreteFunction, Pack]:
        assert self._function is not None, "only what is traced gets here"
        concrete = self._function.concrete(map_structure(batch_spec, batch))
        concrete.machine = self._machine
        concrete.compiled = self._native
        return concrete, _packer(concrete)


def _packer(concrete: ConcreteFunction) -> Pack:
    """What puts flat outputs in order; a plain dict, as most steps give, without a walk over it."""
    form = concrete.structured_outputs
    if type(form) is not dict or not all(isinstance(v, GraphTensor) for v in form.values()):
        return concrete.pack
    places = {id(output): i for i, output in enumerate(concrete.outputs)}
    if len(places) != len(concrete.outputs):  # one tensor under two names
        return concrete.pack
    items = [(name, places[id(output)]) for name, output in form.items()]
    return lambda flat: {name: flat[i] for name, i in items}


def _form(value: Any, tensors: list[EagerTensor]) -> Any:
    """What a trace depends on; the tensors of `value` are added to `tensors`, as flattened."""
    if isinstance(value, EagerTensor):
        tensors.append(value)
        array = value.value
        return array.dtype.num, array.shape[1:]
    if isinstance(value, dict):
        return tuple([(key, _form(value[key], tensors)) for key in sorted(value)])
    if isinstance(value, list | tuple):
        return type(value), *[_form(part, tensors) for part in value]
    return None


def batch_spec(tensor: Any) -> Any:
    """The spec of a batch of any size."""
    if tensor is None:
        return None
    return TensorSpec((None, *tensor.shape[1:]), tensor.dtype)
