"""laminar info: the version, the processor, devices, caches, and what is missing and why."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import platform
from typing import Any

import laminar
from laminar.callbacks.display import format_bytes
from laminar.engine import devices
from laminar.engine.compiler.target import disk_cache, host, llvm, thread_count

from .found import Found, Rows

# Packages that laminar uses where they are installed: by the name to install, the module, and what
# it is for.
_OPTIONAL = (
    ("pillow", "PIL", "image files (extra: images)"),
    ("matplotlib", "matplotlib", "curves as pictures (extra: plot)"),
    ("scikit-learn", "sklearn", "laminar.wrappers (extra: sklearn)"),
    ("safetensors", "safetensors", "files of safetensors (extra: safetensors)"),
    ("mpi4py", "mpi4py", "training over processes (extra: mpi)"),
    ("cupy", "cupy", "computing on GPUs (extra: gpu)"),
    ("nvmath-python", "nvmath", "matrix products on GPUs by cuBLASLt (extra: gpu)"),
    ("google-crc32c", "google_crc32c", "quick checksums without the compiler"),
    ("tensorboard", "tensorboard", "looking at summaries"),
)
_VECTORS = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "amx-bf16")
_ARM = ("neon", "sve", "bf16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""


def run(options: argparse.Namespace) -> Found:
    """Look at the machine and at what is installed."""
    reason = host.why_not()
    features: list[str] = []
    if not reason:
        has = llvm.host_features()
        features = [name for name in _VECTORS + _ARM if has.get(name)]
    listed = devices.list_devices()
    kept = disk_cache.contents()
    data: dict[str, Any] = {
        "version": laminar.version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": "" if reason else llvm.processor(),
        "instruction_sets": features,
        "vector_bytes": 0 if reason else llvm.vector_bytes(),
        "threads": thread_count.num_threads(),
        "native_code": not reason,
        "why_no_native_code": reason,
        "devices": [
            {"name": d.name, "type": d.device_type, "memory": d.memory_limit_bytes} for d in listed
        ],
        "missing_devices": listed.missing,
        "cache": {
            "folder": str(disk_cache.folder()),
            "files": kept.files,
            "bytes": kept.num_bytes,
        },
        "packages": {name: _version(name, module) for name, module, _ in _OPTIONAL},
    }
    return Found(data, [_rows(data)])


def _version(name: str, module: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # under another name
        return "installed"


def _rows(data: dict[str, Any]) -> Rows:
    native = ", ".join(data["instruction_sets"]) or "none named"
    cache = data["cache"]
    rows = [
        ("laminar", data["version"]),
        ("Python", f"{data['python']} on {data['platform']}"),
        ("processor", f"{data['processor']}, {data['threads']} threads"),
        ("native code", native if data["native_code"] else f"none: {data['why_no_native_code']}"),
        *(("device", device["name"]) for device in data["devices"]),
        *((f"no {kind}", why) for kind, why in data["missing_devices"].items()),
        (
            "compiled code",
            f"{cache['files']} files, {format_bytes(cache['bytes'])} in {cache['folder']}",
        ),
        *(
            (name, f"{data['packages'][name] or 'not installed'}: {use}")
            for name, _, use in _OPTIONAL
        ),
    ]
    return Rows(rows, left=2)
