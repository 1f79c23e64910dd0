"""An event file that is written by a thread of its own.

State of an `EventFile`, guarded by `_changed`:
    _pending: what is to be written, in order; `_is_busy` while the thread writes some of it;
    _wanted: how often a flush was asked for, `_flushed` which of them are done;
    _error: what writing failed with, told to the next who calls;
    _writer: the file, None while it is closed.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any

from ..errors import FailedPreconditionError
from ..io.events import Event, EventWriter


class EventFile:
    """Appends events to a file in a folder.

    Args:
        folder: made if it is not there.
        max_queue: how many events wait at most; whoever adds more waits too.
        flush_secs: after so many seconds what was written is handed to the system.
        suffix: the end of the file's name.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        suffix: str = "",
    ) -> None:
        self.folder = os.fspath(folder)
        self._max_queue = max(int(max_queue), 1)
        self._flush_secs = flush_secs
        self._suffix = suffix
        self._state = _State()
        self._open()

    def _open(self) -> None:
        state = self._state
        state.writer = EventWriter(self.folder, self._suffix)
        state.is_closing = False
        self.path = state.writer.path
        thread = threading.Thread(
            target=_write_all, args=(state, self._flush_secs), daemon=True, name="event file"
        )
        thread.start()
        # Also when the program ends, or nobody holds the file any more.
        self._end = weakref.finalize(self, _close, state, thread)

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be added."""
        return self._state.writer is None

    def add(self, event: Event) -> None:
        """Have an event written.

        Raises:
            FailedPreconditionError: the file is closed.
            OSError: writing has failed before, as on a full disk.
        """
        state = self._state
        with state.changed:
            state.raise_error()
            if state.writer is None or state.is_closing:
                raise FailedPreconditionError(
                    f"the event file in {self.folder!r} is closed", remedy="call reopen() first"
                )
            state.changed.wait_for(lambda: len(state.pending) < self._max_queue or state.error)
            state.pending.append(event)
            state.changed.notify_all()

    def flush(self) -> None:
        """Wait until all that was added is with the system, where TensorBoard sees it.

        Raises:
            OSError: it could not be written.
        """
        state = self._state
        with state.changed:
            if state.writer is not None:
                state.wanted += 1
                wanted = state.wanted
                state.changed.notify_all()
                state.changed.wait_for(lambda: state.flushed >= wanted or state.writer is None)
            state.raise_error()

    def close(self) -> None:
        """Write what is left, and close the file; a second call does nothing."""
        self._end()
        with self._state.changed:
            self._state.raise_error()

    def reopen(self) -> None:
        """Go on in another file of the folder, if this one is closed."""
        if self.is_closed:
            self._open()


class _State:
    """See the head of this file."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.pending: list[Event] = []
        self.writer: EventWriter | None = None
        self.is_closing = False
        self.wanted = self.flushed = 0
        self.error: Exception | None = None

    def raise_error(self) -> None:
        """Tell of a failure, once."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def _write_all(state: _State, flush_secs: float) -> None:
    """What the thread does."""
    writer = state.writer
    assert writer is not None
    due = time.monotonic() + flush_secs
    while True:
        with state.changed:
            state.changed.wait_for(
                lambda: state.pending or state.is_closing or state.wanted > state.flushed,
                max(due - time.monotonic(), 0),
            )
            events, state.pending = state.pending, []
            wanted, is_closing = state.wanted, state.is_closing
            state.changed.notify_all()
        try:
            for event in events:
                writer.write(event)
            if wanted > state.flushed or is_closing or time.monotonic() >= due:
                due = time.monotonic() + flush_secs
                writer.flush()
            if is_closing:
                writer.close()
        except Exception as error:  # such as a full disk: whoever calls next is told
            with state.changed:
                state.error = error
        with state.changed:
            state.flushed = max(state.flushed, wanted)
            if is_closing:
                state.writer = None
            state.changed.notify_all()
            if is_closing:
                return


def _close(state: _State, thread: Any) -> None:
    with state.changed:
        state.is_closing = True
        state.changed.notify_all()
    thread.join()
