"""What is known of the machine and of the libraries that figures come from."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from .cases import ROOT

# Vector instruction sets worth telling, as the kernel names them: x86, then ARM.
FEATURES = (
    *("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile"),
    *("asimd", "bf16", "sve"),
)


def use_all_cores() -> None:
    """Let this process run on every core: it speaks with another, and each needs one."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def describe(isa: str | None = None) -> dict[str, str]:
    """The processor, its instruction sets, its cores and how busy they are.

    Args:
        isa: the instruction set that all are kept to, if any.
    """
    about = {"processor": platform.processor() or platform.machine()}
    features: set[str] = set()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    for name, _, value in (line.partition(":") for line in lines):
        match name.strip():
            case "model name":
                about["processor"] = value.strip()
            case "vendor_id":
                about["vendor"] = value.strip()
            case "flags" | "Features":
                features.update(value.split())
    about["features"] = " ".join(name for name in FEATURES if name in features) or "unknown"
    if isa is not None:
        about["kept to"] = isa
    about["cores"] = f"{len(usable_cores())} of {os.cpu_count()}"
    about["system"] = f"{platform.system()} {platform.release()}"
    if hasattr(os, "getloadavg"):
        about["load"] = f"{os.getloadavg()[0]:.2f}"
    return about | caches() | commit()


def caches() -> dict[str, str]:
    """The sizes of the data caches of the first core, where the system tells them."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level} cache"] = size
    return found


def commit() -> dict[str, str]:
    """What laminar was measured at, where this is a checkout; "changed" after it if it was."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty= changed"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"commit": done.stdout.strip()}


def usable_cores() -> list[int]:
    """The cores that this process may run on; those that share a physical core come last."""
    if hasattr(os, "sched_getaffinity"):
        found = sorted(os.sched_getaffinity(0))
    else:
        found = list(range(os.cpu_count() or 1))
    firsts = {core: _first_sibling(core) for core in found}
    return sorted(found, key=lambda core: core != firsts[core])


def _first_sibling(core: int) -> int:
    """The first of the logical cores that share a physical one with `core`."""
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        return int(re.split("[,-]", path.read_text())[0])
    except (OSError, ValueError):  # not Linux
        return core


def pin(cores: list[int]) -> None:
    """Keep this process, and those it starts, on `cores`, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def versions(packages: Iterable[str]) -> dict[str, str]:
    """This interpreter's version and those of `packages`, which are installed."""
    return {name: _version(name) for name in packages} | {"python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # a build of it for processors alone, as TensorFlow has
        return metadata.version(f"{package}-cpu")
