"""laminar cache: the native code that is kept on disk."""

from __future__ import annotations

import argparse

from laminar.callbacks.display import format_bytes
from laminar.engine.compiler.target import disk_cache

from .found import Found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--clear", action="store_true", help="remove it: it is compiled anew")


def run(options: argparse.Namespace) -> Found:
    """Count what is kept, and remove it where that is asked for."""
    folder = disk_cache.folder()
    found = disk_cache.clear() if options.clear else disk_cache.contents()
    data = {
        "folder": str(folder),
        "files": found.files,
        "bytes": found.num_bytes,
        "cleared": options.clear,
    }
    what = "removed from" if options.clear else "in"
    return Found(data, [f"{found.files} files, {format_bytes(found.num_bytes)}, {what} {folder}"])
