"""Objects with functions and variables as files, which run, and train, without their class.

config.json has, besides endpoints and variables, the objects that lead to some: for each one, its
parts by the names of their attributes. Number 0 is the object that was exported.
"""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

from laminar.engine import Variable
from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.saving.object_graph import leading_to, walk
from laminar.engine.source import Location, is_own_file

from .archive import ExportArchive
from .exported import Endpoint, Exported, Overloads, Part
from .file_format import FUNCTIONS, PARTS, VARIABLE

_BY_PLACE_OR_NAME = Parameter.POSITIONAL_OR_KEYWORD


def save(
    obj: Any,
    filepath: str | os.PathLike[str],
    signatures: Mapping[str, Sequence[Any]] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Write an object: its functions as graphs, its variables, and those of what it holds.

    `laminar.export.load(filepath)` has them as attributes under the same names; it needs neither
    the class of the object nor its code.

    Args:
        obj: has methods or attributes made by `laminar.function`; models, layers, lists and dicts
            in it are written with it.
        filepath: where to.
        signatures: by the path of a function ("f", "net.encode"), a spec for each argument. Others
            are written for their input_signature, or for what they have been called with: tensors,
            and numbers and texts of Python's, for which a call of what is loaded gives the same.
        verbose: whether to print what was written.

    Raises:
        InvalidArgumentError: there is nothing to write, or a function cannot be traced: its path
            and the line are told.
        UnimplementedError: a graph uses what no file can hold.

    Examples:
        >>> class Doubler:
        ...     @laminar.function(input_signature=[engine.TensorSpec((None,), "float32")])
        ...     def __call__(self, x):
        ...         return 2 * x
        >>> laminar.export.save(Doubler(), "doubler.laminar")
        >>> endpoints = laminar.export.load("doubler.laminar").endpoints
    """
    wanted = dict(signatures or {})
    objects, children = walk(obj)
    archive = ExportArchive()
    functions = [dict(_functions_of(o)) for o in objects]
    paths = _paths(children)
    written: list[dict[str, Any]] = [{} for _ in objects]
    for number, (owner, path) in enumerate(zip(objects, paths, strict=True)):
        if isinstance(owner, Variable):
            archive.track(owner)
        for name, function in functions[number].items():
            place = f"{path}.{name}" if path else name
            specs = wanted.pop(place, None)
            defaults = _defaults(function)
            found = []
            for concrete in _traces(place, function, specs):
                endpoint = _endpoint_name(place, archive)
                arguments = concrete.structured_inputs or {}
                found.append(
                    archive.add_concrete(
                        endpoint, concrete, [*arguments.values()], [*arguments], defaults
                    )
                )
            written[number][name] = found
    if wanted:
        raise InvalidArgumentError(
            f"export: {type(obj).__name__} has no function {', '.join(wanted)}",
            remedy="it has " + (", ".join(_all_places(paths, functions)) or "none"),
        )
    kept = leading_to(
        [isinstance(o, Variable) or bool(f) for o, f in zip(objects, written, strict=True)],
        children,
    )
    kept[0] = True
    numbers = {old: new for new, old in enumerate(i for i, k in enumerate(kept) if k)}
    archive.objects = [
        {VARIABLE: owner}
        if isinstance(owner, Variable)
        else {
            PARTS: {name: numbers[c] for name, c in parts.items() if kept[c]},
            FUNCTIONS: written[old],
        }
        for old, (owner, parts) in enumerate(zip(objects, children, strict=True))
        if kept[old]
    ]
    archive.write_out(filepath, verbose=verbose)


def _functions_of(owner: Any) -> Iterator[tuple[str, Function]]:
    """The functions of an object by name: methods, and attributes."""
    if isinstance(owner, list | tuple | Mapping | Variable | Endpoint | Overloads):
        return
    if isinstance(owner, Exported | Part):
        yield from ((name, _function(found)) for name, found in owner.functions.items())
        return
    for name in dir(type(owner)):
        if isinstance(inspect.getattr_static(type(owner), name, None), Function):
            yield name, getattr(owner, name)
    for name, value in getattr(owner, "__dict__", {}).items():
        if isinstance(value, Function):
            yield name, value


def _function(exported: Endpoint | Overloads) -> Function:
    """What was loaded as a function, with the graphs that it was exported with."""
    endpoints = exported.endpoints if isinstance(exported, Overloads) else [exported]
    first = endpoints[0]
    places = [(f"argument_{i}", False) for i in range(len(first.input_signature))]
    parameters = [
        Parameter(name, _BY_PLACE_OR_NAME, default=value if optional else Parameter.empty)
        for (name, optional), value in zip(
            first.parameters or places, first.input_signature, strict=False
        )
    ]

    def call(*args: Any, **kwargs: Any) -> Any:
        return exported(*args, **kwargs)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # names of arguments
    call.__name__ = first.name
    found = Function(call)
    for endpoint in endpoints:
        found.concrete(*endpoint.input_signature)
    return found


def _paths(children: Sequence[Mapping[str, int]]) -> list[str]:
    """How a user reaches each object: "net.layers.0"."""
    found = [""] + [""] * (len(children) - 1)
    seen = {0}
    for number, parts in enumerate(children):
        for name, child in parts.items():
            if child not in seen:
                seen.add(child)
                found[child] = f"{found[number]}.{name}" if found[number] else name
    return found


def _all_places(paths: Sequence[str], functions: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{path}.{name}" if path else name
        for path, found in zip(paths, functions, strict=True)
        for name in found
    ]


def _traces(place: str, function: Function, specs: Sequence[Any] | None) -> list[ConcreteFunction]:
    """The graphs of a function that are written."""
    try:
        if specs is not None:
            return [function.concrete(*specs)]
        found = function.traces
    except LaminarError as cause:
        raise InvalidArgumentError(
            f"export: the function {place!r} cannot be traced: {cause.message}",
            remedy=cause.remedy,
            location=cause.location,
        ) from cause
    except Exception as cause:
        raise InvalidArgumentError(
            f"export: the function {place!r} cannot be traced: {type(cause).__name__}: {cause}",
            location=_line(cause),
        ) from cause
    usable = [c for c in found if c.structured_inputs is not None and c.inputs]
    usable = usable or [c for c in found if c.structured_inputs is not None]
    if not usable:
        raise InvalidArgumentError(
            f"export: the function {place!r} has no input_signature, and was not called with "
            f"tensors, numbers and texts",
            remedy=f"give signatures={{{place!r}: [TensorSpec([None, 4])]}}, or call it before",
        )
    return usable


def _defaults(function: Function) -> dict[str, Any]:
    """The defaults of its parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _line(error: BaseException) -> Location | None:
    """Where in the user's program an error was raised."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not is_own_file(frame.filename):
            return Location(frame.filename, frame.lineno or 0, frame.name)
    return None


def _endpoint_name(place: str, archive: ExportArchive) -> str:
    name = "".join(c if c.isalnum() else "_" for c in place).lstrip("_") or "function"
    count = 0
    while (made := f"{name}_{count}" if count else name) in archive.endpoint_names:
        count += 1
    return made if made.isidentifier() else f"f_{made}"
