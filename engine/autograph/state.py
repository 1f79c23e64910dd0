"""The variables of rewritten code: without a value, or with one that tensors can stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..errors import FailedPreconditionError, InvalidArgumentError
from ..graph import Tensor
from ..ops.math.compare import greater
from ..source import user_location
from ..state.tensor_array import TensorArray
from ..tree import flatten
from .lists import Cells, TensorList
from .syntax import PREFIX

Get = Callable[[], list[Any]]
Set = Callable[[Sequence[Any]], None]


class _Unbound:
    """Stands for a variable without a value."""

    def __repr__(self) -> str:
        return "nothing"


UNBOUND = _Unbound()


class Undefined:
    """A variable that has a value on some of the paths that lead here: an error where it is used.

    Args:
        name: the variable.
        why: where it has a value, and where not.
    """

    def __init__(self, name: str, why: str) -> None:
        object.__setattr__(self, "_said", (name, why, user_location()))

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        name, why, place = object.__getattribute__(self, "_said")
        at = "" if place is None else f" ({place})"
        raise FailedPreconditionError(
            f"{name!r} {why}{at}",
            remedy=f"give {name} a value of the same type before",
        )

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return Undefined
        return object.__getattribute__(self, "_refuse")()

    def __repr__(self) -> str:
        return f"<{object.__getattribute__(self, '_said')[0]} is undefined>"

    __call__ = __bool__ = __iter__ = __len__ = __getitem__ = __setitem__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __and__ = __or__ = __xor__ = __invert__ = __abs__ = __index__ = __int__ = __float__ = _refuse
    __array__ = __setattr__ = _refuse
    __hash__ = None  # type: ignore[assignment]  # it is no value


def value(read: Callable[[], Any]) -> Any:
    """What `read` gives; UNBOUND where the variable has no value."""
    try:
        return read()
    except (NameError, AttributeError):
        return UNBOUND


def set_attribute(owner: Callable[[], Any], name: str, value: Any) -> None:
    """Bind an attribute, if that changes it."""
    try:
        held = owner()
    except (NameError, AttributeError):
        return
    if value is UNBOUND:
        if hasattr(held, name):
            delattr(held, name)
    elif getattr(held, name, UNBOUND) is not value:
        setattr(held, name, value)


def of_outside(name: str, value: Any) -> Any:
    """The value that a variable of a function around is bound to.

    Raises:
        InvalidArgumentError: it is a list of the graph, which nobody could use outside.
    """
    if isinstance(value, TensorList):
        raise InvalidArgumentError(
            f"{name!r} is a list from outside of the function, and tensors decide what is appended",
            remedy="make the list in the function, and return it",
        )
    return value


def is_missing(value: Any) -> bool:
    """Whether a variable has no value."""
    return value is UNBOUND or isinstance(value, Undefined)


def check_bound(name: str, before: Any, after: Any) -> None:
    """Raise where a variable was bound to another one that may have no value, as by `name = other`.

    Raises:
        FailedPreconditionError: as where the other one is used.
    """
    if isinstance(after, Undefined) and after is not before:
        said = object.__getattribute__(after, "_said")
        if said[0] != name:
            object.__getattribute__(after, "_refuse")()


def is_internal(name: str) -> bool:
    """Whether rewriting has made the variable."""
    return name.startswith(PREFIX)


def label(name: str) -> str:
    """What messages call a variable."""
    return "what the function returns" if is_internal(name) else repr(name)


def as_condition(value: Any) -> Any:
    """What a condition on `value` is about: the value of a variable, else itself."""
    if isinstance(value, TensorList):
        return greater(value.count, 0)
    return value.__laminar_tensor__() if hasattr(value, "__laminar_tensor__") else value


def is_number(value: Any) -> bool:
    """Whether it is one of Python's numbers, whose type can still be chosen."""
    return isinstance(value, bool | int | float | complex)


def is_stageable(value: Any) -> bool:
    """Whether tensors can stand for a value: a tensor (or several), a number, nests of these."""
    leaves = [leaf for leaf in flatten(value) if leaf is not None]
    return bool(leaves) and all(
        isinstance(leaf, Tensor | TensorArray | np.ndarray | np.generic) or is_number(leaf)
        for leaf in leaves
    )


def copied(value: Any) -> Any:
    """Lists and dicts as copies, which a branch may change."""
    if isinstance(value, TensorList):
        return value.copy()
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return value


def are_same(a: Any, b: Any) -> bool:
    """Whether two values are one object, or cannot be distinguished."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, bool | int | float | complex | str | bytes):
        return bool(a == b)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(are_same, a, b))
    if type(a) is dict:
        return a.keys() == b.keys() and all(are_same(a[k], b[k]) for k in a)
    return False


def put_back(original: Any, found: Any) -> Any:
    """`found`; in the list or dict that it was made of, where it is a changed copy of that."""
    if isinstance(found, Cells):
        if not isinstance(original, TensorList):
            return TensorList(cells=found)
        original.become(found)
        return original
    if type(original) is list and type(found) is list and original is not found:
        original[:] = found
        return original
    if type(original) is dict and type(found) is dict and original is not found:
        original.clear()
        original.update(found)
        return original
    return found


def refuse_change(
    who: str, name: str, values: Sequence[Any], places: Sequence[str] = ("before", "after it")
) -> NoReturn:
    """Say that no tensor can stand for what a variable holds in two places.

    Raises:
        InvalidArgumentError: always.
    """
    a, b = (f"{_shown(v)} {place}" for v, place in zip(values, places, strict=True))
    raise InvalidArgumentError(
        f"{who}: {label(name)} is {a} and {b}, and what tensors decide can change tensors and "
        f"numbers alone",
        remedy="keep its type, give it a tensor as its first value, or choose by a Python value",
    )


def _shown(value: Any) -> str:
    if is_missing(value):
        return "unbound"
    if isinstance(value, Tensor):
        return str(value.spec)
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return f"a {type(value).__name__}"
