"""Rules for loops and conditions of TensorFlow 1, its stacks and its tensor arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import GraphTensor, TensorShape, resource
from ...ops.control import dataflow
from ...ops.core.basic import constant, zeros_like
from ...ops.core.entries import known_value
from ...ops.core.registry import lookup
from ...ops.state import stack, tensor_array, tensor_list
from .rules import Call, Reference, direct, rule


def _steered(call: Call, index: int = 0) -> tuple[GraphTensor, Reference | None]:
    """What goes through an op that steers: the handle of a variable, or a value."""
    found = call.inputs[index] if index < len(call.inputs) else call[index]
    if isinstance(found, Reference) and found.value is None:
        return found.handle, found
    return call[index], None


def _on_the_way(call: Call, op: Any, *others: Any, **attrs: Any) -> list[Any]:
    x, variable = _steered(call)
    found = direct(call, op, x, *others, **attrs).outputs
    return [variable._replace(handle=y) for y in found] if variable else list(found)


@rule("Switch", "RefSwitch")
def _switch(call: Call) -> Any:
    return _on_the_way(call, dataflow.SWITCH, call[1])


@rule("Merge", "RefMerge")
def _merge(call: Call) -> Any:
    """What comes round a loop is given later; as far as TensorFlow has seen that its shape varies,
    the shape is not known.
    """
    pairs = [_steered(call, i) for i in range(len(call.inputs))]
    op = direct(call, dataflow.MERGE, *(x for x, _ in pairs))
    merged, number = op.outputs
    variable = pairs[0][1] if pairs else None
    if variable is not None:
        return [variable._replace(handle=merged), number]
    seen = known_shape(call)
    if call.node.late and seen is not None:
        dataflow.loosen(merged, _common(merged.shape, seen))
    return [merged, number]


def _common(a: TensorShape, b: TensorShape) -> TensorShape:
    """What both say."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a, b, strict=True)])


@rule("Enter", "RefEnter")
def _enter(call: Call) -> Any:
    return _on_the_way(
        call,
        dataflow.ENTER,
        frame_name=call.scope + call.node.text("frame_name"),
        is_constant=bool(call.node.attr("is_constant", False)),
        parallel_iterations=max(int(call.node.attr("parallel_iterations", 10)), 1),
    )


@rule("Exit", "RefExit")
def _exit(call: Call) -> Any:
    return _on_the_way(call, dataflow.EXIT)


@rule("NextIteration", "RefNextIteration")
def _next_iteration(call: Call) -> Any:
    return _on_the_way(call, dataflow.NEXT_ITERATION)


@rule("LoopCond")
def _loop_cond(call: Call) -> Any:
    return direct(call, dataflow.LOOP_COND, call[0])


@rule("ControlTrigger")
def _control_trigger(call: Call) -> Any:
    return direct(call, dataflow.control_trigger)


def known_shape(call: Call, index: int = 0) -> TensorShape | None:
    """What TensorFlow knew of the shape of an output; None where the file does not say."""
    found = call.node.attr("_output_shapes", [])
    return found[index] if index < len(found) else None


def _shape(call: Call) -> TensorShape:
    found = known_shape(call)
    return TensorShape(None) if found is None else found


# Stacks, in which the gradient of a loop finds what the loop computed


@rule("StackV2")
def _stack(call: Call) -> Any:
    name = call.node.text("stack_name") or call.name
    return direct(call, stack.stack, call[0], stack_name=name)


@rule("StackPushV2")
def _push(call: Call) -> Any:
    return direct(call, stack.stack_push, call[0], call[1])


@rule("StackPopV2")
def _pop(call: Call) -> Any:
    dtype = call.node.attr("elem_type")
    return direct(call, stack.stack_pop, call[0], dtype=dtype, shape=_shape(call))


@rule("StackCloseV2")
def _close_stack(call: Call) -> Any:
    return direct(call, stack.stack_close, call[0])


# Tensor arrays


@rule("TensorArrayV3")
def _tensor_array(call: Call) -> Any:
    attr = call.node.attr
    return direct(
        call,
        tensor_array.tensor_array,
        call[0],
        dtype=attr("dtype"),
        element_shape=attr("element_shape", TensorShape(None)),
        dynamic_size=bool(attr("dynamic_size", False)),
        clear_after_read=bool(attr("clear_after_read", True)),
        identical_element_shapes=bool(attr("identical_element_shapes", False)),
        tensor_array_name=call.node.text("tensor_array_name") or call.name,
    )


@rule("TensorArrayGradV3")
def _tensor_array_grad(call: Call) -> Any:
    source = call.node.text("source")
    return direct(call, tensor_array.tensor_array_grad, call[0], call[1], source=source)


