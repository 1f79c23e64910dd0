"""The file `checkpoint` of a folder: which checkpoints there are, the newest first of all.

    model_checkpoint_path: "model-30"
    all_model_checkpoint_paths: "model-20"
    all_model_checkpoint_paths: "model-30"
    all_model_checkpoint_timestamps: 1609459200.5
    last_preserved_timestamp: 1609459100.0

the text form of the message CheckpointState; paths are relative to the folder, or absolute.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from typing import Any

from ..closing import open_regular
from ..errors import DataLossError, MissingFileError, PermissionDeniedError
from ..io.atomic import atomic_write
from ..io.places import path_of
from ..source import warn
from .files import checkpoint_exists
from .reader import CheckpointReader

STATE_FILE = "checkpoint"
_MOST = 1 << 24  # bytes

_LINE = re.compile(r'\s*(\w+)\s*:\s*(?:"((?:[^"\\\n]|\\.)*)"|([-+.\w]+))')
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
_CHARACTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


@dataclass
class CheckpointState:
    """What a folder says of its checkpoints.

    Attributes:
        model_checkpoint_path: prefix of the newest.
        all_model_checkpoint_paths: prefixes of those that are kept, oldest first.
        all_model_checkpoint_timestamps: when each was written, in seconds since 1970.
        last_preserved_timestamp: when the last one was written that is kept for ever; 0 for none.

    Examples:
        >>> engine.CheckpointState("run/ckpt-3").model_checkpoint_path
        'run/ckpt-3'
    """

    model_checkpoint_path: str = ""
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float = 0.0


def write_checkpoint_state(
    folder: str | os.PathLike[str],
    state: CheckpointState,
    *,
    latest_filename: str | None = None,
    relative: bool = False,
) -> None:
    """Write the state file of a folder; it is there whole, on the disk, or as it was.

    Args:
        folder: of the file; relative prefixes are relative to the process's working folder.
        latest_filename: name of the file, by default "checkpoint".
        relative: whether absolute prefixes are written relative to the folder, too, so that it can
            be moved.

    Raises:
        MissingFileError: the folder is not there.
        PermissionDeniedError, ResourceExhaustedError: the file cannot be written.
    """
    home = path_of("checkpoint", folder)
    is_relative = relative or not os.path.isabs(home)

    def stored(path: str) -> str:
        if os.path.isabs(path) and not relative:
            return path
        return os.path.relpath(path, home or ".") if is_relative else os.path.abspath(path)

    lines = [f'model_checkpoint_path: "{_escaped(stored(state.model_checkpoint_path))}"']
    for path in state.all_model_checkpoint_paths:
        lines.append(f'all_model_checkpoint_paths: "{_escaped(stored(path))}"')
    for time in state.all_model_checkpoint_timestamps:
        lines.append(f"all_model_checkpoint_timestamps: {time!r}")
    if state.last_preserved_timestamp:
        lines.append(f"last_preserved_timestamp: {state.last_preserved_timestamp!r}")
    with atomic_write(os.path.join(home, latest_filename or STATE_FILE), durable=True) as file:
        file.write("\n".join([*lines, ""]).encode())


def get_checkpoint_state(
    folder: str | os.PathLike[str], latest_filename: str | None = None
) -> CheckpointState | None:
    """What the state file of a folder says; None if there is no such file.

    The folder stands before prefixes that are relative to it.

    Args:
        folder: where checkpoints are saved.
        latest_filename: the name of the state file, by default "checkpoint".

    Raises:
        DataLossError: it is damaged.
        PermissionDeniedError: it cannot be read.

    Examples:
        >>> path = engine.Checkpoint(v=laminar.Variable(1.0)).save("run/ckpt")
        >>> engine.get_checkpoint_state("run").model_checkpoint_path == path
        True
    """
    home = path_of("checkpoint", folder)
    path = os.path.join(home, latest_filename or STATE_FILE)
    try:
        with open_regular(path) as file:
            data = file.read(_MOST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as cause:
        raise PermissionDeniedError(f"{path} cannot be read: {cause.strerror}") from cause
    state = _parse(data, path)
    state.model_checkpoint_path = os.path.join(home, state.model_checkpoint_path)
    state.all_model_checkpoint_paths = [
        os.path.join(home, p) for p in state.all_model_checkpoint_paths
    ]
    return state


def _parse(data: bytes, path: str) -> CheckpointState:
    found: dict[str, list[str]] = {}
    damaged = DataLossError(
        f"{path} is damaged, it does not say which checkpoints there are",
        remedy="name the checkpoint by its own prefix, or remove the file",
    )
    try:
        if len(data) > _MOST:
            raise damaged
        for line in filter(str.strip, data.decode().splitlines()):
            match = _LINE.fullmatch(line.rstrip())
            if match is None:
                raise damaged
            name, text, word = match.groups()
            found.setdefault(name, []).append(word if text is None else _unescaped(text))
        newest = found["model_checkpoint_path"][-1]
        times = [float(t) for t in found.get("all_model_checkpoint_timestamps", ())]
        preserved = float(found.get("last_preserved_timestamp", ["0"])[-1])
    except (ValueError, KeyError) as cause:  # no text, no number, or nothing is said
        raise damaged from cause
    if not newest or not all(map(math.isfinite, [*times, preserved])):
        raise damaged
    paths = found.get("all_model_checkpoint_paths", [])
    if newest not in paths:
        paths = [*paths, newest]
        times = []
    return CheckpointState(newest, paths, times if len(times) == len(paths) else [], preserved)


def _escaped(text: str) -> str:
    def form(byte: int) -> str:
        character = chr(byte)
        if character in '"\\' or not 32 <= byte < 127:
            return f"\\{byte:03o}" if character not in '"\\' else f"\\{character}"
        return character

    return "".join(map(form, os.fsencode(text)))


def _unescaped(text: str) -> str:
    def character(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        if escape[:1] in b"01234567":
            return bytes([int(escape, 8) & 255])
        if escape[:1] == b"x" and len(escape) > 1:
            return bytes([int(escape[1:], 16)])
        return _CHARACTERS.get(escape, escape)

    return os.fsdecode(_ESCAPE.sub(character, text.encode()))


def latest_checkpoint(
    folder: str | os.PathLike[str], latest_filename: str | None = None
) -> str | None:
    """The prefix of the newest checkpoint of a folder, None if it has none.

    If the newest that the state file names is not there, this warns, and takes the one before.

    Args:
        folder: where checkpoints are saved.
        latest_filename: the name of the state file, by default "checkpoint".

    Raises:
        DataLossError: the state file is damaged.

    Examples:
        >>> path = engine.Checkpoint(v=laminar.Variable(1.0)).save("run/ckpt")
        >>> engine.latest_checkpoint("run") == path
        True
    """
    state = get_checkpoint_state(folder, latest_filename)
    return next(iter(newest_first(state)), None) if state is not None else None


def newest_of(prefix: str | os.PathLike[str]) -> str:
    """The prefix of a checkpoint, or of the newest one with a number behind that prefix.

    The folder's state file says which; the prefix itself where it names none.
    """
    path = path_of("checkpoint", prefix)
    if checkpoint_exists(path):
        return path
    state = get_checkpoint_state(os.path.dirname(path) or ".")
    numbered = re.compile(re.escape(os.path.basename(path)) + r"-\d+", re.ASCII)
    named = newest_first(state) if state is not None else []
    return next((p for p in named if numbered.fullmatch(os.path.basename(p))), path)


def newest_first(state: CheckpointState) -> list[str]:
    """The prefixes of those that are there; a warning names others."""
    newest = state.model_checkpoint_path
    others = [p for p in reversed(state.all_model_checkpoint_paths) if p != newest]
    found = []
    for prefix in [newest, *others]:
        if checkpoint_exists(prefix):
            found.append(prefix)
        elif not found:
            warn(f"the checkpoint {prefix} is not there; the one before it is taken, if there is")
    return found


def load_checkpoint(prefix: str | os.PathLike[str]) -> CheckpointReader:
    """A reader of the checkpoint `prefix`, or of the newest one of a folder.

    Raises:
        MissingFileError: there is none.
        DataLossError: its index is damaged.

    Examples:
        >>> path = engine.Checkpoint(v=laminar.Variable([1.0, 2.0])).save("run/ckpt")
        >>> with engine.load_checkpoint(path) as reader:
        ...     reader.get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")
        array([1., 2.], dtype=float32)
    """
    path = path_of("checkpoint", prefix)
    if not os.path.isdir(path):
        return CheckpointReader(path)
    found = latest_checkpoint(path)
    if found is None:
        raise MissingFileError(f"the folder {path} has no checkpoint")
    return CheckpointReader(found)


def list_variables(prefix: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """Names and shapes of the tensors of a checkpoint, or of the newest one of a folder.

    Only the index is read.

    Examples:
        >>> path = engine.Checkpoint(v=laminar.Variable([1.0, 2.0])).save("run/ckpt")
        >>> engine.list_variables(path)[-1]
        ('v/.ATTRIBUTES/VARIABLE_VALUE', [2])
    """
    with load_checkpoint(prefix) as reader:
        return [(name, list(shape)) for name, (shape, _) in reader.variables().items()]


def load_variable(prefix: str | os.PathLike[str], name: str) -> Any:
    """The value of one tensor of a checkpoint, or of the newest one of a folder.

    Args:
        prefix: of a checkpoint, or a folder with a state file.
        name: of the tensor, as `list_variables` gives it.

    Returns:
        an array.

    Raises:
        MissingFileError: there is no such checkpoint.
        NotFoundError: it has no such tensor.

    Examples:
        >>> path = engine.Checkpoint(v=laminar.Variable([1.0, 2.0])).save("run/ckpt")
        >>> engine.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")
        array([1., 2.], dtype=float32)
    """
    with load_checkpoint(prefix) as reader:
        return reader.read(name)
