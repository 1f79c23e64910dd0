"""How many threads native code uses: a setting of the process, and the share of a device."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from ...ops.core.cluster import thread_share

_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def available_cores() -> int:
    """The cores that this process may use: by its affinity, and by the time its groups have."""
    if hasattr(os, "sched_getaffinity"):
        found = len(os.sched_getaffinity(0))
    else:
        found = os.cpu_count() or 1
    return max(1, min([found, *map(math.ceil, _quotas())]))


def _quotas() -> Iterator[float]:
    """For how many cores the control groups of this process, those around included, have time.

    Source: Linux, "Control Group v2", cpu.max; "CFS Bandwidth Control", cpu.cfs_quota_us.
    """
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _GROUPS / "cpu" if controllers else _GROUPS
        path = root / group.strip("/")
        for folder in (path, *path.parents):
            if folder.is_relative_to(root):
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    """What a group may use in each period, as a number of cores, if it is limited."""
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text()
        if limit not in ("max", "-1"):
            yield int(limit) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # it is not limited
        return


class _Setting:
    """The number of threads for all of the host."""

    count = available_cores()


def set_count(count: int) -> None:
    """Let plans use so many threads from now on."""
    _Setting.count = count


def host_threads() -> int:
    """How many threads there are for all of the host."""
    return _Setting.count


def num_threads() -> int:
    """How many threads a plan that this thread runs may use."""
    count = _Setting.count
    return count if thread_share.owner is None else min(count, thread_share.count)
