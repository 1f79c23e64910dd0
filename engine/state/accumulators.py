"""Accumulators as a user has them in hand: gradients averaged over several steps or replicas."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgumentError
from ..graph import Operation, Tensor, TensorShape, as_dtype, int32, int64
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.effects import perform
from ..ops.core.op_def import OpDef
from ..ops.state import accumulator as ops
from ..resources.accumulators import REDUCTIONS
from .handles import Handle, as_tensor


class _Accumulator(Handle):
    """What both kinds share."""

    def __init__(
        self,
        op: OpDef,
        dtype: Any,
        shape: Any,
        shared_name: str | None,
        name: str,
        reduction_type: str,
    ) -> None:
        self.dtype = as_dtype(dtype)
        self.shape = TensorShape(shape)
        if reduction_type not in REDUCTIONS:
            raise InvalidArgumentError(
                f"{name}: reduction_type must be one of {', '.join(REDUCTIONS)}, got "
                f"{reduction_type!r}"
            )
        attrs = {"dtype": self.dtype, "shape": self.shape, "reduction": reduction_type}
        super().__init__(op, attrs, name, shared_name)

    @property
    def accumulator_ref(self) -> Tensor:
        """The tensor that stands for it."""
        return self.handle

    @property
    def _sum(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "shape": self.shape}

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients are in it, int32."""
        with self.beside():
            return apply(ops.accumulator_num_accumulated, [self.handle], {}, name)[0]

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation | None:
        """Drop from now on gradients that were computed before this step."""
        step = convert_to_tensor(new_global_step, int64)
        with self.beside():
            return perform(ops.accumulator_set_global_step, [self.handle, step], {}, name)

    def reset(self, new_global_step: Any, name: str | None = None) -> Operation | None:
        """Begin anew at a step: what was added is dropped, and takes that wait fail."""
        step = convert_to_tensor(new_global_step, int64)
        with self.beside():
            return perform(ops.accumulator_reset, [self.handle, step], {}, name)

    def leave(self, replica: int, total: int, name: str | None = None) -> Tensor:
        """One of `total` replicas gives no more gradients: no take requires it any more.

        Gives how many have left, int32.
        """
        with self.beside():
            attrs = {"replica": replica, "total": total}
            return apply(ops.accumulator_leave, [self.handle], attrs, name)[0]


class ConditionalAccumulator(_Accumulator):
    """Sums gradients, and gives their mean when enough have come.

    A gradient that was computed at an older step than the accumulator's is stale: it is dropped.
    The step rises by one with each take. Of a replica with a number one gradient is accepted in
    each step, and of that step alone; sums go by their numbers, so that they have the same bits in
    whatever order gradients come.

    Args:
        dtype: of the gradients.
        shape: of the gradients, where it is known.
        shared_name: the name under which sessions share it in a container.
        name: of the operation.
        reduction_type: "MEAN" or "SUM".

    Examples:
        >>> gradients = engine.ConditionalAccumulator("float32", shape=(2,))
        >>> _ = gradients.apply_grad([1.0, 2.0])
        >>> _ = gradients.apply_grad([3.0, 4.0])
        >>> gradients.take_grad(2)
        Tensor([2., 3.], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(
            ops.conditional_accumulator, dtype, shape, shared_name, name, reduction_type
        )

    def apply_grad(
        self, grad: Any, local_step: Any = 0, name: str | None = None, *, replica: int = -1
    ) -> Tensor:
        """Add a gradient, unless it is of an earlier step than those that are accepted.

        Args:
            grad: of the accumulator's shape and dtype.
            local_step: the step whose variables it was computed with.
            name: of the operation.
            replica: who computed it, from 0 on, of whom one gradient counts in a step; -1: anybody.

        Returns:
            whether it was accepted.

        Raises:
            ShapeError, DTypeError: it does not fit.
        """
        inputs = [convert_to_tensor(local_step, int64), as_tensor(grad, self.dtype)]
        with self.beside():
            attrs = {**self._sum, "replica": replica}
            return apply(ops.accumulator_apply_gradient, [self.handle, *inputs], attrs, name)[0]

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """Wait for `num_required` gradients; their mean (or sum), and counting starts anew."""
        count = convert_to_tensor(num_required, int32)
        with self.beside():
            return apply(ops.accumulator_take_gradient, [self.handle, count], self._sum, name)[0]


class SparseConditionalAccumulator(_Accumulator):
    """As ConditionalAccumulator, for gradients of which single rows are given.

    The mean of a row is over the gradients that have the row.

    Examples:
        >>> gradients = engine.SparseConditionalAccumulator("float32", shape=(3, 1))
        >>> _ = gradients.apply_grad([0, 2], [[1.0], [2.0]])
        >>> gradients.take_grad(1)
        (Tensor([0, 2], shape=(2,), dtype=int64), Tensor([[1.],
                [2.]], shape=(2, 1), dtype=float32))
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(
            ops.sparse_conditional_accumulator, dtype, shape, shared_name, name, reduction_type
        )

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        local_step: Any = 0,
        name: str | None = None,
        *,
        replica: int = -1,
    ) -> Tensor:
        """Add rows, grad_values[i] to row grad_indices[i]; see `ConditionalAccumulator.apply_grad`.

        Args:
            grad_indices: numbers of rows.
            grad_values: the rows: (len(grad_indices), ...).
            local_step: the step whose variables they were computed with.
            name: of the operation.
            replica: who computed them; -1: anybody.

        Returns:
            whether they were accepted.
        """
        inputs = [
            convert_to_tensor(local_step, int64),
            convert_to_tensor(grad_indices, int64),
            as_tensor(grad_values, self.dtype),
        ]
        with self.beside():
            attrs = {"dtype": self.dtype, "replica": replica}
            return apply(ops.accumulator_apply_rows, [self.handle, *inputs], attrs, name)[0]

    def take_grad(self, num_required: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Wait for `num_required` gradients; the rows' indices, int64 and sorted, and values."""
        count = convert_to_tensor(num_required, int32)
        with self.beside():
            found = apply(ops.accumulator_take_rows, [self.handle, count], self._sum, name)
        return found[0], found[1]
