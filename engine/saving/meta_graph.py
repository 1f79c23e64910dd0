"""MetaGraph: a graph with what a program knows of it, as data: collections, saver, signatures.

    MetaGraphDef {MetaInfoDef meta_info_def = 1, bytes graph_def = 2, SaverDef saver_def = 3,
                  map<string, CollectionDef> collection_def = 4,
                  map<string, SignatureDef> signature_def = 5}
    MetaInfoDef {string meta_graph_version = 1, repeated string tags = 4,
                 string tensorflow_version = 5}
    SignatureDef {map<string, TensorInfo> inputs = 1, map<string, TensorInfo> outputs = 2,
                  string method_name = 3}
    TensorInfo {string name = 1, DataType dtype = 2, TensorShapeProto tensor_shape = 3}

the numbers as in tensorflow/core/protobuf/meta_graph.proto; the graph is a GraphDef of laminar,
whose ops are laminar's. One that TensorFlow wrote is read, too, and one is written for it
(tensorflow/). Nothing in it can run code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import wire
from ..closing import open_regular
from ..errors import (
    DataLossError,
    MissingFileError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
)
from ..graph import Graph, get_default_graph
from ..graph.graphdef import GraphDef
from ..io.atomic import atomic_write
from ..io.places import path_of
from ..ops.core.graphs import import_graph_def
from ..state import GraphKeys
from ..wire import BYTES, Kind, Message
from .collections import collection_bytes, read_collection
from .meta_graph_text import from_text, messages, to_text
from .saver_def import SaverDef, in_scope
from .signatures import Signature, map_bytes, read_signature, signature_bytes
from .tensorflow import TensorFlowGraph, graph_def_of, tensorflow_graph_of
from .tensorflow.collections import read_tensorflow_collection

_VERSION = "laminar 1"
_MOST = (1 << 31) - 1  # bytes, as protobuf has it
_KIND = Kind("a MetaGraph of laminar", "take a .meta file that a Saver or export_meta_graph wrote")


@dataclass(frozen=True)
class MetaGraph:
    """A graph with what belongs to it, as data.

    Attributes:
        graph_def: the operations; a `TensorFlowGraph` in one that TensorFlow wrote.
        saver_def: which of them save and restore; None if none do.
        collections: what each key lists, as data.
        signatures: by name.
        tags: words that say what it is for, in a SavedModel of several graphs.

    Examples:
        >>> with engine.Graph().as_default():
        ...     y = engine.constant(1.0, name="y")
        ...     meta_graph = engine.export_meta_graph()
        >>> engine.MetaGraph.from_bytes(meta_graph.to_bytes()).graph_def == meta_graph.graph_def
        True
    """

    graph_def: GraphDef | TensorFlowGraph
    saver_def: SaverDef | None = None
    collections: Mapping[str, bytes] = field(default_factory=dict)
    signatures: Mapping[str, Signature] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """The binary form: equal ones give equal bytes.

        Raises:
            ResourceExhaustedError: it would exceed 2 GiB.
        """
        saver = b"" if self.saver_def is None else wire.field(3, self.saver_def.to_bytes())
        signatures = {name: signature_bytes(s) for name, s in self.signatures.items()}
        data = b"".join(
            (
                wire.field(1, _information(self.graph_def, self.tags)),
                wire.field(2, _graph_bytes(self.graph_def)),
                saver,
                map_bytes(4, self.collections),
                map_bytes(5, signatures),
            )
        )
        if len(data) > _MOST:
            raise ResourceExhaustedError(
                f"the graph takes {len(data)} bytes as data, at most {_MOST} can be written",
                remedy="keep large constants in variables",
            )
        return data

    def to_text(self) -> str:
        """The text form, to be read and edited by people."""
        return to_text(self.to_bytes(), isinstance(self.graph_def, TensorFlowGraph))

    @staticmethod
    def from_text(text: str) -> MetaGraph:
        """Read the text form; DataLossError when it is none."""
        return MetaGraph.from_bytes(from_text(text))

    @staticmethod
    def from_bytes(data: bytes) -> MetaGraph:
        """Read the binary form, laminar's or TensorFlow's.

        Raises:
            DataLossError: the bytes are none, or damaged.
            UnimplementedError: it is of a later version.
        """
        message = Message(data, _KIND)
        version, graph, saver = "", None, None
        tensorflow: str | None = None
        tags: list[str] = []
        collections: dict[str, bytes] = {}
        signatures: dict[str, Signature] = {}
        for number, kind in message.fields():
            if kind != BYTES or not 1 <= number <= 5:
                message.skip(kind)
            elif number == 1:
                info = message.span()
                for inner, inner_kind in info.fields():
                    if inner == 1 and inner_kind == BYTES:
                        version = info.text()
                    elif inner == 4 and inner_kind == BYTES:
                        tags.append(info.text())
                    elif inner == 5 and inner_kind == BYTES:
                        tensorflow = info.text()
                    else:
                        info.skip(inner_kind)
            elif number == 2:
                graph = message.bytes()
            elif number == 3:
                saver = message.bytes()
            elif number == 4:
                key, value = message.span().entry()
                collections[key] = value
            else:
                key, value = message.span().entry()
                signatures[key] = read_signature(value)
        if graph is None:
            raise message.damage("there is no graph")
        if version.startswith("laminar") and version != _VERSION:
            raise UnimplementedError(
                f"the MetaGraph is of the version {version!r}, expected {_VERSION!r}",
                remedy="update laminar",
            )
        if version == _VERSION:
            found: GraphDef | TensorFlowGraph = GraphDef.from_bytes(graph)
        elif tensorflow is not None:
            found = _tensorflow_graph(graph, tensorflow)
        else:
            raise message.damage("nothing says who wrote it")
        return MetaGraph(
            found,
            None if saver is None else SaverDef.from_bytes(saver),
            collections,
            signatures,
            tuple(tags),
        )


def _information(graph: GraphDef | TensorFlowGraph, tags: Sequence[str]) -> bytes:
    """Who wrote it, and what it is for."""
    purposes = b"".join(wire.text(4, tag) for tag in tags)
    if isinstance(graph, TensorFlowGraph):
        return purposes + wire.text(5, graph.version)
    return wire.text(1, _VERSION) + purposes


def _graph_bytes(graph: GraphDef | TensorFlowGraph) -> bytes:
    if isinstance(graph, TensorFlowGraph):
        data: bytes = graph.message.SerializeToString(deterministic=True)
        return data
    return graph.to_bytes()


def _tensorflow_graph(data: bytes, version: str) -> TensorFlowGraph:
    try:
        return TensorFlowGraph(messages().GraphDef.FromString(data), version)
    except Exception as cause:  # DecodeError; its module differs between implementations
        raise DataLossError(f"the bytes are not a GraphDef of TensorFlow: {cause}") from cause


def export_meta_graph(
    filename: str | os.PathLike[str] | None = None,
    *,
    graph: Graph | None = None,
    saver_def: SaverDef | None = None,
    collection_list: Sequence[str] | None = None,
    signatures: Mapping[str, Signature] | None = None,
    clear_devices: bool = False,
    as_text: bool = False,
    tensorflow: bool = False,
    tags: Sequence[str] = (),
) -> MetaGraph:
    """A graph with its collections as data, and as a file.

    Args:
        filename: of the file; None to write none.
        graph: by default the default graph.
        saver_def: which operations of it save and restore.
        collection_list: keys of the collections that are written, by default all. A collection
            with objects that have no form in files is left out, with a warning.
        signatures: which tensors are inputs and outputs, by name.
        clear_devices: whether to leave out on which devices operations are placed.
        as_text: whether the file is text.
        tensorflow: whether the operations are written as TensorFlow's, whose `import_meta_graph`
            reads it then: those of dense layers, softmax losses, their gradients and updates, of
            elementwise functions and reductions, and of savers. Randomness is TensorFlow's own.
        tags: words that say what it is for.

    Raises:
        InvalidArgumentError: an attribute of an operation cannot be written.
        UnimplementedError: TensorFlow's form of an operation is not known; it says of which.
        MissingFileError, PermissionDeniedError, ResourceExhaustedError: the file cannot be written.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0, name="w")
        ...     meta_graph = engine.export_meta_graph()
        >>> sorted(meta_graph.collections)
        ['trainable_variables', 'variables']
    """
    graph = graph or get_default_graph()
    graph_def: GraphDef | TensorFlowGraph
    if tensorflow:
        graph_def = tensorflow_graph_of(graph, messages().GraphDef())
    else:
        graph_def = graph.as_graph_def()
    if clear_devices:
        _clear_devices(graph_def)
    # Objects that savers save are in the graph; a saver's own definition tells how.
    every = [key for key in graph.collection_keys if key != GraphKeys.SAVEABLE_OBJECTS]
    keys = every if collection_list is None else collection_list
    written = {key: collection_bytes(key, graph.get_collection(key), tensorflow) for key in keys}
    collections = {key: data for key, data in written.items() if data is not None}
    described = {key: found.of(graph) for key, found in (signatures or {}).items()}
    found = MetaGraph(graph_def, saver_def, collections, described, tuple(tags))
    if filename is not None:
        with atomic_write(filename, durable=True) as file:
            file.write(found.to_text().encode() if as_text else found.to_bytes())
    return found


def _clear_devices(graph_def: GraphDef | TensorFlowGraph) -> None:
    message = graph_def.message
    functions = () if isinstance(graph_def, TensorFlowGraph) else message.function
    for nodes in (message.node, *(function.node for function in functions)):
        for node in nodes:
            node.device = ""


def read_meta_graph(filename: str | os.PathLike[str]) -> MetaGraph:
    """The MetaGraph of a file, binary or text.

    Raises:
        MissingFileError: there is none.
        DataLossError, UnimplementedError: it holds something else.
    """
    path = path_of("import_meta_graph", filename)
    try:
        with open_regular(path) as file:
            data = file.read(_MOST + 1)
    except FileNotFoundError as cause:
        raise MissingFileError(f"there is no file {path}") from cause
    except OSError as cause:
        raise PermissionDeniedError(f"{path} cannot be read: {cause.strerror}") from cause
    if len(data) > _MOST:
        raise DataLossError(f"{path} has more bytes than a MetaGraph can have")
    try:
        return MetaGraph.from_bytes(data)
    except DataLossError as error:
        try:
            return MetaGraph.from_text(data.decode())
        except (UnicodeDecodeError, DataLossError):
            raise error from None


def add_meta_graph(
    meta_graph: MetaGraph | str | os.PathLike[str],
    *,
    clear_devices: bool = False,
    import_scope: str = "",
) -> SaverDef | None:
    """Add the operations and collections of a MetaGraph to the default graph, in its name scope.

    Returns:
        which operations save and restore, with the scope before their names; None if none do.

    Raises:
        MissingFileError, DataLossError, UnimplementedError: as for `read_meta_graph`.
        AlreadyExistsError, NotFoundError, InvalidArgumentError: as for `import_graph_def`.
    """
    found = meta_graph if isinstance(meta_graph, MetaGraph) else read_meta_graph(meta_graph)
    graph = get_default_graph()
    graph.check_open("importing a MetaGraph")
    scope = graph.scopes.name + (f"{import_scope.rstrip('/')}/" if import_scope else "")
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
        graph_def = found.graph_def
        is_foreign = isinstance(graph_def, TensorFlowGraph)
        if isinstance(graph_def, TensorFlowGraph):
            graph_def = graph_def_of(graph_def, scope)
        if clear_devices:
            graph_def = GraphDef.from_bytes(graph_def.to_bytes())
            _clear_devices(graph_def)
        import_graph_def(graph_def, name=scope)  # that scope, though it is there
    known: dict[bytes, object] = {}
    values = {
        key: read_tensorflow_collection(key, data, graph, scope, known)
        if is_foreign
        else read_collection(data, graph, scope, known)
        for key, data in found.collections.items()
    }
    for key, items in values.items():
        for item in items:
            graph.add_to_collection(key, item)
    saver = found.saver_def
    if saver is None:
        return None
    for name in (saver.filename_tensor_name, saver.save_tensor_name):
        graph.get_tensor_by_name(scope + name)
    graph.get_operation_by_name(scope + saver.restore_op_name)
    return in_scope(saver, scope)
