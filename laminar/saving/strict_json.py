"""JSON from files that others made: no surprise in size, depth, names or numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from laminar.engine.errors import InvalidArgumentError

from .limits import Limits, beyond, refused

_PIECE = 1 << 16  # characters that are looked at together


def parse_object(data: bytes, name: str, limits: Limits) -> dict[str, Any]:
    """Parse a JSON document that is one object.

    Args:
        data: the document, UTF-8.
        name: what it is, for messages.
        limits: `max_text_bytes`, `max_json_values` and `max_depth` are checked before parsing.

    Raises:
        DataLossError: the document is not an object of valid JSON within the limits, names a key
            twice, or holds a number that is not finite.
    """
    if len(data) > limits.max_text_bytes:
        raise beyond(f"{name}: it has {len(data)} bytes of JSON", "max_text_bytes")
    _check_structure(data, name, limits)
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_not_finite,
            parse_float=_finite,
        )
        if rb"\ud" in data.lower():
            # An escaped surrogate without its partner is a string that cannot be encoded.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise refused(f"{name}: it is not proper JSON: {error}") from error
    if not isinstance(value, dict):
        raise refused(f"{name}: expected a JSON object, got a {type(value).__name__}")
    return value


def format_object(value: dict[str, Any], name: str) -> bytes:
    """The JSON document of `value`: what `parse_object` reads back equal.

    Raises:
        InvalidArgumentError: `value` holds what JSON cannot: a number that is not finite, a cycle,
            an object of another type.
    """
    try:
        return json.dumps(value, allow_nan=False).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidArgumentError(
            f"{name}: it cannot be written as JSON: {error}",
            remedy="keep to None, bool, finite numbers, str, list and dict with str keys",
        ) from error


def _check_structure(data: bytes, name: str, limits: Limits) -> None:
    """Count values and depth without parsing: the parser would recurse and allocate first.

    The count is exact up to the first error in the document, and there the parser stops.
    """
    depth = values = slashes = 0
    in_text = False
    for start in range(0, len(data), _PIECE):
        piece = np.frombuffer(data, np.uint8, min(_PIECE, len(data) - start), start)
        escaped, slashes = _escaped(piece, slashes)
        quotes = (piece == ord('"')) & ~escaped
        inside = (np.cumsum(quotes, dtype=np.int32) + in_text) % 2 == 1
        in_text = bool(inside[-1])
        opening = ((piece == ord("[")) | (piece == ord("{"))) & ~inside
        closing = ((piece == ord("]")) | (piece == ord("}"))) & ~inside
        commas = (piece == ord(",")) & ~inside
        values += int(np.count_nonzero(opening)) + int(np.count_nonzero(commas))
        depths = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32)
        if depth + int(depths.max()) > limits.max_depth:
            raise beyond(f"{name}: its JSON is nested deeper than {limits.max_depth}", "max_depth")
        if values > limits.max_json_values:
            raise beyond(
                f"{name}: its JSON has more than {limits.max_json_values} values",
                "max_json_values",
            )
        depth += int(depths[-1])


def _escaped(piece: npt.NDArray[np.uint8], slashes: int) -> tuple[npt.NDArray[np.bool_], int]:
    """Which characters have an odd number of backslashes before them.

    Args:
        piece: the characters.
        slashes: the number of backslashes right before the piece.

    Returns:
        One bool for each character, and the number of backslashes at the end of the piece.
    """
    # runs[i]: how many backslashes stand right before character i, back to the last other one.
    place = np.arange(len(piece) + 1)
    other = np.where(piece == ord("\\"), 0, place[1:])
    last = np.maximum.accumulate(np.concatenate(([0], other)))
    runs = place - last + np.where(last == 0, slashes, 0)
    return runs[:-1] % 2 == 1, int(runs[-1])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        for key, _ in pairs:
            if key not in found:
                raise ValueError(f"the key {key[:100]!r} stands twice in one object")
            del found[key]
    return found


def _not_finite(token: str) -> float:
    raise ValueError(f"the number {token} is not finite")


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise ValueError(f"the number {token[:40]} is not finite")
    return value
