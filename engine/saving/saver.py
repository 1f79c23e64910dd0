"""Saver: the variables of a graph saved in checkpoints, and restored from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..checkpoint import CheckpointReader, Part, checkpoint_exists, write_checkpoint
from ..errors import (
    ArgumentTypeError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    MissingFileError,
    ShapeError,
    UnimplementedError,
)
from ..graph import EagerTensor, Graph, as_dtype, get_default_graph
from ..graph.scopes import Runner as Session
from ..io.atomic import atomic_write
from ..io.places import path_of
from ..source import warn
from ..state import GraphKeys, Variable
from .background import BackgroundWriter
from .by_name import keys_of, values_to_feed
from .collections import register_collection_codec
from .meta_graph import MetaGraph, add_meta_graph, export_meta_graph
from .retention import Retention
from .saveables import Saved, named, saveables, stored_value
from .saver_def import SaverDef, in_scope
from .saver_graph import add_saver, saved_later

_PADDED = 8  # digits of a step number


class Saver:
    """Saves variables in checkpoints and restores them, by operations of their graph.

    A checkpoint is the files `PREFIX.index`, `PREFIX.data-?????-of-?????` and `PREFIX.meta`, in
    TensorFlow's format V2. It is there whole or not at all, and forced to the disk; the file
    `checkpoint` of the folder names the newest, and those that are kept.

    Args:
        var_list: variables, whole or partitioned, queues, tables whose entries change, and
            `SaveableObject`s, or a dictionary of them by their names in checkpoints; by default the
            global variables of the default graph and its collection SAVEABLE_OBJECTS. Variables
            that have values outside of graphs can be given, too; they are saved and restored
            without a session.
        reshape: whether to take values of other shapes, with as many elements.
        sharded: whether each device writes a file of its own.
        max_to_keep: how many of the last checkpoints are kept; None or 0 for all, of which the
            state file names the newest alone.
        keep_checkpoint_every_n_hours: of those that would be removed, one of so many hours stays.
        name: scope of the operations.
        restore_sequentially: whether one variable is restored after the other, which takes less
            memory; then an error leaves those before it restored.
        saver_def: which operations there are already, instead of `var_list`.
        defer_build: whether `build()` is called later, when the graph has its variables.
        allow_empty: whether there may be nothing to save.
        write_version: the format, of which there is one: `SaverDef.V2`.
        pad_step_number: whether step numbers have eight digits, so that names sort.
        save_relative_paths: whether the state file has paths relative to it: then the folder can be
            moved.
        filename: the prefix when none is fed.

    Raises:
        InvalidArgumentError: nothing is to be saved, or not what can be; two names are equal.
        UnimplementedError: another format.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     w = engine.Variable(1.0, name="w")
        ...     saver = engine.Saver()
        ...     session.run(engine.global_variables_initializer())
        ...     path = saver.save(session, "model", global_step=3)
        ...     session.run(w.assign(5.0))
        ...     saver.restore(session, path)
        ...     path, session.run(w)
        np.float32(5.0)
        ('model-3', np.float32(1.0))
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: SaverDef | None = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | bytes | os.PathLike[str] | None = None,
    ) -> None:
        if defer_build and var_list is not None:
            raise InvalidArgumentError(
                "Saver: with defer_build the variables are found when it is built",
                remedy="leave out var_list, or defer_build",
            )
        if max_to_keep is not None and max_to_keep < 0:
            raise InvalidArgumentError(f"Saver: max_to_keep is at least 0, got {max_to_keep}")
        if write_version != SaverDef.V2:
            raise UnimplementedError(
                f"Saver: checkpoints are written in format V2, not {write_version}",
                remedy="leave out write_version",
            )
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._name = name or "save"
        self._sequentially = restore_sequentially
        self._allow_empty = allow_empty
        self._pad = pad_step_number
        self._relative = save_relative_paths
        self._filename = os.fsdecode(filename or "model")
        self._eager: dict[str, list[Variable]] | None = None
        self._is_empty = False
        self.saver_def = saver_def
        most, hours = max_to_keep, keep_checkpoint_every_n_hours
        if saver_def is not None:
            most, hours = saver_def.max_to_keep, saver_def.keep_checkpoint_every_n_hours
        self._retention = Retention(most or 0, hours)
        if saver_def is None and not defer_build:
            self.build()

    def build(self) -> None:
        """Add the operations to the graph; a second call does nothing.

        Raises:
            InvalidArgumentError: as for the class.
            FailedPreconditionError: the graph is finalized.
        """
        if self.saver_def is not None or self._eager is not None or self._is_empty:
            return
        given = self._var_list
        if given is None:
            graph = get_default_graph()
            given = [
                *graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
                *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS),
            ]
        values = named(given)
        if not values:
            if not self._allow_empty:
                raise InvalidArgumentError(
                    "Saver: there are no variables to save",
                    remedy="make it after the variables, or pass allow_empty=True",
                )
            self._is_empty = True
            return
        self._eager = _eager(values)
        if self._eager is None:
            items = saveables(values, self._reshape)
            self.saver_def = add_saver(
                items,
                name=self._name,
                filename=self._filename,
                sharded=self._sharded,
                reshape=self._reshape,
                sequentially=self._sequentially,
                max_to_keep=self._retention.max_to_keep or 0,
                hours=self._retention.keep_every_hours or 0.0,
            )

    # Which checkpoints there are

    @property
    def last_checkpoints(self) -> list[str]:
        """The prefixes of those that may be removed when others come, oldest first."""
        return [prefix for prefix, _ in self._retention.kept] if self._retention.max_to_keep else []

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Say which ones there are, oldest first; they count as written a long time ago."""
        self.set_last_checkpoints_with_time([(prefix, 0.0) for prefix in last_checkpoints])

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: Sequence[tuple[str, float]]
    ) -> None:
        """Say which ones there are, oldest first, and when they were written."""
        self._retention.kept = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Take over those that an earlier process wrote; what is not there is left out.

        `get_checkpoint_state(folder).all_model_checkpoint_paths` tells which.
        """
        self._retention.recover(checkpoint_paths)

    # Saving

    def save(
        self,
        sess: Session | None,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        *,
        background: BackgroundWriter | None = None,
    ) -> str:
        """Write a checkpoint.

        Args:
            sess: holds the values; None for variables that belong to no graph.
            save_path: the prefix.
            global_step: a number, or the variable or tensor that has it, put behind the prefix:
                "model-30".
            latest_filename: name of the state file, by default "checkpoint".
            meta_graph_suffix: ending of the file with the graph.
            write_meta_graph: whether to write that.
            write_state: whether to write the state file, and to remove those that are too many.
            background: writes the files beside what follows; the values are those of now.

        Returns:
            The prefix.

        Raises:
            InvalidArgumentError: the prefix is a folder, or the name of the state file; or
                `background` is to write a file for each device.
            MissingFileError: its folder is not there.
            FailedPreconditionError: a variable has no value, or the saver was not built.
            PermissionDeniedError, ResourceExhaustedError: the files cannot be written; what was
                there stays.
        """
        prefix = path_of("Saver.save", save_path)
        folder = os.path.dirname(prefix)
        state_file = latest_filename or "checkpoint"
        if os.path.basename(state_file) != state_file:
            raise InvalidArgumentError(
                f"Saver.save: latest_filename is a name without folders, got {latest_filename!r}"
            )
        if global_step is not None:
            step = _step(sess, global_step)
            prefix = f"{prefix}-{step:0{_PADDED}d}" if self._pad else f"{prefix}-{step}"
        if os.path.basename(prefix) == state_file:
            raise InvalidArgumentError(
                f"Saver.save: {prefix!r} is the name of the state file",
                remedy="save under another name, or give global_step or latest_filename",
            )
        if not os.path.isdir(folder or "."):
            raise MissingFileError(
                f"Saver.save: there is no folder {folder!r} for {prefix}",
                remedy=f"make it first: os.makedirs({folder!r})",
            )
        self._check_built()
        write = self._writer(sess, prefix, background is not None)
        meta = None
        if write_meta_graph and self._eager is None and sess is not None:
            meta = self._meta_graph(getattr(sess, "graph", None))

        def job() -> None:
            if write is not None:
                write()
            if meta is not None:
                with atomic_write(f"{prefix}.{meta_graph_suffix}", durable=True) as file:
                    file.write(meta)
            if write_state and write is not None:
                self._retention.add(
                    prefix, folder=folder, latest_filename=latest_filename, relative=self._relative
                )

        if background is None:
            job()
        else:
            background.submit(job, "saver")
        return prefix

    def _writer(
        self, sess: Session | None, prefix: str, is_later: bool
    ) -> Callable[[], object] | None:
        """What writes index and data; if it `is_later`, the values of now."""
        if self._is_empty:
            return None
        if self._eager is not None:
            stored = [(name, _stored(v)) for name, vs in self._eager.items() for v in vs]
            return lambda: write_checkpoint(prefix, stored, "Saver.save")
        session, found = self._of_graph(sess, "save")
        if is_later:
            return saved_later(session, found, prefix)
        feeds = {found.filename_tensor_name: _name(prefix)}
        return lambda: session.run(found.save_tensor_name, feeds)

    def _meta_graph(self, graph: Graph | None) -> bytes | None:
        try:
            return self.export_meta_graph(graph=graph).to_bytes()
        except InvalidArgumentError as error:  # the values are written, which matter most
            warn(f"Saver.save: the graph is not written: {error.message}")
            return None

    def restore(self, sess: Session | None, save_path: str | os.PathLike[str]) -> None:
        """Give the variables the values of a checkpoint; they need not be initialised.

        Of one that `Checkpoint` wrote, variables get the values that those of their names had.

        Args:
            sess: gets the values; None for variables that belong to no graph.
            save_path: the prefix.

        Raises:
            MissingFileError: there is no such checkpoint.
            NotFoundError: it does not have a variable.
            ShapeError, DTypeError: a variable is of another shape or type in it.
            DataLossError: it is damaged.
        """
        self._check_built()
        if self._is_empty:
            return
        if save_path is None:
            raise InvalidArgumentError("Saver.restore: there is no prefix to restore from")
        prefix = path_of("Saver.restore", save_path)
        if not checkpoint_exists(prefix):
            with CheckpointReader(prefix):  # says why it is none
                pass
        if self._eager is not None:
            _restore_eager(self._eager, prefix)
            return
        sess, saver_def = self._of_graph(sess, "restore")
        feeds: dict[Any, Any] = {saver_def.filename_tensor_name: _name(prefix)}
        graph = getattr(sess, "graph", None)
        if isinstance(graph, Graph):
            restore = graph.get_operation_by_name(saver_def.restore_op_name)
            feeds.update(values_to_feed(prefix, restore))
        sess.run(saver_def.restore_op_name, feeds)

    def _check_built(self) -> None:
        if self.saver_def is None and self._eager is None and not self._is_empty:
            raise FailedPreconditionError(
                "Saver: it has not been built",
                remedy="call build() once the graph has its variables",
            )

    def _of_graph(self, sess: Session | None, what: str) -> tuple[Session, SaverDef]:
        assert self.saver_def is not None
        if sess is None or not hasattr(sess, "run"):
            raise ArgumentTypeError(
                f"Saver.{what}: expected a session, got {sess!r}",
                remedy=f"saver.{what}(session, prefix)",
            )
        return sess, self.saver_def

    # The graph as data

    def as_saver_def(self) -> SaverDef | None:
        """Which operations save and restore; None before it is built."""
        return self.saver_def

    @staticmethod
    def from_saver_def(saver_def: SaverDef) -> Saver:
        """A saver of operations that a graph has already."""
        return Saver(saver_def=saver_def)

    def export_meta_graph(
        self,
        filename: str | os.PathLike[str] | None = None,
        collection_list: Sequence[str] | None = None,
        clear_devices: bool = False,
        graph: Graph | None = None,
        as_text: bool = False,
        tensorflow: bool = False,
    ) -> MetaGraph:
        """The graph, its collections and this saver as data; see `export_meta_graph`."""
        return export_meta_graph(
            filename,
            graph=graph,
            saver_def=self.saver_def,
            collection_list=collection_list,
            clear_devices=clear_devices,
            as_text=as_text,
            tensorflow=tensorflow,
        )


