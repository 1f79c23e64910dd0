"""The variables that an optimizer keeps: counters, and slots beside the model's variables."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from laminar import config, initializers
from laminar.copying import Copied
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.graph import as_dtype, building
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.source import warn
from laminar.engine.state import Variable
from laminar.engine.state.update_placement import beside
from laminar.initializers import InitializerLike
from laminar.naming import auto_name
from laminar.recorded import Recorded
from laminar.typing import DTypeLike, Shape


class Slots(Recorded, Copied):
    """What has variables of its own, made for the variables of a model.

    `_variables[id(v)]` are its own ones, in the order in which they were made: the order of saved
    files. `_laminar_indices[id(v)]` is the position of the model variable `v` in
    `_trainable_variables`, `_laminar_slots_beside[id(v)]` what is kept for it in its shape.
    `_laminar_version` is another one after each change of an attribute.
    """

    _laminar_version = 0

    def __init__(self, name: str | None = None) -> None:
        self._variables: dict[int, Variable] = {}
        self._trainable_variables: list[Variable] = []
        self._laminar_indices: dict[int, int] = {}
        self._laminar_slots_beside: dict[int, list[Variable]] = {}
        self._laminar_counters = 0  # how many variables there were before the slots
        self.name = name or auto_name(type(self).__name__)
        self.built = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = super().__deepcopy__(memo)
        new._variables = {id(v): v for v in new._variables.values()}
        new._laminar_indices = {id(v): i for i, v in enumerate(new._trainable_variables)}
        new._laminar_slots_beside = {
            id(memo[i]) if i in memo else i: slots for i, slots in new._laminar_slots_beside.items()
        }
        return new

    def _laminar_pickled_variables(self) -> list[Variable]:
        """Without the slots: they belong to the variables of a model, and are pickled with it."""
        made = list(self._variables.values())
        return made[: self._laminar_counters] if self.built else made

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Variable):  # the optimizer's own state, wherever it is kept
            self._laminar_track(value)
        super().__setattr__(name, value)
        self.__dict__["_laminar_version"] = self._laminar_version + 1

    def _laminar_track(self, variable: Variable) -> None:
        if "_variables" not in vars(self):
            raise FailedPreconditionError(
                f"{type(self).__name__}: a variable is set before Optimizer.__init__ has run",
                remedy="call super().__init__(...) first",
            )
        self._variables.setdefault(id(variable), variable)

    def _laminar_untrack(self, variable: Variable) -> None:
        del self._variables[id(variable)]

    def _laminar_scalar(self, name: str, value: float, dtype: str) -> Variable:
        return self.add_variable(
            (), lambda shape, dtype: value, dtype, aggregation="only_first_replica", name=name
        )

    @property
    def variables(self) -> list[Variable]:
        """The optimizer's own variables: iteration, learning rate, slots; in saved order."""
        return list(self._variables.values())

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        """What a checkpoint of attributes saves: not the model's variables, which it refers to."""
        return {"variables": self.variables}

    def add_variable(
        self,
        shape: Shape,
        initializer: InitializerLike = "zeros",
        dtype: DTypeLike | None = None,
        aggregation: str = "none",
        layout: Any = None,
        name: str | None = None,
    ) -> Variable:
        """Make a variable of the optimizer.

        Args:
            shape: fully known.
            initializer: the name of one, or a function `(shape, dtype) -> value`.
            dtype: element type, by default `config.floatx()`.
            aggregation: how replicas combine it.
            layout: kept for Keras scripts; variables lie where the devices say.
            name: last part of its path.
        """
        graph = building()
        in_graph = graph is not None and not graph.captures_values
        variable = Variable(
            initializers.get(initializer) if isinstance(initializer, str) else initializer,
            shape=shape,
            dtype=as_dtype(dtype or config.floatx()),
            trainable=False,
            autocast=False,
            aggregation=aggregation,
            name=f"{self.name}/{name or 'variable'}" if in_graph else name,
        )
        if not in_graph:
            variable.path = f"{self.name}/{variable.name}"
        self._laminar_track(variable)
        return variable

    def add_variable_from_reference(
        self,
        reference_variable: Variable,
        name: str | None = None,
        initializer: InitializerLike = "zeros",
    ) -> Variable:
        """Make a variable of the shape and dtype of a model variable, named after it, beside it."""
        path = reference_variable.path.replace("/", "_").replace(":", "_")
        with beside(reference_variable):
            slot = self.add_variable(
                reference_variable.shape,
                initializer,
                reference_variable.dtype,
                name=f"{path}_{name or 'var'}",
            )
        if slot.graph is None:
            slot.store.kept_for = weakref.ref(reference_variable)
        self._laminar_slots_beside.setdefault(id(reference_variable), []).append(slot)
        return slot

    def add_optimizer_variables(
        self,
        trainable_variables: Sequence[Variable],
        name: str | Sequence[str],
        initializer: InitializerLike | Sequence[InitializerLike] = "zeros",
    ) -> Any:
        """Make a slot for each model variable.

        Args:
            trainable_variables: the model variables.
            name: what the slot holds; or a sequence of names, for several slots per variable.
            initializer: for the slots; or a sequence, one for each name.

        Returns:
            A list with a variable for each model variable (None where the model variable takes the
            gradient as its value); for several names, a tuple of such lists.

        Raises:
            InvalidArgumentError: the numbers of names and initializers differ.
        """
        names = [name] if isinstance(name, str) else list(name)
        starts: list[Any] = (
            list(initializer) if isinstance(initializer, list | tuple) else [initializer]
        )
        if len(starts) == 1:
            starts *= len(names)
        if len(starts) != len(names):
            raise InvalidArgumentError(
                f"{self.name}: {len(names)} slots per variable, but {len(starts)} initializers"
            )
        slots: tuple[list[Variable | None], ...] = tuple([] for _ in names)
        for variable in trainable_variables:
            for kind, start, of_kind in zip(names, starts, slots, strict=True):
                of_kind.append(
                    None
                    if variable.overwrite_with_gradient
                    else self.add_variable_from_reference(variable, kind, start)
                )
        return slots[0] if isinstance(name, str) else slots

    def build(self, variables: Sequence[Variable]) -> None:
        """Learn which model variables there are; a subclass makes the slots for them."""
        if not self.built:
            self._laminar_counters = len(self._variables)
        self._trainable_variables = list(variables)
        self._laminar_indices = {id(v): i for i, v in enumerate(variables)}
        self.built = True

    def _laminar_scope(self, variable: Variable | None = None) -> AbstractContextManager[Any]:
        """Names what a step makes in a graph as the slots are named: under the optimizer's name.

        Args:
            variable: of the model; what updates it has a scope of its own there.
        """
        graph = building()
        if graph is None:
            return nullcontext()
        part = "" if variable is None else f"{variable.path.replace('/', '_')}/"
        return graph.name_scope(f"{self.name}/{part}")

    def _get_variable_index(self, variable: Variable) -> int:
        """The position of a model variable among those given to `build`."""
        index = self._laminar_indices.get(id(variable))
        if index is None:
            known = ", ".join(v.path for v in self._trainable_variables[:5])
            raise InvalidArgumentError(
                f"{self.name}: the variable {variable.path!r} is not among the "
                f"{len(self._laminar_indices)} that the optimizer was built for ({known}, ...)",
                remedy="make a new optimizer for another set of variables, or call "
                "build(variables) with all of them before the first step",
            )
        return index

    # Saving

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the optimizer's own variables, in the order of `variables`.

        Raises:
            InvalidArgumentError: another number of values than variables.
            ShapeError: a value has another shape than its variable.
        """
        variables = self.variables
        if len(weights) != len(variables):
            raise InvalidArgumentError(
                f"{self.name}: {len(weights)} values for {len(variables)} optimizer variables",
                remedy="build the optimizer on the same variables first",
            )
        for variable, value in zip(variables, weights, strict=True):
            variable.assign(value)

    def save_own_variables(self, store: Any) -> None:
        """Put the variables into a mapping, under "0", "1", ... in the order of `variables`."""
        for i, variable in enumerate(self.variables):
            store[str(i)] = np.asarray(variable)

    def load_own_variables(self, store: Any) -> None:
        """Take the variables from a mapping; warns, and takes none, when their number differs."""
        variables = self.variables
        if len(store) != len(variables):
            warn(
                f"{self.name}: the saved optimizer has {len(store)} variables, this one has "
                f"{len(variables)}; its state is not loaded"
            )
            return
        for i, variable in enumerate(variables):
            array = np.asarray(store[str(i)])
            # One that nobody can change, as those read from a file, need not be copied.
            variable.assign(convert_to_tensor(array, copy=array.flags.writeable))
