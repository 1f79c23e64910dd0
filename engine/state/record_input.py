"""RecordInput: records of many files in random order, for graphs that train on them."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgumentError
from ..graph import Tensor, building, get_default_graph
from ..ops.array.join import unstack
from ..ops.state.record_input import record_input


class RecordInput:
    """Gives records of the files that match a pattern, epoch after epoch.

    Args:
        file_pattern: as "data/*.records".
        batch_size: records in a batch.
        buffer_size: records that wait, of which each next one is drawn.
        parallelism: accepted: one thread reads.
        shift_ratio: by which part of the files their order moves on in each epoch.
        seed: of the order; 0 or None for another one each time.
        name: of the operation.
        batches: None for batches as tensors; else each is that many lists of scalars.
        compression_type: "", "ZLIB" or "GZIP", or TensorFlow's number of it.

    Raises:
        InvalidArgumentError: no graph is being built, or a number is none that can be.

    Examples:
        >>> with engine.RecordWriter("data.records") as writer:
        ...     writer.write(b"one")
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     session.run(engine.RecordInput("*.records", batch_size=2).get_yield_op())
        array([b'one', b'one'], dtype=object)
    """

    def __init__(
        self,
        file_pattern: str,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0.0,
        seed: int | None = 0,
        name: str | None = None,
        batches: int | None = None,
        compression_type: Any = None,
    ) -> None:
        if building() is None:
            raise InvalidArgumentError(
                "RecordInput: no graph is being built",
                remedy="use laminar.datasets.Dataset.from_records(...).shuffle(...)",
            )
        self._name = name or "record_input"
        self._batches = batches
        self._batch_size = batch_size
        kinds = {None: "", 0: "", 1: "ZLIB", 2: "GZIP"}
        self._options = {
            "file_pattern": str(file_pattern),
            "buffer_size": int(buffer_size),
            "shift_ratio": float(shift_ratio),
            "seed": seed or None,
            "compression": kinds.get(compression_type, compression_type),
        }

    def get_yield_op(self) -> Any:
        """The next batch: a vector of strings (batch_size,), or `batches` lists of scalars.

        Raises, when run:
            MissingFileError: no file matches.
            DataLossError: a file is damaged.
        """
        graph = get_default_graph().root
        count = self._batch_size * (self._batches or 1)
        shared = graph.unique_name(self._name)
        records: Tensor = record_input(
            batch_size=count,
            container=graph.scopes.container,
            shared_name=shared,
            **self._options,
        )
        if self._batches is None:
            return records
        each = unstack(records)
        return [list(each[i :: self._batches]) for i in range(self._batches)]
