"""How a line of a table (see face.py) becomes a function or a class; `v1` makes one of code."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from laminar.engine.errors import NoTensorError
from laminar.engine.graph import get_default_graph, stack
from laminar.engine.ops.core.naming import call_named
from laminar.engine.ops.core.registry import lookup

from .face import OWN, Line
from .values import on_operands

# Arguments that say how, not what: they are taken and change nothing.
HINTS = frozenset(
    {
        "aggregation_method",
        "back_prop",
        "caching_device",
        "colocate_gradients_with_ops",
        "cudnn_on_gpu",
        "gate_gradients",
        "infer_shape",
        "parallel_iterations",
        "swap_memory",
        "use_cudnn_on_gpu",
        "use_locking",
        "use_resource",
        "validate_indices",
    }
)
_TARGET = re.compile(r"([\w.]+):(\w+)(?:\((.*)\))?")


class Mode:
    """Whether what has these names computes at once: that of the whole process."""

    is_eager = False


def graph_stack_is_empty() -> bool:
    """Whether the thread is in no block that says what is built, or that it computes at once."""
    return not stack.items


@contextmanager
def in_graph() -> Iterator[None]:
    """Build in the default graph, where the thread is in none and eager execution is off."""
    if stack.items or Mode.is_eager:
        yield
        return
    graph = get_default_graph()
    stack.push(graph)
    try:
        yield
    finally:
        stack.pop(graph)


def v1(**aliases: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function one of these names: it builds in the default graph, and takes `name=`.

    A name may also stand behind all other arguments, where TensorFlow has it.

    Args:
        aliases: older names of its arguments.
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(fn).parameters
        takes_name = "name" in parameters
        count = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not takes_name and len(args) == count + 1 and isinstance(args[-1], str):
                *given, kwargs["name"] = args
                args = tuple(given)
            for old in aliases.keys() & kwargs.keys():
                value = kwargs.pop(old)
                if value is not None:
                    kwargs[aliases[old]] = value
            try:
                with in_graph():
                    if takes_name or "name" not in kwargs:
                        return fn(*args, **kwargs)
                    return call_named(kwargs.pop("name"), fn, *args, **kwargs)
            except NoTensorError as error:
                return _of_ragged(call.__name__, fn, args, kwargs, error)

        call.accepts = frozenset({*aliases, "name"})  # type: ignore[attr-defined]  # besides fn's
        return call

    return decorate


def _of_ragged(
    name: str, fn: Callable[..., Any], args: Any, kwargs: Any, error: NoTensorError
) -> Any:
    """What a function that has met a ragged tensor computes of it; `error` where it is nothing."""
    dispatch = importlib.import_module(".ragged_dispatch", __package__)
    try:
        with in_graph():
            return dispatch.of_ragged(name, fn, args, kwargs)
    except NotImplementedError:
        raise error from None


def under(signature: inspect.Signature, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is called by the names of its arguments, under another signature."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(**signature.bind(*args, **kwargs).arguments)

    call.__signature__ = signature  # type: ignore[attr-defined]  # which `inspect` reads
    return call


class Signature:
    """The arguments of a name of TensorFlow's.

    Attributes:
        names: in their order.
        defaults[name]: where there is one.
        aliases[other name]: the name of it.
        rest: the name that takes further positional arguments, None without one.
    """

    def __init__(self, text: str) -> None:
        aliases = re.findall(r"\w+(?:\|\w+)+", text)
        self.aliases = {
            other: group.split("|")[0] for group in aliases for other in group.split("|")[1:]
        }
        plain = re.sub(r"(\w+)(?:\|\w+)+", r"\1", text)
        (parsed,) = ast.parse(f"def f({plain}): 0").body
        assert isinstance(parsed, ast.FunctionDef)
        arguments = parsed.args
        self.names = [a.arg for a in arguments.args]
        given = [ast.literal_eval(d) for d in arguments.defaults]
        self.defaults = dict(zip(self.names[len(self.names) - len(given) :], given, strict=True))
        for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            self.names.append(a.arg)
            if default is not None:
                self.defaults[a.arg] = ast.literal_eval(default)
        self._positional = len(arguments.args)
        self.rest = arguments.vararg.arg if arguments.vararg is not None else None

    def bind(self, who: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name; TypeError where they do not fit."""
        count = self._positional
        if len(args) > count and self.rest is None:
            raise TypeError(f"{who}() takes {count} positional arguments, {len(args)} were given")
        found = dict(zip(self.names, args[:count], strict=False))
        for key, value in kwargs.items():
            name = self.aliases.get(key, key)
            if name not in self.names:
                raise TypeError(f"{who}() got an unexpected keyword argument '{key}'")
            if name in found:
                if name == key or value is not None:
                    raise TypeError(f"{who}() got multiple values for argument '{name}'")
                continue
            if name != key and value is None:
                continue
            found[name] = value
        for name in self.names:
            if name not in found:
                if name not in self.defaults:
                    raise TypeError(f"{who}() missing a required argument: '{name}'")
                found[name] = self.defaults[name]
        if self.rest is not None:
            found[self.rest] = args[count:]
        return found

    def as_python(self) -> inspect.Signature:
        """What `inspect.signature` and `help` show."""
        kinds = inspect.Parameter
        shown = []
        for i, name in enumerate(self.names):
            kind = kinds.POSITIONAL_OR_KEYWORD if i < self._positional else kinds.KEYWORD_ONLY
            shown.append(kinds(name, kind, default=self.defaults.get(name, kinds.empty)))
        if self.rest is not None:
            shown.insert(self._positional, kinds(self.rest, kinds.VAR_POSITIONAL))
        return inspect.Signature(shown)


