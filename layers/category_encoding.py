"""CategoryEncoding: category numbers as vectors of zeros, ones and counts."""

from __future__ import annotations

from math import prod
from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import INTEGER
from laminar.naming import who
from laminar.typing import DTypeLike, TensorLike

from .data_layer import DataLayer, refuse_sparse
from .layer_options import LayerOptions
from .options import one_of, whole

MODES = ("one_hot", "multi_hot", "count")


def encode(x: Any, mode: str, depth: int, dtype: DTypeLike, weights: Any = None) -> Any:
    """Category numbers in one of the forms that layers offer.

    Args:
        x: whole numbers; those outside 0 ... depth - 1 stand for nothing.
        mode: "int": `x` itself. "one_hot": each number as a vector with 1 at its place; a last axis
            of size 1 is dropped first. "multi_hot": the numbers of an example as one vector with 1
            at each of their places. "count": the same with how often each is there. The numbers of
            an example stand along axis 1; without a batch, along axis 0.
        depth: the length of the vectors.
        dtype: of the result.
        weights: for "count", what each number counts; the result is of their dtype.
    """
    if mode == "int":
        return ops.cast(x, dtype)
    x = x if x.dtype in INTEGER else ops.cast(x, "int32")
    if not len(x.shape):
        x = ops.expand_dims(x, 0)
    if mode == "one_hot":
        x = ops.squeeze(x, -1) if len(x.shape) > 1 and x.shape[-1] == 1 else x
        return ops.one_hot(x, depth, dtype=dtype)
    axis = 1 if len(x.shape) > 1 else 0
    numbers = ops.moveaxis(ops.cast(x, "int64"), axis, -1)
    *outer, length = ops.shape(numbers)
    rows = prod(outer)
    numbers = ops.reshape(numbers, (rows, length))
    # Each row is summed up in a stretch of its own; what is out of range goes nowhere.
    stretch = ops.expand_dims(ops.arange(rows, dtype="int64"), 1) * depth
    inside = ops.logical_and(numbers >= 0, numbers < depth)
    places = ops.reshape(ops.where(inside, numbers + stretch, -1), (-1,))
    if weights is None:
        amounts = ops.ones_like(places, dtype="int32")
    else:
        amounts = ops.reshape(ops.moveaxis(weights, axis, -1), (-1,))
    sums = ops.reshape(ops.segment_sum(amounts, places, rows * depth), (*outer, depth))
    if mode == "multi_hot":
        return ops.cast(sums > 0, dtype)
    return sums if weights is not None else ops.cast(sums, dtype)


class CategoryEncoding(DataLayer):
    """Category numbers below `num_tokens` as vectors of that length.

    Args:
        num_tokens: how many categories there are.
        output_mode: "one_hot", a vector for each number; "multi_hot", one for each example, with 1
            for each number it has; "count", with how often it has it.
        sparse: must be false.

    Shapes:
        x: (batch, length) of whole numbers -> y: (batch, num_tokens); for "one_hot" a new last
        axis instead, in place of a last one of size 1. Numbers out of range give zeros.

    Examples:
        >>> layers.CategoryEncoding(num_tokens=4)([[0, 2]])
        Tensor([[1., 0., 1., 0.]], shape=(1, 4), dtype=float32)
    """

    def __init__(
        self,
        num_tokens: int | None = None,
        output_mode: str = "multi_hot",
        sparse: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        mode = "multi_hot" if output_mode == "binary" else output_mode
        self.output_mode = one_of(self, "output_mode", mode, MODES)
        if num_tokens is None:
            raise InvalidArgumentError(
                f"{who(self)}: num_tokens is missing",
                remedy="give it, or use IntegerLookup, which learns the categories",
            )
        self.num_tokens = whole(self, "num_tokens", num_tokens)
        refuse_sparse(self, sparse)
        self.sparse = False
        self.autocast = False  # a half type does not hold all category numbers

    def call(self, inputs: TensorLike, count_weights: TensorLike | None = None) -> Any:
        if count_weights is not None:
            if self.output_mode != "count":
                raise InvalidArgumentError(
                    f"{who(self)}: count_weights is for output_mode 'count', "
                    f"which is {self.output_mode!r}"
                )
            count_weights = ops.cast(ops.convert_to_tensor(count_weights), self.dtype)
        return encode(inputs, self.output_mode, self.num_tokens, self.dtype, count_weights)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "num_tokens": self.num_tokens,
            "output_mode": self.output_mode,
        }