def _name(prefix: str) -> Any:
    return np.array(os.fsencode(prefix), object)


def _step(sess: Session | None, global_step: Any) -> int:
    if isinstance(global_step, int | np.integer) and not isinstance(global_step, bool):
        return int(global_step)
    graph = getattr(global_step, "graph", None)
    try:
        return int(global_step if graph is None or sess is None else sess.run(global_step))
    except (TypeError, ValueError) as cause:
        raise InvalidArgumentError(
            f"Saver.save: global_step is a whole number, got {global_step!r}"
        ) from cause


def _eager(values: Mapping[str, Sequence[Saved]]) -> dict[str, list[Variable]] | None:
    """The variables where none belongs to a graph, None where all do."""
    found: dict[str, list[Variable]] = {}
    count = 0
    for name, items in values.items():
        count += len(items)
        for item in items:
            if isinstance(item, Variable) and item.graph is None:
                found.setdefault(name, []).append(item)
    if found and sum(map(len, found.values())) < count:
        raise InvalidArgumentError(
            "Saver: some variables belong to a graph, and some to none",
            remedy="make a saver for each kind",
        )
    return found or None


def _stored(variable: Variable) -> Any:
    """The value of a variable that belongs to no graph, as it is written."""
    value = stored_value(variable)
    part = variable.part_of
    return value if part is None else Part(value, tuple(d or 0 for d in part.shape), part.extents)


