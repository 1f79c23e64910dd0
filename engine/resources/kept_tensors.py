"""Tensors that outlast the step that computed them, without a way through the user's program."""

from __future__ import annotations

from typing import Any

from ..errors import FailedPreconditionError
from .batches import Array


class TensorHandle:
    """A tensor that a step has kept; it lives as long as its handle, or until `delete()`.

    It can be fed for a placeholder of handles, and for any tensor of its type and shape.
    """

    def __init__(self, array: Array) -> None:
        self._array: Array | None = array

    @property
    def handle(self) -> TensorHandle:
        """What is fed for a placeholder of handles: itself."""
        return self

    def get_raw_handle(self) -> TensorHandle:
        """`handle`, as a call."""
        return self

    def eval(self) -> Array:
        """The value.

        Raises:
            FailedPreconditionError: it was deleted.
        """
        if self._array is None:
            raise FailedPreconditionError(
                "the tensor of this handle was deleted", remedy="keep it until its last use"
            )
        return self._array

    def delete(self) -> None:
        """Drop the value: whoever asks for it from now on gets an error."""
        self._array = None

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.eval().__array__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<TensorHandle {'deleted' if self._array is None else self._array.dtype}>"
