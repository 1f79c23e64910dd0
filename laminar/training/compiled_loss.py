"""The loss of a compiled model: that of each output, weighted and summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from laminar import losses, metrics, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.losses import LossLike
from laminar.naming import to_snake_case
from laminar.tree import flatten, is_nested

from ..typing import TensorStructure
from .outputs import Outputs, check_arguments
from .task import by_task

# A loss, or one for each output, in a list or dict; None where an output has none.
LossesLike: TypeAlias = LossLike | Sequence[LossLike | None] | Mapping[str, LossLike | None]


class _Part(NamedTuple):
    """The loss of one output; `tracker` is its mean, where several are reported."""

    name: str
    loss: Any
    factor: float
    tracker: metrics.Mean | None


class CompiledLoss:
    """The weighted sum of the losses of all outputs.

    Args:
        loss: a loss, or a list or dict of them by output.
        loss_weights: a factor for each.
        output_names: names of the model's outputs, as far as they are known.
    """

    def __init__(
        self,
        loss: LossesLike,
        loss_weights: float | Sequence[float] | Mapping[str, float],
        output_names: Sequence[str],
    ) -> None:
        self._loss = loss
        self._weights = loss_weights
        self._output_names = output_names
        self._outputs: Outputs | None = None
        self._parts: list[_Part] = []

    @property
    def trackers(self) -> list[metrics.Mean]:
        """The means of the losses of the outputs, when there are several."""
        return [part.tracker for part in self._parts if part.tracker is not None]

    def build(self, y: Any, y_pred: Any) -> Outputs:
        """Match losses with outputs, once."""
        if self._outputs is not None:
            return self._outputs
        outputs = Outputs(y_pred, self._output_names)
        given = outputs.split(self._loss, "compile: loss", same_for_all=True)
        factors = outputs.split(self._weights, "compile: loss_weights", same_for_all=True)
        targets = self._targets(outputs, given, y)
        several = sum(loss is not None for loss in given) > 1
        for name, loss, factor, target, output in zip(
            outputs.names, given, factors, targets, flatten(y_pred), strict=True
        ):
            tracker = metrics.Mean(name=f"{name}_loss") if several and loss is not None else None
            found = None if loss is None else get_loss(loss, target, output)
            self._parts.append(_Part(name, found, 1.0 if factor is None else factor, tracker))
        self._outputs = outputs
        return outputs

    def _targets(self, outputs: Outputs, given: Sequence[Any], y: Any) -> list[Any]:
        """The target of each output; targets may be left out where there is no loss."""
        if y is None:
            raise InvalidArgumentError(
                "the loss needs targets and the data has none",
                remedy="pass y=, or have the data set yield (x, y)",
            )
        leaves = flatten(y)
        wanted = [loss is not None for loss in given]
        if len(leaves) == sum(wanted) < len(wanted) and not isinstance(y, dict):
            rest = iter(leaves)
            return [next(rest) if has_loss else None for has_loss in wanted]
        if not is_nested(y) or len(wanted) > 1 or isinstance(y, dict):
            return outputs.split(y, "y")
        if len(leaves) != 1:
            raise InvalidArgumentError(
                f"y: the model has one output ({outputs.names[0]}), got {len(leaves)} arrays",
                remedy="pass one array",
            )
        return leaves

    def __call__(
        self,
        y: Any,
        y_pred: Any,
        sample_weight: TensorStructure | None = None,
    ) -> Any:
        """The weighted sum of the losses, a scalar; None when no output has one."""
        outputs = self.build(y, y_pred)
        targets = self._targets(outputs, [part.loss for part in self._parts], y)
        weights = outputs.split(sample_weight, "sample_weight", same_for_all=True)
        total = None
        rows = zip(self._parts, targets, flatten(y_pred), weights, strict=True)
        for part, target, output, weight in rows:
            if part.loss is None:
                continue
            if target is None:
                raise InvalidArgumentError(
                    f"y: the output {part.name!r} has a loss and no target",
                    remedy=f"pass y[{part.name!r}]",
                )
            value = part.loss(target, output, weight)
            if part.tracker is not None:
                part.tracker.update_state(value, sample_weight=ops.shape(output)[0])
            scaled = value if part.factor == 1.0 else value * part.factor
            total = scaled if total is None else total + scaled
        return total


def get_loss(loss: Any, y: Any, y_pred: Any) -> losses.Loss:
    """A loss for an object, a name or a plain function; "crossentropy" by the shapes."""
    if isinstance(loss, str) and loss in _BY_TASK:
        return losses.LossFunctionWrapper(by_task(y, y_pred, _CROSSENTROPIES), name=loss)
    found = losses.get(loss)
    if isinstance(found, losses.Loss):
        return found
    if isinstance(loss, str):
        return losses.LossFunctionWrapper(found, name=loss)
    default = to_snake_case(type(found).__name__)
    return losses.LossFunctionWrapper(found, name=getattr(found, "__name__", default))


_BY_TASK = ("crossentropy", "ce")
_CROSSENTROPIES = (
    losses.binary_crossentropy,
    losses.sparse_categorical_crossentropy,
    losses.categorical_crossentropy,
)


def check_loss(loss: LossesLike | None) -> None:
    """InvalidArgumentError for a name that is not known, and for what is no loss."""
    for entry in flatten(loss):
        if entry is None or (isinstance(entry, str) and entry in _BY_TASK):
            continue
        if not callable(losses.get(entry)):
            raise InvalidArgumentError(f"compile: {entry!r} is not a loss")
        check_arguments(entry, "loss")
