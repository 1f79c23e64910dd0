"""Cropping and zero padding: cells taken from, or added to, the ends of the spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

from laminar import ops
from laminar.config import standardize_data_format
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.typing import DataFormat, Ints

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, whole

Pair = tuple[int, int]


def _pair(layer: Layer, name: str, value: Any) -> Pair:
    """Cells before and after an axis: one number for both, or two."""
    if hasattr(value, "__index__"):
        value = (value, value)
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise InvalidArgumentError(
            f"{who(layer)}: {name} of an axis must be a whole number, or two of them (before, "
            f"after), got {value!r}"
        )
    before, after = (whole(layer, name, n, least=0) for n in value)
    return before, after


def _pairs(layer: Layer, name: str, value: Any, rank: int) -> tuple[Pair, ...]:
    """Cells before and after each of `rank` axes: one number for all, or an entry for each axis."""
    if hasattr(value, "__index__"):
        value = (value,) * rank
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != rank:
        raise InvalidArgumentError(
            f"{who(layer)}: {name} must be a whole number, or {rank} entries (one for each spatial "
            f"axis), got {value!r}"
        )
    return tuple(_pair(layer, name, entry) for entry in value)


class _Borders(Layer):
    """What cropping and padding have in common. Abstract in `rank` and in what they do."""

    rank: ClassVar[int]
    data_format = "channels_last"

    def _per_axis(self, pairs: Sequence[Pair]) -> list[Pair]:
        """One pair for each axis of the input; none for the batch and the channels."""
        if self.data_format == "channels_first":
            return [(0, 0), (0, 0), *pairs]
        return [(0, 0), *pairs, (0, 0)]

    def _crop(self, x: Tensor, pairs: Sequence[Pair]) -> Any:
        parts = []
        for axis, (before, after) in enumerate(self._per_axis(pairs)):
            size = x.shape[axis]
            if size is not None and before + after >= size > 0:
                raise ShapeError(
                    f"{who(self)}: cropping {(before, after)} leaves nothing of axis {axis} of the "
                    f"input {tuple(x.shape)}",
                    remedy="crop less",
                )
            parts.append(slice(before, -after if after else None))
        return x[tuple(parts)]


class Cropping1D(_Borders):
    """Steps taken from both ends of a sequence.

    Args:
        cropping: how many: one number, or (before, after).

    Shapes:
        x: (batch, steps, channels) -> y: (batch, steps - before - after, channels)

    Raises:
        InvalidArgumentError: a number below 0.
        ShapeError: nothing is left.

    Examples:
        >>> layers.Cropping1D((1, 2))(np.arange(5.0).reshape(1, 5, 1))[0, :, 0]
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """

    def __init__(
        self, cropping: Ints | Sequence[Sequence[int]] = (1, 1), **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.cropping = _pair(self, "cropping", cropping)
        self.input_spec = InputSpec(ndim=3)

    def call(self, inputs: Tensor) -> Any:
        return self._crop(inputs, [self.cropping])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "cropping")


class _CroppingND(_Borders):
    def __init__(
        self,
        cropping: Ints | Sequence[Sequence[int]],
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.cropping = _pairs(self, "cropping", cropping, self.rank)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Any:
        return self._crop(inputs, self.cropping)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "cropping", "data_format")


class Cropping2D(_CroppingND):
    """Rows and columns taken from the ends of an image.

    Args:
        cropping: one number; (rows, columns), each at both ends; or ((top, bottom), (left, right)).
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels), or (batch, channels, height, width) -> y: smaller

    Raises:
        InvalidArgumentError: a number below 0.
        ShapeError: nothing is left.

    Examples:
        >>> layers.Cropping2D(((1, 1), (2, 0)))(np.zeros((1, 6, 6, 3))).shape
        (1, 4, 4, 3)
    """

    rank = 2

    def __init__(
        self,
        cropping: Ints | Sequence[Sequence[int]] = ((0, 0), (0, 0)),
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(cropping, data_format, **kwargs)


class Cropping3D(_CroppingND):
    """Cells taken from the ends of the three spatial axes of a volume.

    Args:
        cropping: one number; three, each at both ends; or three pairs, the cells at the beginning
            and at the end of each axis.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, depth, height, width, channels), or (batch, channels, depth, height, width) -> y:
        smaller

    Raises:
        InvalidArgumentError: a number below 0.
        ShapeError: nothing is left.

    Examples:
        >>> layers.Cropping3D(1)(np.zeros((1, 6, 6, 6, 3))).shape
        (1, 4, 4, 4, 3)
    """

    rank = 3

    def __init__(
        self,
        cropping: Ints | Sequence[Sequence[int]] = ((1, 1), (1, 1), (1, 1)),
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(cropping, data_format, **kwargs)


class ZeroPadding1D(_Borders):
    """Zeros before and after a sequence.

    Args:
        padding: how many: one number, or (before, after).
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, steps, channels), or (batch, channels, steps) -> y: steps + before + after

    Raises:
        InvalidArgumentError: a number below 0.

    Examples:
        >>> layers.ZeroPadding1D(1)(np.array([[[1.0], [2.0]]]))[0, :, 0]
        Tensor([0., 1., 2., 0.], shape=(4,), dtype=float32)
    """

    def __init__(
        self,
        padding: Ints | Sequence[Sequence[int]] = 1,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.padding = _pair(self, "padding", padding)
        self.input_spec = InputSpec(ndim=3)

    def call(self, inputs: Tensor) -> Any:
        return ops.pad(inputs, self._per_axis([self.padding]))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "padding", "data_format")


class _ZeroPaddingND(_Borders):
    def __init__(
        self,
        padding: Ints | Sequence[Sequence[int]],
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.padding = _pairs(self, "padding", padding, self.rank)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Any:
        return ops.pad(inputs, self._per_axis(self.padding))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "padding", "data_format")


class ZeroPadding2D(_ZeroPaddingND):
    """Zeros around an image.

    Args:
        padding: one number; (rows, columns), each at both ends; or ((top, bottom), (left, right)).
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels), or (batch, channels, height, width) -> y: larger

    Raises:
        InvalidArgumentError: a number below 0.

    Examples:
        >>> layers.ZeroPadding2D(((1, 0), (2, 2)))(np.zeros((1, 4, 4, 3))).shape
        (1, 5, 8, 3)
    """

    rank = 2

    def __init__(
        self,
        padding: Ints | Sequence[Sequence[int]] = (1, 1),
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(padding, data_format, **kwargs)


class ZeroPadding3D(_ZeroPaddingND):
    """Zeros around a volume.

    Args:
        padding: one number; three, each at both ends; or three pairs, the cells at the beginning
            and at the end of each axis.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, depth, height, width, channels), or (batch, channels, depth, height, width) -> y:
        larger

    Raises:
        InvalidArgumentError: a number below 0.

    Examples:
        >>> layers.ZeroPadding3D(1)(np.zeros((1, 2, 2, 2, 3))).shape
        (1, 4, 4, 4, 3)
    """

    rank = 3

    def __init__(
        self,
        padding: Ints | Sequence[Sequence[int]] = ((1, 1), (1, 1), (1, 1)),
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(padding, data_format, **kwargs)
