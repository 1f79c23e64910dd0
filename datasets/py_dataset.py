"""PyDataset: batches that a class of the user's makes, each by its number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from laminar.engine.errors import InvalidArgumentError, UnimplementedError

from .stage import checked_count

TIMEOUT_SECONDS: Final = 600.0


class PyDataset:
    """Batches by their number. Derive from it, and write `__getitem__` and `__len__`.

    `fit` asks for the batches in random order (with `shuffle=True`), and calls `on_epoch_begin` and
    `on_epoch_end`.

    Args:
        workers: how many batches are made at once. 1 makes them in turn, ahead of the training
            where making them takes long.
        use_multiprocessing: whether the workers are processes instead of threads. They begin with a
            copy of this object at each epoch: changes made in `on_epoch_end` reach them, and what
            they change is lost. Before each batch, `random` and `numpy.random` are seeded by the
            seed of the program, the epoch and the number of the batch: random augmentation is the
            same whichever worker makes the batch.
        max_queue_size: how many batches wait at most; 0 for as few as there can be.
        timeout: seconds that a worker may take for a batch; None for any time.

    Raises:
        InvalidArgumentError: a count below 1, or a `timeout` that is not positive.

    Examples:
        >>> class Squares(laminar.utils.PyDataset):
        ...     def __len__(self):
        ...         return 2
        ...
        ...     def __getitem__(self, index):
        ...         x = np.arange(3.0).reshape(3, 1) + index
        ...         return x, x**2
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(Squares(), verbose=0)
    """

    def __init__(
        self,
        workers: int = 1,
        use_multiprocessing: bool = False,
        max_queue_size: int = 10,
        timeout: float | None = TIMEOUT_SECONDS,
    ) -> None:
        self._workers = checked_count("PyDataset: workers", workers, 0)
        self._use_multiprocessing = use_multiprocessing
        self._max_queue_size = checked_count("PyDataset: max_queue_size", max_queue_size, 0)
        if timeout is not None and not timeout > 0:
            raise InvalidArgumentError(
                f"PyDataset: timeout must be a positive number of seconds or None, got {timeout!r}"
            )
        self._timeout = timeout

    # A class that does not call super().__init__() has the defaults.

    @property
    def workers(self) -> int:
        """How many batches are made at once."""
        return getattr(self, "_workers", 1)

    @workers.setter
    def workers(self, value: int) -> None:
        self._workers = checked_count("PyDataset: workers", value, 0)

    @property
    def use_multiprocessing(self) -> bool:
        """Whether workers are processes."""
        return getattr(self, "_use_multiprocessing", False)

    @use_multiprocessing.setter
    def use_multiprocessing(self, value: bool) -> None:
        self._use_multiprocessing = value

    @property
    def max_queue_size(self) -> int:
        """How many batches wait at most."""
        return getattr(self, "_max_queue_size", 10)

    @max_queue_size.setter
    def max_queue_size(self, value: int) -> None:
        self._max_queue_size = checked_count("PyDataset: max_queue_size", value, 0)

    @property
    def timeout(self) -> float | None:
        """Seconds that a worker may take for a batch."""
        return getattr(self, "_timeout", TIMEOUT_SECONDS)

    def __getitem__(self, index: int) -> Any:
        """The batch of number `index`: x, (x, y) or (x, y, sample_weight)."""
        raise UnimplementedError(
            f"{type(self).__name__}: there is no __getitem__",
            remedy="write def __getitem__(self, index): return x, y",
        )

    def __iter__(self) -> Iterator[Any]:
        """The batches in turn; without end where their number is not known."""
        try:
            total = self.num_batches
        except UnimplementedError:
            total = None
        return map(self.__getitem__, count() if total is None else range(total))

    @property
    def num_batches(self) -> int | None:
        """Batches in an epoch: `len(self)`; write it to return None where there is no end."""
        try:
            return len(self)  # type: ignore[arg-type]  # written by the class
        except TypeError as cause:
            raise UnimplementedError(
                f"{type(self).__name__}: neither __len__ nor num_batches is written",
                remedy="write def __len__(self): return the number of batches",
            ) from cause

    def on_epoch_begin(self) -> None:
        """Called before the first batch of each epoch."""

    def on_epoch_end(self) -> None:
        """Called at the end of each epoch."""
