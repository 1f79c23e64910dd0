"""Discretization: numbers replaced by the bins that they fall into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from laminar import ops
from laminar.config import floatx
from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.naming import who
from laminar.typing import DataLike, TensorLike

from .category_encoding import MODES, encode
from .data_layer import DataLayer, as_array, batches, is_array, refuse_sparse
from .operation import infer_outputs
from .options import one_of, whole

Array = np.ndarray[Any, Any]


class Discretization(DataLayer):
    """The bin i of each number x: boundaries[i - 1] <= x < boundaries[i].

    The boundaries are given, or found by `adapt`: quantiles of data, so that about as many numbers
    fall into each bin.

    Args:
        bin_boundaries: rising numbers, n for n + 1 bins.
        num_bins: how many bins `adapt` makes.
        epsilon: how exact the quantiles are; smaller ones take more memory.
        output_mode: "int" for the bin; "one_hot", "multi_hot" or "count" as in CategoryEncoding.
        sparse: must be false.
        dtype: of the output, unless it is "int", which gives int32.

    Shapes:
        x: any, of any numbers -> y: the same; for other modes as in CategoryEncoding

    Examples:
        >>> layers.Discretization(bin_boundaries=[0.0, 1.0])([-0.5, 0.5, 3.0])
        Tensor([0, 1, 2], shape=(3,), dtype=int32)
    """

    def __init__(
        self,
        bin_boundaries: Sequence[float] | None = None,
        num_bins: int | None = None,
        epsilon: float = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        dtype: PolicyLike | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        refuse_sparse(self, sparse)
        self.sparse = False
        self.output_mode = one_of(self, "output_mode", output_mode, ("int", *MODES))
        if (num_bins is None) == (bin_boundaries is None):
            raise InvalidArgumentError(
                f"{who(self)}: give bin_boundaries or num_bins, "
                f"got bin_boundaries={bin_boundaries} and num_bins={num_bins}"
            )
        self.num_bins = None if num_bins is None else whole(self, "num_bins", num_bins)
        self.bin_boundaries = None if bin_boundaries is None else list(bin_boundaries)
        self.epsilon = epsilon
        self.autocast = False  # inputs are cast to `input_dtype`
        self.summary = _nothing()

    @property
    def input_dtype(self) -> str:
        """The dtype that inputs are cast to."""
        return floatx()

    @property
    def output_dtype(self) -> str:
        """The dtype of the output."""
        return "int32" if self.output_mode == "int" else self.compute_dtype

    def adapt(self, data: DataLike, steps: int | None = None) -> None:
        """Find the boundaries for data, in place of those it had.

        Args:
            data: an array, or an iterable of batches.
            steps: at most so many batches.

        Raises:
            InvalidArgumentError: the boundaries were given, or there is no data.
        """
        if self.num_bins is None:
            raise InvalidArgumentError(
                f"{who(self)}: adapt() would have no effect, bin_boundaries were given",
                remedy="make the layer with num_bins instead",
            )
        self.reset_state()
        for batch in [data] if is_array(data) else batches(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: DataLike) -> None:
        """Take a batch into the summary of the data."""
        fresh = _summarize(as_array(data).astype(np.float32), self.epsilon)
        self.summary = _merge(fresh, self.summary, self.epsilon)

    def finalize_state(self) -> None:
        """Make the boundaries of the summary.

        Raises:
            InvalidArgumentError: there was no data.
        """
        if self.num_bins is None:
            return
        if not self.summary.size:
            raise InvalidArgumentError(
                f"{who(self)}: adapt() got no data",
                remedy="pass an array, or batches of arrays",
            )
        self.bin_boundaries = _compress(self.summary, 1.0 / self.num_bins)[0, :-1].tolist()

    def reset_state(self) -> None:
        """Forget the summary."""
        self.summary = _nothing()

    def compute_output_spec(self, inputs: Any) -> Any:
        """The symbolic result, before `adapt` too: it will make `num_bins` bins."""
        return infer_outputs(lambda x: self._encoded(x, self._expected()), (inputs,), {})

    def _expected(self) -> list[float]:
        if self.bin_boundaries is not None:
            return self.bin_boundaries
        assert self.num_bins is not None
        return [0.0] * (self.num_bins - 1)

    def call(self, inputs: TensorLike) -> Any:
        if self.bin_boundaries is None:
            raise FailedPreconditionError(
                f"{who(self)} has no bins yet",
                remedy="call adapt(data) first, on training data",
            )
        return self._encoded(inputs, self.bin_boundaries)

    def _encoded(self, x: Any, boundaries: list[float]) -> Any:
        if x.dtype.is_floating:
            x = ops.cast(x, self.input_dtype)
        bins = ops.digitize(x, np.asarray(boundaries, self.input_dtype))
        return encode(bins, self.output_mode, len(boundaries) + 1, self.output_dtype)

    def load_own_variables(self, store: Any) -> None:
        """Take nothing: the boundaries are in the config."""

    def get_config(self) -> dict[str, Any]:
        return {
            "bin_boundaries": self.bin_boundaries,
            "num_bins": self.num_bins,
            "epsilon": self.epsilon,
            "output_mode": self.output_mode,
            "sparse": self.sparse,
            "name": self.name,
            "dtype": self.dtype,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make a layer from what `get_config` gave."""
        found = None
        if config.get("num_bins") is not None:  # what adapt() found comes beside it
            config = dict(config)
            found = config.pop("bin_boundaries", None)
        made = super().from_config(config)
        if found is not None:
            made.bin_boundaries = list(found)
        return made


# A summary stands for numbers: summary[0] are values of them, rising, and summary[1] how many
# numbers each stands for: those up to it, from the one before.


def _nothing() -> Array:
    return np.zeros((2, 0), np.float32)


def _summarize(values: Array, epsilon: float) -> Array:
    """A summary of at most about 1 / epsilon of the values, evenly spaced in their order."""
    ordered = np.sort(values, axis=None)
    step = max(ordered.size / (1.0 / epsilon), 1)
    chosen = ordered[int(step - 1) :: int(step)]
    return np.stack([chosen, np.full_like(chosen, step)])


def _merge(one: Array, other: Array, epsilon: float) -> Array:
    """The summary of the numbers of both."""
    both = np.concatenate([one, other], 1)
    return _compress(both[:, np.argsort(both[0])], epsilon)


def _compress(summary: Array, epsilon: float) -> Array:
    """A summary with a value for each quantile epsilon, 2 epsilon, ..., interpolated."""
    if summary.shape[1] * epsilon < 1:
        return summary
    quantiles = epsilon + np.arange(0.0, 1.0, epsilon)
    ranks = summary[1].cumsum()
    parts = ranks / ranks[-1]
    values = np.interp(quantiles, parts, summary[0])
    counts = np.diff(np.interp(quantiles, parts, ranks), prepend=0)
    return np.stack([values, counts]).astype(np.float32)
