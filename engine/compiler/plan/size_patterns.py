"""Which of the unknown sizes of a cluster are equal: what serves which sizes.

What is made of a body with symbolic sizes is right for all sizes of a pattern: where it takes two
for equal, they must be; where it does not, they may be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from ...errors import InvalidArgumentError
from ...ops.core.cluster import ClusterBody
from ..ir.not_lowered import NotLoweredError
from ..ir.sizes import symbolic_size

# Raised where sizes are taken for different that must be equal, or do not allow what is asked for.
_DO_NOT_FIT = (InvalidArgumentError, NotLoweredError)
# For each unknown size a number; sizes of one number are equal whenever a program serves them.
_Pattern: TypeAlias = tuple[int, ...]
_Made = TypeVar("_Made")
_Found = TypeVar("_Found")


class SizePatterns(Generic[_Made]):
    """What is made of a body for sizes, once for each pattern of them.

    Args:
        body: the operations of a cluster.
        arrays: its inputs that are arrays of data.
        sizes: its inputs that are sizes.
    """

    def __init__(self, body: ClusterBody, arrays: Sequence[int], sizes: Sequence[int]) -> None:
        self._body = body
        self._arrays = arrays
        self._sizes = sizes
        self._made: dict[_Pattern, _Made] = {}
        self._failed: set[_Pattern] = set()  # those that have none
        self._exact: dict[Any, _Made] = {}  # that serve no other sizes

    def __len__(self) -> int:
        return len(self._made) + len(self._exact)

    def planned(
        self,
        key: Any,
        make: Callable[[Sequence[Any], int], _Made],
        plan: Callable[[_Made, Sequence[int], bool], _Found],
    ) -> tuple[_Found, str]:
        """What `plan` gives for the first that serves some sizes, and why that had to be made.

        Args:
            key: the shapes of the arrays, and the sizes.
            make: makes it, of what each input is (a shape, or the number that a size is) and of how
                many symbolic sizes there are among these.
            plan: takes what was made, the real sizes of its symbolic sizes, and whether it serves
                no other sizes. It raises InvalidArgumentError or NotLoweredError where it does not
                fit.
        """
        sizes = self._unknown(key)
        for pattern in self._patterns(sizes):
            reason = ""
            with contextlib.suppress(*_DO_NOT_FIT):
                if pattern not in self._made:
                    reason = "sizes for which there is no plan on disk"
                    if self._made:
                        reason = "other sizes are equal than before"
                    try:
                        made = make(self._given(key, pattern), len({*pattern}))
                    except _DO_NOT_FIT:
                        self._failed.add(pattern)
                        raise
                    self._made[pattern] = made
                values = [n for n, _ in dict(sorted(zip(pattern, sizes, strict=True))).values()]
                return plan(self._made[pattern], values, False), reason
        reason = ""
        if key not in self._exact:
            reason = "sizes that depend on each other"
            self._exact[key] = make(self._given(key), 0)
        return plan(self._exact[key], [], True), reason

    def _given(self, key: Any, pattern: _Pattern | None = None) -> list[Any]:
        """What each input is: a shape, or the number that a size is.

        With a pattern, unknown sizes are symbolic sizes.
        """
        given: list[Any] = [()] * self._body.num_inputs
        numbers = None if pattern is None else iter(pattern)
        for i, part in zip((*self._arrays, *self._sizes), key, strict=True):
            if numbers is None:
                given[i] = part
            elif isinstance(part, int):
                given[i] = symbolic_size(next(numbers))
            else:
                dims = zip(self._body.specs[i].shape, part, strict=True)
                given[i] = tuple(symbolic_size(next(numbers)) if d is None else n for d, n in dims)
        return given

    def _unknown(self, key: Any) -> list[tuple[int, bool]]:
        """The unknown sizes in order, and whether each is a number of examples: of a first axis."""
        found = list[tuple[int, bool]]()
        for i, part in zip((*self._arrays, *self._sizes), key, strict=True):
            if isinstance(part, int):
                found.append((part, (part, True) in found))
            else:
                dims = zip(self._body.specs[i].shape, part, strict=True)
                found += [(n, axis == 0) for axis, (d, n) in enumerate(dims) if d is None]
        return found

    def _patterns(self, sizes: Sequence[tuple[int, bool]]) -> list[_Pattern]:
        """The patterns that may serve sizes: those that have a program, then what to try.

        That there are as many examples as steps, say, is taken for chance, unless it must be so.
        """
        real = [n for n, _ in sizes]
        there = [p for p in self._made if len({*zip(p, real, strict=True)}) == len({*p})]
        there.sort(key=lambda p: len({*p}))
        found = dict.fromkeys([*there, _numbered(sizes), _numbered(real)])
        return [p for p in found if p not in self._failed]


def _numbered(sizes: Iterable[Any]) -> _Pattern:
    """The pattern of what is equal."""
    numbers: dict[Any, int] = {}
    return tuple([numbers.setdefault(x, len(numbers)) for x in sizes])
