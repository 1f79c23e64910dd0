"""Scaffold: the operations that a training needs besides its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import FailedPreconditionError
from ..graph import Operation, Tensor, get_default_graph
from ..ops.core.basic import group
from ..runtime import Session
from ..saving import Saver
from ..state import (
    GraphKeys,
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
    tables_initializer,
)
from ..summary import merge_all

InitFn = Callable[["Scaffold", Session], Any]


class Scaffold:
    """What initialises a graph, says whether it is ready, makes its summaries and saves it.

    `finalize` takes what is not given from the graph's collections, or makes it, and lists it
    there; then the graph is frozen.

    Args:
        init_op: initialises what is saved; by default all global variables.
        init_feed_dict: what it is fed.
        init_fn: called as `init_fn(scaffold, session)` after that.
        ready_op: gives the names of what is not initialised, none when all is ready.
        ready_for_local_init_op: the same of what `local_init_op` needs; by default the global
            variables.
        local_init_op: initialises what is not saved: by default local variables and tables.
        summary_op: the message of all summaries, None where there are none.
        saver: saves the variables; by default all global ones.
        copy_from_scaffold: has what is not given.
        local_init_feed_dict: what `local_init_op` is fed.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0)
        ...     scaffold = engine.Scaffold(init_fn=lambda scaffold, session: print("begins"))
        ...     with engine.MonitoredSession(engine.ChiefSessionCreator(scaffold)) as session:
        ...         value = session.run(w)
        begins
    """

    def __init__(
        self,
        init_op: Operation | Tensor | None = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: InitFn | None = None,
        ready_op: Tensor | None = None,
        ready_for_local_init_op: Tensor | None = None,
        local_init_op: Operation | Tensor | None = None,
        summary_op: Tensor | None = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        other = copy_from_scaffold
        if init_fn is None and other is not None:
            init_fn = other._user_init_fn
        self._user_init_fn: InitFn | None = init_fn
        self.init_op = init_op
        self.init_feed_dict = init_feed_dict
        self.ready_op = ready_op
        self.ready_for_local_init_op = ready_for_local_init_op
        self.local_init_op = local_init_op
        self.local_init_feed_dict = local_init_feed_dict
        self.summary_op = summary_op
        self.saver = saver
        if other is not None:
            for name in _COPIED:
                if getattr(self, name) is None:
                    setattr(self, name, getattr(other, name))

    @property
    def init_fn(self) -> Callable[[Session], Any] | None:
        """What is called with the session after `init_op`; None where nothing is."""
        own = self._user_init_fn
        return None if own is None else lambda session: own(self, session)

    def finalize(self) -> Scaffold:
        """Make what is missing, and freeze the graph; a second call does nothing."""
        defaults: dict[str, tuple[str, Callable[[], Any]]] = {
            "init_op": (GraphKeys.INIT_OP, global_variables_initializer),
            "ready_op": (GraphKeys.READY_OP, report_uninitialized_variables),
            "ready_for_local_init_op": (
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            ),
            "local_init_op": (GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op),
            "summary_op": (GraphKeys.SUMMARY_OP, merge_all),
            "saver": (GraphKeys.SAVERS, _default_saver),
        }
        graph = get_default_graph()
        with graph.as_default():
            for name, (key, make) in defaults.items():
                if getattr(self, name) is None:
                    setattr(self, name, Scaffold.get_or_default(name, key, make))
            if self.saver is not None:
                self.saver.build()
        graph.finalize()
        return self

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Any) -> Any:
        """The only item of a collection of the default graph, made if it is empty.

        Raises:
            FailedPreconditionError: there are several.
        """
        graph = get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise FailedPreconditionError(
                f"Scaffold: the collection {collection_key!r} has {len(found)} items, it must have "
                f"one",
                remedy=f"give {arg_name}= the right one",
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """Initialises local variables and tables."""
        found: Operation = group(local_variables_initializer(), tables_initializer())
        return found


_COPIED = (
    "init_op",
    "init_feed_dict",
    "ready_op",
    "ready_for_local_init_op",
    "local_init_op",
    "local_init_feed_dict",
    "summary_op",
    "saver",
)


def _default_saver() -> Saver:
    return Saver(sharded=True, allow_empty=True)
