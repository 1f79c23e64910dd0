"""Sizes that are only known when a program runs.

While a program is made, such a size is a stand-in: a very large prime, different for each. No
static size comes near it or is divisible by it, so no decision can rest on a coincidence, and any
number computed from it by multiplication (and small additions) tells what it is made of.
`Sizes.real` gives the number for the sizes of a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from .emit import NotLoweredError

# Primes of 128 bits without a pattern: that a multiple of one comes near a multiple of another is
# as good as impossible.
_PRIMES = (
    0xBFCFC3F44CAD2344884FC63291B3DD6F,
    0x85061B45481ADB4A48A4FC28AD2BB085,
    0xF3442DFE16A19E9D4388A601D7B30EC5,
    0xE506692A1AB10313734EC0CD4E4ADA25,
    0xC77063E6464A126703D4FD6D1EE49935,
    0xB00C6335FF7BE2F0605FBF9429DB2051,
    0x9D28F11EE145929A343BF5F5BAD32C13,
    0xF0B24CAABFC8C384709C3800ED5AE33F,
    0xDA3BFF4F3F6882A8375B96506EEDF813,
    0xB53F84DCF9D96778F9CD3695F8CAD855,
    0xDE295BF81BB5FF3D4576C4CA140993FB,
    0x8076F05F919DBA4BEDD1971C0B273CED,
)
# What is larger holds a stand-in.
_LARGEST = 1 << 45


def stand_in(number: int) -> int:
    """The stand-in of unknown size `number`.

    Raises:
        NotLoweredError: there are more of them than stand-ins.
    """
    if number >= len(_PRIMES):
        raise NotLoweredError(f"more than {len(_PRIMES)} unknown sizes")
    return _PRIMES[number]


def is_known(size: int) -> bool:
    """Whether a number does not depend on the run."""
    return abs(size) < _LARGEST


class Sizes:
    """The real sizes of a run: `values[k]` for stand-in k."""

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
        for prime, value in zip(_PRIMES, self._values, strict=False):
            if abs(number) < prime // 2:
                continue
            rest = (number + prime // 2) % prime - prime // 2
            if abs(rest) < _LARGEST:
                return self._decode((number - rest) // prime) * value + rest
        raise NotLoweredError(f"the number {number} depends on sizes in a way that is not known")
