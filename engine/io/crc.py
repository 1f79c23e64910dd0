"""CRCs as rests of polynomials over GF(2), the lowest power in the highest of 32 bits."""

from __future__ import annotations

import functools

CRC32 = 0xEDB88320  # ISO 3309
CRC32C = 0x82F63B78  # Castagnoli: x^32 + x^28 + x^27 + ... + 1
_ONE = 1 << 31  # the polynomial 1


@functools.lru_cache(maxsize=64)
def power(exponent: int, polynomial: int) -> int:
    """x ** exponent modulo the polynomial."""
    found, square = _ONE, _ONE >> 1
    while exponent:
        if exponent & 1:
            found = product(found, square, polynomial)
        square = product(square, square, polynomial)
        exponent >>= 1
    return found


def product(a: int, b: int, polynomial: int) -> int:
    """a * b modulo the polynomial."""
    found = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            found ^= b
        b = b >> 1 ^ (polynomial if b & 1 else 0)
    return found


def combined(first: int, second: int, length: int, polynomial: int) -> int:
    """The CRC of two stretches of bytes from those of each; the second has `length` bytes.

    To put `length` bytes after a stretch is to multiply it by x ** (8 * length).
    """
    return product(power(8 * length, polynomial), first, polynomial) ^ second
