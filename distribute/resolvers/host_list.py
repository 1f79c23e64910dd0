"""Lists of hosts as Slurm writes them: "a[1-3,7],b" is a1, a2, a3, a7 and b."""

from __future__ import annotations

import itertools
import re
from typing import Final

from laminar.engine.errors import InvalidArgumentError

_MOST: Final = 1 << 20  # hosts of a list
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_REPEATED = re.compile(r"(\d+)(?:\(x(\d+)\))?", re.ASCII)


def hosts_of(text: str) -> list[str]:
    """The hosts of a list, in its order.

    Numbers keep their zeros in front ("n[08-10]" is n08, n09, n10); a name may have several
    brackets, of which the last changes first.

    Raises:
        InvalidArgumentError: it is no such list, or has more than a million hosts.
    """
    found: list[str] = []
    for part in _split(text):
        choices = [
            _numbers(text, piece[1:-1]) if piece.startswith("[") else [piece]
            for piece in re.split(r"(\[[^\[\]]*\])", part)
            if piece
        ]
        if not choices or any("[" in c or "]" in c for names in choices for c in names):
            raise _bad(text)
        for names in itertools.product(*choices):
            found.append("".join(names))
            if len(found) > _MOST:
                raise _bad(text)
    return found


def counts_of(text: str) -> list[int]:
    """Numbers as Slurm writes them for each host: "2(x3),1" is 2, 2, 2, 1.

    Raises:
        InvalidArgumentError: it is no such list.
    """
    found: list[int] = []
    for part in text.split(","):
        match = _REPEATED.fullmatch(part.strip())
        if match is None or len(found) + int(match[2] or 1) > _MOST:
            raise InvalidArgumentError(
                f"{text!r:.200} is no list of numbers of tasks", remedy='as "2(x3),1"'
            )
        found += [int(match[1])] * int(match[2] or 1)
    return found


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text.strip():
        depth += {"[": 1, "]": -1}.get(character, 0)
        if depth not in (0, 1):
            raise _bad(text)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    if depth or not all(parts):
        raise _bad(text)
    return parts


def _numbers(text: str, inside: str) -> list[str]:
    """The numbers between two brackets, as text."""
    found: list[str] = []
    for part in inside.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _bad(text)
        first, last = match[1], match[2] or match[1]
        numbers = range(int(first), int(last) + 1)
        if not numbers or len(found) + len(numbers) > _MOST:
            raise _bad(text)
        found += [str(n).zfill(len(first)) for n in numbers]
    return found


def _bad(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{text!r:.200} is no list of hosts", remedy='as "node[1-3,7],login"'
    )
