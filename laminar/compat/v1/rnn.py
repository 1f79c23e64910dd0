"""`tf.nn.dynamic_rnn` and its kin: a cell over all steps of sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar import engine, ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import where
from laminar.engine.tree import flatten, map_structure

from .adapting import in_graph, v1
from .arrays import reverse_sequence
from .recurrent import map_sizes
from .values import dims_of, symbol, tensor
from .variables import variable_scope


def _time_first(x: Any) -> Tensor:
    given = symbol(x)
    if given.shape.rank is not None and len(given.shape) < 2:
        raise ValueError(f"an RNN takes (batch, time, ...), got {given.spec}")
    found: Tensor = ops.swapaxes(given, 0, 1)
    return found


def _begin(who: str, cell: Any, initial_state: Any, dtype: Any, batch: Any) -> Any:
    if initial_state is not None:
        return map_structure(symbol, initial_state)
    if dtype is None:
        raise ValueError(f"{who}: give initial_state, or the dtype of a state of zeros")
    return map_structure(symbol, cell.zero_state(batch, dtype))


def _choose(mask: Any, yes: Any, no: Any) -> Any:
    """`yes` in the rows where the mask holds, else `no`."""
    rank = yes.shape.rank
    column = ops.reshape(mask, [-1, *[1] * ((rank or 2) - 1)])
    return where(column, yes, no)


def _lengths(who: str, sequence_length: Any) -> Any:
    if sequence_length is None:
        return None
    lengths = cast(symbol(sequence_length), "int32")
    if lengths.shape.rank not in (None, 1):
        raise ValueError(f"{who}: sequence_length must be a vector, got {lengths.spec}")
    return lengths


def _step(cell: Any, x: Any, state: Any, running: Any) -> tuple[Any, Any]:
    """One step of the cell; of rows that are not running, zeros and the state as it was."""
    output, new = cell(x, state)
    if running is None:
        return output, new
    zeros = map_structure(lambda y: lookup("ZerosLike")(y), output)
    output = map_structure(lambda y, z: _choose(running, y, z), output, zeros)
    return output, map_structure(lambda n, s: _choose(running, n, s), new, state)


@v1()
def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """(outputs, last state) of a cell over the steps of sequences.

    Args:
        cell: an RNNCell.
        inputs: (batch, time, ...), or a structure of these.
        sequence_length: (batch), how many steps each sequence has; behind, outputs are zeros and
            the state stays.
        initial_state: by default zeros of `dtype`.
        dtype: of the initial state.
        parallel_iterations, swap_memory: accepted.
        time_major: whether time is the first axis, of the inputs and the outputs.
        scope: of the variables, by default "rnn".
    """
    with variable_scope(scope, "rnn"):
        xs = map_structure(symbol if time_major else _time_first, inputs)
        first = flatten(xs)[0]
        steps, batch = dims_of(first)[:2]
        begin = _begin("dynamic_rnn", cell, initial_state, dtype, batch)
        lengths = _lengths("dynamic_rnn", sequence_length)
        times = symbol(creation.arange(steps, dtype="int32"))

        def body(state: Any, given: Any) -> tuple[Any, Any]:
            x, time = given
            running = None if lengths is None else lookup("Less")(time, lengths)
            output, new = _step(cell, x, state, running)
            return new, output

        state, outputs = engine.scan(body, begin, (xs, times))
        if not time_major:
            outputs = map_structure(lambda y: ops.swapaxes(y, 0, 1), outputs)
        return outputs, state


@v1()
def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """(outputs, last state) of a cell over a list of inputs, each step by its own operations.

    See `dynamic_rnn`; the inputs are (batch, ...) for each step, and so are the outputs.
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError(f"static_rnn: expected a list of inputs, got {inputs!r}")
    outputs = []
    with variable_scope(scope, "rnn") as entered:
        xs = [map_structure(symbol, x) for x in inputs]
        batch = dims_of(flatten(xs[0])[0])[0]
        state = _begin("static_rnn", cell, initial_state, dtype, batch)
        lengths = _lengths("static_rnn", sequence_length)
        for time, x in enumerate(xs):
            if time:
                entered.reuse_variables()
            running = None
            if lengths is not None:
                running = lookup("Less")(tensor(time, lengths.dtype), lengths)
            output, state = _step(cell, x, state, running)
            outputs.append(output)
    return outputs, state


def _reversed(x: Any, lengths: Any, time_axis: int) -> Any:
    if lengths is None:
        return ops.flip(symbol(x), time_axis)
    return reverse_sequence(x, lengths, seq_axis=time_axis, batch_axis=1 - time_axis)


