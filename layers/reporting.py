"""What the call of a layer reports besides its outputs: losses and metrics."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import (
    InvalidArgumentError,
)
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.state import current_scope
from laminar.naming import who
from laminar.tree import flatten
from laminar.typing import TensorLike, TensorStructure

from .context import current
from .symbolic import KerasTensor
from .weights import Weighted


class Reporting(Weighted):
    """The part of `Layer` that deals with losses and metrics."""

    def add_loss(self, loss: TensorStructure) -> None:
        """Add a scalar (or several) to the loss of the model that this layer is part of.

        Call it in `call`, with a value computed there.

        Raises:
            InvalidArgumentError: a symbolic tensor of the functional API.
        """
        for value in flatten(loss):
            if isinstance(value, KerasTensor):
                raise InvalidArgumentError(
                    f"{who(self)}: add_loss() takes a value, got the symbolic tensor {value!r}",
                    remedy="call add_loss() in the call() of a layer, and put that into the model",
                )
            if value is not None:
                added = value if isinstance(value, Tensor) else convert_to_tensor(value)
                self._laminar_losses.append(added)
                if current.added_losses is not None:
                    current.added_losses.append(added)
                scope = current_scope()
                if scope is not None and scope.collect_losses:
                    scope.add_loss(added)

    def add_metric(
        self, value: TensorLike, name: str | None = None, aggregation: str = "mean"
    ) -> None:
        """Report a value of each batch: models log its mean over an epoch, under `name`.

        Call it in `call`, with a value computed there.

        Args:
            value: a number, or numbers of which the mean is taken.
            name: what it is called in the logs.
            aggregation: how batches are put together: "mean".

        Raises:
            InvalidArgumentError: no name, another aggregation, or a symbolic tensor.
        """
        if isinstance(value, KerasTensor):
            raise InvalidArgumentError(
                f"{who(self)}: add_metric() takes a value, got the symbolic tensor {value!r}",
                remedy="call add_metric() in the call() of a layer, and put that into the model",
            )
        if name is None or aggregation != "mean":
            raise InvalidArgumentError(
                f"{who(self)}: add_metric() needs a name and gives the mean, "
                f"got name={name!r}, aggregation={aggregation!r}",
                remedy="for another metric make one in __init__ (self.m = metrics.Sum(name='m')), "
                "and call self.m.update_state(value) in call()",
            )
        self._laminar_reports.append((name, value))
        self._laminar_has_reported = True

    @property
    def losses(self) -> list[Any]:
        """The losses added in the last call, and the penalties of the regularizers."""
        layers = self._laminar_flatten_layers()
        found = [loss for layer in layers for loss in layer._laminar_losses]
        for v in self.trainable_weights:
            if v.regularizer is not None:
                found.append(v.regularizer(v))
        return found

    def _clear_losses(self) -> None:
        for layer in self._laminar_flatten_layers():
            layer._laminar_losses.clear()
            layer._laminar_reports.clear()
