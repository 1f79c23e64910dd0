"""Files that show what becomes of a graph, for people who want to know.

The environment variable LAMINAR_DUMP names a folder. Into it go, for all that is compiled, in the
order in which they are made, which their numbers tell: the operations of a step before the first
pass (.given.txt), after each that changed something (.<pass>.txt), as they go to the compiler
(.graph.txt) and with clusters in their places (.clustered.txt); of each cluster the loop program
(.loops.txt), its fused kernels (.kernels.txt), the LLVM IR of each (.ll) and its assembly (.s), and
for each set of sizes what the kernels compute, on how many bytes, in which files (.plan.txt).
README.txt lists the files with a line for each. Names are those of operations and layers.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from . import forks

_log = logging.getLogger(__name__)

_LONGEST_NAME = 120
_INDEX = "README.txt"
_HEAD = """What became of graphs on their way to machine code, in the order in which it was done.

"""
_unwritable: set[Path] = set()
_lock = forks.lock()  # held while a file gets its number


def folder() -> Path | None:
    """Where dumps go; None for nowhere."""
    chosen = os.environ.get("LAMINAR_DUMP")
    return Path(chosen) if chosen else None


def dump(name: str, text: str, what: str) -> str:
    """Write a file into the folder of dumps, if there is one, with the next number before its name.

    Args:
        name: of the file.
        text: goes into it.
        what: the line about it in the list of files.

    Returns:
        The name that the file has got; nothing where none was written.
    """
    place = folder()
    if place is None:
        return ""
    safe = re.sub(r"[^\w.\-]+", "_", name)
    stem, *suffixes = safe.split(".", 1)
    if len(stem) > _LONGEST_NAME:  # a layer begins it, what is made for it ends it
        stem = f"{stem[: _LONGEST_NAME // 2]}--{stem[-_LONGEST_NAME // 2 :]}"
    suffix = "".join(f".{s}" for s in suffixes)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _lock:
            number = 1 + sum(path.name[:4].isdigit() for path in place.iterdir())
            path = place / f"{number:04}_{stem}{suffix}"
            path.write_text(text)
            index = place / _INDEX
            head = "" if index.exists() else _HEAD
            with index.open("a") as lines:
                lines.write(f"{head}{path.name}\n    {what}\n")
    except OSError as error:
        if place not in _unwritable:  # once, not for each stage of each graph
            _unwritable.add(place)
            _log.warning("LAMINAR_DUMP: %s cannot be written: %s", place, error)
        return ""
    return path.name
