"""Reading what ExportArchive wrote: endpoints as functions over variables of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    LaminarError,
)
from laminar.engine.graph.graphdef import GraphDef
from laminar.saving.archive import ArchiveReader, open_archive
from laminar.saving.limits import Limits, refused

from .endpoint import Endpoint, State
from .file_format import (
    CLASS_NAME,
    FORMAT,
    FUNCTIONS,
    OBJECTS,
    PARTS,
    VARIABLE,
    VARIABLES,
    check_operations,
)

if TYPE_CHECKING:
    from laminar.engine import Variable


class Exported:
    """What a file of `ExportArchive` holds.

    Each endpoint is an attribute: `exported.serve(x)`, and so is what an exported object had.
    Calling the object itself calls its first endpoint.

    Attributes:
        endpoints: the functions by name.
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
    def variables(self) -> list[Variable]:
        """The variables, in the order of the file."""
        return list(self._state.variables.values())

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
        graph_def = GraphDef.from_bytes(archive.asset(f"{name}.graph"))
        check_operations(graph_def, DataLossError, f"{archive.name}: {name}")
        endpoints[name] = Endpoint(name, about, graph_def, state, arrays, jit_compile)
    objects = config.get(OBJECTS, [])
    if not endpoints and not objects:
        raise refused(f"{archive.name}: it has no endpoint")
    parts = _parts(objects, state.variables, endpoints) if objects else {}
    return Exported(endpoints, state, parts)


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
