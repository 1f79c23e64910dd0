"""Reading what ExportArchive wrote: endpoints as functions over variables of their own.

A program that answers once is to answer soon. So the first run is one of the reference kernels, op
by op, for which neither passes nor the compiler are loaded; from the second one on an endpoint is
a `Function`, as it is at once where it is traced, differentiated, placed on a device, or updates
variables.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from laminar import engine
from laminar.engine import forks, graph
from laminar.engine.errors import DataLossError, InvalidArgumentError, LaminarError, ShapeError
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
from laminar.engine.graph.graph_messages import read_graph
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.core.arrays import to_array
from laminar.engine.ops.core.cluster import ClusterBody, run_steps
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.dispatch import EAGER
from laminar.engine.ops.core.graphs import import_graph_def, needed_operations
from laminar.engine.ops.core.recording import recorders
from laminar.engine.ops.core.registry import definition_of
from laminar.engine.ops.state.variable import VariableStore, read_variable
from laminar.saving.archive import ArchiveReader, open_archive
from laminar.saving.limits import Limits, refused

from .file_format import (
    CLASS_NAME,
    FORMAT,
    FUNCTIONS,
    OBJECTS,
    PARTS,
    VARIABLE,
    VARIABLES,
    check_operations,
    packed,
    taken,
)


class Exported:
    """What a file of `ExportArchive` holds.

    Each endpoint is an attribute: `exported.serve(x)`, and so is what an exported object had.
    Calling the object itself calls its first endpoint.

    Attributes:
        endpoints: the functions by name.

    Examples:
        >>> archive = laminar.export.ExportArchive()
        >>> spec = engine.TensorSpec((None,), "float32")
        >>> endpoint = archive.add_endpoint("serve", lambda x: x * 2, input_signature=[spec])
        >>> archive.write_out("double.laminar", verbose=False)
        >>> list(laminar.export.load("double.laminar").endpoints)
        ['serve']
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        state: State,
        parts: Mapping[str, Any] | None = None,
    ) -> None:
        self.endpoints = dict(endpoints)
        self._state = state
        self._parts = dict(parts or {})

    @property
    def variables(self) -> list[engine.Variable]:
        """The variables, in the order of the file."""
        return list(self._state.variables.values())

    @property
    def trainable_variables(self) -> list[engine.Variable]:
        """Those of `variables` that were trained."""
        return [v for v in self.variables if v.trainable]

    @property
    def non_trainable_variables(self) -> list[engine.Variable]:
        """Those of `variables` that were not trained."""
        return [v for v in self.variables if not v.trainable]

    def __getattr__(self, name: str) -> Any:
        parts: dict[str, Any] = self.__dict__.get("_parts", {})
        if name in parts:
            return parts[name]
        endpoints: dict[str, Endpoint] = self.__dict__.get("endpoints", {})
        if name in endpoints:
            return endpoints[name]
        raise AttributeError(
            f"the exported file has no endpoint {name!r}; it has {', '.join(endpoints)}"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return next(iter(self.endpoints.values()))(*args, **kwargs)

    @property
    def functions(self) -> dict[str, Endpoint | Overloads]:
        """What it can be asked to compute, by name."""
        return functions_in(self._parts or self.endpoints)

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        return dict(self._parts) or {VARIABLES: self.variables}

    def __repr__(self) -> str:
        return f"<Exported with {', '.join(self._parts or self.endpoints)}>"


class Part:
    """An object that was exported with another: its variables, functions and parts by name.

    A list or dict has them by their place or key, too: part[0].
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the exported object has no {name!r}; it has {', '.join(vars(self))}")

    def __getitem__(self, key: Any) -> Any:
        return vars(self)[str(key)]

    def __len__(self) -> int:
        return len(vars(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(vars(self).values())

    @property
    def functions(self) -> dict[str, Endpoint | Overloads]:
        """What it can be asked to compute, by name."""
        return functions_in(vars(self))

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        return dict(vars(self))

    def __repr__(self) -> str:
        return f"<exported object with {', '.join(vars(self))}>"


class Overloads:
    """A function that was exported with several graphs: a call runs the first that fits."""

    def __init__(self, endpoints: list[Endpoint]) -> None:
        self.endpoints = endpoints

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        return {}  # the variables are parts of the object

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arguments of one of the exported structures.

        Raises:
            ShapeError: none of them fits.
        """
        last = self.endpoints[-1]
        for endpoint in self.endpoints[:-1]:
            if endpoint.fits(*args, **kwargs):
                return endpoint(*args, **kwargs)
        return last(*args, **kwargs)


def functions_in(named: Mapping[str, Any]) -> dict[str, Endpoint | Overloads]:
    """The functions among the parts of an object that was exported."""
    return {name: x for name, x in named.items() if isinstance(x, Endpoint | Overloads)}


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
        parameters: the names of its arguments, and whether each may be left out.
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
        parameters = about.get("parameters", [])
        self.parameters = [(str(p["name"]), bool(p["optional"])) for p in parameters]
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

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        return {}  # the variables are parts of the object

    def __repr__(self) -> str:
        return f"<Endpoint {self.name} of {self.input_signature}>"

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

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """All arguments in order: those by name, and those left out that may be."""
        found, left = list(args), dict(kwargs)
        values = self.input_signature[len(args) :] if self.parameters else []
        for (name, optional), value in zip(self.parameters[len(args) :], values, strict=False):
            if name not in left and not optional:
                break
            found.append(left.pop(name, value))
        if left:
            names = ", ".join(name for name, _ in self.parameters) or "none by name"
            self._complain(f"the arguments {names}, got {', '.join(left)} too")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arguments of the exported structure.

        Raises:
            ShapeError: the structure or a shape is another one; numbers are cast to the dtypes.
        """
        flat: list[Any] = []
        taken(self._about["arguments"], self._bound(args, kwargs), flat, self._complain)
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
        taken = {
            graph.library.tensor_name(text) for node in self._graph_def.node for text in node.input
        }

        def call(*tensors: Any) -> list[GraphTensor]:
            given = {**captures, **dict(zip(inputs, tensors, strict=True))}
            computed = [name for name in about["outputs"] if name not in given]
            found = import_graph_def(
                self._graph_def,
                {name: x for name, x in given.items() if name in taken},
                [*computed, *about["effects"]],
                name=self.name,
            )
            results = {**given, **dict(zip(computed, found, strict=False))}
            return [results[name] for name in about["outputs"]]

        call.__name__ = self.name
        return call

    def fits(self, *args: Any, **kwargs: Any) -> bool:
        """Whether arguments have the exported structure, types and shapes."""
        flat: list[Any] = []
        try:
            taken(self._about["arguments"], self._bound(args, kwargs), flat, self._complain)
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


def load(
    filepath: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
    jit_compile: bool | str = "auto",
) -> Exported:
    """Read a file of `ExportArchive` or `Model.export`. Nothing in it can run code or read files.

    Args:
        filepath: the file.
        limits: what it may ask for.
        jit_compile: whether endpoints run native code where there is some, whose results may differ
            by rounding; "auto": from the second run on, so that the first waits for no compiler.

    Raises:
        InvalidArgumentError: `jit_compile` is something else.
        MissingFileError: there is no such file.
        DataLossError: it is damaged, hostile, or not an exported file.

    Examples:
        >>> archive = laminar.export.ExportArchive()
        >>> spec = engine.TensorSpec((None,), "float32")
        >>> endpoint = archive.add_endpoint("serve", lambda x: x * 2, input_signature=[spec])
        >>> archive.write_out("double.laminar", verbose=False)
        >>> laminar.export.load("double.laminar").serve(np.array([1.0, 2.0], "float32"))
        Tensor([2., 4.], shape=(2,), dtype=float32)
    """
    if jit_compile not in (True, False, "auto"):
        raise InvalidArgumentError(
            f"load: jit_compile must be True, False or 'auto', got {jit_compile!r}"
        )
    with open_archive(filepath, limits=limits) as archive:
        config = archive.config
        if config.get("class_name") != CLASS_NAME or archive.metadata.get("format") != FORMAT:
            raise refused(f"{archive.name}: it is not an exported file of this version of laminar")
        try:
            return _read(archive, config, jit_compile)
        except DataLossError:
            raise
        except LaminarError as cause:
            raise refused(f"{archive.name}: {cause.message}") from cause
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as cause:
            raise refused(f"{archive.name}: {type(cause).__name__}: {cause}") from cause


def _read(archive: ArchiveReader, config: dict[str, Any], jit_compile: bool | str) -> Exported:
    with archive.weights() as reader:
        arrays = reader.variables(VARIABLES) if config[VARIABLES] or len(reader) else {}
        archive.verify()
    state = State(arrays, config[VARIABLES])
    endpoints = {}
    for name, about in config["endpoints"].items():
        if not name.isidentifier() or name.startswith("_"):
            raise refused(f"{archive.name}: {name[:80]!r} cannot be the name of an endpoint")
        graph_def = GraphDef(read_graph(archive.asset(f"{name}.graph")))
        check_operations(graph_def, DataLossError, f"{archive.name}: {name}")
        endpoints[name] = Endpoint(name, about, graph_def, state, arrays, jit_compile)
    objects = config.get(OBJECTS, [])
    if not endpoints and not objects:
        raise refused(f"{archive.name}: it has no endpoint")
    parts = _parts(objects, state.variables, endpoints) if objects else {}
    return Exported(endpoints, state, parts)


def _parts(
    objects: list[dict[str, Any]],
    variables: Mapping[str, engine.Variable],
    endpoints: Mapping[str, Endpoint],
) -> dict[str, Any]:
    """What the exported object had, by name."""
    made = [variables[o[VARIABLE]] if VARIABLE in o else Part() for o in objects]
    for described, part in zip(objects, made, strict=True):
        if isinstance(part, Part):
            for name, number in described[PARTS].items():
                vars(part)[str(name)] = made[int(number)]
            for name, names in described[FUNCTIONS].items():
                found = [endpoints[n] for n in names]
                if not found:
                    raise DataLossError(f"the function {name!r} has no graph")
                vars(part)[str(name)] = found[0] if len(found) == 1 else Overloads(found)
    return vars(made[0]) if made and isinstance(made[0], Part) else {}
