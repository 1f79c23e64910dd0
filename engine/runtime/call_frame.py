"""The call frame of a step: typed slots for what it is given and what it gives.

State of a `CallFrame`, guarded by `_changed`:
    _args[i]: the argument, or `_EMPTY`; `_waiting[i]` are called when it comes;
    _retvals[i]: the result, or `_EMPTY`; `_taken` are those that were consumed;
    _error: why the step has failed, or that it has ended; no slot is filled any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, InternalError, InvalidArgumentError
from ..graph import DType, as_dtype, resource


class _Empty:
    def __repr__(self) -> str:
        return "empty"


_EMPTY = _Empty()


class CallFrame:
    """Slots of one step.

    Args:
        args: the types of the arguments.
        retvals: the types of the results; None for a slot that only tells that something has run.
    """

    def __init__(self, args: Sequence[DType], retvals: Sequence[DType | None]) -> None:
        self._arg_dtypes = list(args)
        self._retval_dtypes = list(retvals)
        self._changed = threading.Condition()
        self._args: list[Any] = [_EMPTY] * len(args)
        self._waiting: list[list[Callable[[Any], None]]] = [[] for _ in args]
        self._retvals: list[Any] = [_EMPTY] * len(retvals)
        self._taken: set[int] = set()
        self._error: BaseException | None = None

    # The caller's side

    def set_arg(self, index: int, value: Any) -> None:
        """Fill a slot of an argument.

        Raises:
            InvalidArgumentError: it is filled already.
            DTypeError: the value has another type than the slot.
        """
        _check("argument", index, value, self._arg_dtypes[index])
        with self._changed:
            if self._args[index] is not _EMPTY:
                raise InvalidArgumentError(f"argument {index} of the call frame is set twice")
            self._args[index] = value
            waiting, self._waiting[index] = self._waiting[index], []
        for tell in waiting:
            tell(value)

    def has_arg(self, index: int) -> bool:
        """Whether a slot is filled."""
        return self._args[index] is not _EMPTY

    def consume_retvals(self, wanted: Sequence[int]) -> list[Any]:
        """Wait for results and take them out, in the order asked for.

        Raises:
            InvalidArgumentError: one was taken before.
            InternalError: the step has ended without filling one of them.
            LaminarError: the step has failed.
        """
        with self._changed:
            for i in wanted:
                if i in self._taken:
                    raise InvalidArgumentError(f"result {i} of the call frame is taken twice")
            self._changed.wait_for(
                lambda: (
                    self._error is not None or all(self._retvals[i] is not _EMPTY for i in wanted)
                )
            )
            for i in wanted:
                if self._retvals[i] is _EMPTY:
                    assert self._error is not None
                    raise self._error
            self._taken.update(wanted)
            found = [self._retvals[i] for i in wanted]
            for i in wanted:
                self._retvals[i] = None  # it is the caller's alone
            return found

    # The step's side

    def get_arg(self, index: int, tell: Callable[[Any], None]) -> None:
        """Have `tell(value)` called with an argument, now or when it comes."""
        with self._changed:
            value = self._args[index]
            if value is _EMPTY:
                self._waiting[index].append(tell)
                return
        tell(value)

    def set_retval(self, index: int, value: Any) -> None:
        """Fill the slot of a result.

        Raises:
            InternalError: it is filled already.
            DTypeError: the value has another type than the slot.
        """
        _check("result", index, value, self._retval_dtypes[index])
        with self._changed:
            if self._retvals[index] is not _EMPTY:
                raise InternalError(f"result {index} of the call frame is set twice")
            self._retvals[index] = value
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        """The step has ended: nobody needs to wait for slots that are empty."""
        with self._changed:
            if self._error is None:
                self._error = error or InternalError(
                    "a result of the call frame was not set by the step"
                )
            self._changed.notify_all()


def _check(what: str, index: int, value: Any, dtype: DType | None) -> None:
    if dtype is None or dtype == resource:
        return
    found = as_dtype(np.asarray(value).dtype) if not hasattr(value, "dtype") else value.dtype
    if as_dtype(found) != dtype:
        raise DTypeError(f"{what} {index} of the call frame is {dtype}, got {found}")
