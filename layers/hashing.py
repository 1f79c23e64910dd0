"""Hashing, HashedCrossing: categories of any kind as bins, found by a hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.config import floatx
from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import INTEGER, STRING
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import compare
from laminar.engine.ops.text import string
from laminar.engine.ops.text.farmhash import fingerprint, fingerprint_bucket, fingerprint_cat
from laminar.engine.ops.text.siphash import to_hash_bucket_strong
from laminar.naming import who
from laminar.typing import Ints, Shape

from .category_encoding import MODES, encode
from .data_layer import DataLayer, as_input, refuse_sparse
from .layer_options import LayerOptions
from .options import one_of, whole
from .symbolic import KerasTensor

# What the fingerprints of a crossing are added to, as in TensorFlow's sparse crossing.
_CROSSING = 0xDECAFCAFFE


def as_salt(who: str, salt: Any) -> list[int] | None:
    """The salt of a layer as two numbers.

    Raises:
        InvalidArgumentError: it is neither a whole number nor two.
    """
    if salt is None:
        return None
    found = [salt, salt] if isinstance(salt, int) else salt
    if not isinstance(found, list | tuple) or [type(v) for v in found] != [int, int]:
        raise InvalidArgumentError(f"{who}: salt must be a whole number or two, got {salt!r}")
    return list(found)


def as_text(x: Any) -> Any:
    """Strings as they are, numbers in decimal."""
    return x if x.dtype in STRING else string.as_string(x)


def bin_of(text: Any, num_bins: int, salt: list[int] | None) -> Any:
    """The bin of each string, int64: by FarmHash, or by SipHash with the salt as its key."""
    if salt is None:
        return fingerprint_bucket(fingerprint(text), num_bins)
    return to_hash_bucket_strong(text, num_bins, (salt[0], salt[1]))


class Hashing(DataLayer):
    """A bin below `num_bins` for each category: a hash of its text, modulo the number of bins.

    Numbers are hashed as their decimal text, floats cut to whole ones. The hash is the same in
    every run and on every machine: FarmHash's Fingerprint64, or with a salt SipHash-2-4. The bins
    are those of Keras.

    Args:
        num_bins: how many bins there are, with the one of `mask_value`.
        mask_value: what goes to bin 0, where nothing else then goes.
        salt: a whole number, or two, that make another hash.
        output_mode: "int" for the bin; "one_hot", "multi_hot" or "count" as in CategoryEncoding.
        sparse: must be false.
        dtype: of the output: int64 for "int", else the default float.

    Shapes:
        x: any, of strings or numbers -> y: the same; for other modes as in CategoryEncoding

    Source: see `engine.ops.text.farmhash` and `engine.ops.text.siphash`.

    Examples:
        >>> layers.Hashing(num_bins=3)(np.array([["A"], ["B"], ["C"], ["A"]]))
        Tensor([[1],
                [0],
                [1],
                [1]], shape=(4, 1), dtype=int64)
    """

    def __init__(
        self,
        num_bins: int,
        mask_value: str | int | None = None,
        salt: Ints | None = None,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = "int64" if output_mode == "int" else floatx()
        super().__init__(**kwargs)
        self.output_mode = one_of(self, "output_mode", output_mode, ("int", *MODES))
        if self.output_mode == "int" and self.dtype_policy.name not in ("int32", "int64"):
            raise DTypeError(
                f"{who(self)}: dtype must be int32 or int64 for output_mode 'int', got {self.dtype}"
            )
        self.num_bins = whole(self, "num_bins", num_bins)
        self.mask_value = mask_value
        self.salt = as_salt(who(self), salt)
        refuse_sparse(self, sparse)
        self.sparse = False
        self.autocast = False  # numbers are cut to int64, not to the dtype of the output

    def call(self, inputs: Any) -> Any:
        x = inputs
        if self.output_mode == "one_hot" and len(x.shape) and x.shape[-1] == 1:
            x = ops.squeeze(x, -1)
        bins = self._bins(x)
        return encode(bins, self.output_mode, self.num_bins, self.dtype)

    def _bins(self, x: Any) -> Any:
        masks = self.mask_value is not None and self.num_bins > 1
        text = as_text(ops.cast(x, "int64") if x.dtype.is_floating else x)
        bins = bin_of(text, self.num_bins - masks, self.salt)
        if not masks:
            return bins
        mask = compare.equal(x, convert_to_tensor(self.mask_value, x.dtype))
        return ops.where(mask, 0, bins + 1)

    def compute_output_shape(self, input_shape: Shape) -> Any:
        """The shape of the bins for inputs of a shape."""
        kind = "string" if isinstance(self.mask_value, str) else "int64"
        return tuple(self.compute_output_spec(KerasTensor(input_shape, kind)).shape)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "num_bins": self.num_bins,
            "salt": self.salt,
            "mask_value": self.mask_value,
            "output_mode": self.output_mode,
            "sparse": self.sparse,
        }


class HashedCrossing(DataLayer):
    """A bin below `num_bins` for each combination of categories: a hash of them together.

    Strings count as their fingerprints, whole numbers as themselves; the bins are those of Keras.

    Args:
        num_bins: how many bins there are.
        output_mode: "int" for the bin, "one_hot" for a vector with 1 at its place.
        sparse: must be false.
        name: of the layer.
        dtype: of the output: int64 for "int", else the default float.

    Shapes:
        two or more of (), (batch,) or (batch, 1), of strings or whole numbers -> the same; for
        "one_hot" (1, num_bins) or (batch, num_bins)

    Examples:
        >>> layer = layers.HashedCrossing(num_bins=5)
        >>> layer((np.array(["a", "b", "a"]), np.array(["x", "x", "x"])))
        Tensor([2, 4, 2], shape=(3,), dtype=int64)
    """

    def __init__(
        self,
        num_bins: int,
        output_mode: str = "int",
        sparse: bool = False,
        name: str | None = None,
        dtype: PolicyLike | None = None,
        **kwargs: Any,
    ) -> None:
        if output_mode == "int" and dtype is None:
            dtype = "int64"
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.num_bins = whole(self, "num_bins", num_bins)
        self.output_mode = one_of(self, "output_mode", output_mode, ("int", "one_hot"))
        refuse_sparse(self, sparse)
        self.sparse = False
        self.autocast = False  # fractions are refused, not cut

    def _as_input(self, inputs: Any) -> Any:
        if not isinstance(inputs, list | tuple) or len(inputs) < 2:
            raise InvalidArgumentError(
                f"{who(self)}: expected a list of two inputs or more, got {inputs!r}",
                remedy="call it as layer([a, b])",
            )
        return [as_input(x) for x in inputs]

    def call(self, inputs: Any) -> Any:
        self._check(inputs)
        crossed = convert_to_tensor(_CROSSING, "int64")
        for x in inputs:
            is_text = x.dtype in STRING
            crossed = fingerprint_cat(crossed, fingerprint(x) if is_text else ops.cast(x, "int64"))
        bins = fingerprint_bucket(crossed, self.num_bins)
        return encode(bins, self.output_mode, self.num_bins, self.dtype)

    def _check(self, inputs: Any) -> None:
        shapes = [tuple(x.shape) for x in inputs]
        if len(shapes[0]) > 2 or (len(shapes[0]) == 2 and shapes[0][-1] != 1):
            raise ShapeError(
                f"{who(self)}: the inputs must be of shape (), (batch,) or (batch, 1), "
                f"got {shapes[0]}",
                remedy="cross one feature with another, not rows of features",
            )
        if any(shape != shapes[0] for shape in shapes):
            raise ShapeError(f"{who(self)}: the inputs must have equal shapes, got {shapes}")
        for x in inputs:
            if x.dtype not in INTEGER | STRING:
                raise DTypeError(
                    f"{who(self)}: the inputs must be whole numbers or strings, got {x.dtype}",
                    remedy="cast it, or make bins of it with Discretization",
                )

    def compute_output_shape(self, input_shape: Sequence[Shape]) -> Any:
        """The shape of the output for inputs of given shapes."""
        first = tuple(input_shape[0])
        if self.output_mode == "int":
            return first
        return (*(first[:-1] if len(first) == 2 else first or (1,)), self.num_bins)

    def get_config(self) -> dict[str, Any]:
        return {
            "num_bins": self.num_bins,
            "output_mode": self.output_mode,
            "sparse": self.sparse,
            "name": self.name,
            "dtype": self.dtype,
        }