class _Target:
    """What a line leads to, and how it is called."""

    def __init__(self, line: str) -> None:
        parts = _TARGET.fullmatch(line)
        assert parts is not None, line
        room, self.name, given = parts.groups()
        self.thing: Any
        if room == "op":
            self.thing = on_operands(lookup(self.name))
        elif room.startswith("."):
            self.thing = getattr(importlib.import_module(room, __package__), self.name)
        else:
            self.thing = getattr(importlib.import_module(f"laminar.{room}"), self.name)
        self.given = given

    def order(self, signature: Signature) -> list[tuple[str | None, str]]:
        """(keyword or None, argument) pairs for the call of the thing."""
        if self.given is None:
            return [(None, n) for n in signature.names if n != "name" and n not in HINTS]
        pairs = []
        for part in filter(None, (p.strip() for p in self.given.split(","))):
            keyword, _, argument = part.rpartition("=")
            pairs.append((keyword or None, argument))
        return pairs


def adapted(name: str, package: str, line: Line) -> Any:
    """What stands for a name: the thing of its line, under the signature that the line has."""
    if isinstance(line, str):
        return _Target(line).thing
    text, where = line
    target = _Target(where)
    if text == OWN:
        return _in_graph_class(name, package, target.thing)
    signature = Signature(text)
    order = target.order(signature)
    takes_name = any(argument == "name" for _, argument in order)
    named = "name" in signature.names and not takes_name
    rest = signature.rest

    def arguments(args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any], str | None]:
        found = signature.bind(name, args, kwargs)
        positional = [found[argument] for keyword, argument in order if keyword is None]
        if rest is not None:
            positional += found[rest]
        keywords = {keyword: found[argument] for keyword, argument in order if keyword is not None}
        return positional, keywords, found["name"] if named else None

    if isinstance(target.thing, type):
        return _subclass(name, package, target.thing, signature, arguments)
    thing = target.thing

    def call(*args: Any, **kwargs: Any) -> Any:
        positional, keywords, op_name = arguments(args, kwargs)
        try:
            with in_graph():
                if op_name is None:
                    return thing(*positional, **keywords)
                return call_named(op_name, thing, *positional, **keywords)
        except NoTensorError as error:
            return _of_ragged(name, thing, positional, keywords, error)

    call.__name__ = call.__qualname__ = name
    call.__module__ = package
    call.__doc__ = (
        f"{name}{signature.as_python()}, by laminar's `{where}`.\n\n{thing.__doc__ or ''}"
    )
    call.__signature__ = signature.as_python()  # type: ignore[attr-defined]  # what inspect reads
    return call


def _in_graph_class(name: str, package: str, thing: Any) -> Any:
    """A function or a class, as it is, that builds in the default graph."""
    if not isinstance(thing, type):
        return v1()(thing)

    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        with in_graph():
            thing.__init__(self, *args, **kwargs)  # type: ignore[misc]  # of this very class

    functools.update_wrapper(initialize, thing.__init__)  # type: ignore[misc]  # likewise
    return type(
        name, (thing,), {"__init__": initialize, "__module__": package, "__doc__": thing.__doc__}
    )


def _subclass(
    name: str, package: str, base: type, signature: Signature, arguments: Callable[..., Any]
) -> type:
    """A class of that signature; its objects are those of `base` in all else."""

    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        positional, keywords, _ = arguments(args, kwargs)
        with in_graph():
            base.__init__(self, *positional, **keywords)  # type: ignore[misc]  # of this very class

    initialize.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # for inspect
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
        + list(signature.as_python().parameters.values())
    )
    return type(
        name, (base,), {"__init__": initialize, "__module__": package, "__doc__": base.__doc__}
    )
