"""BackgroundWriter: files that are written beside what the program does."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundWriter:
    """Runs one job after the other in a thread; the process does not end before they have.

    The error of a job that failed is raised by the next call, whichever it is.

    Examples:
        >>> writer = engine.BackgroundWriter()
        >>> _ = writer.submit(lambda: "written")
        >>> writer.wait()
    """

    # _thread runs the last job; _error is the error of a job that has not been raised yet. Both
    # are read and written by callers alone once the thread has ended.

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a job is running."""
        return self._thread is not None and self._thread.is_alive()

    def submit(self, job: Callable[[], object], name: str = "writer") -> None:
        """Wait until the job before has ended, and begin with this one.

        Raises:
            BaseException: what the job before has failed with; this one is not run.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name=f"laminar {name}")
        self._thread.start()

    def _run(self, job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:  # it is raised by the next call
            self._error = error

    def wait(self) -> None:
        """Wait until all is written.

        Raises:
            BaseException: what the last job has failed with.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
