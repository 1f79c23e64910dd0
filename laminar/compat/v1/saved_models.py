"""SavedModels: written from a session's graph, and loaded into one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from laminar import engine
from laminar.engine.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from laminar.engine.graph import get_default_graph
from laminar.engine.graph.dtypes import NUMBERS
from laminar.engine.io.places import make_folder
from laminar.engine.saving.meta_graph_text import messages
from laminar.engine.saving.saved_model import (
    read_saved_model,
    variables_prefix,
    with_tags,
    write_saved_model,
)
from laminar.engine.saving.tensorflow import TensorFlowGraph
from laminar.engine.saving.tensorflow.writing import write_shape
from laminar.engine.source import warn

from . import saved_model_words as words
from .adapting import v1
from .graphs import import_meta_graph
from .sparse_tensors import SparseTensor


def build_tensor_info(tensor: Any) -> Any:
    """A TensorInfo message: name, type and shape of a tensor of a graph."""
    if isinstance(tensor, SparseTensor):
        raise UnimplementedError(
            "build_tensor_info: signatures have dense tensors",
            remedy="give indices, values and dense_shape by names of their own",
        )
    element = get_default_graph().as_graph_element(tensor)
    if isinstance(element, engine.Operation):
        raise InvalidArgumentError(f"build_tensor_info: {tensor!r} is no tensor")
    info = messages().TensorInfo(name=element.name, dtype=NUMBERS[element.dtype])
    info.tensor_shape.SetInParent()
    write_shape(info.tensor_shape, element.shape)
    return info


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: engine.Graph | None = None, import_scope: str | None = None
) -> Any:
    """The tensor of a graph that a TensorInfo names."""
    scope = f"{import_scope}/" if import_scope else ""
    return (graph or get_default_graph()).get_tensor_by_name(scope + tensor_info.name)


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> Any:
    """A SignatureDef message of TensorInfos."""
    found = messages().SignatureDef(method_name=method_name or "")
    for mine, given in ((found.inputs, inputs), (found.outputs, outputs)):
        for key, info in (given or {}).items():
            mine[key].CopyFrom(info)
    return found


def _described(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {key: build_tensor_info(tensor) for key, tensor in tensors.items()}


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The signature of a computation of tensors from tensors."""
    for name, given in (("inputs", inputs), ("outputs", outputs)):
        if not given:
            raise ValueError(f"predict_signature_def: {name} must be a dict of tensors")
    return build_signature_def(_described(inputs), _described(outputs), words.PREDICT_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """The signature of a classification: classes (strings), scores (float32), or both."""
    if examples is None or (classes is None and scores is None):
        raise ValueError("classification_signature_def: give examples, and classes or scores")
    outputs = {
        key: given
        for key, given in (
            (words.CLASSIFY_OUTPUT_CLASSES, classes),
            (words.CLASSIFY_OUTPUT_SCORES, scores),
        )
        if given is not None
    }
    _check_types("classification_signature_def", examples=(examples, "string"))
    if classes is not None:
        _check_types("classification_signature_def", classes=(classes, "string"))
    if scores is not None:
        _check_types("classification_signature_def", scores=(scores, "float32"))
    return build_signature_def(
        _described({words.CLASSIFY_INPUTS: examples}),
        _described(outputs),
        words.CLASSIFY_METHOD_NAME,
    )


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The signature of a regression: examples (strings), predictions (float32)."""
    if examples is None or predictions is None:
        raise ValueError("regression_signature_def: give examples and predictions")
    _check_types(
        "regression_signature_def",
        examples=(examples, "string"),
        predictions=(predictions, "float32"),
    )
    return build_signature_def(
        _described({words.REGRESS_INPUTS: examples}),
        _described({words.REGRESS_OUTPUTS: predictions}),
        words.REGRESS_METHOD_NAME,
    )


def _check_types(who: str, **given: tuple[Any, str]) -> None:
    for name, (tensor, dtype) in given.items():
        if tensor.dtype != dtype:
            raise ValueError(f"{who}: {name} must be of {dtype}, got {tensor.dtype}")


def is_valid_signature(signature_def: Any) -> bool:
    """Whether a signature has what its method needs."""
    method = signature_def.method_name
    types = {
        part: {key: info.dtype for key, info in getattr(signature_def, part).items()}
        for part in ("inputs", "outputs")
    }
    text, real = NUMBERS[engine.string], NUMBERS[engine.float32]
    if method == words.PREDICT_METHOD_NAME:
        return bool(types["inputs"]) and bool(types["outputs"])
    if method == words.REGRESS_METHOD_NAME:
        return types == {
            "inputs": {words.REGRESS_INPUTS: text},
            "outputs": {words.REGRESS_OUTPUTS: real},
        }
    if method == words.CLASSIFY_METHOD_NAME:
        allowed = {
            words.CLASSIFY_OUTPUT_CLASSES: text,
            words.CLASSIFY_OUTPUT_SCORES: real,
        }
        return types["inputs"] == {words.CLASSIFY_INPUTS: text} and (
            types["outputs"].items() <= allowed.items() and bool(types["outputs"])
        )
    return False


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Whether a folder has a SavedModel."""
    names = (words.SAVED_MODEL_FILENAME_PB, words.SAVED_MODEL_FILENAME_PBTXT)
    return any(os.path.isfile(os.path.join(os.fspath(export_dir), name)) for name in names)


@v1()
def main_op() -> engine.Operation:
    """What initializes all variables and tables of a graph that is loaded."""
    with engine.control_dependencies([engine.global_variables_initializer()]):
        begun = engine.group(engine.local_variables_initializer())
    with engine.control_dependencies([begun]):
        return engine.tables_initializer()


@v1()
def main_op_with_restore(restore_op_name: Any) -> engine.Operation:
    """`main_op`, and an operation that restores after it."""
    with engine.control_dependencies([main_op()]):
        return engine.group(engine.get_default_graph().as_graph_element(restore_op_name))


class SavedModelBuilder:
    """Writes a SavedModel: variables once, and a graph for each set of tags.

    Args:
        export_dir: a folder, which must be empty or not there.
    """

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(export_dir)
        if os.path.isdir(self._folder) and os.listdir(self._folder):
            raise AlreadyExistsError(
                f"SavedModelBuilder: {self._folder} is not empty", remedy="name a new folder"
            )
        self._meta_graphs: list[engine.MetaGraph] = []
        self._has_variables = False

    def add_meta_graph_and_variables(
        self,
        sess: engine.Session,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: engine.Saver | None = None,
    ) -> None:
        """Save the variables of a session, and its graph under `tags`.

        Args:
            sess: holds the values.
            tags: what the graph is for, such as [tf.saved_model.SERVING].
            signature_def_map: signatures by name.
            assets_collection: must be empty.
            legacy_init_op: as `main_op`.
            clear_devices: whether to leave out on which devices operations are placed.
            main_op: an operation that is run once the variables are restored.
            strip_default_attrs: changes nothing.
            saver: saves the variables; by default one of all.
        """
        if self._has_variables:
            raise FailedPreconditionError(
                "SavedModelBuilder: the variables are saved already", remedy="use add_meta_graph"
            )
        with sess.graph.as_default():
            made = _saver(saver)
            if made.saver_def is not None:
                prefix = variables_prefix(self._folder)
                make_folder(os.path.dirname(prefix), "SavedModelBuilder")
                made.save(sess, prefix, write_meta_graph=False, write_state=False)
            self._has_variables = True
            self._add(made, tags, signature_def_map, assets_collection, clear_devices, {
                words.MAIN_OP_KEY: main_op,
                words.LEGACY_INIT_OP_KEY: legacy_init_op,
            })  # fmt: skip

    def add_meta_graph(
        self,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: engine.Saver | None = None,
    ) -> None:
        """Add the default graph under other tags; its variables are among those that are saved."""
        if not self._has_variables:
            raise FailedPreconditionError(
                "SavedModelBuilder: no variables are saved yet",
                remedy="call add_meta_graph_and_variables first",
            )
        with get_default_graph().as_default():
            self._add(
                _saver(saver), tags, signature_def_map, assets_collection, clear_devices, {
                    words.MAIN_OP_KEY: main_op,
                    words.LEGACY_INIT_OP_KEY: legacy_init_op,
                }
            )  # fmt: skip

    def _add(
        self,
        saver: engine.Saver,
        tags: Sequence[str],
        signatures: Mapping[str, Any] | None,
        assets: Any,
        clear_devices: bool,
        begins: Mapping[str, Any],
    ) -> None:
        if assets:
            raise UnimplementedError(
                "SavedModelBuilder: files are not copied into a SavedModel",
                remedy="keep what they say in the graph, as a constant or a table of constants",
            )
        known = {
            key: engine.Signature(
                {name: info.name for name, info in given.inputs.items()},
                {name: info.name for name, info in given.outputs.items()},
                given.method_name,
            )
            for key, given in (signatures or {}).items()
        }
        options: dict[str, Any] = {
            "saver_def": saver.saver_def,
            "signatures": known,
            "clear_devices": clear_devices,
            "tags": list(tags),
        }
        with _listed(begins):
            try:
                found = engine.export_meta_graph(tensorflow=True, **options)
            except UnimplementedError as error:
                warn(f"SavedModel: written for laminar alone, since {error}")
                found = engine.export_meta_graph(**options)
        self._meta_graphs.append(found)

    def save(self, as_text: bool = False) -> str:
        """Write the graphs; gives the file's path."""
        if as_text:
            raise UnimplementedError(
                "SavedModelBuilder: a SavedModel is written in the binary form",
                remedy="leave out as_text",
            )
        return write_saved_model(self._folder, self._meta_graphs)


def _saver(given: engine.Saver | None) -> engine.Saver:
    found = engine.Saver(allow_empty=True) if given is None else given
    found.build()
    return found


@contextmanager
def _listed(operations: Mapping[str, Any]) -> Iterator[None]:
    """Have the default graph list operations in collections, for a moment."""
    graph = get_default_graph()
    before = {key: graph.get_collection(key) for key in operations}
    for key, op in operations.items():
        if op is not None:
            graph.clear_collection(key)
            graph.add_to_collection(key, op)
    try:
        yield
    finally:
        for key, values in before.items():
            graph.clear_collection(key)
            for value in values:
                graph.add_to_collection(key, value)


def simple_save(
    session: engine.Session,
    export_dir: str | os.PathLike[str],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """A SavedModel for serving, with one signature: of `outputs` from `inputs`."""
    builder = SavedModelBuilder(export_dir)
    with session.graph.as_default():
        signature = predict_signature_def(inputs, outputs)
    builder.add_meta_graph_and_variables(
        session,
        [words.SERVING],
        {words.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()


def load(
    sess: engine.Session,
    tags: Sequence[str],
    export_dir: str | os.PathLike[str],
    import_scope: str | None = None,
    **saver_kwargs: Any,
) -> Any:
    """Add the graph of a SavedModel to a session's, and give the variables their values.

    Args:
        sess: a session.
        tags: of the graph, all of them.
        export_dir: the folder.
        import_scope: for the names of its operations.
        saver_kwargs: taken, and unused: the saver is in the file.

    Returns:
        A MetaGraphDef message: `signature_def`, `graph_def`, `meta_info_def.tags`.

    Raises:
        MissingFileError: there is no SavedModel.
        NotFoundError: it has no graph with these tags.
        UnimplementedError: laminar does not have an op of the graph.
        DataLossError: it is damaged.
    """
    found = with_tags(read_saved_model(export_dir), tags)
    with sess.graph.as_default():
        saver = import_meta_graph(found, import_scope=import_scope)
        prefix = variables_prefix(export_dir)
        if saver is not None and engine.checkpoint_exists(prefix):
            saver.restore(sess, prefix)
        for key in (words.MAIN_OP_KEY, words.LEGACY_INIT_OP_KEY):
            begin = sess.graph.get_collection(key, import_scope)
            if begin:
                sess.run(begin[-1])
                break
    foreign = isinstance(found.graph_def, TensorFlowGraph)
    kind = messages().TensorFlowMetaGraphDef if foreign else messages().MetaGraphDef
    return kind.FromString(found.to_bytes())