@v1()
def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """((outputs forward, outputs backward), (last states)) of two cells, one from each end."""
    axis = 0 if time_major else 1
    with variable_scope(scope, "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            ahead, state_fw = dynamic_rnn(
                cell_fw, inputs, sequence_length, initial_state_fw, dtype,
                time_major=time_major, scope=forward,
            )  # fmt: skip
        lengths = _lengths("bidirectional_dynamic_rnn", sequence_length)
        turned = map_structure(lambda x: _reversed(x, lengths, axis), inputs)
        with variable_scope("bw") as backward:
            behind, state_bw = dynamic_rnn(
                cell_bw, turned, sequence_length, initial_state_bw, dtype,
                time_major=time_major, scope=backward,
            )  # fmt: skip
        behind = map_structure(lambda y: _reversed(y, lengths, axis), behind)
    return (ahead, behind), (state_fw, state_bw)


@v1()
def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """(outputs of both cells side by side, last state forward, last state backward)."""
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError(f"static_bidirectional_rnn: expected a list of inputs, got {inputs!r}")
    lengths = _lengths("static_bidirectional_rnn", sequence_length)

    def turned(xs: Any) -> list[Any]:
        if lengths is None:
            return list(reversed(xs))
        return list(ops.unstack(_reversed(ops.stack([symbol(x) for x in xs]), lengths, 0), len(xs)))

    with variable_scope(scope, "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            ahead, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, forward
            )
        with variable_scope("bw") as backward:
            behind, state_bw = static_rnn(
                cell_bw, turned(inputs), initial_state_bw, dtype, sequence_length, backward
            )
    pairs = zip(ahead, turned(behind), strict=True)
    return [lookup("Concat")(a, b, axis=1) for a, b in pairs], state_fw, state_bw


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """(emitted values as TensorArrays, last state, last loop state) of a cell that `loop_fn` feeds.

    Args:
        cell: an RNNCell.
        loop_fn: of (time, output of the cell, its state, loop state), gives (which sequences have
            ended, the next input, the next state, what is emitted, loop state). At time 0 the last
            three of its arguments are None; it gives the initial state then, and for what is
            emitted the form of one row, or None for that of the output.
        parallel_iterations, swap_memory: accepted.
        scope: of the variables, by default "rnn".
    """
    if not callable(loop_fn):
        raise TypeError(f"raw_rnn: loop_fn must be callable, got {loop_fn!r}")
    with in_graph(), variable_scope(scope, "rnn"):
        time = engine.constant(0)
        ended, x, state, form, loop = loop_fn(time, None, None, None)
        batch = dims_of(flatten(x)[0])[0]
        ended, state = symbol(ended), map_structure(symbol, state)
        sizes = cell.output_size if form is None else None
        kind = flatten(state)[0].dtype
        if form is None:
            empty = map_sizes(lambda dims: symbol(creation.zeros([batch, *dims], kind)), sizes)
        else:
            empty = map_structure(lambda f: symbol(_rows_of(batch, f)), form)
        arrays = map_structure(
            lambda e: engine.TensorArray(e.dtype, 0, dynamic_size=True, clear_after_read=False),
            empty,
        )
        has_loop_state = loop is not None
        carried = map_structure(_carried, loop) if has_loop_state else 0

        def go_on(time: Any, ended: Any, *_: Any) -> Any:
            return lookup("LogicalNot")(lookup("All")(ended))

        def body(time: Any, ended: Any, x: Any, arrays: Any, state: Any, carried: Any) -> Any:
            output, new = cell(x, state)
            after = time + 1
            ends, following, new, emitted, more = loop_fn(
                after, output, new, carried if has_loop_state else None
            )
            running = lookup("LogicalNot")(ended)
            emitted = output if emitted is None else emitted
            emitted = map_structure(lambda y, e: _choose(running, tensor(y), e), emitted, empty)
            new = map_structure(lambda n, s: _choose(running, tensor(n), s), new, state)
            arrays = map_structure(lambda a, e: a.write(time, e), arrays, emitted)
            ends = lookup("LogicalOr")(ended, symbol(ends))
            return after, ends, following, arrays, new, more if has_loop_state else carried

        begin = (time, ended, map_structure(symbol, x), arrays, state, carried)
        _, _, _, arrays, state, carried = engine.while_loop(go_on, body, begin)
        return arrays, state, carried if has_loop_state else None


def _carried(x: Any) -> Any:
    return x if isinstance(x, engine.TensorArray) else symbol(x)


def _rows_of(batch: Any, form: Any) -> Any:
    row = tensor(form)
    return creation.zeros([batch, *dims_of(row)], row.dtype)
