"""Control flow as dataflow: ops that steer which tensors have values, and in which iteration.

A value can be dead: Switch gives it to one of its outputs, and what takes the other does not run.
A loop is a frame: Enter leads into it, each iteration has values of its own, NextIteration hands a
value to the next one, Exit leads out. The executor (runtime/frames.py) does all of it, so these ops
have no kernels that compute. `cond`, `while_loop` and `scan` are what programs use; the pass
`lower_control_flow` makes these ops of them.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 4.4; Arvind and Nikhil, "Executing a Program on the MIT Tagged-Token
    Dataflow Architecture", 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
    UnimplementedError,
)
from ...graph import (
    BOOLEAN,
    GraphTensor,
    Operation,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    int32,
)
from ..core.basic import zeros_like
from ..core.convert import convert_to_tensor
from ..core.dispatch import apply
from ..core.op_def import Grads, OpDef
from ..core.registry import define, no_gradient
from ..core.traits import Traits, Work
from ..math.compare import equal
from .structured import relaxed

_STEERS = Traits(work=Work.NONE)


class Dead:
    """The value of a tensor that has none in this run."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "dead"


DEAD = Dead()


@define("Switch", dtypes={"pred": BOOLEAN}, same_dtype=False, traits=_STEERS)
def _switch(data: TensorSpec, pred: TensorSpec) -> tuple[TensorSpec, ...]:
    """`data` at the second output if `pred` holds, else at the first; the other one is dead."""
    if pred.shape.rank not in (0, None):
        raise ShapeError(f"Switch: the condition must be a scalar, got {pred}")
    return data, data


@define("Merge", dtypes={}, traits=_STEERS)
def _merge(*inputs: TensorSpec) -> tuple[TensorSpec, ...]:
    """The first input that has a value, and its number; dead if all inputs are.

    In a loop one input comes from a NextIteration: then the first iteration takes the others, and
    each later one that.
    """
    if not inputs:
        raise InvalidArgumentError("Merge: there must be at least one input")
    if len({x.dtype for x in inputs}) > 1:
        raise DTypeError(
            f"Merge: the inputs must have one dtype, got {', '.join(map(str, inputs))}"
        )
    return relaxed(inputs), TensorSpec((), int32)


@define("Enter", dtypes={}, traits=_STEERS)
def _enter(
    data: TensorSpec,
    *,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
) -> TensorSpec:
    """`data` in the frame of that name inside of this one: in its first iteration, or in all."""
    if parallel_iterations < 1:
        raise InvalidArgumentError(
            f"Enter: at least one iteration must be in flight, got {parallel_iterations=}"
        )
    return data


@define("Exit", dtypes={}, traits=_STEERS)
def _exit(data: TensorSpec) -> TensorSpec:
    """`data` in the frame around this one, from the iteration where it has a value."""
    return data


@define("NextIteration", dtypes={}, traits=_STEERS)
def _next_iteration(data: TensorSpec) -> TensorSpec:
    """`data` in the next iteration of this frame."""
    return data


@define("LoopCond", dtypes=BOOLEAN, traits=_STEERS)
def _loop_cond(x: TensorSpec) -> TensorSpec:
    """`x`, which tells whether the loop goes on."""
    return x


@_loop_cond.reference
def _loop_cond_kernel(xp: Any, x: Any) -> Any:
    return x


@define("ControlTrigger", dtypes={}, takes_dead=True)
def control_trigger() -> tuple[TensorSpec, ...]:
    """Runs once all that it waits for has run or is dead: it joins what follows conditions."""
    return ()


@control_trigger.effect
def _control_trigger_kernel(context: Any) -> tuple[Any, ...]:
    return ()


control_trigger.grad(no_gradient)

SWITCH, MERGE, ENTER, EXIT, NEXT_ITERATION = _switch, _merge, _enter, _exit, _next_iteration
LOOP_COND = _loop_cond
STEERING = frozenset({SWITCH, MERGE, ENTER, EXIT, NEXT_ITERATION})


