"""ConcreteFunction: a graph with chosen inputs and outputs as a callable.

Called on values it runs, as one plan; called while another graph is built it is copied into that.
A tape sees a run as one operation, whose gradient is another concrete function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    ShapeError,
)
from ..gradients.backprop import backpropagate
from ..graph import (
    DType,
    EagerTensor,
    Graph,
    GraphTensor,
    Operation,
    Tensor,
    TensorSpec,
    building,
    resource,
    stack,
    tensors_of,
    value_of,
)
from ..ops.control.structured import Ragged
from ..ops.core.arrays import can_stand_for, to_array
from ..ops.core.basic import zeros_like
from ..ops.core.cluster import ClusterBody, cluster_op, prepare_body
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import as_input, symbolic_graph
from ..ops.core.recording import Record, notify, paused, recorders
from ..ops.state.variable import Released, VariableStore
from ..passes import StepGraph, needed_operations
from ..runtime import (
    Machine,
    PartitionedPlan,
    Plan,
    RunMetadata,
    RunOptions,
    StepContext,
    default_machine,
    run_watched,
)
from ..tree import flatten
from .captures import (
    Capture,
    capture_of,
    host_value,
    is_resource,
    lies_at,
    owner_of,
    value_where_it_lies,
    watch_variables,
)
from .func_graph import FuncGraph
from .inlining import inlined
from .packing import packer

_CONTEXT = StepContext()


class ConcreteFunction:
    """A graph as a callable.

    Attributes:
        graph: the graph.
        inputs: its arguments, flat: placeholders of a trace, or any tensors of the graph.
        outputs: its output tensors, flat.
        structured_outputs: the outputs in the structure that a call gives; None stands where it
            gives None.
        pack: puts flat outputs in that structure.
        captured: the tensors and resource handles that it uses from outside.
        captured_inputs: the placeholders of `captured`.
        effects: operations that a call runs although no output needs them.
        compiled: whether a call runs native code where there is some; set before the first call.
        call_order: for each leaf of the arguments of a call, the number of its input.
        structured_inputs: by name, the arguments' specs, numbers and texts; None of other kinds.
        machine: the devices that a call runs on, None for all of the process; set before, too.

    Examples:
        >>> double = engine.function(lambda x: 2 * x)
        >>> concrete = double.concrete(engine.TensorSpec((None,), "float32"))
        >>> concrete(engine.constant([1.0, 2.0]))
        Tensor([2., 4.], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        inputs: Sequence[GraphTensor],
        structured_outputs: Any,
        effects: Sequence[Operation] = (),
        context: StepContext = _CONTEXT,
    ) -> None:
        self.graph = graph
        self.name = name
        self.inputs = list(inputs)
        self.structured_outputs = structured_outputs
        self.pack = packer(structured_outputs)
        self.outputs: list[GraphTensor] = [
            leaf for leaf in flatten(structured_outputs) if isinstance(leaf, GraphTensor)
        ]
        self.effects = list(effects)
        taken = {id(x) for x in self.inputs}
        captures = [(o, i) for o, i in graph.captures.values() if id(i) not in taken]
        self.captured: list[Tensor] = [outer for outer, _ in captures]
        self.captured_inputs: list[GraphTensor] = [inner for _, inner in captures]
        self._symbol = next((t for t in self.captured if isinstance(t, GraphTensor)), None)
        self._context = context
        self.compiled = False
        self.machine: Machine | None = None
        self.structured_inputs: dict[str, Any] | None = None
        self.call_order = list(range(len(self.inputs)))
        self._plans: dict[tuple[int, ...], Plan | PartitionedPlan] = {}
        # What `call_matching` needs: the plan of the outputs, the values captured, the dtypes.
        self._direct: tuple[Plan | PartitionedPlan, list[Any], list[DType]] | None = None
        # How many variables of the process had gone when it was looked whether all are there.
        self._released = -1
        self._backwards: dict[tuple[int, ...], _Backward] = {}
        self._replays: dict[tuple[int, ...], ConcreteFunction] = {}
        self._call: _Call | _CallWithoutGradient | None = None

    def __repr__(self) -> str:
        inputs = ", ".join(f"{x.op.name}: {x.spec}" for x in self.ordered_inputs)
        outputs = ", ".join(str(y.spec) for y in self.outputs)
        return f"<{type(self).__name__} {self.name}({inputs}) -> ({outputs})>"

    @property
    def ordered_inputs(self) -> list[GraphTensor]:
        """`inputs` in the order of the arguments of a call."""
        return [self.inputs[i] for i in self.call_order]

    @property
    def captured_state(self) -> list[Any]:
        """The variables and other resources that it uses from outside, each once."""
        return [owner_of(t.value) for t in self.captured if is_resource(t)]

    @property
    def captures(self) -> list[Capture]:
        """All that it uses from outside: variables, tables, queues and the like, and tensors."""
        return [
            capture_of(outer, x)
            for outer, x in zip(self.captured, self.captured_inputs, strict=True)
        ]

    @property
    def operations(self) -> list[Operation]:
        """What a call runs."""
        return self.needed_for(self.outputs, self.effects)

    @property
    def clusters(self) -> list[ClusterBody]:
        """The sets of operations that calls so far have run as one."""
        return [
            op.attrs["body"]
            for plan in self._plans.values()
            for op in plan.operations
            if op.definition is cluster_op
        ]

    @property
    def num_calls(self) -> int:
        """How many operations a call runs, where those of a cluster are one."""
        return len(self._plan(self.outputs).operations)

    def prepare(self, calls: Sequence[Sequence[tuple[int, ...]]]) -> None:
        """Make the native code for calls on inputs of these shapes, before there are any."""
        plan = self._plan(self.outputs)
        if not isinstance(plan, PartitionedPlan):
            self._prepare(plan, list(enumerate(plan.feeds)), calls)
        elif len(plan.parts) == 1:  # of several, each has its share of a batch
            (part,) = plan.parts
            with part.device.running():
                self._prepare(part.plan, part.part.feeds, calls)

    def _prepare(
        self,
        plan: Plan,
        feeds: Sequence[tuple[int, GraphTensor]],
        calls: Sequence[Sequence[tuple[int, ...]]],
    ) -> None:
        """As `prepare`, for a plan that is fed with the inputs and captures of these numbers."""
        inputs = [(i, x) for i, x in feeds if i < len(self.inputs)]
        given = [{id(x): shapes[i] for i, x in inputs} for shapes in calls]
        for op in plan.operations:
            if op.definition is cluster_op:
                found = [_shapes(op.inputs, known) for known in given]
                prepare_body(op.attrs["body"], [shapes for shapes in found if shapes is not None])

    def needed_for(
        self, tensors: Sequence[GraphTensor], effects: Sequence[Operation] = ()
    ) -> list[Operation]:
        """The operations that compute `tensors` from the inputs and captures."""
        return needed_operations(tensors, effects, [*self.inputs, *self.captured_inputs])

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run on the leaves of `args`, in the order of the parameters, the last by their names.

        A tensor has the input's type; what a session could be fed with is cast to it.
        """
        leaves = flatten(args)
        if len(leaves) + len(named) != len(self.inputs) == len(args) + len(named):
            leaves = list(args)  # a list among them is the value of one tensor
        if named:
            leaves += self._by_name(len(leaves), named)
        if len(leaves) == len(self.inputs):
            by_input = dict(zip(self.call_order, leaves, strict=True))
            leaves = [self._given(x, by_input[i]) for i, x in enumerate(self.inputs)]
        return self.pack(self.call_flat(leaves))

    def _by_name(self, count: int, named: Mapping[str, Any]) -> list[Any]:
        names = [x.op.name for x in self.ordered_inputs[count:]]
        if sorted(named) != sorted(names):
            raise InvalidArgumentError(
                f"{self.name}: expected the arguments {names} by name, got {sorted(named)}",
                remedy="give what is missing; inputs[i].op.name is the name of each",
            )
        return [named[name] for name in names]

    def _given(self, x: GraphTensor, leaf: Any) -> Tensor:
        if isinstance(leaf, Tensor) or hasattr(leaf, "__laminar_tensor__"):
            return convert_to_tensor(leaf)
        array, dtype = to_array(leaf, None if hasattr(leaf, "dtype") else x.dtype, copy=False)
        fits = can_stand_for(dtype, x.dtype) or not array.size
        return convert_to_tensor(leaf, x.dtype) if fits else convert_to_tensor(leaf)

    def call_flat(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Run on flat arguments, or add a copy of the graph to the one that is being built."""
        self._check(arguments)
        graph = building()
        if graph is None:
            graph = symbolic_graph(self.name, arguments)
        if graph is not None:
            return inlined(
                graph,
                self.name,
                [*self.inputs, *self.captured_inputs],
                arguments,
                self.captured,
                self.operations,
                self.outputs,
                self.effects,
            )
        if not recorders.active:
            return self._run(arguments, self.outputs)
        return self._run_recorded(arguments)

    def call_matching(self, arguments: Sequence[EagerTensor]) -> list[Tensor]:
        """As `call_flat`, for values that are known to be of the types and shapes of the inputs."""
        if stack.place is not None or stack.items or recorders.active or self._symbol is not None:
            return self.call_flat(arguments)
        direct = self._direct
        if direct is None:
            plan = self._plan(self.outputs)
            captured = [host_value(t) for t in self.captured]
            direct = self._direct = plan, captured, [y.dtype for y in self.outputs]
        if self._released != Released.count:
            self._check_captured()
        plan, captured, dtypes = direct
        if type(plan) is PartitionedPlan:
            feeds = [*map(value_of, arguments), *captured]
            return list(plan.tensors(feeds, self._context, dtypes))
        found = plan.run([*map(value_of, arguments), *captured], self._context)
        return tensors_of(found, dtypes)

    def _check_captured(self) -> None:
        """FailedPreconditionError if a variable that the graph uses has gone."""
        count = Released.count
        for tensor in self.captured:
            if is_resource(tensor) and isinstance(tensor.value, VariableStore):
                tensor.value.check_owner()
        self._released = count

    def _check(self, arguments: Sequence[Tensor]) -> None:
        if len(arguments) != len(self.inputs):
            raise InvalidArgumentError(
                f"{self.name}: expected {len(self.inputs)} tensors, got {len(arguments)}"
            )
        for x, given in zip(self.inputs, arguments, strict=True):
            if given.dtype != x.dtype or not given.shape.is_compatible_with(x.shape):
                if isinstance(given, EagerTensor) and isinstance(given.value, Ragged):
                    continue  # what a loop keeps for its gradient has no one shape
                kind = DTypeError if given.dtype != x.dtype else ShapeError
                raise kind(
                    f"{self.name}: the argument {x.op.name!r} was traced as {x.spec}, "
                    f"got {given.spec}",
                    remedy="call the function itself, which traces again for other shapes",
                )

    def fits(self, graph: Graph | None) -> bool:
        """Whether it can be called while `graph` is built: what it captures must be there."""
        if self._symbol is None:
            return True
        while graph is not None:
            if graph is self._symbol.graph:
                return True
            graph = graph.outer
        return False

    # Running

    def _plan(self, fetches: Sequence[GraphTensor]) -> Plan | PartitionedPlan:
        key = tuple(map(id, fetches))
        plan = self._plans.get(key)
        if plan is None:
            step = StepGraph(fetches, [*self.inputs, *self.captured_inputs], self.effects)
            machine = self.machine or default_machine()
            plan = machine.plan(step, compiled=self.compiled, optimize=True)
            self._plans[key] = plan
        return plan

    def _run(self, arguments: Sequence[Tensor], fetches: Sequence[GraphTensor]) -> list[Tensor]:
        plan = self._plan(fetches)
        if self._released != Released.count:
            self._check_captured()
        given, dtypes = [*arguments, *self.captured], [t.dtype for t in fetches]
        place = stack.place
        if isinstance(plan, PartitionedPlan):
            made = plan.tensors(list(map(value_where_it_lies, given)), self._context, dtypes)
        else:
            made = tensors_of(plan.run(list(map(host_value, given)), self._context), dtypes)
        if place is None:
            return list(made)
        return [x if lies_at(x, place) else place.tensor(x.value, x.dtype) for x in made]

    def _run_recorded(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        inputs = [*arguments, *self.captured]
        watch_variables(self.captured, self.captured)
        if not any(r.is_tracking(inputs) for r in recorders.active):
            return self._run(arguments, self.outputs)
        if self._call is None:
            try:
                self._call = _Call(self)
            except LaminarError as error:  # matters only if a gradient is asked for
                self._call = _CallWithoutGradient(self, error)
        values = self._run(arguments, self._call.fetches)
        call: Any = self._call
        notify(call, inputs, {}, values)
        return values[: len(self.outputs)]

    def backward(self, ys: Sequence[GraphTensor]) -> _Backward:
        """The function that computes gradients for inputs and captures from those of `ys`."""
        key = tuple(map(id, ys))
        found = self._backwards.get(key)
        if found is None:
            found = self._backwards[key] = _Backward(self, ys)
        return found

    def impure_values(self) -> list[GraphTensor]:
        """What a second run might compute otherwise: what depends on state."""
        return [
            y
            for op in self.operations
            if op.definition.stateful or any(x.dtype == resource for x in op.inputs)
            for y in op.outputs
            if y.dtype != resource
        ]

    def replay(
        self, known: Sequence[GraphTensor], wanted: Sequence[GraphTensor]
    ) -> ConcreteFunction:
        """The function of inputs, captures and `known` that computes `wanted` again."""
        key = tuple(map(id, wanted))
        found = self._replays.get(key)
        if found is None:
            inputs = [*self.inputs, *self.captured_inputs, *known]
            found = ConcreteFunction(self.graph, self.name, inputs, list(wanted))
            found.compiled, found.machine = self.compiled, self.machine
            self._replays[key] = found
        return found

    def run_with(
        self, arguments: Sequence[Tensor], options: RunOptions, metadata: RunMetadata | None
    ) -> list[Tensor]:
        """As `call_flat`, with options for the run.

        Raises:
            FailedPreconditionError: a graph is being built, which would hold a copy, or a tape
                records, which would run more than the function.
        """
        self._check(arguments)
        if building() is not None or recorders.active or self._symbol is not None:
            raise FailedPreconditionError(
                f"{self.name}: a call with options runs by itself: it can be no part of a graph, "
                f"nor recorded by a tape",
                remedy="give the options to the outermost call",
            )
        if options.inter_op_pool:
            raise InvalidArgumentError(
                f"{self.name}: inter_op_pool is one of a session's pools, and a function has none"
            )
        self._check_captured()
        machine = self.machine or default_machine()
        if options.tells:
            step = StepGraph(self.outputs, [*self.inputs, *self.captured_inputs], self.effects)
            plan = machine.plan(step, compiled=False, optimize=True)
        else:
            plan = self._plan(self.outputs)
        context = self._context.step()
        values = [host_value(t) for t in (*arguments, *self.captured)]
        timeout = options.timeout_in_ms
        found = run_watched(plan, values, context, machine, options, metadata, timeout)
        return tensors_of(found, [t.dtype for t in self.outputs])


class _Backward:
    """The gradient of a concrete function, as another one.

    `live` tells which of `ys` carry gradients; `needed` are the tensors of the forward graph whose
    values it takes.
    """

    def __init__(self, forward: ConcreteFunction, ys: Sequence[GraphTensor]) -> None:
        graph = FuncGraph(f"{forward.name}_backward", outer=forward.graph)
        xs = [*forward.inputs, *forward.captured_inputs]
        self.live = [y.dtype.is_differentiable for y in ys]
        with graph.as_default(), paused():
            live = [y for y in ys if y.dtype.is_differentiable]
            dys = [
                graph.add_argument(TensorSpec(y.shape, y.dtype), f"d_{i}")
                for i, y in enumerate(live)
            ]
            found = backpropagate(forward.needed_for(ys), live, xs, dys)
            dxs = [None if dx is None else as_input(graph, dx) for dx in found]
        pairs = [
            (outer, inner)
            for outer, inner in graph.captures.values()
            if isinstance(outer, GraphTensor) and outer.graph is forward.graph
        ]
        self.needed = [outer for outer, _ in pairs]
        inputs = [*dys, *(inner for _, inner in pairs)]
        self.function = ConcreteFunction(graph, graph.name, inputs, dxs)
        self.function.compiled, self.function.machine = forward.compiled, forward.machine

    def __call__(self, dys: Sequence[Tensor], needed: Sequence[Tensor]) -> list[Tensor | None]:
        found: list[Tensor | None] = self.function.pack(self.function.call_flat([*dys, *needed]))
        return found


class _Call:
    """What a tape records for a call: an op whose gradient is the backward function.

    Its outputs are `fetches`: those of the function, and the intermediate values that the backward
    function takes, or that cannot be computed a second time.
    """

    stateful = False
    read_only = False
    row_gradient = None
    inner_row_gradient = None

    def __init__(self, function: ConcreteFunction) -> None:
        self.type = function.name
        self.function = function
        self.backward = function.backward(function.outputs)
        self.impure = function.impure_values()
        outputs = {id(y) for y in function.outputs}
        more = {id(t): t for t in (*self.backward.needed, *self.impure) if id(t) not in outputs}
        self.fetches = [*function.outputs, *more.values()]

    def gradient(self, record: Record, *dys: Tensor | None) -> list[Tensor | None]:
        """The gradients for the inputs and captures."""
        function = self.function
        count = len(function.outputs)
        values = dict(zip(map(id, self.fetches), record.outputs, strict=True))
        if all(d is None for d in dys[count:]):
            backward = self.backward
            needed = [values[id(t)] for t in backward.needed]
        else:  # of higher order: gradients arrive for the intermediate values too
            count = len(dys)
            backward = function.backward(self.fetches)
            known = [values[id(t)] for t in self.impure]
            replay = function.replay(self.impure, backward.needed)
            needed = replay.call_flat([*record.inputs, *known])
        full = [
            zeros_like(y) if dy is None else dy
            for y, dy, live in zip(
                record.outputs[:count], dys[:count], backward.live[:count], strict=True
            )
            if live
        ]
        return backward(full, needed)


class _CallWithoutGradient:
    """What a tape records for a call whose backward function cannot be made."""

    stateful = False
    read_only = False
    row_gradient = None
    inner_row_gradient = None

    def __init__(self, function: ConcreteFunction, error: LaminarError) -> None:
        self.type = function.name
        self.fetches = function.outputs
        self.error = error

    def gradient(self, record: Record, *dys: Tensor | None) -> list[Tensor | None]:
        """Tell why there is none."""
        raise self.error


def _shapes(
    tensors: Sequence[GraphTensor], given: Mapping[int, tuple[int, ...]]
) -> list[tuple[int, ...]] | None:
    """The shapes of tensors, some of them given; None if another is unknown. Handles have none."""
    found = list[tuple[int, ...]]()
    for x in tensors:
        shape = () if x.dtype == resource else given.get(id(x))
        if shape is None:
            if not x.shape.is_fully_defined:
                return None
            shape = tuple(d for d in x.shape if d is not None)
        found.append(shape)
    return found
