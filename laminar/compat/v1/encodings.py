"""Texts and bytes."""

from __future__ import annotations

from typing import Any


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Bytes; of a text, its encoding."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    raise TypeError(f"expected a text or bytes, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """A text; of bytes, what they are the encoding of."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    return as_bytes(bytes_or_text).decode(encoding)


as_str = as_text


def as_str_any(value: Any) -> str:
    """A text of anything."""
    return as_text(value) if isinstance(value, str | bytes | bytearray) else str(value)
