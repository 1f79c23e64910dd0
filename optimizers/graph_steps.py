"""Steps of optimizers as operations of a graph: minimize, and the two halves of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.functions import function
from laminar.engine.gradients import gradients
from laminar.engine.graph import Graph, GraphTensor, Operation, Tensor, building
from laminar.engine.ops.core.basic import group
from laminar.engine.state import GraphKeys, Variable
from laminar.engine.state.update_placement import stand_with_variables
from laminar.typing import TensorLike

from .learning_rates import LearningRates
from .rows import parts_of, with_parts


class GraphSteps(LearningRates):
    """The part of `Optimizer` that extends the graph of a Session."""

    def apply(
        self, grads: Iterable[Any], trainable_variables: Iterable[Variable] | None = None
    ) -> Operation | None:
        """A step; see `Optimizer.apply`."""
        raise NotImplementedError

    def scale_loss(self, loss: float | Tensor) -> Any:
        """The loss that gradients are taken of; see `Optimizer.scale_loss`."""
        raise NotImplementedError

    def _laminar_apply(self, grads: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        raise NotImplementedError

    def minimize(
        self,
        loss: Tensor,
        var_list: Iterable[Variable] | None = None,
        *,
        global_step: Variable | None = None,
        name: str | None = None,
        grad_loss: TensorLike | None = None,
    ) -> Any:
        """`compute_gradients`, then `apply_gradients`: a whole step, for the graph of a Session.

        Args:
            loss: see `compute_gradients`.
            var_list: likewise.
            global_step: see `apply_gradients`.
            name: likewise.
            grad_loss: see `compute_gradients`.

        Raises:
            InvalidArgumentError: `loss` has a value at hand, or depends on none of the variables.
        """
        pairs = self.compute_gradients(loss, var_list, grad_loss)
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Tensor,
        var_list: Iterable[Variable] | None = None,
        grad_loss: TensorLike | None = None,
    ) -> list[tuple[Tensor | None, Variable]]:
        """(gradient, variable) pairs for `apply_gradients`, of the loss as `scale_loss` scales it.

        Args:
            loss: a tensor of a graph, or of the function that is being traced.
            var_list: the variables, by default the trainable ones of the graph.
            grad_loss: a weight for each element of the loss, by default 1.

        Returns:
            A pair for each variable, with None where the loss does not depend on it.

        Raises:
            InvalidArgumentError: `loss` has a value at hand, or there are no variables.
        """
        if not isinstance(loss, GraphTensor):
            raise InvalidArgumentError(
                f"{self.name}: compute_gradients() and minimize() extend a graph, and the loss "
                f"{loss!r} belongs to none",
                remedy="with GradientTape() as tape: loss = ...; "
                "optimizer.apply(tape.gradient(loss, variables), variables)",
            )
        graph = loss.graph
        if var_list is None:
            var_list = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        variables = [var_list] if isinstance(var_list, Variable) else list(var_list)
        if not variables:
            raise InvalidArgumentError(
                f"{self.name}: there are no variables to train", remedy="give var_list"
            )
        with nullcontext() if building() is graph else graph.as_default():
            if not self.built:
                self.build(variables)
            found = gradients(self.scale_loss(loss), variables, grad_loss)
        return list(zip(found, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Any:
        """Update variables by (gradient, variable) pairs.

        Args:
            grads_and_vars: the pairs.
            global_step: a variable that counts the calls.
            name: of the operation, in the graph of a Session.

        Returns:
            In the graph of a Session, the operation that does it; else the count of steps.

        Raises:
            InvalidArgumentError: what is given are no pairs; and see `apply`.
        """
        pairs = list(grads_and_vars) if isinstance(grads_and_vars, Iterable) else [grads_and_vars]
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidArgumentError(
                    f"{self.name}: apply_gradients() takes (gradient, variable) pairs, "
                    f"got {pair!r}",
                    remedy="apply_gradients(zip(gradients, variables))",
                )
        step = self.apply([g for g, _ in pairs], [v for _, v in pairs])
        if step is None:
            if global_step is not None:
                global_step.assign_add(1)
            return self._iterations
        if global_step is None and name is None:
            return step
        # The count waits for the updates themselves: where they are may be where it is, too.
        awaited = [step] if global_step is None else step.control_inputs
        with step.graph.as_default(), step.graph.control_dependencies(awaited):
            return group(step if global_step is None else global_step.assign_add(1), name=name)

    def _laminar_apply_in_graph(
        self, graph: Graph, grads: Sequence[Tensor | None], variables: Sequence[Variable]
    ) -> Operation:
        """The step as an operation of a plain graph, where nothing else orders reads and writes."""
        if self._iterations.graph is not graph:
            raise FailedPreconditionError(
                f"{self.name}: the optimizer's variables are not in the graph being built",
                remedy="make the optimizer inside `with graph.as_default():` too",
            )
        first = graph.version

        def step(*present: Tensor) -> None:
            with self._laminar_scope():
                self._laminar_apply(with_parts(grads, present), variables)

        function(step)(*parts_of(grads))
        homes = {
            id(kept.handle): v.op
            for v in variables
            for kept in (v, *self._laminar_slots_beside.get(id(v), ()))
        }
        made = stand_with_variables(graph.operations[first:], homes, [*parts_of(grads)])
        return group(*made, name=self.name)
