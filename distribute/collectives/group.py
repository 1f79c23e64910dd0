"""Group: the processes that compute together, and what they tell each other.

Every process of a group calls the same methods in the same order. A method ends with a result, or
with one error on every process that is left: nothing waits for ever. After an error the group is
broken, and says so at each call; where its transport can go on without those that died, `recover`
makes it whole again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from laminar.engine.errors import FailedPreconditionError, LaminarError, UnavailableError


class WorkerLostError(UnavailableError):
    """A process of the group has died."""


class Group:
    """Some processes, numbered from 0. Abstract: what sends and receives is to be written.

    Attributes:
        rank: the number of this process.
        size: how many there are.
        timeout_seconds: how long a call waits for the others.
        broken: why nothing can be told any more, None while all is well.
    """

    rank = 0
    size = 1
    timeout_seconds = 600.0
    broken: LaminarError | None = None

    def sum(self, arrays: Sequence[Any]) -> list[Any]:
        """The sums over all processes, with the same bits in each.

        Args:
            arrays: of one element type, of the same shapes everywhere.
        """
        raise NotImplementedError

    def begin_sum(self, arrays: Sequence[Any]) -> Callable[[], list[Any]]:
        """Begin what `sum` does, beside what follows; gives a function that waits for the sums.

        Sums end in the order in which they were begun. Here, they are there at once.
        """
        found = self.sum(arrays)
        return lambda: found

    def gather_rows(self, rows: Any, counts: Sequence[int]) -> Any:
        """The rows of all processes, those of process 0 first.

        Args:
            rows: `counts[rank]` rows; of the same inner shape and element type everywhere.
            counts: how many rows each process has.
        """
        raise NotImplementedError

    def exchange(self, record: bytes) -> list[bytes]:
        """The records of all processes, which have one length."""
        raise NotImplementedError

    def broadcast(self, arrays: Sequence[Any], root: int = 0) -> None:
        """Write the values that the arrays of process `root` have into those of the others."""
        raise NotImplementedError

    def gather(self, message: bytes) -> list[bytes]:
        """The messages of all processes, of any lengths."""
        lengths = [int.from_bytes(n, "little") for n in self.exchange(_length(message))]
        longest = max(lengths)
        found = self.exchange(message.ljust(longest, b"\0")) if longest else [b""] * self.size
        return [text[:n] for text, n in zip(found, lengths, strict=True)]

    def barrier(self) -> None:
        """Return when all processes have called it."""
        self.exchange(b"\0")

    def part(self, ranks: Sequence[int]) -> Group:
        """The group of some of its processes, in this order; what fails there fails everywhere.

        All processes call it at once, each with the ranks of a part that it is in; parts of one
        call have no process in common.
        """
        raise NotImplementedError

    def fail(self, error: BaseException) -> None:
        """Tell the others that this process cannot go on; they get an AbortedError that says why.

        It raises nothing, and does nothing if the group is broken already.
        """
        raise NotImplementedError

    def recover(self) -> list[int]:
        """Go on without the processes that have died; gives the ranks before, of those left.

        Raises:
            FailedPreconditionError: the transport cannot, or the group is broken otherwise.
        """
        self.refuse_recovery()

    def refuse_recovery(self) -> NoReturn:
        """Raise the error for a group that cannot go on."""
        raise FailedPreconditionError(
            f"the group of workers cannot go on without those that are lost: {self.broken}",
            remedy="start the program again with fit(resume='folder'); to go on without them, use "
            "an MPI with fault tolerance (Open MPI: mpirun --with-ft ulfm)",
        ) from self.broken

    def check(self) -> None:
        """FailedPreconditionError for a group that is broken."""
        if self.broken is not None:
            raise FailedPreconditionError(
                f"the group of workers is broken: {self.broken.message}",
                remedy="start the program again; fit(resume='folder') goes on where it was",
            ) from self.broken


def _length(message: bytes) -> bytes:
    return len(message).to_bytes(8, "little")


class SingleGroup(Group):
    """A process by itself."""

    def sum(self, arrays: Sequence[Any]) -> list[Any]:
        return list(arrays)

    def gather_rows(self, rows: Any, counts: Sequence[int]) -> Any:
        return rows

    def exchange(self, record: bytes) -> list[bytes]:
        return [record]

    def part(self, ranks: Sequence[int]) -> Group:
        return self

    def broadcast(self, arrays: Sequence[Any], root: int = 0) -> None:
        """Nothing to do: there is nobody else."""

    def fail(self, error: BaseException) -> None:
        """Nothing to do, likewise."""