@rule("TensorArrayWriteV3")
def _write(call: Call) -> Any:
    return direct(call, tensor_array.tensor_array_write, *call.values)


@rule("TensorArrayReadV3")
def _read(call: Call) -> Any:
    return direct(
        call,
        tensor_array.tensor_array_read,
        *call.values,
        dtype=call.node.attr("dtype"),
        element_shape=_shape(call),
    )


@rule("TensorArrayGatherV3")
def _gather(call: Call) -> Any:
    return direct(
        call,
        tensor_array.tensor_array_gather,
        *call.values,
        dtype=call.node.attr("dtype"),
        element_shape=call.node.attr("element_shape", TensorShape(None)),
    )


@rule("TensorArrayScatterV3")
def _scatter(call: Call) -> Any:
    return direct(call, tensor_array.tensor_array_scatter, *call.values)


@rule("TensorArrayConcatV3")
def _concat(call: Call) -> Any:
    return direct(
        call,
        tensor_array.tensor_array_concat,
        *call.values,
        dtype=call.node.attr("dtype"),
        element_shape=call.node.attr("element_shape_except0", TensorShape(None)),
    )


@rule("TensorArraySplitV3")
def _split(call: Call) -> Any:
    return direct(call, tensor_array.tensor_array_split, *call.values)


@rule("TensorArraySizeV3")
def _size(call: Call) -> Any:
    return direct(call, tensor_array.tensor_array_size, *call.values)


@rule("TensorArrayCloseV3")
def _close(call: Call) -> Any:
    return direct(call, tensor_array.tensor_array_close, call[0])


# Lists, in which loops that are functions keep what their gradients need


@rule("EmptyTensorList")
def _empty_list(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list)


@rule("TensorListPushBack")
def _push_back(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_push, call[0], call[1])


def _element(call: Call, shape: int, output: int = 0) -> dict[str, Any]:
    """The type of a list's tensors, and their shape as far as it is said.

    Args:
        call: a node that gives one, or all of them along a new axis.
        shape: which of its inputs says their shape.
        output: which of its outputs the tensor is.
    """
    seen = known_shape(call, output)
    if seen is None or seen.rank is None:
        given = known_value(call[shape])
        is_known = isinstance(given, Sequence) and given is not None
        seen = TensorShape([None if n == -1 else n for n in given] if is_known else None)
    elif call.node.op == "TensorListStack":
        seen = TensorShape(seen[1:])
    return {"dtype": call.node.attr("element_dtype"), "shape": seen}


@rule("TensorListPopBack")
def _pop_back(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_pop, call[0], **_element(call, 1, output=1))


@rule("TensorListReserve")
def _reserve(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_reserve, call[1])


@rule("TensorListFromTensor")
def _from_tensor(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_from, call[0])


@rule("TensorListLength")
def _list_length(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_length, call[0])


@rule("ZerosLike")
def _zeros_like(call: Call) -> Any:
    is_list = call[0].dtype == resource
    return direct(call, tensor_list.tensor_list_zeros if is_list else zeros_like, call[0])


@rule("AddN")
def _add_all(call: Call) -> Any:
    is_list = call[0].dtype == resource
    return direct(call, tensor_list.tensor_list_add if is_list else lookup("AddN"), *call.values)


@rule("TensorListResize")
def _resize_list(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_resize, call[0], call[1])


@rule("TensorListElementShape")
def _element_shape(call: Call) -> Any:
    """Lists do not keep it: those that are made for it take that of what is stored."""
    return constant(np.array(-1, np.int32))


@rule("TensorListGetItem")
def _get_item(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_get, call[0], call[1], **_element(call, 2))


@rule("TensorListSetItem")
def _set_item(call: Call) -> Any:
    grows = bool(call.node.attr("resize_if_index_out_of_bounds", False))
    return direct(call, tensor_list.tensor_list_set, call[0], call[1], call[2], grows=grows)


@rule("TensorListStack")
def _list_stack(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list_stack, call[0], **_element(call, 1))


# Optionals, in which conditions that are functions keep it: lists, of one tensor each mostly


@rule("OptionalNone")
def _no_optional(call: Call) -> Any:
    return direct(call, tensor_list.tensor_list)


@rule("OptionalFromValue")
def _optional(call: Call) -> Any:
    found = tensor_list.tensor_list()
    for value in call.values:
        found = tensor_list.tensor_list_push(found, value)
    return found


@rule("OptionalGetValue")
def _of_optional(call: Call) -> Any:
    kinds = call.node.attr("output_types", [])
    shapes = call.node.attr("output_shapes", [])
    rest, found = call[0], []
    for dtype, shape in reversed([*zip(kinds, shapes, strict=True)]):
        rest, value = tensor_list.tensor_list_pop.many(rest, dtype=dtype, shape=shape)
        found.append(value)
    return found[::-1]