def _restore_eager(variables: Mapping[str, Sequence[Variable]], prefix: str) -> None:
    values = []
    with CheckpointReader(prefix) as reader:
        keys = keys_of(reader, variables)
        for name, variable in ((keys[n], v) for n, vs in variables.items() for v in vs):
            entry = reader.entry(name)
            part = variable.part_of
            shape = variable.shape if part is None else part.shape
            what = f"{name!r} is {entry.dtype}{entry.shape} in {prefix}, the variable is "
            if entry.dtype != variable.stored_dtype:
                raise DTypeError(f"Saver.restore: {what}{variable.stored_dtype}")
            if not shape.is_compatible_with(entry.shape):
                raise ShapeError(f"Saver.restore: {what}{variable.stored_dtype}{shape}")
            values.append((variable, reader.read(name, part and part.extents)))
    for variable, value in values:
        variable.assign(EagerTensor(value, as_dtype(value.dtype)))  # it is nobody else's: no copy


def import_meta_graph(
    meta_graph: MetaGraph | str | os.PathLike[str],
    clear_devices: bool = False,
    import_scope: str | None = None,
    graph: Graph | None = None,
) -> Saver | None:
    """Add the graph of a MetaGraph, with its collections, to the default graph.

    Files of TensorFlow 1, binary or text, are read too: each node becomes an operation of its name.
    (Random numbers are others than TensorFlow's.)

    Args:
        meta_graph: what `export_meta_graph` gave, or the name of its file: "model-30.meta".
        clear_devices: whether to forget on which devices operations were placed.
        import_scope: a scope for the operations.
        graph: another graph than the default one.

    Returns:
        the saver that the graph had, to restore values with: `saver.restore(session, "model-30")`;
        else one of the variables in the scope; None if there are none.

    Raises:
        MissingFileError: there is no such file.
        DataLossError: it is damaged.
        UnimplementedError: it was written by a later version, or a graph of TensorFlow has
            operations that laminar does not have.
        AlreadyExistsError: the graph has operations of these names.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0, name="w")
        ...     meta_graph = engine.export_meta_graph()
        >>> with engine.Graph().as_default():
        ...     saver = engine.import_meta_graph(meta_graph)
        ...     [v.name for v in engine.global_variables()]
        ['w']
    """
    graph = graph or get_default_graph()
    with graph.as_default():
        saver_def = add_meta_graph(
            meta_graph, clear_devices=clear_devices, import_scope=import_scope or ""
        )
        if saver_def is not None:
            return Saver(saver_def=saver_def)
        found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, import_scope)
        return Saver(found) if found else None


def _saver_bytes(saver: Saver) -> bytes:
    assert saver.saver_def is not None
    return saver.saver_def.to_bytes()


def _read_saver(data: bytes, graph: Graph, scope: str) -> Saver:
    found = SaverDef.from_bytes(data)
    return Saver(saver_def=in_scope(found, scope))


register_collection_codec("laminar.Saver", Saver, _saver_bytes, _read_saver)
