"""Checkpoint: variables that objects hold, saved by the paths of attributes that lead to them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..checkpoint import CheckpointReader, newest_of, write_checkpoint
from ..errors import FailedPreconditionError, InvalidArgumentError
from ..graph import Tensor, eager_scope
from ..graph.scopes import Runner as Session
from ..io.places import make_folder, path_of
from ..state import Variable
from .background import BackgroundWriter
from .object_graph import (
    KEY,
    STATE,
    VALUE,
    Node,
    children_of,
    collect,
    graph_bytes,
    read_graph,
    state_text,
)
from .restoration import Restoration
from .retention import Retention
from .saveables import stored_value
from .saver import Saver

_COUNTER = "save_counter"
_FIXED = (bool, int, float, complex, str, bytes, np.ndarray, np.generic, Tensor)


class UnmatchedError(FailedPreconditionError, AssertionError):
    """Values of a checkpoint, or objects, have no counterpart."""


class Checkpoint:
    """Objects that are saved together: models, optimizers, variables, lists and dicts of them.

        checkpoint = Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save("training/ckpt")
        Checkpoint(model=model, optimizer=optimizer).restore(path).assert_consumed()

    Values are found by walking attributes, and named by their paths: "model/layers/0/kernel". What
    an object is restored from that has methods `state()` (numbers, texts, lists, dicts) and
    `restore(state)`, as iterators of data sets have, is saved with them. Files are in TensorFlow's
    format V2, and names are made as there.

    Args:
        root: an object whose parts are saved as those of the checkpoint itself.
        parts: objects by name; each is an attribute then, and may be replaced.

    Raises:
        InvalidArgumentError: a part has the name of a method, or of a part of `root`.

    Examples:
        >>> v = laminar.Variable(1.0)
        >>> path = engine.Checkpoint(v=v).save("run/ckpt")
        >>> v.assign(5.0)
        Tensor(5., shape=(), dtype=float32)
        >>> _ = engine.Checkpoint(v=v).restore(path)
        >>> v.numpy()
        array(1., dtype=float32)
    """

    save_counter: Variable

    def __init__(self, root: Any = None, **parts: Any) -> None:
        for name, part in parts.items():
            if hasattr(type(self), name) or (root is not None and hasattr(root, name)):
                raise InvalidArgumentError(f"Checkpoint: a part cannot be named {name!r}")
            if isinstance(part, _FIXED):
                raise InvalidArgumentError(
                    f"Checkpoint: the part {name!r} is {part!r:.80}, which nothing can be restored "
                    "to; expected a variable, a model, an optimizer, or another object with such",
                    remedy="keep it in a Variable",
                )
            setattr(self, name, part)
        self._laminar_root = root

    def __repr__(self) -> str:
        return f"<Checkpoint of {', '.join(self._laminar_checkpoint_children()) or 'nothing'}>"

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        found = {n: v for n, v in vars(self).items() if n != "_laminar_root"}
        root = self._laminar_root
        return found if root is None else dict(children_of(root)) | found

    def counted(self, by: int) -> int:
        """Add to `save_counter`, which is made if it is not there; gives what it was."""
        with eager_scope():
            if _COUNTER not in vars(self):
                self.save_counter = Variable(
                    np.zeros((), np.int64), trainable=False, name=_COUNTER, autocast=False
                )
            before = int(self.save_counter.numpy())
            if by:
                self.save_counter.assign_add(by)
        return before

    # Saving

    def save(
        self,
        file_prefix: str | os.PathLike[str],
        session: Session | None = None,
        *,
        background: BackgroundWriter | None = None,
    ) -> str:
        """Write a checkpoint with a number behind its prefix, and name it as the newest.

        Args:
            file_prefix: the number is put behind it: "training/ckpt" becomes "training/ckpt-1". Its
                folder is made if it is not there.
            session: has the values of variables that belong to a graph.
            background: writes the files beside what follows; the values are those of now.

        Returns:
            the prefix with the number.

        Raises:
            FailedPreconditionError: a variable has no value.
            PermissionDeniedError, ResourceExhaustedError: the files cannot be written.
        """
        prefix = path_of("Checkpoint", file_prefix)
        number = self.counted(1) + 1
        path = f"{prefix}-{number}"
        retention = Retention(None, None)
        try:
            self.write(
                path,
                session,
                background=background,
                then=lambda: retention.add(path, folder=os.path.dirname(path)),
            )
        except BaseException:
            self.counted(-1)
            raise
        return path

    def write(
        self,
        file_prefix: str | os.PathLike[str],
        session: Session | None = None,
        *,
        background: BackgroundWriter | None = None,
        then: Callable[[], None] | None = None,
    ) -> str:
        """Write a checkpoint of that prefix, without a number and without a state file.

        Args:
            file_prefix: its folder is made if it is not there.
            session: has the values of variables that belong to a graph.
            background: writes the files beside what follows; the values are those of now.
            then: is called once they are there.
        """
        prefix = path_of("Checkpoint", file_prefix)
        make_folder(os.path.dirname(prefix) or ".", "Checkpoint")
        values = self.values(session)

        def job() -> None:
            write_checkpoint(prefix, values.items(), "Checkpoint")
            if then is not None:
                then()

        if background is None:
            job()
        else:
            background.submit(job, "checkpoint")
        return prefix

    def values(self, session: Session | None = None) -> dict[str, Any]:
        """What a checkpoint of now has: arrays by key.

        They are those that the variables have: an update makes others.
        """
        nodes, found = collect(self)
        in_graph = {k: v for k, v in found.items() if isinstance(v, Variable) and v.graph}
        fetched_values: dict[str, Any] = {}
        if in_graph:
            graph = next(iter(in_graph.values())).graph
            assert graph is not None
            reads = {key: v.graph_element(graph) for key, v in in_graph.items()}
            fetched_values = graph.session_for(session, "Checkpoint.save").run(reads)
        values: dict[str, Any] = {}
        for key, value in found.items():
            if key in in_graph:
                values[key] = fetched_values[key]
            elif isinstance(value, Variable):
                values[key] = stored_value(value)
            else:
                values[key] = state_text(value)
        values[KEY] = np.array(graph_bytes(nodes), object)
        return values

    # Restoring

    def restore(self, save_path: str | os.PathLike[str]) -> Status:
        """Give the objects the values of a checkpoint.

        Objects that are there get them at once, or none does where one does not fit. Variables that
        are made later get theirs when they are read first.

        Args:
            save_path: the prefix that `save` gave, or the one that it was given, of which the
                newest checkpoint is taken.

        Returns:
            what tells whether all was matched.

        Raises:
            MissingFileError: there is no such checkpoint.
            ShapeError, DTypeError: a value does not fit.
            DataLossError: the checkpoint is damaged.
        """
        self.counted(0)
        return self.read(newest_of(save_path))

    def read(self, save_path: str | os.PathLike[str]) -> Status:
        """As `restore`, of a checkpoint that `write` wrote."""
        reader = CheckpointReader(save_path)
        try:
            nodes = self._nodes(reader)
            restoration = Restoration(
                reader, nodes, self._laminar_checkpoint_children(), self._laminar_root
            )
            restoration.start()
        except BaseException:
            reader.close()
            raise
        return Status(self, restoration)

    def _nodes(self, reader: CheckpointReader) -> list[Node]:
        """Those of the checkpoint; of one that a Saver wrote, variables by their own paths."""
        if KEY in reader:
            return read_graph(reader.read(KEY).item())
        nodes, found = collect(self)
        for node in nodes:
            if VALUE in node.values:
                path = found[node.values[VALUE]].path
                node.values = {VALUE: path} if path in reader else {}
            node.values.pop(STATE, None)
        return nodes


class Status:
    """What a restoration has come to; see `Checkpoint.restore`."""

    def __init__(self, checkpoint: Checkpoint, restoration: Restoration) -> None:
        self._checkpoint = checkpoint
        self._restoration = restoration
        self._saver: Saver | None = None

    def assert_consumed(self) -> Status:
        """See that each value of the checkpoint has an object, and each variable a value.

        Raises:
            UnmatchedError: some have none; it is an AssertionError.
        """
        missing = [
            key
            for number in self._restoration.missing()
            for key in self._restoration.nodes[number].values.values()
        ]
        if missing:
            raise UnmatchedError(
                f"{self._restoration.reader.prefix} has values that no object has got: "
                f"{_few(missing)}",
                remedy="give Checkpoint the objects that were saved, under the same names",
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> Status:
        """See that each variable that is there has got a value of the checkpoint.

        Raises:
            UnmatchedError: some have got none; it is an AssertionError.
        """
        matched = {id(found()) for found in self._restoration.matched.values()}
        _, found = collect(self._checkpoint)
        missing = [key for key, value in found.items() if id(value) not in matched]
        missing = [key for key in missing if not key.startswith(f"{_COUNTER}/")]
        if missing:
            raise UnmatchedError(
                f"{self._restoration.reader.prefix} has no values for {_few(missing)}",
                remedy="list_variables(prefix) tells what it has",
            )
        return self

    def assert_nontrivial_match(self) -> Status:
        """See that anything besides the counter has got a value.

        Raises:
            UnmatchedError: nothing has; it is an AssertionError.
        """
        counter = vars(self._checkpoint).get(_COUNTER)
        if all(found() is counter for found in self._restoration.matched.values()):
            raise UnmatchedError(
                f"nothing of {self._restoration.reader.prefix} has an object here",
                remedy="give Checkpoint the objects that were saved, under the same names",
            )
        return self

    def expect_partial(self) -> Status:
        """Say that not all has to be matched; nothing depends on it."""
        return self

    def run_restore_ops(self, session: Session | None = None) -> None:
        """Give variables that belong to a graph their values in a session."""
        values = self._restoration.graph_values
        if not values:
            return
        graph = next(iter(values.values())).graph
        assert graph is not None
        runner = graph.session_for(session, "run_restore_ops")
        if self._saver is None:
            with graph.as_default():
                self._saver = Saver(values, max_to_keep=None)
        self._saver.restore(runner, self._restoration.reader.prefix)

    def initialize_or_restore(self, session: Session | None = None) -> None:
        """Give variables of a graph the values of the checkpoint, others their initial ones."""
        _, found = collect(self._checkpoint)
        restored = {id(v) for v in self._restoration.graph_values.values()}
        others = [v for v in found.values() if isinstance(v, Variable) and v.graph is not None]
        initializers = [v.initializer for v in others if id(v) not in restored]
        if initializers:
            graph = others[0].graph
            assert graph is not None
            graph.session_for(session, "initialize_or_restore").run(initializers)
        self.run_restore_ops(session)


def _few(keys: list[str]) -> str:
    more = f" and {len(keys) - 6} more" if len(keys) > 6 else ""
    return ", ".join(map(repr, keys[:6])) + more
