"""What a Saver saves: tensors with their names in a checkpoint, and how they are put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..checkpoint import format_slice
from ..errors import ArgumentTypeError, InvalidArgumentError
from ..graph import DType, Graph, GraphTensor, Operation, TensorShape
from ..ops.array.shape import reshape
from ..ops.state.contents import resource_state, set_resource_state
from ..ops.state.variable import fetched
from ..state import MutableHashTable, PartitionedVariable, QueueBase, Variable


@dataclass(frozen=True)
class SaveSpec:
    """One tensor of a checkpoint.

    Attributes:
        tensor: its value.
        slice_spec: "" for all of it, else which part `tensor` is: "4 10 0,2:-".
        name: in the checkpoint.
        shape: what a value that is restored must be like; None for anything.

    Examples:
        >>> engine.SaveSpec(engine.constant([1.0, 2.0]), "", "w").name
        'w'
    """

    tensor: GraphTensor
    slice_spec: str
    name: str
    shape: TensorShape | None = None

    @property
    def dtype(self) -> DType:
        """The element type that is saved and restored."""
        return self.tensor.dtype


class SaveableObject:
    """Something with a state: a variable, a queue, a table. Abstract: `restore` puts it back.

    Args:
        op: what keeps the state: the variable, or the operation that makes the handle.
        specs: the tensors that are its state.
        name: under which a Saver knows it.

    Examples:
        >>> issubclass(engine.SaveableObject, object)
        True
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = list(specs)
        self.name = name

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.specs[0].tensor.graph

    @property
    def device(self) -> str:
        """The device that keeps it."""
        return self.specs[0].tensor.op.device

    def restore(
        self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None
    ) -> Operation:
        """An operation that puts back the state.

        Args:
            restored_tensors: one for each spec.
            restored_shapes: the shapes that they are to be given; None to take them as they are.
        """
        raise NotImplementedError


def stored_value(variable: Variable) -> Any:
    """The array that a variable that belongs to no graph has now, on the host.

    It stays as it is: an update makes another array while somebody has this one. So what is to be
    written later need not be copied.

    Raises:
        FailedPreconditionError: the variable has no value.
    """
    return fetched(variable.store.read())


class VariableSaveable(SaveableObject):
    """A variable of a graph, which may be a part of a larger tensor.

    Args:
        variable: of a graph.
        name: in the checkpoint, of the whole.
        reshape: whether a value of another shape, with as many elements, is taken.
    """

    def __init__(self, variable: Variable, name: str, reshape: bool = False) -> None:
        graph = variable.graph
        if graph is None:
            raise InvalidArgumentError(f"variable {variable.path!r} belongs to no graph")
        part = variable.part_of
        where = "" if part is None else format_slice(_known(part.shape), part.extents)
        shape = None if reshape else variable.shape
        spec = SaveSpec(variable.graph_element(graph), where, name, shape)
        super().__init__(variable, [spec], name)

    def restore(
        self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None
    ) -> Operation:
        """Assign the value."""
        (value,) = restored_tensors
        if restored_shapes is not None:
            value = reshape(value, restored_shapes[0])
        with self.graph.colocate_with(self.op.op):
            done: Operation = self.op.assign(value).op
        return done


class ResourceSaveable(SaveableObject):
    """A queue, or a table whose entries change, of a graph.

    Args:
        resource: of a graph.
        name: in the checkpoint.
    """

    def __init__(self, resource: QueueBase | MutableHashTable, name: str) -> None:
        handle = resource.handle
        if not isinstance(handle, GraphTensor):
            raise InvalidArgumentError(f"{resource!r} belongs to no graph")
        graph = handle.graph
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
            state = graph.add(resource_state, (handle,), name=f"{handle.op.name}/state").outputs[0]
        super().__init__(resource, [SaveSpec(state, "", name, TensorShape(()))], name)

    def restore(
        self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None
    ) -> Operation:
        """Put back what it held."""
        (state,) = restored_tensors
        handle = self.op.handle
        with self.graph.colocate_with(handle):
            return self.graph.add(set_resource_state, (handle, state), name="SetResourceState")


def _known(shape: TensorShape) -> tuple[int, ...]:
    return tuple(d or 0 for d in shape)


# What may be given for one name: variables, of which several are parts of one tensor, or something
# else with a state.
Saved: TypeAlias = Variable | SaveableObject | QueueBase | MutableHashTable


def named(var_list: Any) -> dict[str, list[Saved]]:
    """By its name in the checkpoint, each of what a user lists to be saved.

    Args:
        var_list: variables, whole or partitioned, queues, tables whose entries change, and saveable
            objects, or a dictionary of them by name; in a dictionary, a list of variables are the
            parts of one tensor.

    Raises:
        InvalidArgumentError: something else is among them, or two have one name.
    """
    found: dict[str, list[Saved]] = {}
    items = var_list.items() if isinstance(var_list, Mapping) else ((None, v) for v in var_list)
    for key, given in items:
        if key is not None and not isinstance(key, str):
            raise InvalidArgumentError(f"Saver: a name in a checkpoint is text, got {key!r}")
        is_several = isinstance(given, PartitionedVariable) or (key and isinstance(given, list))
        for value in given if is_several else [given]:
            own = _name_of(value)
            name = key or own
            others = found.setdefault(name, [])
            if any(other is value for other in others):
                continue
            if others and not all(_is_part(v) for v in (*others, value)):
                raise InvalidArgumentError(
                    f"Saver: two variables are named {name!r}",
                    remedy="give a dictionary, with another name for each",
                )
            others.append(value)
    return found


def _name_of(value: Any) -> str:
    if isinstance(value, Variable):
        return value.path if value.part_of is None else value.part_of.name
    if isinstance(value, SaveableObject | QueueBase | MutableHashTable):
        return value.name
    raise ArgumentTypeError(
        f"Saver: expected variables to save, got {value!r}",
        remedy="give a list of variables, or a dictionary of them by name",
    )


def _is_part(value: Saved) -> bool:
    return isinstance(value, Variable) and value.part_of is not None


def saveables(values: Mapping[str, Sequence[Saved]], reshape: bool = False) -> list[SaveableObject]:
    """Variables as saveable objects, sorted by name.

    Raises:
        InvalidArgumentError: they are not of one graph, or one is saved twice.
    """
    found: list[SaveableObject] = []
    seen: dict[int, str] = {}
    for name, value in ((n, v) for n, vs in sorted(values.items()) for v in vs):
        op = value.op if isinstance(value, SaveableObject) else value
        if id(op) in seen:
            raise InvalidArgumentError(
                f"Saver: {value!r} is to be saved twice, as {seen[id(op)]!r} and {name!r}"
            )
        seen[id(op)] = name
        if isinstance(value, Variable):
            found.append(VariableSaveable(value, name, reshape))
        elif isinstance(value, SaveableObject):
            found.append(value)
        else:
            found.append(ResourceSaveable(value, name))
    if len({id(item.graph) for item in found}) > 1:
        raise InvalidArgumentError("Saver: the variables belong to several graphs")
    return found
