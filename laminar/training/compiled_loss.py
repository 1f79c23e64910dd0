"""The loss of a compiled model: that of each output, weighted and summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from laminar import losses, metrics
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.losses import LossLike
from laminar.naming import to_snake_case
from laminar.tree import flatten, flatten_with_path, is_nested, pack_sequence_as

from ..typing import TensorStructure
from .loss_structure import Path, Share, name_of, part_at, shares
from .outputs import Outputs, batch_size, check_arguments
from .task import by_task

# A loss, or one for each output, in a list or dict; None where an output has none. They nest as the
# outputs do, and lists may hold several losses for one part of them.
LossesLike: TypeAlias = LossLike | Sequence[Any] | Mapping[str, Any]


class _Part(NamedTuple):
    """A loss of the outputs at `path`; `tracker` is its mean, where several are reported."""

    path: Path
    name: str
    loss: Any
    factor: float
    tracker: metrics.Mean | None


class CompiledLoss:
    """The weighted sum of the losses of all outputs.

    Args:
        loss: a loss, or a structure of them; see `shares`.
        loss_weights: a factor for each.
        output_names: names of the model's outputs, as far as they are known.
    """

    def __init__(
        self,
        loss: LossesLike,
        loss_weights: float | Sequence[Any] | Mapping[str, Any] | None,
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
        found = shares(self._loss, self._weights, outputs)
        targets = self._targets(outputs, found, y)
        paths = [share.path for share in found]
        for path, loss, factor in found:
            made = get_loss(loss, part_at(targets, path), part_at(y_pred, path))
            is_own = paths.count(path) > 1 or outputs.are_numbered
            name = made.name if is_own else name_of(path, outputs)
            name = _free(name, [part.name for part in self._parts])
            tracker = metrics.Mean(name=f"{name}_loss") if len(found) > 1 else None
            self._parts.append(_Part(path, name, made, factor, tracker))
        self._outputs = outputs
        return outputs

    def _targets(self, outputs: Outputs, parts: Sequence[Share | _Part], y: Any) -> Any:
        """The targets in the structure of the outputs; those without a loss may be left out."""
        if y is None:
            raise InvalidArgumentError(
                "the loss needs targets and the data has none",
                remedy="pass y=, or have the data set yield (x, y)",
            )
        leaves = flatten(y)
        paths = [path for path, _ in flatten_with_path(outputs.form)]
        wanted = [any(path[: len(p.path)] == p.path for p in parts) for path in paths]
        if len(leaves) == sum(wanted) < len(wanted) and not isinstance(y, dict):
            rest = iter(leaves)
            found = [next(rest) if has_loss else None for has_loss in wanted]
        elif not is_nested(y) or len(wanted) > 1 or isinstance(y, dict):
            found = outputs.split(y, "y")
        elif len(leaves) == 1:
            found = leaves
        else:
            raise InvalidArgumentError(
                f"y: the model has one output ({outputs.names[0]}), got {len(leaves)} arrays",
                remedy="pass one array",
            )
        return pack_sequence_as(outputs.form, found)

    def __call__(
        self,
        y: Any,
        y_pred: Any,
        sample_weight: TensorStructure | None = None,
    ) -> Any:
        """The weighted sum of the losses, a scalar; None when no output has one."""
        outputs = self.build(y, y_pred)
        targets = self._targets(outputs, self._parts, y)
        given = outputs.split(sample_weight, "sample_weight", same_for_all=True)
        weights = pack_sequence_as(outputs.form, given)
        total = None
        for path, name, loss, factor, tracker in self._parts:
            target, output = part_at(targets, path), part_at(y_pred, path)
            if any(leaf is None for leaf in flatten(target)):
                raise InvalidArgumentError(
                    f"y: the output {name!r} has a loss and no target", remedy=f"pass y[{name!r}]"
                )
            value = loss(target, output, _one_weight(part_at(weights, path), name))
            if tracker is not None:
                tracker.update_state(value, sample_weight=batch_size(output))
            scaled = value if factor == 1.0 else value * factor
            total = scaled if total is None else total + scaled
        return total


def _one_weight(weights: Any, name: str) -> Any:
    """The sample weight of a part of the outputs, which has one."""
    first, *others = flatten(weights)
    if any(w is not first for w in others):
        raise InvalidArgumentError(
            f"sample_weight: the loss {name!r} is of several outputs, which have different weights",
            remedy="pass one array of weights",
        )
    return first


def _free(name: str, taken: Sequence[str]) -> str:
    count, free = 1, name
    while free in taken:
        free, count = f"{name}_{count}", count + 1
    return free


def get_loss(loss: Any, y: Any, y_pred: Any) -> losses.Loss:
    """A loss for an object, a name or a plain function; "crossentropy" by the shapes."""
    if isinstance(loss, str) and loss in _BY_TASK and not is_nested(y_pred):
        return losses.LossFunctionWrapper(by_task(y, y_pred, _CROSSENTROPIES), name=loss)
    found = losses.get(loss)
    if isinstance(found, losses.Loss):
        return found
    if isinstance(loss, str):
        return losses.LossFunctionWrapper(found, name=loss)
    name = to_snake_case(getattr(found, "__name__", type(found).__name__))
    return losses.LossFunctionWrapper(found, name=name)


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


def check_loss_weights(weights: Any) -> None:
    """InvalidArgumentError for a factor that is no number."""
    for entry in flatten(weights):
        number = entry[()] if isinstance(entry, np.ndarray) else entry
        is_scalar = isinstance(number, Tensor | Variable) and not len(number.shape)
        if not (number is None or is_scalar or isinstance(number, Real)):
            raise InvalidArgumentError(
                f"compile: loss_weights: expected a number for a loss, got {entry!r}",
                remedy="pass a number, or a list or dict of numbers for several outputs",
            )
