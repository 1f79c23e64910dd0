"""A model, or a traced function, as an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import laminar
from laminar.engine.errors import UnimplementedError
from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.functions.captures import is_resource
from laminar.engine.graph import GraphTensor, TensorSpec, string
from laminar.engine.io.atomic import atomic_write
from laminar.engine.passes import needed_operations
from laminar.engine.state import Variable
from laminar.tree import map_structure

from ..archive import as_spec
from . import rules as rules
from .library import IR_VERSION, OPSET, library
from .writer import GraphWriter


def export_onnx(
    fn: Any,
    filepath: str | os.PathLike[str],
    input_signature: Sequence[Any],
    name: str,
    verbose: bool = True,
) -> None:
    """Write what a function of tensors computes as an ONNX file.

    Args:
        fn: the function; its variables are constants of the file.
        filepath: where to; the file is there whole, or not at all.
        input_signature: a spec for each argument.
        name: of the graph.
        verbose: whether to print what was written.

    Raises:
        UnimplementedError: ONNX has no counterpart of an operation, or is not installed.
    """
    onnx = library()
    arguments = [map_structure(as_spec, argument) for argument in input_signature]
    model = onnx_model(Function(fn).concrete(*arguments), name)
    onnx.checker.check_model(model)
    with atomic_write(filepath) as file:
        file.write(model.SerializeToString())
    if verbose:
        print(f"{os.fspath(filepath)}: {name}, as ONNX; {len(model.graph.node)} nodes")


def onnx_model(concrete: ConcreteFunction, name: str) -> Any:
    """The ONNX model of a traced function."""
    helper = library().helper
    writer = GraphWriter()
    inputs = [_input(writer, x) for x in concrete.ordered_inputs]
    _name_captured(writer, concrete, name)
    writer.write(needed_operations(concrete.outputs, (), list(writer.names)))
    outputs = []
    for i, y in enumerate(concrete.outputs):
        made = writer.node("Identity", writer.names[y], name=f"output_{i}")
        outputs.append(writer.described(made, y.spec, _dims(y.spec, f"output_{i}")))
    graph = helper.make_graph(writer.nodes, name, inputs, outputs, _initializers(writer))
    return helper.make_model(
        graph,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="laminar",
        producer_version=laminar.__version__,
    )


def _name_captured(writer: GraphWriter, concrete: ConcreteFunction, name: str) -> None:
    """Give what the function captures names: constants, and the variables that it reads."""
    owners = {id(v.handle): v for v in concrete.captured_state if isinstance(v, Variable)}
    read: dict[GraphTensor, str] = {}
    for outer, inner in zip(concrete.captured, concrete.captured_inputs, strict=True):
        if not is_resource(outer) and outer.dtype != string:
            writer.names[inner] = writer.constant(np.asarray(outer))
        elif id(outer) in owners:
            variable = owners[id(outer)]
            read[inner] = writer.array(variable.path, np.asarray(variable.numpy()))
        else:
            raise UnimplementedError(
                f"export: {name!r} uses {outer.spec}, which no ONNX file can hold",
                remedy="look up words before the exported function",
            )
    for op in concrete.graph.operations:
        if op.type == "ReadVariable" and op.inputs[0] in read:
            writer.names[op.outputs[0]] = read[op.inputs[0]]


def _input(writer: GraphWriter, x: GraphTensor) -> Any:
    name = x.op.name
    writer.names[x] = name
    return writer.described(name, x.spec, _dims(x.spec, name))


def _dims(spec: TensorSpec, name: str) -> list[int | str] | None:
    """Sizes, or names of those that are not known: the first axis is the batch."""
    if spec.shape.rank is None:
        return None
    names = ["batch", *(f"{name}_{i}" for i in range(1, spec.shape.rank))]
    return [names[i] if d is None else d for i, d in enumerate(spec.shape)]


def _initializers(writer: GraphWriter) -> list[Any]:
    """The known values that a node uses, here or in a body."""
    used: set[str] = set()
    stack = list(writer.nodes)
    while stack:
        node = stack.pop()
        used.update(node.input)
        for attribute in node.attribute:
            stack += attribute.g.node
    return [
        library().numpy_helper.from_array(array, name)
        for name, array in writer.arrays.items()
        if name in used
    ]
