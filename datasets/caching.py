"""cache: the elements of the first pass, kept in memory or in a file.

What is kept is the pass that would come first, whatever pass asks for it, so that a run which is
taken up again finds the same.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from laminar.engine.errors import DataLossError, FailedPreconditionError
from laminar.engine.io import RecordScanner, RecordWriter

from .codec import decode, encode
from .epochs import Epoch, State
from .stage import Cursor, Stage


class InMemory(Stage):
    """The elements of a source, remembered from the first whole pass on.

    Attributes:
        kept: the elements, None before a pass is complete.
    """

    def __init__(self, source: Stage) -> None:
        super().__init__("Dataset.cache", source)
        self.kept: list[Any] | None = None

    def cardinality(self) -> int:
        return self.sources[0].cardinality() if self.kept is None else len(self.kept)

    def open(self, walk: Epoch) -> Cursor:
        return _Remembering(self)


class _Remembering(Cursor):
    """Walks what is kept; while there is nothing, the source, and keeps it."""

    def __init__(self, stage: InMemory) -> None:
        self._stage = stage
        self._source: Cursor | None = None
        self._elements: list[Any] = []
        self._at = 0

    def __next__(self) -> Any:
        kept = self._stage.kept
        if kept is not None:
            self._drop()
            if self._at >= len(kept):
                raise StopIteration
            element = kept[self._at]
        else:
            if self._source is None:
                self._source = self._stage.sources[0].open(())
            try:
                element = next(self._source)
            except StopIteration:
                self._stage.kept = self._elements
                self._drop()
                raise
            self._elements.append(element)
        self._at += 1
        return element

    def _drop(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None
            self._elements = []

    def state(self) -> State:
        return {"at": self._at}

    def restore(self, state: State) -> None:
        self._drop()
        self._at = 0
        if self._stage.kept is not None:
            self._at = int(state["at"])
            return
        for _ in range(int(state["at"])):
            next(self)

    def close(self) -> None:
        self._drop()


class InFile(Stage):
    """The elements of a source in a record file, written in the first whole pass.

    The first record says which pipeline wrote it. A file is only put in its place when complete.
    """

    def __init__(self, source: Stage, path: str | os.PathLike[str]) -> None:
        super().__init__("Dataset.cache", source)
        self.path = Path(path)

    @property
    def mark(self) -> bytes:
        """What the first record says."""
        return json.dumps({"laminar elements": 1, "pipeline": self.sources[0].names()}).encode()

    def open(self, walk: Epoch) -> Cursor:
        return _Filing(self)


class _Filing(Cursor):
    """Reads the file; while there is none, walks the source and writes it."""

    def __init__(self, stage: InFile) -> None:
        self._stage = stage
        self._reader: RecordScanner | None = None
        self._source: Cursor | None = None
        self._writer: RecordWriter | None = None
        self._at = 0

    def _open(self) -> None:
        stage = self._stage
        if stage.path.exists():
            self._reader = RecordScanner(stage.path)
            first = next(self._reader, b"")
            if first != stage.mark:
                self._reader.close()
                raise FailedPreconditionError(
                    f"{stage.label}: {stage.path} holds the elements of another pipeline "
                    f"({first[:200]!r}, expected {stage.mark!r})",
                    remedy="remove the file, or give another name",
                    location=stage.made,
                )
            return
        handle, name = tempfile.mkstemp(dir=stage.path.parent, prefix=f".{stage.path.name}.")
        os.close(handle)
        self._writer = RecordWriter(name)
        self._writer.write(stage.mark)
        self._source = stage.sources[0].open(())

    def __next__(self) -> Any:
        if self._reader is None and self._source is None:
            self._open()
        if self._reader is None:
            element = self._written()
        else:
            element = decode(next(self._reader), self._stage.label)
        self._at += 1
        return element

    def _written(self) -> Any:
        assert self._source is not None
        assert self._writer is not None
        try:
            element = next(self._source)
        except StopIteration:
            self._writer.close()
            os.replace(self._writer.path, self._stage.path)
            self.close()
            raise
        self._writer.write(encode(element, self._stage.label))
        return element

    def state(self) -> State:
        return {"at": self._at}

    def restore(self, state: State) -> None:
        self.close()
        self._at = 0
        for _ in range(int(state["at"])):
            try:
                next(self)
            except StopIteration:
                raise DataLossError(
                    f"{self._stage.label}: {self._stage.path} has {self._at} elements, fewer than "
                    f"the {state['at']} that were read of it",
                    remedy="remove the file, so that it is written again",
                ) from None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._source is not None:
            self._source.close()
        if self._writer is not None:
            self._writer.close()
            with suppress(FileNotFoundError):  # it may stand in its place by now
                os.unlink(self._writer.path)
        self._reader = self._source = self._writer = None
