"""A function of small tensors made one of large tensors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape, broadcast_shapes
from laminar.engine.ops.array.broadcast import broadcast_to
from laminar.engine.ops.array.shape import reshape

from .arguments import known_rank, tensor
from .control import map as map_slices

__all__ = ["vectorize"]

_TERM = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"{_TERM}(?:,{_TERM})*->{_TERM}(?:,{_TERM})*")


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] | None = None,
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function that applies `pyfunc` along the leading axes of its arguments, which broadcast.

    Args:
        pyfunc: takes scalars, or tensors with the axes that `signature` names.
        excluded: positions and names of arguments that are passed on as they are.
        signature: the last axes that `pyfunc` itself takes and gives, as "(n),(n)->()".

    Raises:
        InvalidArgumentError: a malformed signature, or something that cannot be called.
        ShapeError: on a call, an argument lacks axes, or the sizes are unknown.

    Examples:
        >>> dot = ops.vectorize(lambda a, b: ops.sum(a * b), signature="(n),(n)->()")
        >>> dot(np.array([[1, 2], [3, 4]]), np.array([10, 1]))
        Tensor([12, 34], shape=(2,), dtype=int64)
    """
    if not callable(pyfunc):
        raise InvalidArgumentError(f"vectorize: expected a function, got {pyfunc!r}")
    given = () if excluded is None else excluded
    if isinstance(given, str) or not np.iterable(given) or np.ndim(list(given)) != 1:
        raise InvalidArgumentError(f"vectorize: excluded must be a set, got {excluded!r}")
    passed = frozenset(given)
    inner = None if signature is None else _inner_ranks(signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in passed]
        names = [name for name in kwargs if name not in passed]
        given = [tensor(args[i]) for i in places] + [tensor(kwargs[name]) for name in names]
        if inner is not None and len(inner) != len(given):
            raise InvalidArgumentError(
                f"vectorize: the signature {signature!r} has {len(inner)} arguments, "
                f"the call {len(given)}"
            )

        def on_slices(slices: list[Tensor]) -> Any:
            arguments = list(args)
            for place, x in zip(places, slices, strict=False):
                arguments[place] = x
            named = dict(zip(names, slices[len(places) :], strict=True))
            return pyfunc(*arguments, **{**kwargs, **named})

        return _along_lead(on_slices, given, inner or [0] * len(given))

    return vectorized


def _inner_ranks(signature: str) -> list[int]:
    """The number of axes that the function itself takes of each argument."""
    plain = str(signature).replace(" ", "")
    if not _SIGNATURE.fullmatch(plain):
        raise InvalidArgumentError(
            f"vectorize: expected a signature such as '(n),(n)->()', got {signature!r}"
        )
    terms = re.findall(_TERM, plain.partition("->")[0])
    return [len(term[1:-1].split(",")) if len(term) > 2 else 0 for term in terms]


def _along_lead(fn: Callable[[list[Tensor]], Any], xs: list[Tensor], inner: list[int]) -> Any:
    leads = []
    for x, own in zip(xs, inner, strict=True):
        rank = known_rank("vectorize", x)
        if rank < own or None in x.shape:
            raise ShapeError(
                f"vectorize: expected at least {own} axes of known size, got {x.spec}",
                remedy="give the sizes, or write the function for whole tensors",
            )
        leads.append(TensorShape(x.shape[: rank - own]))
    lead = broadcast_shapes("vectorize", *leads)
    if not lead:
        return fn(xs)
    rows = []
    for x, own in zip(xs, inner, strict=True):
        core = tuple(x.shape[len(x.shape) - own :])
        rows.append(reshape(broadcast_to(x, (*lead, *core)), (-1, *core)))
    found = map_slices(fn, rows)
    several = isinstance(found, tuple | list)
    shaped = [reshape(y, (*lead, *y.shape[1:])) for y in (found if several else [found])]
    return type(found)(shaped) if several else shaped[0]
