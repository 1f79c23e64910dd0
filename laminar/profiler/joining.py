"""Timelines of processes that were started together, joined in one file.

Each process writes its part, a timeline that can be opened by itself. Who finds the parts of all
when it has written its own joins them, and removes them: so nobody waits for anybody, and where a
process dies the parts of the others stay.

Times of a part are of the clock of its machine that counts from when that started; between machines
they are taken to be as far apart as their clocks say.
"""

from __future__ import annotations

import json
import os
import socket
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from laminar.distribute.resolvers.mpi import mpi_place
from laminar.engine.errors import DataLossError
from laminar.engine.io.atomic import atomic_write
from laminar.engine.timeline import now

Events = list[dict[str, Any]]
# Names of what MPI's launchers call all processes of a run together.
_RUN_NAMES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID")
THIS_PROCESS = "this process"  # the row of what ran on no device
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Place(NamedTuple):
    """Which process of those that were started together this one is.

    Attributes:
        rank: its number.
        size: how many there are.
        run: what tells this run of them from others.
    """

    rank: int
    size: int
    run: str


def place(environ: Mapping[str, str]) -> Place | None:
    """That of the process with these environment variables; None where it was started alone."""
    found = mpi_place(environ)
    if found is None or found.size < 2:
        return None
    run = next((environ[name] for name in _RUN_NAMES if name in environ), str(os.getppid()))
    return Place(found.rank, found.size, f"{zlib.crc32(run.encode()):08x}")


def joined_path(folder: Path, here: Place) -> Path:
    """The file of all for the next trace of this process."""
    number = 1
    while True:
        path = folder / f"trace-{here.run}-{number}.json"
        if not path.exists() and not _part(path, here.rank).exists():
            return path
        number += 1


def _part(path: Path, rank: int) -> Path:
    return path.with_name(f"{path.stem}.rank-{rank}.json")


def write_part(path: Path, here: Place, events: Events, start: int) -> None:
    """Write the timeline of this process, and join those of all if it is the last.

    Args:
        path: of the joined file.
        here: which process this is.
        events: of the timeline.
        start: when it began.
    """
    parts = [_part(path, rank) for rank in range(here.size)]
    clock = {
        "machine": _machine(),
        "start_ns": start,
        "wall_ns": time.time_ns() - now() + start,
    }
    name = f"rank {here.rank} ({socket.gethostname()}, {os.getpid()})"
    with atomic_write(parts[here.rank]) as file:
        content = {"traceEvents": events, "laminar": {"name": name, "clock": clock}}
        file.write(json.dumps(content, default=str).encode())
    lock = path.with_name(f"{path.stem}.joining")
    if not all(map(Path.exists, parts)):
        return
    with suppress(FileExistsError):  # another is at it
        lock.mkdir()
        try:
            if all(map(Path.exists, parts)):
                with atomic_write(path) as file:
                    file.write(json.dumps({"traceEvents": joined(_read(parts))}).encode())
                for part in parts:
                    part.unlink()
        finally:
            lock.rmdir()


def joined(contents: Sequence[Mapping[str, Any]]) -> Events:
    """The events of all parts, in one time, each process with its devices in rows of its own."""
    first = contents[0]["laminar"]["clock"]
    starts = [_start(part["laminar"]["clock"], first) for part in contents]
    found: Events = []
    count = 0
    for rank, (part, start) in enumerate(zip(contents, starts, strict=True)):
        later = (start - min(starts)) / 1000
        numbers: dict[int, int] = {}
        for event in part["traceEvents"]:
            if event["pid"] not in numbers:
                count += 1
                numbers[event["pid"]] = count
                found.append(_order(count))
            found.append(_moved(event, part["laminar"]["name"], rank, numbers, later))
    return found


def _moved(
    event: dict[str, Any], name: str, rank: int, numbers: Mapping[int, int], later: float
) -> dict[str, Any]:
    moved = {**event, "pid": numbers[event["pid"]]}
    if "ts" in event:
        moved["ts"] = event["ts"] + later
    if "id" in event:
        moved["id"] = f"{rank}:{event['id']}"
    if event["name"] == "process_name":
        row = event["args"]["name"]
        moved["args"] = {"name": name if row == THIS_PROCESS else f"{name}: {row}"}
    return moved


def _order(number: int) -> dict[str, Any]:
    return {
        "ph": "M",
        "name": "process_sort_index",
        "pid": number,
        "args": {"sort_index": number},
    }


def _start(clock: Mapping[str, Any], first: Mapping[str, Any]) -> int:
    """When a part began, on the clock of the first one."""
    if clock["machine"] == first["machine"]:
        return int(clock["start_ns"])
    return int(clock["wall_ns"] - first["wall_ns"] + first["start_ns"])


def _machine() -> str:
    """What tells this machine, since it was started, from others."""
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return socket.gethostname()


def _read(parts: Sequence[Path]) -> list[Mapping[str, Any]]:
    found = []
    for part in parts:
        try:
            content = json.loads(part.read_text())
            assert content["laminar"]["clock"]["start_ns"] >= 0
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise DataLossError(
                f"trace: {part} is no part of a timeline", remedy="remove it, and record again"
            ) from error
        found.append(content)
    return found