def _refuse(op: OpDef) -> None:
    def kernel(context: Any, *arrays: Any, **attrs: Any) -> NoReturn:
        raise FailedPreconditionError(
            f"{op.type} steers the execution of a graph, and nothing is being built",
            remedy="use cond or while_loop, or build a graph: with Graph().as_default()",
        )

    op.effect(kernel)


for _op in STEERING:
    _refuse(_op)


@_switch.grad
def _switch_grad(op: OpView, *douts: Tensor | None) -> Grads:
    data, pred = op.inputs
    parts = [
        zeros_like(side) if dy is None else dy
        for side, dy in zip(switch(data, pred), douts, strict=True)
    ]
    return merge(parts)[0], None


@_merge.grad
def _merge_grad(op: OpView, dy: Tensor | None, _: Tensor | None) -> Grads:
    if dy is None:
        return [None] * len(op.inputs)
    taken = op.outputs[1]
    return [switch(dy, equal(taken, convert_to_tensor(i, int32)))[1] for i in range(len(op.inputs))]


def _no_loop_gradient(op: OpView, *douts: Tensor | None) -> NoReturn:
    raise UnimplementedError(
        "a loop written with Enter, Exit and NextIteration has no gradient",
        remedy="write it with while_loop or scan, which have, and lower it after gradients()",
    )


for _op in (_enter, _exit, _next_iteration):
    _op.grad(_no_loop_gradient)


_loop_cond.grad(no_gradient)


