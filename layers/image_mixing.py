"""Images mixed with others of their batch, or covered in part, in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops, random
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .image_layer import (
    BoxOptions,
    ImageLayer,
    Range,
    as_like,
    between,
    bounds,
    clipped,
    each_image,
    known_size,
    per_image,
    some,
    span,
)
from .options import config_of


def _stretch(seed: SeedGenerator, size: int, part: Any) -> tuple[Any, Any]:
    """Where a stretch begins and ends that is `part` of a side, at a random place."""
    length = part * size
    begin = between(seed, (0.0, 1.0), *ops.shape(part)) * (size - length)
    return begin, begin + length


def _in_box(height: int, width: int, rows: tuple[Any, Any], columns: tuple[Any, Any]) -> Any:
    """Whether pixels are in a box, given by where it begins and ends: (batch, h, w, 1)."""
    down = ops.reshape(ops.arange(height, dtype="float32"), (1, -1, 1, 1))
    right = ops.reshape(ops.arange(width, dtype="float32"), (1, 1, -1, 1))
    in_rows = ops.logical_and(down >= rows[0], down < rows[1])
    return ops.logical_and(in_rows, ops.logical_and(right >= columns[0], right < columns[1]))


def _mixed_labels(labels: Tensor, order: Any, weight: Any) -> Any:
    """weight * labels + (1 - weight) * those of the other images."""
    weight = ops.reshape(weight, (-1,) + (1,) * (len(labels.shape) - 1))
    return weight * labels + (1 - weight) * ops.take(labels, order, axis=0)


class CutMix(ImageLayer):
    """In training, a box of each image is that of another image of the batch.

    Labels are mixed by the areas.

    Args:
        factor: alpha of the beta distribution of the area outside of the box: two numbers from 0
            to 1 between which it is drawn, or one for all up to it.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds.

    Source: Yun et al., "CutMix: regularization strategy to train strong classifiers with
        localizable features", 2019, arXiv:1905.04899, section 3.

    Examples:
        >>> images, labels = np.zeros((2, 4, 4, 3)), np.eye(2)
        >>> mixed = layers.CutMix(seed=1)({"images": images, "labels": labels}, training=True)
        >>> ops.sum(mixed["labels"], axis=1)
        Tensor([1., 1.], shape=(2,), dtype=float32)
    """

    moves = True

    def __init__(
        self,
        factor: Range = 1.0,
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.factor = span(self, "factor", factor, 0.0, 1.0)
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        """The box, the order of the other images, and the part of the image that stays."""
        height, width = known_size(self, x)
        count = ops.shape(x)[0]
        alpha = between(seed, self.factor) + 1e-6
        weight = random.beta((count, 1, 1, 1), alpha, alpha, seed=seed)
        side = ops.sqrt(1 - weight)
        columns, rows = _stretch(seed, width, side), _stretch(seed, height, side)
        box = _in_box(height, width, rows, columns)
        order = random.shuffle(ops.arange(count), seed=seed)
        area = (columns[1] - columns[0]) * (rows[1] - rows[0])
        return {
            "batch_masks": box,
            "permutation_order": order,
            "mix_weight": 1 - area / (width * height),
        }

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        other = ops.take(x, drawn["permutation_order"], axis=0)
        return ops.where(ops.convert_to_tensor(drawn["batch_masks"]), other, x)

    def change_labels(self, labels: Tensor, drawn: dict[str, Any]) -> Any:
        return _mixed_labels(labels, drawn["permutation_order"], drawn["mix_weight"])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "factor", "seed")


class MixUp(ImageLayer):
    """In training, images and labels are means of themselves and others of the batch.

    y = w x + (1 - w) other, with w from the beta distribution of (alpha, alpha) for each image.

    Args:
        alpha: of the beta distribution.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: alpha is not above 0.

    Source: Zhang et al., "mixup: beyond empirical risk minimization", 2017, arXiv:1710.09412,
        section 2.

    Examples:
        >>> images, labels = np.zeros((2, 4, 4, 3)), np.eye(2)
        >>> mixed = layers.MixUp(seed=1)({"images": images, "labels": labels}, training=True)
        >>> ops.sum(mixed["labels"], axis=1)
        Tensor([1., 1.], shape=(2,), dtype=float32)
    """

    moves = True

    def __init__(
        self,
        alpha: float = 0.2,
        data_format: DataFormat | None = None,
        seed: int | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        if not isinstance(alpha, int | float) or alpha <= 0:
            raise InvalidArgumentError(f"{who(self)}: alpha must be above 0, got {alpha!r}")
        self.alpha = alpha
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        order = random.shuffle(ops.arange(ops.shape(x)[0]), seed=seed)
        weight = random.beta(each_image(x), self.alpha, self.alpha, seed=seed)
        return {"mix_weight": weight, "permutation_order": order}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        weight = as_like(per_image(drawn["mix_weight"]), x)
        return weight * x + (1 - weight) * ops.take(x, drawn["permutation_order"], axis=0)

    def change_labels(self, labels: Tensor, drawn: dict[str, Any]) -> Any:
        return _mixed_labels(labels, drawn["permutation_order"], drawn["mix_weight"])

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: dict[str, Any] | None = None,
        training: bool = True,
    ) -> dict[str, Any]:
        """The boxes, and then the labels, of both images that were mixed."""
        if not training or transformation is None:
            return bounding_boxes
        order = transformation["permutation_order"]
        return {
            name: ops.concatenate([values, ops.take(values, order, axis=0)], axis=1)
            for name, values in bounding_boxes.items()
        }

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "alpha", "seed")


class RandomErasing(ImageLayer):
    """In training, a box of some images is filled with a value, or with noise.

    Args:
        factor: the chance of an image: two numbers from 0 to 1 between which it is drawn, or one
            for all up to it.
        scale: the area that a square box of the drawn side would have, as a part of the image's:
            two numbers from 0 to 1, or one for all up to it. Height and width are drawn apart.
        fill_value: a number, or one for each channel; None for noise.
        value_range: the least and greatest value of a pixel.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a number outside of its bounds, no range, or another filling.

    Source: Zhong et al., "Random erasing data augmentation", 2017, arXiv:1708.04896, section 3.

    Examples:
        >>> layer = layers.RandomErasing((1.0, 1.0), fill_value=1.0)
        >>> ops.unique(layer(np.zeros((1, 8, 8, 1)), training=True))
        Tensor([0., 1.], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        factor: Range = 1.0,
        scale: Range = (0.02, 0.33),
        fill_value: float | Sequence[float] | None = None,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.factor = span(self, "factor", factor, 0.0, 1.0)
        self.scale = span(self, "scale", scale, 0.0, 1.0)
        numbers = fill_value if isinstance(fill_value, Sequence) else (fill_value or 0,)
        if isinstance(fill_value, str) or not all(isinstance(v, int | float) for v in numbers):
            raise InvalidArgumentError(
                f"{who(self)}: fill_value must be a number, one for each channel, or None for "
                f"noise, got {fill_value!r}"
            )
        self.fill_value = fill_value
        self.value_range = bounds(self, value_range)
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        """Which pixels are covered, and with what."""
        height, width = known_size(self, x)
        sides = [ops.sqrt(between(seed, self.scale, *each_image(x))) for _ in range(2)]
        columns, rows = _stretch(seed, width, sides[0]), _stretch(seed, height, sides[1])
        box = _in_box(height, width, rows, columns)
        if self.fill_value is None:
            filling = random.normal(ops.shape(x), dtype="float32", seed=seed) * self.value_range[1]
        else:
            filling = ops.convert_to_tensor(self.fill_value, "float32")
        return {
            "apply_erasing": some(seed, self.factor, x),
            "batch_masks": box,
            "fill_value": clipped(filling, self.value_range),
        }

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        covered = ops.convert_to_tensor(drawn["batch_masks"])
        covered = ops.logical_and(covered, per_image(drawn["apply_erasing"]))
        return ops.where(covered, as_like(ops.convert_to_tensor(drawn["fill_value"]), x), x)

    def get_config(self) -> dict[str, Any]:
        names = ("factor", "scale", "fill_value", "value_range", "seed")
        return super().get_config() | config_of(self, *names)
