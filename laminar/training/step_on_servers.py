"""What steps of a parameter-server training have in common: the graphs of workers, and when the
weights are on the servers and when they are here."""

from __future__ import annotations

from typing import Any

from .compiled import Compiled
from .served_values import ServedValues
from .server_graph import WorkerGraph
from .server_report import Reporter
from .server_workers import Workers
from .step import Step


class StepOnServers:
    """A step that workers make. Abstract.

    Args:
        model: whose step it is.
        compiled: what it was compiled with.
        values: what the servers keep.
        kind: "train" or "test".
        serial: the same step without workers, for what looks at every value.
        shares: into how many shares a batch is divided; 0 for asynchronous steps.
        native: whether to run native code where there is some.
    """

    def __init__(
        self,
        model: Any,
        compiled: Compiled,
        values: ServedValues,
        kind: str,
        serial: Step,
        *,
        shares: int,
        native: bool,
    ) -> None:
        self._model, self._compiled, self._serial = model, compiled, serial
        self.values, self._native, self._trains = values, native, kind == "train"
        self._workers = Workers(values, kind, shares, native=native)
        self._reporter: Reporter | None = None
        # Whether the servers have newer weights than this process, and whether a batch has failed.
        self._is_open = self._has_failed = False

    @property
    def compiles(self) -> list[Any]:
        """Workers tell nothing of what they compile."""
        return []

    @property
    def _made(self) -> WorkerGraph:
        made = self._workers.made
        assert made is not None, "it is prepared"
        return made

    @property
    def _report_to(self) -> Reporter:
        assert self._reporter is not None, "it is prepared"
        return self._reporter

    def traced(self) -> Step:
        """The step in this process."""
        return self._serial.traced()

    def trace(self, batch: Any) -> None:
        """Build the graphs of the workers for batches of this form."""
        workers = self._workers
        if workers.made is not None and workers.takes(batch):
            return
        self.close()
        workers.prepare(batch)
        self._reporter = Reporter(self._model, self._compiled, self._made, native=self._native)

    def close(self) -> None:
        """The weights are here then; after an error, nothing of it is left."""
        is_open, self._is_open = self._is_open, False
        if self._has_failed:
            self._has_failed = False
            self._workers.recover()
        elif is_open and self._trains:
            self._workers.run(self.values.pull)

    def settle(self) -> None:
        """Have the weights here in the middle of an epoch, too."""
        self.close()
