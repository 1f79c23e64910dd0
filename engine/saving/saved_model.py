"""SavedModels: a folder with graphs as data, each under tags, and the values of their variables.

    saved_model.pb            SavedModel {int64 saved_model_schema_version = 1,
                                          repeated MetaGraphDef meta_graphs = 2}
    variables/variables...    a checkpoint

as tensorflow/core/protobuf/saved_model.proto has it. Nothing in it can run code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from .. import wire
from ..closing import open_regular
from ..errors import (
    DataLossError,
    MissingFileError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
)
from ..io.atomic import atomic_write
from ..io.places import make_folder, path_of
from ..wire import BYTES, VARINT, Kind, Message
from .meta_graph import MetaGraph

FILE = "saved_model.pb"
TEXT_FILE = "saved_model.pbtxt"
VARIABLES = ("variables", "variables")  # the folder, and the prefix of the checkpoint in it
_SCHEMA = 1
_MOST = (1 << 31) - 1  # bytes, as protobuf has it
_KIND = Kind("a SavedModel", "take the folder that a SavedModel was written to")


def variables_prefix(folder: str | os.PathLike[str]) -> str:
    """The prefix of the checkpoint in the folder of a SavedModel."""
    return os.path.join(os.fspath(folder), *VARIABLES)


def write_saved_model(folder: str | os.PathLike[str], meta_graphs: Iterable[MetaGraph]) -> str:
    """Write the graphs of a SavedModel; gives the file's path. Variables are saved beside it.

    Raises:
        PermissionDeniedError, ResourceExhaustedError: it cannot be written.
    """
    data = wire.integer(1, _SCHEMA)
    data += b"".join(wire.field(2, found.to_bytes()) for found in meta_graphs)
    if len(data) > _MOST:
        raise ResourceExhaustedError(
            f"the graphs take {len(data)} bytes as data, at most {_MOST} can be written",
            remedy="keep large constants in variables",
        )
    path = str(make_folder(folder, "SavedModel") / FILE)
    with atomic_write(path, durable=True) as file:
        file.write(data)
    return path


def read_saved_model(folder: str | os.PathLike[str]) -> list[MetaGraph]:
    """The graphs of a SavedModel, laminar's or TensorFlow's.

    Raises:
        MissingFileError: the folder has none.
        DataLossError: it is damaged.
        UnimplementedError: it is of another version, or text.
    """
    path = os.path.join(path_of("SavedModel", folder), FILE)
    try:
        with open_regular(path) as file:
            data = file.read(_MOST + 1)
    except FileNotFoundError as cause:
        if os.path.exists(os.path.join(os.path.dirname(path), TEXT_FILE)):
            raise UnimplementedError(
                f"{folder} has a SavedModel as text", remedy="write it in the binary form"
            ) from cause
        raise MissingFileError(f"there is no SavedModel in {folder}: {FILE} is missing") from cause
    except OSError as cause:
        raise PermissionDeniedError(f"{path} cannot be read: {cause.strerror}") from cause
    if len(data) > _MOST:
        raise DataLossError(f"{path} has more bytes than a SavedModel can have")
    message, version = Message(data, _KIND), 0
    found: list[MetaGraph] = []
    for number, kind in message.fields():
        if number == 1 and kind == VARINT:
            version = message.varint()
        elif number == 2 and kind == BYTES:
            found.append(MetaGraph.from_bytes(message.bytes()))
        else:
            message.skip(kind)
    if version != _SCHEMA:
        raise UnimplementedError(f"{path} is of version {version}, expected {_SCHEMA}")
    return found


def with_tags(meta_graphs: Iterable[MetaGraph], tags: Sequence[str]) -> MetaGraph:
    """The graph that has just these tags.

    Raises:
        NotFoundError: there is none; it says which tags there are.
    """
    meta_graphs = list(meta_graphs)
    for found in meta_graphs:
        if set(found.tags) == set(tags):
            return found
    known = ", ".join(str(sorted(found.tags)) for found in meta_graphs) or "no graph"
    raise NotFoundError(
        f"the SavedModel has no graph with the tags {sorted(tags)}", remedy=f"it has {known}"
    )
