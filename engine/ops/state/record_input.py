"""Records of files in random order, epoch after epoch, as an op."""

from __future__ import annotations

import glob
import threading
from collections.abc import Callable, Iterator

import numpy as np

from ...errors import InvalidArgumentError, MissingFileError
from ...graph import Array, TensorSpec, string
from ...io.places import local_path
from ...io.records import check_compression, read_records
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from ..text.string import collect


class RecordPool:
    """What a session has read, and not given yet. `lock` guards the walk."""

    def __init__(self, records: Callable[[], Iterator[bytes]]) -> None:
        self.lock = threading.Lock()
        self._records = records()

    def take(self, count: int) -> list[bytes]:
        """The next records."""
        with self.lock:
            return [next(self._records) for _ in range(count)]


def shuffled(
    names: list[str], buffer_size: int, shift_ratio: float, seed: int | None, compression: str
) -> Iterator[bytes]:
    """All records of the files, in another order in each epoch, without an end.

    Each file is read once in an epoch; what is read waits in a buffer, of which one at random goes
    on. The order of the files is moved on by `shift_ratio` of them from one epoch to the next.
    """
    random = np.random.Generator(np.random.Philox(seed))
    order = [names[i] for i in random.permutation(len(names))]
    shift = int(shift_ratio * len(names))
    while True:
        order = order[shift:] + order[:shift]
        buffer: list[bytes] = []
        is_empty = True
        for name in order:
            for record in read_records(name, compression):
                is_empty = False
                if len(buffer) < buffer_size:
                    buffer.append(record)
                    continue
                place = int(random.integers(buffer_size))
                buffer[place], record = record, buffer[place]
                yield record
        if is_empty:
            raise InvalidArgumentError(f"RecordInput: there is no record in {len(names)} files")
        for place in random.permutation(len(buffer)):
            yield buffer[place]


@define("RecordInput", stateful=True)
def record_input(
    *,
    file_pattern: str,
    batch_size: int,
    buffer_size: int,
    shift_ratio: float,
    seed: int | None,
    compression: str,
    container: str,
    shared_name: str,
) -> TensorSpec:
    """The next `batch_size` records of the files that match, which come in random order."""
    for name, value in (("batch_size", batch_size), ("buffer_size", buffer_size)):
        if value < 1:
            raise InvalidArgumentError(f"RecordInput: {name} must be at least 1, got {value}")
    if not 0 <= shift_ratio <= 1:
        raise InvalidArgumentError(f"RecordInput: shift_ratio is from 0 to 1, got {shift_ratio}")
    check_compression("RecordInput", compression)
    return TensorSpec((batch_size,), string)


@record_input.effect
def _record_input_kernel(
    context: KernelContext,
    *,
    file_pattern: str,
    batch_size: int,
    buffer_size: int,
    shift_ratio: float,
    seed: int | None,
    compression: str,
    container: str,
    shared_name: str,
) -> Array:
    def make() -> RecordPool:
        names = sorted(map(context.files, glob.glob(context.files(local_path(file_pattern)))))
        if not names:
            raise MissingFileError(f"RecordInput: no file matches {file_pattern!r}")
        return RecordPool(lambda: shuffled(names, buffer_size, shift_ratio, seed, compression))

    pool = context.resource(container, shared_name, make)
    return collect(pool.take(batch_size), (batch_size,))


record_input.grad(no_gradient)
