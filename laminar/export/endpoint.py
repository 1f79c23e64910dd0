"""Endpoints of an exported file: a graph and its variables as a function.

A program that answers once is to answer soon. So the first run is one of the reference kernels, op
by op, for which neither passes nor the compiler are loaded; from the second one on an endpoint is
a `Function`, as it is at once where it is traced, differentiated, placed on a device, or updates
variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from laminar import engine
from laminar.engine import forks
from laminar.engine.errors import DataLossError, ShapeError
from laminar.engine.graph import (
    EagerTensor,
    Graph,
    GraphTensor,
    Tensor,
    TensorSpec,
    as_dtype,
    eager_scope,
    stack,
    tensors_of,
    value_of,
)
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.core.arrays import to_array
from laminar.engine.ops.core.cluster import ClusterBody, run_steps
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.dispatch import EAGER
from laminar.engine.ops.core.graphs import import_graph_def, needed_operations
from laminar.engine.ops.core.recording import recorders
from laminar.engine.ops.core.registry import definition_of
from laminar.engine.ops.state.variable import VariableStore, read_variable

from .file_format import packed, taken


class State:
    """The variables of a file, which become objects when somebody asks for them.

    `_stores` is what holds the value of each: of the objects, once `_variables` has them. `_lock`
    guards both.

    Args:
        arrays: values by key.
        described: by key what else is known of the variables.
    """

    def __init__(self, arrays: Mapping[str, Any], described: Mapping[str, Any]) -> None:
        self._described = described
        self._stores: dict[str, VariableStore] = {}
        for key, about in described.items():
            array, _ = to_array(arrays[key], as_dtype(about["dtype"]), copy=False)
            self._stores[key] = VariableStore(str(about["path"]), array)
        self._variables: dict[str, engine.Variable] | None = None
        self._lock = forks.lock()
        if stack.place is not None:
            self._make()  # they lie where they are loaded

    def store(self, key: str) -> VariableStore:
        """What holds the value of a variable."""
        return self._stores[key]

    @property
    def variables(self) -> dict[str, engine.Variable]:
        """The variables by key."""
        if self._variables is None:
            with eager_scope(), engine.device(None):
                self._make()
        assert self._variables is not None
        return self._variables

    def _make(self) -> None:
        with self._lock:
            if self._variables is None:
                made = {}
                for key, about in self._described.items():
                    store = self._stores[key]
                    made[key] = engine.Variable(
                        store.value,
                        trainable=bool(about["trainable"]),
                        name=store.name.rpartition("/")[2] or "variable",
                    )
                self._stores = {key: value_of(v.handle) for key, v in made.items()}
                self._variables = made


class Endpoint:
    """One function of a file; it takes and gives the structures that the exported one did.

    Args:
        name: its name.
        about: what the file says of it.
        graph_def: its graph.
        state: the variables of the file.
        constants: the other values that it uses, by key.
        jit_compile: see `load`.

    Attributes:
        name: its name.
        input_signature: the specs of its arguments, in their structure.
    """

    def __init__(
        self,
        name: str,
        about: dict[str, Any],
        graph_def: GraphDef,
        state: State,
        constants: Mapping[str, Any],
        jit_compile: bool | str,
    ) -> None:
        self.name = name
        self._about = about
        self._specs = [TensorSpec(x["shape"], x["dtype"]) for x in about["inputs"]]
        self.input_signature = packed(about["arguments"], self._specs, name)
        self._graph_def = graph_def
        self._state = state
        # By the name of a placeholder, the key of a variable, or a value.
        self._captures: dict[str, str | Tensor] = {}
        for inner, given in about["captures"].items():
            if "variable" in given:
                state.store(given["variable"])  # it is there
                self._captures[inner] = given["variable"]
            else:
                self._captures[inner] = convert_to_tensor(constants[given["constant"]])
        self._body = self._read()
        self._compiles = bool(jit_compile)
        runs = {True: 0, False: math.inf, "auto": 1}[jit_compile]
        self._plain_runs = runs if self._body is not None else 0
        self._function: engine.Function | None = None
        self._lock = forks.lock()

    def _read(self) -> ClusterBody | None:
        """The graph as it is run op by op; None where that takes more than its kernels."""
        about, graph = self._about, Graph()
        given = [x["name"] for x in about["inputs"]] + list(about["captures"])
        with graph.as_default():
            found = import_graph_def(
                self._graph_def, {}, [*given, *about["outputs"], *about["effects"]], name=""
            )
        inputs, outputs = found[: len(given)], found[len(given) :][: len(about["outputs"])]
        if not all(isinstance(x, GraphTensor) for x in (*inputs, *outputs)):
            raise DataLossError(f"{self.name}: it takes or gives what is no tensor")
        feeds: list[Any] = [*inputs]
        for x, spec in zip(feeds, self._specs, strict=False):
            if x.dtype != spec.dtype or not spec.shape.is_compatible_with(x.shape):
                raise DataLossError(f"{self.name}: {x.name} is {x.spec}, and said to be {spec}")
        results: list[Any] = [*outputs]
        needed = needed_operations(results, feeds=feeds)
        for op in needed:
            kernels = definition_of(op)
            waits = kernels.async_kernel or kernels.prepared
            if op.device or waits or (kernels.context_kernel and kernels is not read_variable):
                return None
        return None if about["effects"] else ClusterBody.of(needed, feeds, results, self.name)

    def __call__(self, *args: Any) -> Any:
        """The results for arguments of the exported structure.

        Raises:
            ShapeError: the structure or a shape is another one; numbers are cast to the dtypes.
        """
        flat: list[Any] = []
        taken(self._about["arguments"], list(args), flat, self._complain)
        tensors = []
        for x, spec in zip(flat, self._specs, strict=True):
            tensor = convert_to_tensor(x, spec.dtype)
            if not spec.shape.is_compatible_with(tensor.shape):
                self._complain(f"{spec}, got {tensor.spec}")
            tensors.append(tensor)
        run = self._run if self._plain_runs > 0 and _is_plain(tensors) else self.function
        return packed(self._about["results"], run(*tensors), self.name)

    def _run(self, *tensors: Any) -> list[Tensor]:
        """The results, one op after the other."""
        body = self._body
        assert body is not None
        self._plain_runs -= 1
        values = [value_of(x) for x in tensors]
        for x in self._captures.values():
            values.append(self._state.store(x) if isinstance(x, str) else value_of(x))
        found = run_steps(EAGER, *values, body=body)
        return tensors_of(found, [body.specs[i].dtype for i in body.outputs])

    @property
    def function(self) -> engine.Function:
        """The endpoint as a function of tensors, which runs native code unless it must not."""
        with self._lock:
            if self._function is None:
                variables = self._state.variables
                given = {
                    inner: variables[x].handle if isinstance(x, str) else x
                    for inner, x in self._captures.items()
                }
                function = engine.Function(
                    self._caller(given), self._specs, jit_compile=self._compiles
                )
                function.concrete(*self._specs)
                self._function = function
        return self._function

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self.function.traces[0].graph

    def _caller(self, captures: Mapping[str, Tensor]) -> Callable[..., list[GraphTensor]]:
        """The function that adds the graph to the one being traced."""
        about = self._about
        inputs = [x["name"] for x in about["inputs"]]

        def call(*tensors: Any) -> list[GraphTensor]:
            given = {**captures, **dict(zip(inputs, tensors, strict=True))}
            wanted = [*about["outputs"], *about["effects"]]
            found = import_graph_def(self._graph_def, given, wanted, name=self.name)
            return found[: len(about["outputs"])]  # type: ignore[return-value]  # names of tensors

        call.__name__ = self.name
        return call

    def fits(self, *args: Any) -> bool:
        """Whether arguments have the exported structure, types and shapes."""
        flat: list[Any] = []
        try:
            taken(self._about["arguments"], list(args), flat, self._complain)
        except ShapeError:
            return False
        tensors = map(convert_to_tensor, flat)
        return all(
            x.dtype == spec.dtype and spec.shape.is_compatible_with(x.shape)
            for x, spec in zip(tensors, self._specs, strict=True)
        )

    def _complain(self, what: str) -> None:
        raise ShapeError(
            f"{self.name}: expected {what}",
            remedy="`input_signature` tells what the endpoint takes",
        )


def _is_plain(tensors: Sequence[Tensor]) -> bool:
    """Whether values are computed at once, on the host, and nobody records how."""
    if stack.items or stack.place is not None or recorders.active:
        return False
    return all(type(x) is EagerTensor for x in tensors)
