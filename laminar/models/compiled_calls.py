"""Calls of models on values: traced and compiled from the second of a form on.

What is seen of a call stays what it is op by op: its outputs (up to rounding), updates of
variables, gradients on tapes, errors at the line of the call. So only models made of laminar's own
code alone are traced: with a class of the user's among the layers, a function of the user's as an
activation or in a Lambda, or a layer that adds losses or reports, all calls run op by op, and what
that code does besides is done each time. Whatever changes a layer (an attribute that is set, a
layer that is added, `trainable`, `compile`) has the next call look again; a model that is changed
all the time stays with single ops. So does every call while a graph is built, in a device scope or
a StatelessScope, under `compile(run_eagerly=True)` or `jit_compile=False`, with masks or other
arguments than inputs and `training`, and, where rows of a variable are looked up, under a tape: the
gradient is an IndexedSlices there. A call that fails runs once more op by op, for its error: it has
changed no variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from laminar.engine.functions import ConcreteFunction
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import EagerTensor, resource, stack
from laminar.engine.ops.array.gather import gather_op
from laminar.engine.ops.core.arrays import Defaults
from laminar.engine.ops.core.recording import recorders
from laminar.engine.state import current_scope
from laminar.engine.state.autocasting import autocast_dtype
from laminar.layers.context import current
from laminar.layers.layer import Layer
from laminar.layers.masking import get_mask
from laminar.layers.weights import trainable_changes
from laminar.recorded import is_ours
from laminar.tree import flatten

from ..training.step import Step, batch_form
from .network import Network

# What `compiled_call` gives for a call that is to run op by op.
NOT_COMPILED = object()
# From this use of a form on, calls are compiled; after so many looks at its layers a model is not.
_USES = 2
_MOST_LOOKS = 8
# Attributes whose functions no call runs.
_NOT_CALLED = ("_initializer", "_regularizer", "_constraint")


class Called(Protocol):
    """A model, as seen from here."""

    _laminar_network: Network | None
    _laminar_calls: CompiledCalls | None
    built: bool

    @property
    def run_eagerly(self) -> bool: ...
    @property
    def jit_compile(self) -> Any: ...
    @property
    def _laminar_devices(self) -> Any: ...
    @property
    def _laminar_workers(self) -> Any: ...
    def _clear_losses(self) -> None: ...
    def _laminar_flatten_layers(self) -> Sequence[Any]: ...
    def _laminar_to_tensor(self, leaf: Any) -> Any: ...
    def _laminar_call_plainly(self, inputs: Any, training: bool | None) -> Any: ...


class _LeavesMoreError(Exception):
    """A call leaves more behind than its outputs and the values of variables."""


class CompiledCalls:
    """The calls of one model.

    `_forms[form]` is how often a form was used, then the step that runs it; None where it stays
    with single ops. `_layers` are the layers as of the last look, `_seen` what was seen of them
    then, `_looks` how many there were. `_by_rows` has the graphs in which rows are looked up.
    """

    def __init__(self, model: Called) -> None:
        self.model = model
        self._forms: dict[Any, int | Step | None] = {}
        self._layers: Sequence[Any] = ()
        self._seen: list[Any] = []
        self._looks = 0
        self._is_plain = False
        self._by_rows: dict[ConcreteFunction, bool] = {}

    def run(self, inputs: Any, training: bool | None) -> Any:
        """The outputs, NOT_COMPILED where the call is to run op by op."""
        if self._state() != self._seen:
            self._look()
        if not self._is_plain:
            return NOT_COMPILED
        tensors: list[EagerTensor] = []
        form = training, autocast_dtype(), Defaults.floating, batch_form(inputs, tensors)
        if not tensors or not all(len(x.shape) and get_mask(x) is None for x in tensors):
            return NOT_COMPILED
        step = self._forms.get(form, 0)
        if isinstance(step, int):
            step = self._forms[form] = step + 1 if step + 1 < _USES else self._step(training)
        if not isinstance(step, Step):
            return NOT_COMPILED
        try:
            concrete = step.trace(inputs)
        except Exception:  # what cannot be traced may well run op by op
            self._forms[form] = None
            return NOT_COMPILED
        if recorders.active and self._looks_up_rows(concrete):
            return NOT_COMPILED
        try:
            return step(inputs)
        except Exception:  # op by op it fails at the line of this call
            return NOT_COMPILED

    def _step(self, training: bool | None) -> Step:
        def call(inputs: Any) -> Any:
            outer, current.context = current.context, None
            try:
                outputs = self.model._laminar_call_plainly(inputs, training)
                if _has_left(self._layers) or any(
                    get_mask(y) is not None for y in flatten(outputs)
                ):
                    raise _LeavesMoreError
            finally:
                current.context = outer
                self.model._clear_losses()
            return outputs

        is_stateful = any(getattr(layer, "stateful", False) for layer in self._layers)
        return Step(call, eager=False, one_size=is_stateful)

    def _state(self) -> list[Any]:
        """What is another one when a layer has been changed."""
        state: list[Any] = [trainable_changes()]
        for layer in self._layers:
            state += layer._laminar_version, vars(layer).get("call")
        return state

    def _look(self) -> None:
        """Look through the layers, which are not what they were."""
        self._looks += 1
        self._forms.clear()
        self._by_rows.clear()
        self._layers = self.model._laminar_flatten_layers()
        self._is_plain = self._looks <= _MOST_LOOKS and _is_plain(self.model, self._layers)
        self._seen = self._state()

    def _looks_up_rows(self, concrete: ConcreteFunction | None) -> bool:
        """Whether a tape would be given the gradient of some variable by rows."""
        if concrete is None:
            return False
        found = self._by_rows.get(concrete)
        if found is None:
            variables = {id(x) for x in concrete.captured_inputs if x.dtype == resource}
            found = False
            for op in concrete.operations:
                reads = op.inputs and id(op.inputs[0]) in variables
                if reads and getattr(op.definition, "row_gradient", None) is not None:
                    variables.update(map(id, op.outputs))
                    found = found or op.definition is gather_op
            self._by_rows[concrete] = found
        return found


def _has_left(layers: Iterable[Any]) -> bool:
    """Whether a call has added losses or reports."""
    return any(layer._laminar_losses or layer._laminar_reports for layer in layers)


def _is_plain(model: Called, layers: Sequence[Any]) -> bool:
    """Whether calls run nothing but laminar's own code, and may be compiled."""
    if model._laminar_network is None or not model.built or _has_left(layers):
        return False
    if model.run_eagerly or model.jit_compile is False:
        return False
    if model._laminar_devices is not None or model._laminar_workers is not None:
        return False
    for layer in layers:
        network = getattr(layer, "_laminar_network", None)
        if not _is_ours_alone(layer, own_attributes=network is None):
            return False
        for node in () if network is None else network.nodes:
            if not _is_ours_alone(
                node.operation, own_attributes=not isinstance(node.operation, Layer)
            ):
                return False
            if any(map(_is_users_code, flatten((node.args, node.kwargs)))):
                return False
    return True


