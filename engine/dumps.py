"""Files that show what becomes of a graph, for people who want to know.

The environment variable LAMINAR_DUMP names a folder. Into it go, for all that is compiled: the
operations before and after clustering (.graph.txt, .clustered.txt), the loop program (.loops.txt),
its fused kernels (.kernels.txt), the IR of each kernel (.ll) and its assembly (.s); and where other
passes rewrite a graph, the operations before the first and after each (.passes_0_given.txt,
.passes_1_....txt). Names are those of operations and layers.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

_log = logging.getLogger(__name__)

_LONGEST_NAME = 120
_unwritable: set[Path] = set()


def folder() -> Path | None:
    """Where dumps go; None for nowhere."""
    chosen = os.environ.get("LAMINAR_DUMP")
    return Path(chosen) if chosen else None


def dump(name: str, text: str) -> None:
    """Write a file into the folder of dumps, if there is one; a second of a name gets a number."""
    place = folder()
    if place is None:
        return
    safe = re.sub(r"[^\w.\-]+", "_", name)
    stem, *suffixes = safe.split(".", 1)
    if len(stem) > _LONGEST_NAME:  # a layer begins it, what is made for it ends it
        stem = f"{stem[: _LONGEST_NAME // 2]}--{stem[-_LONGEST_NAME // 2 :]}"
    suffix = "".join(f".{s}" for s in suffixes)
    try:
        place.mkdir(parents=True, exist_ok=True)
        path, count = place / f"{stem}{suffix}", 1
        while path.exists():
            count += 1
            path = place / f"{stem}_{count}{suffix}"
        path.write_text(text)
    except OSError as error:
        if place not in _unwritable:  # once, not for each stage of each graph
            _unwritable.add(place)
            _log.warning("LAMINAR_DUMP: %s cannot be written: %s", place, error)
