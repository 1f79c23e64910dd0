"""Sizes that are only known when a program runs.

While a program is made, such a size is a symbolic size: a very large prime, different for each. No
static size comes near it or is divisible by it, so no decision can rest on a coincidence, and any
number computed from it by multiplication (and small additions) tells what it is made of.
`Sizes.real` gives the number for the sizes of a run.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from .not_lowered import NotLoweredError

# Enough for the sizes of any program; only so that a mistake ends.
_MOST = 4096
# What is larger holds a symbolic size.
_LARGEST = 1 << 45

_symbolic_sizes: dict[int, int] = {}  # those that have been asked for, by their number


def symbolic_size(number: int) -> int:
    """The symbolic size of unknown size `number`: a prime of 128 bits without a pattern.

    That a multiple of one comes near a multiple of another is as good as impossible.

    Raises:
        NotLoweredError: there are too many of them.
    """
    found = _symbolic_sizes.get(number)
    if found is not None:
        return found
    if number >= _MOST:
        raise NotLoweredError(f"more than {_MOST} unknown sizes")
    digest = hashlib.sha256(f"size {number}".encode()).digest()
    found = int.from_bytes(digest[:16], "big") | 1 << 127 | 1
    while not _is_prime(found):
        found += 2
    _symbolic_sizes[number] = found
    return found


def _is_prime(n: int) -> bool:
    """Whether an odd number is as good as surely prime (Miller and Rabin's test)."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def is_known(size: int) -> bool:
    """Whether a number does not depend on the run."""
    return abs(size) < _LARGEST


def shown(shape: Sequence[int]) -> str:
    """A shape for people."""
    return f"[{', '.join(map(shown_size, shape))}]"


def shown_size(size: int) -> str:
    """A size for people: n0, n1, ... for symbolic sizes, and ? for what is not made of them.

    4*n0, n0*n1, n0 + 3 and the like for what is made of them by multiplication and small additions.
    """
    if is_known(size):
        return str(size)
    if size < 0:
        return f"-{_as_factor(shown_size(-size))}"
    for number, prime in sorted(_symbolic_sizes.items()):
        rest = (size + prime // 2) % prime - prime // 2
        if is_known(rest) and size > prime // 2:
            factor = (size - rest) // prime
            text = f"n{number}"
            if factor != 1:  # the number among the factors comes first
                first, *others = _as_factor(shown_size(factor)).split("*")
                parts = [first, text] if first.isdigit() else [text, first]
                text = "*".join([*parts, *others])
            return text if not rest else f"{text} {'+' if rest > 0 else '-'} {abs(rest)}"
    return "?"


def _as_factor(text: str) -> str:
    return f"({text})" if " " in text else text


@dataclass(frozen=True)
class DerivedSize(ABC):
    """A size that follows from others otherwise than by multiplication and addition: a named rule
    and its parameters."""

    @abstractmethod
    def value(self, real: Callable[[int], int]) -> int:
        """Its value, where `real` turns numbers of the program into those of a run.

        Raises:
            NotLoweredError: the program is not right for these sizes.
        """

    def __str__(self) -> str:
        given = (f"{f.name}={shown_size(getattr(self, f.name))}" for f in fields(self) if f.repr)
        return f"{type(self).__name__}({', '.join(given)})"


class Sizes:
    """The real sizes of a run: `values[k]` for symbolic size k."""

    def __init__(self, values: Sequence[int]) -> None:
        self._values = tuple(values)
        self._memory: dict[int, int] = {}

    def real(self, number: int) -> int:
        """What a number of a program is in this run.

        Raises:
            NotLoweredError: the number was not made by multiplication and addition.
        """
        if -_LARGEST < number < _LARGEST:
            return number
        found = self._memory.get(number)
        if found is None:
            found = self._memory[number] = self._decode(number)
        return found

    def _decode(self, number: int) -> int:
        if abs(number) < _LARGEST:
            return number
        for k, value in enumerate(self._values):
            prime = symbolic_size(k)
            if abs(number) < prime // 2:
                continue
            rest = (number + prime // 2) % prime - prime // 2
            if abs(rest) < _LARGEST:
                return self._decode((number - rest) // prime) * value + rest
        raise NotLoweredError(f"the number {number} depends on sizes in a way that is not known")


def known_sizes(values: Sequence[int], derived: Iterable[DerivedSize]) -> list[int]:
    """The real size for each symbolic one, with those that are derived from them, in order."""
    known = list(values)
    for size in derived:
        known.append(size.value(Sizes(known).real))
    return known