def _is_ours_alone(operation: Any, *, own_attributes: bool) -> bool:
    """Whether what an operation computes is laminar's code, that of its attributes included."""
    kind, attributes = type(operation), vars(operation)
    if not is_ours(kind) or "call" in attributes:
        return False
    if not all(_module(fn).startswith("laminar.") for fn in (kind.call, kind.__call__)):
        return False  # a method that somebody has put into the class
    return not own_attributes or not any(
        _is_users_code(value)
        for name, given in attributes.items()
        if not name.endswith(_NOT_CALLED)
        for value in flatten(given)
    )


def _is_users_code(value: Any) -> bool:
    """Whether it is a function, or an object that can be called, which laminar does not have."""
    if not callable(value) or isinstance(value, type):
        return False
    return not _module(value).startswith("laminar.")


def _module(value: Any) -> str:
    return str(getattr(value, "__module__", None) or type(value).__module__)


def compiled_call(model: Called, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The outputs of a call of a model on values, NOT_COMPILED where it is to run op by op."""
    if len(args) != 1 or (kwargs and kwargs.keys() != {"training"}):
        return NOT_COMPILED
    if stack.items or stack.place is not None or current_scope() is not None:
        return NOT_COMPILED
    if current.added_losses is not None:
        return NOT_COMPILED
    for recorder in recorders.active:
        if type(recorder) is not GradientTape:
            return NOT_COMPILED
    training = kwargs.get("training")
    if training is None and current.context is not None:
        training = current.context.training
    if training is not None and type(training) is not bool:
        return NOT_COMPILED
    inputs = _tensors(model, args[0])
    if inputs is None:
        return NOT_COMPILED
    calls = model._laminar_calls
    if calls is None or calls.model is not model:  # of the model that this is a copy of
        calls = CompiledCalls(model)
        object.__setattr__(model, "_laminar_calls", calls)
    return calls.run(inputs, training)


def _tensors(model: Called, inputs: Any) -> Any:
    """The inputs as tensors of the host, None where they are of another kind."""
    kind = type(inputs)
    if kind is EagerTensor or kind is np.ndarray:
        found = model._laminar_to_tensor(inputs)
        return found if type(found) is EagerTensor else None
    if kind is dict:
        parts = {key: _tensors(model, value) for key, value in inputs.items()}
        return None if any(part is None for part in parts.values()) else parts
    if kind is list or kind is tuple:
        items = [_tensors(model, value) for value in inputs]
        return None if any(item is None for item in items) else kind(items)
    return None