def switch(data: Any, pred: Any, *, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(`data` if `pred` does not hold, `data` if it does); the other one is dead.

    Args:
        data: any tensor.
        pred: a bool scalar.
        name: of the operation.

    Raises:
        FailedPreconditionError: no graph is being built.
        ShapeError: `pred` is no scalar.
        DTypeError: `pred` is no bool.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     where_false, where_true = engine.switch(engine.constant(3.0), engine.constant(True))
        ...     value, which = engine.merge([where_false * 10, where_true + 1])
        ...     session.run(value)
        np.float32(4.0)
    """
    false, true = apply(_switch, (data, pred), {}, name)
    return false, true


def merge(inputs: Sequence[Any], *, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(the input that has a value, its number); dead if none has.

    Args:
        inputs: at least one tensor, all of one type; the result has what their shapes share.
        name: of the operation.

    Returns:
        the value, and an int32 scalar.

    Raises:
        InvalidArgumentError: there are no inputs.
        DTypeError: the types differ.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     where_false, where_true = engine.switch(
        ...         engine.constant(3.0), engine.constant(False)
        ...     )
        ...     value, which = engine.merge([where_false * 10, where_true + 1])
        ...     session.run([value, which])
        [np.float32(30.0), np.int32(0)]
    """
    value, index = apply(_merge, list(inputs), {}, name)
    return value, index


def enter(
    data: Any,
    frame_name: str,
    *,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> Tensor:
    """`data` in the first iteration of the loop `frame_name`, or in each if `is_constant`.

    Args:
        data: any tensor of the frame around the loop.
        frame_name: which loop; all that enters it has this name.
        is_constant: whether `data` does not change from one iteration to the next.
        parallel_iterations: how many iterations may be in flight, at least 1.
        name: of the operation.

    Raises:
        InvalidArgumentError: `parallel_iterations` is below 1.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     i, _ = engine.merge([engine.enter(engine.constant(0), "loop")] * 1)
        ...     below = i < engine.enter(engine.constant(5), "loop", is_constant=True)
        ...     out, again = engine.switch(i, engine.loop_cond(below))
        ...     engine.close_loop(i, engine.next_iteration(again + 1))
        ...     session.run(engine.exit_loop(out))
        np.int32(5)
    """
    return _enter(
        data,
        name=name,
        frame_name=frame_name,
        is_constant=is_constant,
        parallel_iterations=parallel_iterations,
    )


def exit_loop(data: Any, *, name: str | None = None) -> Tensor:
    """`data`, once it has a value, outside of the loop.

    Args:
        data: a tensor of the loop, most often the first output of a `switch`.
        name: of the operation.

    Raises:
        FailedPreconditionError: no graph is being built.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     i, _ = engine.merge([engine.enter(engine.constant(0), "loop")] * 1)
        ...     below = i < engine.enter(engine.constant(5), "loop", is_constant=True)
        ...     out, again = engine.switch(i, engine.loop_cond(below))
        ...     engine.close_loop(i, engine.next_iteration(again + 1))
        ...     session.run(engine.exit_loop(out))
        np.int32(5)
    """
    return _exit(data, name=name)


exit = exit_loop  # its name beside enter and merge; here, where Python has another, it is not used


def next_iteration(data: Any, *, name: str | None = None) -> Tensor:
    """`data` in the next iteration; give it to the loop's Merge with `close_loop`.

    Args:
        data: a tensor of the loop, most often computed from the second output of a `switch`.
        name: of the operation.

    Raises:
        FailedPreconditionError: no graph is being built.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     i, _ = engine.merge([engine.enter(engine.constant(0), "loop")] * 1)
        ...     below = i < engine.enter(engine.constant(5), "loop", is_constant=True)
        ...     out, again = engine.switch(i, engine.loop_cond(below))
        ...     engine.close_loop(i, engine.next_iteration(again + 1))
        ...     session.run(engine.exit_loop(out))
        np.int32(5)
    """
    return _next_iteration(data, name=name)


def loop_cond(pred: Any, *, name: str | None = None) -> Tensor:
    """`pred`, marked as what decides whether a loop goes on.

    Args:
        pred: a bool.
        name: of the operation.

    Raises:
        DTypeError: `pred` is no bool.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.loop_cond(engine.constant(True)).dtype
        'bool'
    """
    return _loop_cond(pred, name=name)


def loosen(merged: GraphTensor, shape: TensorShape) -> GraphTensor:
    """What a Merge gave, of which no more is known than `shape`: other values will come this way.

    For who builds a loop; nothing may have taken the tensor yet.
    """
    merged._spec = TensorSpec(shape, merged.dtype)
    return merged


def close_loop(merged: Tensor, back: Tensor) -> None:
    """Make `back`, which a NextIteration gives, one more input of the Merge that made `merged`.

    Raises:
        InvalidArgumentError: they are not that, or of different graphs.
        DTypeError, ShapeError: `back` is not as the Merge was made for.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     i, _ = engine.merge([engine.enter(engine.constant(0), "loop")] * 1)
        ...     below = i < engine.enter(engine.constant(5), "loop", is_constant=True)
        ...     out, again = engine.switch(i, engine.loop_cond(below))
        ...     engine.close_loop(i, engine.next_iteration(again + 1))
        ...     session.run(engine.exit_loop(out))
        np.int32(5)
    """
    if not (
        isinstance(merged, GraphTensor)
        and isinstance(back, GraphTensor)
        and merged.op.definition is _merge
        and back.op.definition is _next_iteration
        and merged.graph is back.graph
    ):
        raise InvalidArgumentError(
            f"close_loop takes the output of a Merge and that of a NextIteration of one graph, "
            f"got {merged!r} and {back!r}"
        )
    op: Operation = merged.op
    if back.dtype != merged.dtype:
        raise DTypeError(
            f"close_loop: {merged.name} is {merged.spec}, and the next iteration gives {back.spec}",
            remedy=f'cast it: cast(x, "{as_dtype(merged.dtype)}")',
        )
    if not merged.shape.is_compatible_with(back.shape):
        raise ShapeError(
            f"close_loop: {merged.name} is {merged.spec}, and the next iteration gives {back.spec}"
        )
    op.graph.add_input(op, back)
