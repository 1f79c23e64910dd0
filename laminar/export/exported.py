"""Reading what ExportArchive wrote: endpoints as functions over variables of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from laminar.engine import GraphDef, Variable, import_graph_def
from laminar.engine.errors import DataLossError, LaminarError, ShapeError
from laminar.engine.functions import Function
from laminar.engine.graph import Graph, GraphTensor, TensorSpec
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.saving.archive import ArchiveReader, open_archive
from laminar.saving.limits import Limits, refused

from .form import CLASS_NAME, FORMAT, FUNCTIONS, OBJECTS, PARTS, VARIABLE, VARIABLES
from .graphs import check_operations
from .structure import packed, taken


class Exported:
    """What a file of `ExportArchive` holds.

    Each endpoint is an attribute: `exported.serve(x)`, and so is what an exported object had.
    Calling the object itself calls its first endpoint.

    Attributes:
        endpoints: the functions by name.
        variables: in the order of the file.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        variables: list[Variable],
        parts: Mapping[str, Any] | None = None,
    ) -> None:
        self.endpoints = dict(endpoints)
        self.variables = variables
        self._parts = dict(parts or {})

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of `variables` that were trained."""
        return [v for v in self.variables if v.trainable]

    @property
    def non_trainable_variables(self) -> list[Variable]:
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

    def __call__(self, *args: Any) -> Any:
        return next(iter(self.endpoints.values()))(*args)


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

    def __repr__(self) -> str:
        return f"<exported object with {', '.join(vars(self))}>"


class Overloads:
    """A function that was exported with several graphs: a call runs the first that fits."""

    def __init__(self, endpoints: list[Endpoint]) -> None:
        self.endpoints = endpoints

    def __call__(self, *args: Any) -> Any:
        """The results for arguments of one of the exported structures.

        Raises:
            ShapeError: none of them fits.
        """
        last = self.endpoints[-1]
        for endpoint in self.endpoints[:-1]:
            if endpoint.fits(*args):
                return endpoint(*args)
        return last(*args)


class Endpoint:
    """One function of a file; it takes and gives the structures that the exported one did.

    Attributes:
        name: its name.
        input_signature: the specs of its arguments, in their structure.
    """

    def __init__(
        self, name: str, about: dict[str, Any], specs: list[TensorSpec], function: Function
    ) -> None:
        self.name = name
        self._about = about
        self._function = function
        self._specs = specs
        self.input_signature = packed(about["arguments"], specs, name)

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
        return packed(self._about["results"], self._function(*tensors), self.name)

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._function.traces[0].graph

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


def load(filepath: str | os.PathLike[str], *, limits: Limits | None = None) -> Exported:
    """Read a file of `ExportArchive` or `Model.export`. Nothing in it can run code or read files.

    Args:
        filepath: the file.
        limits: what it may ask for.

    Raises:
        MissingFileError: there is no such file.
        DataLossError: it is damaged, hostile, or not an exported file.
    """
    with open_archive(filepath, limits=limits) as archive:
        config = archive.config
        if config.get("class_name") != CLASS_NAME or archive.metadata.get("format") != FORMAT:
            raise refused(f"{archive.name}: it is not an exported file of this version of laminar")
        try:
            return _read(archive, config)
        except DataLossError:
            raise
        except LaminarError as cause:
            raise refused(f"{archive.name}: {cause.message}") from cause
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as cause:
            raise refused(f"{archive.name}: {type(cause).__name__}: {cause}") from cause


def _read(archive: ArchiveReader, config: dict[str, Any]) -> Exported:
    with archive.weights() as reader:
        arrays = reader.variables(VARIABLES) if config[VARIABLES] or len(reader) else {}
        archive.verify()
    variables: dict[str, Variable] = {}
    for key, about in config[VARIABLES].items():
        name = str(about["path"]).rpartition("/")[2] or "variable"
        trainable = bool(about["trainable"])
        variables[key] = Variable(arrays[key], dtype=about["dtype"], trainable=trainable, name=name)
    endpoints = {}
    for name, about in config["endpoints"].items():
        if not name.isidentifier() or name.startswith("_"):
            raise refused(f"{archive.name}: {name[:80]!r} cannot be the name of an endpoint")
        graph_def = GraphDef.from_bytes(archive.asset(f"{name}.graph"))
        check_operations(graph_def, DataLossError, f"{archive.name}: {name}")
        captures = {
            inner: variables[given["variable"]]
            if "variable" in given
            else convert_to_tensor(arrays[given["constant"]])
            for inner, given in about["captures"].items()
        }
        specs = [TensorSpec(x["shape"], x["dtype"]) for x in about["inputs"]]
        function = Function(_caller(name, graph_def, about, captures), input_signature=specs)
        function.concrete(*specs)
        endpoints[name] = Endpoint(name, about, specs, function)
    objects = config.get(OBJECTS, [])
    if not endpoints and not objects:
        raise refused(f"{archive.name}: it has no endpoint")
    parts = _parts(objects, variables, endpoints)
    return Exported(endpoints, list(variables.values()), parts)


def _parts(
    objects: list[dict[str, Any]],
    variables: Mapping[str, Variable],
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


def _caller(
    name: str, graph_def: GraphDef, about: dict[str, Any], captures: Mapping[str, Any]
) -> Callable[..., list[GraphTensor]]:
    """The function that adds the graph to the one being traced."""
    inputs = [x["name"] for x in about["inputs"]]

    def call(*tensors: Any) -> list[GraphTensor]:
        given = {inner: x.handle if isinstance(x, Variable) else x for inner, x in captures.items()}
        given |= dict(zip(inputs, tensors, strict=True))
        wanted = [*about["outputs"], *about["effects"]]
        found = import_graph_def(graph_def, given, wanted, name=name)
        return found[: len(about["outputs"])]  # type: ignore[return-value]  # names of tensors

    call.__name__ = name
    return call
