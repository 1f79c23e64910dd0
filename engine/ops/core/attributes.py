"""Which values an attribute of an op takes: what the annotation of its parameter says.

Only what is plain is checked: bool, int, float, str, `Literal[...]`, None, and unions of these.
Anything else (shapes, dtypes, sequences, graphs) is for the rule to judge.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...errors import ArgumentTypeError, InvalidArgumentError

# What an attribute may be: classes and, of an enumeration, the values.
Allowed: TypeAlias = "tuple[tuple[type, ...], tuple[Any, ...]]"

_NONE = type(None)
_CLASSES: Mapping[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str, np.str_),
    _NONE: (_NONE,),
}
_NAMED = {"bool": bool, "int": int, "float": float, "str": str}
_OR = re.compile(r"\|(?![^\[]*\])")  # outside of brackets
_LITERAL = re.compile(r"(?:typing\.)?Literal\[(.*)\]", re.DOTALL)
_VALUE = re.compile(r"""(?:"([^"]*)"|'([^']*)'|(-?\d+))""")


def allowed_values(rule: Callable[..., Any]) -> dict[str, Allowed]:
    """By the name of a parameter that is only given by name: what its annotation allows."""
    found: dict[str, Allowed] = {}
    rule = inspect.unwrap(rule)
    code = getattr(rule, "__code__", None)
    if code is None:
        return found
    defaults = rule.__kwdefaults__ or {}
    first = code.co_argcount
    for name in code.co_varnames[first : first + code.co_kwonlyargcount]:
        kinds = _kinds(rule.__annotations__.get(name))
        if kinds is not None:
            classes = tuple(c for kind in kinds[0] for c in _CLASSES[kind])
            if name in defaults and defaults[name] is None:
                classes += (_NONE,)
            found[name] = classes, kinds[1]
    return found


def check_attribute(op: str, name: str, value: Any, allowed: Allowed) -> None:
    """Raise for a value that an attribute does not take.

    Raises:
        ArgumentTypeError: it is of another type.
        InvalidArgumentError: it is none of those that there are.
    """
    classes, values = allowed
    if isinstance(value, classes):
        return
    if any(value is v or (type(value) is type(v) and value == v) for v in values):
        return
    names = [c.__name__ for c in dict.fromkeys(classes) if c.__module__ == "builtins"]
    said = [*("None" if n == "NoneType" else n for n in names), *map(repr, values)]
    is_another = any(isinstance(value, type(v)) for v in values)
    kind = InvalidArgumentError if is_another else ArgumentTypeError
    raise kind(f"{op}: the attribute {name} must be {' or '.join(said)}, got {value!r}")


def _kinds(annotation: Any) -> tuple[list[type], tuple[Any, ...]] | None:
    """The types and the values that an annotation names; None where it says something else."""
    if isinstance(annotation, str):
        parts = _OR.split(annotation)
        return _joined([_kinds_of_source(part.strip()) for part in parts])
    if annotation is None:
        return [_NONE], ()
    if typing.get_origin(annotation) is typing.Literal:
        return [], typing.get_args(annotation)
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return _joined([_kinds(part) for part in typing.get_args(annotation)])
    return ([annotation], ()) if annotation in _CLASSES else None


def _kinds_of_source(text: str) -> tuple[list[type], tuple[Any, ...]] | None:
    """As `_kinds`, of an annotation as it is written, which nothing compiles or runs."""
    literal = _LITERAL.fullmatch(text)
    if literal is not None:
        values = [_VALUE.fullmatch(part.strip()) for part in literal[1].split(",")]
        if None in values:
            return None
        return [], tuple(int(v[3]) if v[3] else v[1] or v[2] or "" for v in values if v)
    if text == "None":
        return [_NONE], ()
    return ([_NAMED[text]], ()) if text in _NAMED else None


def _joined(
    parts: list[tuple[list[type], tuple[Any, ...]] | None],
) -> tuple[list[type], tuple[Any, ...]] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return [kind for kinds, _ in known for kind in kinds], sum((v for _, v in known), ())
