"""NanCheck: steps that end with the name of what first gave a value that is not finite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from laminar.engine.errors import FailedPreconditionError
from laminar.engine.functions import ConcreteFunction
from laminar.engine.graph import EagerTensor, GraphTensor, Operation
from laminar.engine.ops.math.arithmetic import divide
from laminar.engine.ops.math.elementary import exp, log, log1p, power, rsqrt, sqrt
from laminar.tree import flatten

from .arrays import nan_report
from .step import Step
from .training_state import Snapshot

_REMEDIES: dict[Any, str] = {
    log: "keep the argument above zero: add epsilon, or clip it",
    log1p: "keep the argument above -1",
    sqrt: "keep the argument at zero or above; its slope at zero is infinite: add epsilon",
    rsqrt: "keep the argument above zero: add epsilon",
    divide: "keep the divisor away from zero: add epsilon, or use ops.divide_no_nan",
    power: "keep the base above zero",
    exp: "limit the argument, or work with logits and from_logits=True",
}
_REMEDY = "lower the learning rate, clip the gradients (clipnorm=1.0), or scale the inputs"


class NanCheck:
    """Runs a step and looks at the loss and the weights after it.

    When one of them is not finite, the step is taken back and run again, op by op, with every
    value kept, and the first operation is named that made something infinite of finite inputs.

    Args:
        model: what is trained.
        step: its step, which is traced: eager models are checked in a trace, too.
        epoch: for messages.
        begun: steps of the epoch that were done before.

    Raises:
        FailedPreconditionError: something is not finite.
    """

    def __init__(self, model: Any, step: Step, epoch: int, begun: int = 0) -> None:
        self._model = model
        self._step = step.traced()
        self._epoch = epoch
        self._count = begun
        self._check_weights("before training")

    def __call__(self, batch: Any) -> Any:
        """Run the step."""
        report = nan_report(batch)
        if report is not None:
            raise self._error(report, "fill or drop them first, as with numpy.nan_to_num")
        concrete = self._step.trace(batch)
        assert concrete is not None, "the step is traced"
        before = Snapshot(self._model)
        results = self._step(batch)
        loss = results.get("loss") if isinstance(results, dict) else None
        if (loss is not None and not _is_finite(np.asarray(loss))) or self._bad_weights():
            before.restore()
            try:
                self._explain(concrete, batch)
            finally:
                before.restore()
        self._count += 1
        return results

    def _bad_weights(self) -> list[Any]:
        return [v for v in self._model.weights if not _is_finite(v.numpy())]

    def _check_weights(self, when: str) -> None:
        bad = self._bad_weights()
        if bad:
            raise self._error(
                f"the weight {bad[0].path!r} is not finite {when}: "
                f"{_described(np.asarray(bad[0]))}",
                "set the weights anew, or load them from a good checkpoint",
            )

    def _explain(self, concrete: ConcreteFunction, batch: Any) -> None:
        tensors = [leaf for leaf in flatten(batch) if isinstance(leaf, EagerTensor)]
        operations = concrete.operations
        wanted = [y for op in operations for y in op.outputs if y.dtype.is_floating]
        every = ConcreteFunction(concrete.graph, concrete.name, concrete.inputs, wanted)
        values = {
            id(y): np.asarray(value)
            for y, value in zip(wanted, every.call_flat(tensors), strict=True)
        }
        values |= {
            id(x): np.asarray(value)
            for x, value in zip(concrete.inputs, tensors, strict=True)
            if x.dtype.is_floating
        }
        bad = {key for key, value in values.items() if not _is_finite(value)}
        origins = [op for op in _origins(concrete, bad) if op.inputs]
        if not origins:
            raise self._error("the loss or a weight is not finite", _REMEDY)
        self._blame(min(origins, key=lambda op: op.id), values)

    def _blame(self, op: Operation, values: dict[int, Any]) -> None:
        found = next(
            values[id(y)] for y in op.outputs if id(y) in values and not _is_finite(values[id(y)])
        )
        inputs = [_described(values[id(x)]) for x in op.inputs if id(x) in values]
        layer = op.layer or _layer_behind(op)
        where = f" of layer {layer!r}"
        # What a layer's call makes has its name in front, unlike what its gradients are made of.
        if not (op.layer and op.name.startswith(op.layer)):
            where = f" behind layer {layer!r}, in the loss, a gradient or the update"
        raise self._error(
            f"operation {op.name!r} ({op.type}){where} gave {_described(found)} "
            f"from {' and '.join(inputs) or 'nothing'}",
            _REMEDIES.get(op.definition, _REMEDY),
            op,
        )

    def _error(
        self, text: str, remedy: str, op: Operation | None = None
    ) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"fit: batch {self._count} of epoch {self._epoch + 1}: {text}",
            remedy=remedy,
            location=None if op is None else op.location,
            layer=None if op is None else op.layer or None,
        )


def _origins(concrete: ConcreteFunction, bad: set[int]) -> Iterator[Operation]:
    """The operations that made bad values of good ones, and from which the results have theirs."""
    sinks = [x for op in concrete.effects for x in op.inputs]
    stack: list[GraphTensor] = [y for y in (*concrete.outputs, *sinks) if id(y) in bad]
    seen: set[int] = set()
    while stack:
        op = stack.pop().op
        if op.id in seen:
            continue
        seen.add(op.id)
        before = [x for x in op.inputs if id(x) in bad]
        if not before:
            yield op
        stack += before


def _layer_behind(op: Operation) -> str:
    """The layer of the nearest operation that leads here and belongs to one."""
    level, seen = [op], {op.id}
    while level:
        level = [x.op for o in level for x in o.inputs if x.op.id not in seen]
        seen.update(o.id for o in level)
        for found in sorted(level, key=lambda o: -o.id):
            if found.layer:
                return found.layer
    return ""


def _is_finite(value: Any) -> bool:
    return value.dtype.kind not in "fcV" or bool(np.isfinite(value.astype("float64")).all())


def _described(value: Any) -> str:
    """A value in few words: "float32[8, 4] with 3 NaN" or "float32[4] from 0.0 to 1.5"."""
    name = f"{value.dtype}{list(value.shape)}"
    wide = np.asarray(value).astype("float64")
    counts = [(int(np.isnan(wide).sum()), "NaN"), (int(np.isinf(wide).sum()), "infinite")]
    found = [f"{count} {kind}" for count, kind in counts if count]
    if found:
        return f"{name} with {' and '.join(found)} of {wide.size}"
    if not wide.size:
        return name
    return f"{name} from {wide.min():.6g} to {wide.max():.6g}"
