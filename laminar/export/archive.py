"""ExportArchive: functions and the variables they use, written to one file as graphs.

A file is an archive as of models (see laminar/saving/archive.py): config.json tells of endpoints
and variables, assets/NAME.graph are the graphs (a GraphDef each), the weights file has the values.
Source: the interface is that of Keras's `keras.export.ExportArchive`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import laminar
from laminar.engine import GraphDef, Variable
from laminar.engine.errors import InvalidArgumentError, UnimplementedError
from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.functions.captures import is_resource
from laminar.engine.graph import TensorSpec, string
from laminar.engine.tree import map_structure
from laminar.saving.archive import write_archive

from .file_format import (
    CLASS_NAME,
    FORMAT,
    OBJECTS,
    VARIABLE,
    VARIABLES,
    check_operations,
    describe,
    same_value,
)


class _Endpoint(NamedTuple):
    """A traced function; its graph, and its arguments as structure.py describes them."""

    concrete: ConcreteFunction
    graph_def: GraphDef
    arguments: Any
    owners: dict[int, Any]  # by id of a captured handle, whose it is
    parameters: list[dict[str, Any]]  # the names of arguments, and which a call may leave out


class ExportArchive:
    """Collects functions to be written to a file, from which they run without their Python code.

    Examples:
        >>> model = laminar.Sequential([layers.Input((4,)), layers.Dense(2, activation="softmax")])
        >>> archive = laminar.export.ExportArchive()
        >>> archive.track(model)
        >>> spec = engine.TensorSpec([None, 4])
        >>> _ = archive.add_endpoint("serve", lambda x: model(x, training=False), [spec])
        >>> archive.write_out("classifier.laminar", verbose=False)
        >>> laminar.export.load("classifier.laminar").serve(np.ones((3, 4), "float32")).shape
        (3, 2)
    """

    def __init__(self) -> None:
        self._tracked: list[Any] = []
        self._endpoints: dict[str, _Endpoint] = {}
        # What `laminar.export.save` has found; see objects.py.
        self.objects: list[dict[str, Any]] = []

    # The variables of what is tracked

    @property
    def variables(self) -> list[Variable]:
        """The variables of all that is tracked, each once."""
        found = [v for item in self._tracked for v in _variables_of(item)]
        return list({id(v): v for v in found}.values())

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of `variables` that are trained."""
        return [v for v in self.variables if v.trainable]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Those of `variables` that are not trained."""
        return [v for v in self.variables if not v.trainable]

    def track(self, resource: Any) -> None:
        """Write a variable, or those of a layer or model, whether endpoints use them or not.

        Raises:
            InvalidArgumentError: it has no variables, or is not built yet.
        """
        if not isinstance(resource, Variable) and not hasattr(resource, "variables"):
            raise InvalidArgumentError(
                f"track: expected a layer, a model or a variable, got {type(resource).__name__}"
            )
        if not getattr(resource, "built", True):
            raise InvalidArgumentError(
                f"track: the layer {resource.name!r} is not built: it has no variables yet",
                remedy="call it once on data, or give it an Input",
            )
        self._tracked.append(resource)

    def add_endpoint(
        self, name: str, fn: Callable[..., Any], input_signature: Sequence[Any] | None = None
    ) -> Any:
        """Trace a function for the file.

        Args:
            name: an identifier, by which it is called later.
            fn: takes and gives tensors, in lists, tuples and dicts.
            input_signature: for each argument, a spec (TensorSpec, InputSpec, KerasTensor, or a
                tensor), or lists and dicts of them.

        Returns:
            The traced function.

        Raises:
            InvalidArgumentError: the name is taken or no identifier, there is no signature, or a
                part of what it takes or gives is no tensor.
            UnimplementedError: the graph uses what no file can hold, such as a Python function, a
                queue or a table.
        """
        if not name.isidentifier() or name.startswith("_"):
            raise InvalidArgumentError(
                f"add_endpoint: the name must be an identifier, got {name!r}"
            )
        if name in self._endpoints:
            raise InvalidArgumentError(f"add_endpoint: there is an endpoint {name!r} already")
        if input_signature is None:
            raise InvalidArgumentError(
                f"add_endpoint: {name!r} has no input_signature",
                remedy="give one spec for each argument, such as [TensorSpec([None, 4])]",
            )
        arguments = [map_structure(as_spec, argument) for argument in input_signature]
        function = Function(fn)
        self.add_concrete(name, function.concrete(*arguments), arguments)
        return function

    @property
    def endpoint_names(self) -> set[str]:
        """The names that are taken."""
        return set(self._endpoints)

    def add_concrete(
        self,
        name: str,
        concrete: ConcreteFunction,
        arguments: Sequence[Any],
        names: Sequence[str] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> str:
        """As `add_endpoint`, for a graph that is there; gives the name.

        Args:
            name: an identifier that is not taken.
            concrete: the graph.
            arguments: the specs of its inputs, in the structure of the arguments, in which values
                of Python's stand for themselves.
            names: of the arguments, by which a call may give them.
            defaults: by the name of an argument, what it is in a call that does not give it.
        """
        described = describe(list(arguments), values=True)
        parameters = [
            {"name": n, "optional": n in (defaults or {}) and same_value((defaults or {})[n], a)}
            for n, a in zip(names, arguments, strict=False)
        ]
        describe(concrete.structured_outputs)
        graph_def = concrete.graph.as_graph_def()
        check_operations(graph_def, UnimplementedError, f"add_endpoint {name!r}")
        state = concrete.captured_state
        owners = {id(v.handle): v for v in state if isinstance(v, Variable)}
        for outer in concrete.captured:
            is_text = outer.dtype == string
            if is_text or (is_resource(outer) and id(outer) not in owners):
                held = "a vocabulary, or other text" if is_text else outer.spec
                raise UnimplementedError(
                    f"add_endpoint: {name!r} uses {held}, which an exported file cannot hold",
                    remedy="look up words before the exported function",
                )
        self._endpoints[name] = _Endpoint(concrete, graph_def, described, owners, parameters)
        return name

    def track_and_add_endpoint(
        self, name: str, resource: Any, input_signature: Sequence[Any], **kwargs: Any
    ) -> Any:
        """`track` a layer, and `add_endpoint` its call.

        Args:
            name: of the endpoint.
            resource: the layer, or a model.
            input_signature: a spec of each input.
            kwargs: other arguments of the call, such as `training=False`.
        """
        self.track(resource)
        return self.add_endpoint(name, lambda *args: resource(*args, **kwargs), input_signature)

    def add_variable_collection(self, name: str, variables: Sequence[Variable]) -> None:
        """Track variables; `name` is for the reader of the script alone.

        Raises:
            InvalidArgumentError: something else than variables was given.
        """
        if not isinstance(variables, list | tuple | set) or not all(
            isinstance(v, Variable) for v in variables
        ):
            raise InvalidArgumentError(
                f"add_variable_collection: {name!r} must be a list of variables, got {variables!r}"
            )
        for variable in variables:
            self.track(variable)

    def write_out(self, filepath: str | os.PathLike[str], verbose: bool = True) -> None:
        """Write the file; it is there whole, or not at all.

        Args:
            filepath: where to.
            verbose: whether to print what was written.

        Raises:
            InvalidArgumentError: there is no endpoint.
        """
        if not self._endpoints and not self.objects:
            raise InvalidArgumentError(
                "write_out: there is nothing to write", remedy="call add_endpoint first"
            )
        places: dict[int, str] = {}
        held: list[Variable] = []
        arrays: dict[str, npt.ArrayLike] = {}

        def add(array: npt.ArrayLike) -> str:
            arrays[str(len(arrays))] = array
            return str(len(arrays) - 1)

        def key_of(variable: Variable) -> str:
            if id(variable) not in places:
                places[id(variable)] = add(variable.numpy())
                held.append(variable)
            return places[id(variable)]

        for variable in self.variables:
            key_of(variable)
        endpoints, graphs = {}, {}
        for name, endpoint in self._endpoints.items():
            concrete = endpoint.concrete
            captures: dict[str, Any] = {}
            for outer, inner in zip(concrete.captured, concrete.captured_inputs, strict=True):
                if is_resource(outer):
                    captures[inner.name] = {"variable": key_of(endpoint.owners[id(outer)])}
                else:
                    captures[inner.name] = {"constant": add(np.asarray(outer))}
            endpoints[name] = {
                "arguments": endpoint.arguments,
                "parameters": endpoint.parameters,
                "inputs": [
                    {"name": x.name, "shape": _dims(x.spec), "dtype": str(x.dtype)}
                    for x in concrete.ordered_inputs
                ],
                "outputs": [y.name for y in concrete.outputs],
                "results": describe(concrete.structured_outputs),
                "captures": captures,
                "effects": [op.name for op in concrete.effects],
            }
            graphs[f"{name}.graph"] = endpoint.graph_def.to_bytes()
        described = {
            places[id(v)]: {"path": v.path, "trainable": v.trainable, "dtype": str(v.dtype)}
            for v in held
        }
        config: dict[str, Any] = {
            "class_name": CLASS_NAME,
            "endpoints": endpoints,
            VARIABLES: described,
        }
        if self.objects:
            config[OBJECTS] = [
                {VARIABLE: places[id(o[VARIABLE])]} if VARIABLE in o else o for o in self.objects
            ]
        metadata = {"format": FORMAT, "laminar_version": laminar.__version__}
        write_archive(filepath, config, metadata, {VARIABLES: arrays}, assets=graphs)
        if verbose:
            print(f"{os.fspath(filepath)}: {', '.join(endpoints)}; {len(held)} variables")


def as_spec(x: Any) -> TensorSpec:
    """The spec of one argument.

    Raises:
        InvalidArgumentError: it has no shape.
    """
    if not hasattr(x, "shape") or x.shape is None:
        raise InvalidArgumentError(
            f"input_signature: expected a spec or a tensor, got {x!r}",
            remedy='such as TensorSpec([None, 4], "float32")',
        )
    return TensorSpec(tuple(x.shape), x.dtype or "float32", getattr(x, "name", None))


def _variables_of(item: Any) -> list[Variable]:
    return [item] if isinstance(item, Variable) else list(item.variables)


def _dims(spec: TensorSpec) -> list[int | None] | None:
    return None if spec.shape.rank is None else spec.shape.as_list()
