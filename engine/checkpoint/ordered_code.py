"""Names and numbers as bytes that sort as they do: the keys of stored parts of tensors.

Source: OrderedCode, the encoding of keys in TensorFlow's checkpoints of format V2.
"""

from __future__ import annotations

from collections.abc import Sequence

# By the number of bytes, what the first two of a signed number are combined with.
_HEADERS = (
    (0, 0),
    (0x80, 0),
    (0xC0, 0),
    (0xE0, 0),
    (0xF0, 0),
    (0xF8, 0),
    (0xFC, 0),
    (0xFE, 0),
    (0xFF, 0),
    (0xFF, 0x80),
    (0xFF, 0xC0),
)


def slice_key(name: str, parts: Sequence[tuple[int, int]]) -> bytes:
    """The key of a part of a tensor.

    Args:
        name: of the tensor.
        parts: along each axis where the part begins, and its length; -1 for all of the axis.
    """
    escaped = name.encode().replace(b"\x00", b"\x00\xff")  # no byte of UTF-8 is 255
    key = _number(0) + escaped + b"\x00\x01" + _number(len(parts))
    for start, length in parts:
        key += _signed(start) + _signed(length)
    return key


def _number(value: int) -> bytes:
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(digits)]) + digits


def _signed(value: int) -> bytes:
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1  # 7 bits of a byte, one of all for the sign
    digits = bytearray(value.to_bytes(10, "big", signed=True)[10 - length :])
    header = _HEADERS[length]
    digits[0] ^= header[0]
    if length > 1:
        digits[1] ^= header[1]
    return bytes(digits)
