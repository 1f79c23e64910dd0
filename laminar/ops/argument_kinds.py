"""What kinds of values an argument can have, as its annotation says.

A public op that fails with an error of Python's own, in the middle of its computation, was mostly
given an argument of a wrong kind: text for a number, a number for a list. So such an error has the
arguments looked at, and the first that is not what its annotation says is named to the user. Calls
that succeed pay nothing for it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from laminar.engine.errors import ArgumentTypeError
from laminar.engine.graph import EagerTensor, Tensor


class Kind(NamedTuple):
    """`accepts` says whether a value is of the kind, `noun` what to call it in an error."""

    accepts: Callable[[Any], bool]
    noun: str


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, EagerTensor)


def _is_whole(value: Any) -> bool:
    if _is_symbolic(value):
        return True
    try:
        operator.index(value.numpy() if isinstance(value, EagerTensor) else value)
    except TypeError:
        return False
    return True


def _is_number(value: Any) -> bool:
    if _is_symbolic(value):
        return True
    array = np.asarray(value.numpy() if isinstance(value, EagerTensor) else value)
    return array.ndim == 0 and array.dtype.kind in "biuf"


def _is_list(value: Any) -> bool:
    if _is_symbolic(value):
        return True
    return not isinstance(value, str | bytes) and np.iterable(value)


def _is_list_of_whole(value: Any) -> bool:
    if _is_symbolic(value):
        return True
    return _is_list(value) and all(item is None or _is_whole(item) for item in value)


_WHOLE = Kind(_is_whole, "a whole number")
_NUMBER = Kind(_is_number, "a number")
_TEXT = Kind(lambda value: isinstance(value, str), "text")
_NONE = Kind(lambda value: value is None, "None")
_LIST = Kind(_is_list, "a list")
_WHOLE_LIST = Kind(_is_list_of_whole, "a list of whole numbers")
_CALLABLE = Kind(callable, "a function")
_GIVEN = Kind(lambda value: value is not None, "a tensor")

_NAMED = {
    "int": (_WHOLE,),
    "SupportsInt": (_WHOLE,),
    "SizeLike": (_WHOLE,),
    "float": (_NUMBER,),
    "bool": (Kind(lambda value: isinstance(value, bool | np.bool_), "True or False"),),
    "str": (_TEXT,),
    "DataFormat": (_TEXT,),
    "None": (_NONE,),
    "Axis": (_WHOLE, _WHOLE_LIST, _NONE),
    "Axes": (_WHOLE, _WHOLE_LIST),
    "AxisLike": (_WHOLE, _WHOLE_LIST),
    "Ints": (_WHOLE, _WHOLE_LIST),
    "Pair": (_WHOLE, _WHOLE_LIST),
    "ShapeLike": (_WHOLE, _WHOLE_LIST),
    "TensorLike": (_GIVEN,),
    "Tensor": (Kind(lambda value: isinstance(value, Tensor), "a tensor"),),
}
# Generic types by their beginning, the more special ones first.
_GENERIC = (
    ("Sequence[int]", _WHOLE_LIST),
    ("tuple[int", _WHOLE_LIST),
    ("Iterable[SupportsInt]", _WHOLE_LIST),
    ("Sequence[", _LIST),
    ("tuple[", _LIST),
    ("Callable[", _CALLABLE),
)


def kinds_of(annotation: str) -> list[Kind] | None:
    """The kinds that an annotation names, None where it names one that says nothing here."""
    kinds: list[Kind] = []
    for name in _members(annotation):
        named = _NAMED.get(name) or [k for start, k in _GENERIC if name.startswith(start)][:1]
        if not named:
            return None
        kinds.extend(named)
    return kinds


def _members(annotation: str) -> list[str]:
    """The members of a union of types; a bar inside of brackets belongs to one of them."""
    members, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            members.append("")
        else:
            members[-1] += letter
    return [member.strip() for member in members]


def check_kinds(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Look whether the arguments of a call are of the kinds that the annotations of `fn` name.

    Raises:
        ArgumentTypeError: one is not.
    """
    signature = inspect.signature(fn)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return  # the call itself is wrong, and Python says how
    for name, value in given.items():
        parameter = signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kinds = kinds_of(str(parameter.annotation))
        if kinds is not None and not any(kind.accepts(value) for kind in kinds):
            nouns = list(dict.fromkeys(kind.noun for kind in kinds))
            raise ArgumentTypeError(
                f"{fn.__name__}: {name} must be {' or '.join(nouns)}, got {_shown(value)}"
            )


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
