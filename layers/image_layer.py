"""What layers that change images have in common: what they take, and when and on what they work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias, Unpack

from laminar import ops, random
from laminar.bounding_boxes.formats import FORMATS, convert_format, format_of
from laminar.bounding_boxes.moving import clip_to_image_size
from laminar.config import standardize_data_format
from laminar.engine.errors import InvalidArgumentError, ShapeError, UnimplementedError
from laminar.engine.graph import Tensor, TensorShape, as_dtype
from laminar.naming import who
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .data_layer import DataLayer, as_input
from .layer_options import LayerOptions
from .options import config_of
from .symbolic import KerasTensor

# The range of a random factor: (least, greatest), or one number for -number to number.
Range: TypeAlias = float | Sequence[float]
# What a dict of inputs may hold.
PARTS = ("images", "labels", "segmentation_masks", "bounding_boxes")
# For what of a symbolic call depends on no height and width, where they are unknown.
_SOME_SIZE = 64


class BoxOptions(LayerOptions, total=False):
    """The arguments that every layer for images takes, but for the data format."""

    bounding_box_format: str | None


class ImageOptions(BoxOptions, total=False):
    """The arguments that every layer for images takes; see `ImageLayer`."""

    data_format: DataFormat | None


class ImageLayer(DataLayer):
    """A layer that changes images: derive from it, and write `draw` and `change`. Abstract.

    An input is a batch of images, one image, or a dict with "images" and any of "labels",
    "segmentation_masks" and "bounding_boxes" (a dict with "boxes", and perhaps "labels"), which are
    changed along with them. `change` sees a batch of floats with the channels last, whatever the
    input is.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        bounding_box_format: what the numbers of bounding boxes are; see
            `utils.bounding_boxes.convert_format`. Where pixels move, boxes need it.

    Shapes:
        images: (batch, height, width, channels), or without the batch; boxes: (batch, n, 4)

    Raises:
        InvalidArgumentError: a dict has no "images", or something that is not changed along; there
            is no such format of boxes.
    """

    keeps_dtype: ClassVar[bool] = False  # else the output is of the compute dtype
    always: ClassVar[bool] = False  # whether it works outside of training too
    moves: ClassVar[bool] = False  # whether pixels move, so that what belongs to them must follow

    def __init__(
        self,
        data_format: DataFormat | None = None,
        bounding_box_format: str | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        if bounding_box_format is not None:
            format_of(bounding_box_format)
        self.bounding_box_format = bounding_box_format

    def _begin(self, seed: int | None) -> None:
        """Keep the seed, and make the generator of all that is drawn."""
        self.seed = seed
        self.generator = random.SeedGenerator(seed)

    def _as_input(self, inputs: Any) -> Any:
        if not isinstance(inputs, dict):
            return as_input(inputs)
        return {name: self._as_input(value) for name, value in inputs.items()}

    # What a layer says

    def draw(self, x: Tensor, seed: Any) -> dict[str, Any]:
        """What is random in a change of the batch `x`, by names."""
        return {}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        """The images `x`, changed.

        Args:
            x: (batch, height, width, channels), floats.
            drawn: what `draw` gave.
            interpolation: instead of that of the layer, where pixels move.
        """
        raise NotImplementedError

    def rest(self, x: Tensor, interpolation: str | None = None) -> Any:
        """What images, or masks, become outside of training; see `change`."""
        return x

    def change_labels(self, labels: Tensor, drawn: dict[str, Any]) -> Any:
        """Labels, (batch, ...), changed along with the images."""
        return labels

    def change_masks(self, masks: Tensor, drawn: dict[str, Any]) -> Any:
        """Segmentation masks as floats, changed along with the images."""
        return self.change(masks, drawn, "nearest") if self.moves else masks

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        """Boxes, changed along with the images; they are cut off at the borders afterwards.

        Args:
            boxes: (batch, n, 4): left, top, right, bottom, in pixels.
            drawn: what `draw` gave.
            size: height and width of the images before.
        """
        if not self.moves:
            return boxes
        raise UnimplementedError(
            f"{who(self)}: pixels move, and bounding boxes would not follow them",
            remedy="leave the boxes out, or use another layer",
        )

    def rest_boxes(self, boxes: Tensor, size: tuple[Any, Any]) -> Any:
        """What boxes become outside of training; see `change_boxes`."""
        return boxes

    def changed_size(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        """Height and width of the images after the change."""
        return size

    # The parts of a call, each of which a subclass may replace

    def get_random_transformation(
        self, data: Any, training: bool = True, seed: Any = None
    ) -> dict[str, Any]:
        """What is drawn for a change of `data`, by names, and the "input_shape" of the images.

        Args:
            data: images, or a dict with "images".
            training: see `call`.
            seed: a SeedGenerator, in place of the layer's own.
        """
        images = as_input(data["images"] if isinstance(data, dict) else data)
        x = self._batch(images, self._work_dtype())
        drawn = {}
        if training or self.always:
            drawn = self.draw(x, getattr(self, "generator", None) if seed is None else seed)
        return {**drawn, "input_shape": tuple(images.shape)}

    def transform_images(
        self, images: Any, transformation: dict[str, Any] | None = None, training: bool = True
    ) -> Any:
        """A batch of images, or one, changed by what `get_random_transformation` gave."""
        images = as_input(images)
        x = self._batch(images, self._work_dtype())
        works = self._works(transformation, training)
        y = self.rest(x) if works is None else self.change(x, works)
        return self._unbatch(y, images, None if self.keeps_dtype else self.compute_dtype)

    def transform_labels(
        self, labels: Any, transformation: dict[str, Any] | None = None, training: bool = True
    ) -> Any:
        """Labels of a batch, changed along with the images."""
        works = self._works(transformation, training)
        labels = as_input(labels)
        return labels if works is None else self.change_labels(labels, works)

    def transform_segmentation_masks(
        self,
        segmentation_masks: Any,
        transformation: dict[str, Any] | None = None,
        training: bool = True,
    ) -> Any:
        """Masks of a batch, or of one image, changed along with the images."""
        masks = as_input(segmentation_masks)
        x = self._batch(masks, self._work_dtype())
        works = self._works(transformation, training)
        y = self.rest(x, "nearest") if works is None else self.change_masks(x, works)
        return self._unbatch(y, masks, None)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: dict[str, Any] | None = None,
        training: bool = True,
    ) -> dict[str, Any]:
        """Boxes of a batch, or of one image, changed along with the images.

        Boxes are cut off at the borders of the image; the label of one that has no area left
        becomes -1.

        Raises:
            InvalidArgumentError: the layer does not know their format.
            UnimplementedError: a layer whose changes boxes cannot follow.
        """
        works = self._works(transformation, training)
        if transformation is None or not self.moves:
            return bounding_boxes
        if self.bounding_box_format is None:
            raise InvalidArgumentError(
                f"{who(self)}: the format of the bounding boxes is not known",
                remedy=f"give bounding_box_format= to the layer, one of {', '.join(FORMATS)}",
            )
        size = self._size(transformation["input_shape"])
        found = convert_format(bounding_boxes, self.bounding_box_format, "xyxy", *size)
        is_batched = len(found["boxes"].shape) == 3
        boxes = found["boxes"] if is_batched else ops.expand_dims(found["boxes"], 0)
        if works is None:
            boxes = self.rest_boxes(boxes, size)
        else:
            boxes = self.change_boxes(boxes, works, size)
        found["boxes"] = boxes if is_batched else ops.squeeze(boxes, 0)
        size = self.changed_size(size)
        found = clip_to_image_size(found, *size, bounding_box_format="xyxy")
        moved: dict[str, Any] = convert_format(found, "xyxy", self.bounding_box_format, *size)
        return moved

    def _works(
        self, transformation: dict[str, Any] | None, training: bool
    ) -> dict[str, Any] | None:
        """What a change is made by; None where there is none."""
        if not (training or self.always):
            return None
        return {} if transformation is None and self.always else transformation

    def _size(self, image_shape: Sequence[Any]) -> tuple[Any, Any]:
        """Height and width of images of a shape."""
        height, width = (-2, -1) if self.data_format == "channels_first" else (-3, -2)
        return image_shape[height], image_shape[width]

    # How it is called

    def call(self, data: Any, training: bool = True) -> Any:
        if not isinstance(data, dict):
            return self.transform_images(
                data, self.get_random_transformation(data, training), training
            )
        self._check(data)
        found = dict(data)
        drawn = self.get_random_transformation(data, training)
        found["images"] = self.transform_images(data["images"], drawn, training)
        if "labels" in data:
            labels, is_one = data["labels"], len(data["images"].shape) == 3
            labels = ops.expand_dims(labels, 0) if is_one else labels
            labels = self.transform_labels(labels, drawn, training)
            found["labels"] = ops.squeeze(labels, 0) if is_one else labels
        if "segmentation_masks" in data:
            masks = data["segmentation_masks"]
            found["segmentation_masks"] = self.transform_segmentation_masks(masks, drawn, training)
        if "bounding_boxes" in data:
            boxes = data["bounding_boxes"]
            found["bounding_boxes"] = self.transform_bounding_boxes(boxes, drawn, training)
        return found

    def compute_output_spec(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """See `Layer`. A height or width that is known only with the data stays open until then."""
        images = data["images"] if isinstance(data, dict) else data
        shape = TensorShape(images.shape)
        if shape.rank not in (3, 4) or None not in self._size(shape):
            return super().compute_output_spec(data, *args, **kwargs)
        found = super().compute_output_spec(_at_some_size(self, data), *args, **kwargs)
        height, width = self.changed_size(self._size(shape))
        return _with_size(self, found, lambda _: (height, width))

    def _check(self, parts: dict[str, Any]) -> None:
        if "images" not in parts or not set(parts) <= set(PARTS):
            raise InvalidArgumentError(
                f"{who(self)}: a dict must have 'images', and may have "
                f"{', '.join(map(repr, PARTS[1:]))}; got {', '.join(map(repr, parts))}"
            )

    def _work_dtype(self) -> str:
        """The compute dtype; sixteen bits are too few for places in an image, and for colours."""
        kind = as_dtype(self.compute_dtype)
        return self.compute_dtype if kind.is_floating and kind.size >= 4 else "float32"

    def _batch(self, x: Tensor, dtype: str) -> Any:
        """As a batch of `dtype`, the channels last."""
        rank = TensorShape(x.shape).rank
        if rank not in (3, 4):
            raise ShapeError(
                f"{who(self)}: expected a batch of images or one image, of rank 4 or 3, "
                f"got the shape {x.shape}"
            )
        y = ops.cast(x, dtype)
        if rank == 3:
            y = ops.expand_dims(y, 0)
        return ops.transpose(y, (0, 2, 3, 1)) if self.data_format == "channels_first" else y

    def _unbatch(self, y: Tensor, like: Any, dtype: str | None) -> Any:
        """As `like` was: one image or a batch; of `dtype`, by default that of `like`."""
        kind = as_dtype(dtype or like.dtype)
        if not kind.is_floating and as_dtype(y.dtype).is_floating:
            y = ops.saturate_cast(ops.round(y), kind)
        else:
            y = ops.cast(y, kind)
        if self.data_format == "channels_first":
            y = ops.transpose(y, (0, 3, 1, 2))
        return ops.squeeze(y, 0) if len(like.shape) == 3 else y

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | config_of(self, "data_format")
        if self.bounding_box_format is not None:
            config["bounding_box_format"] = self.bounding_box_format
        return config


class ToneLayer(ImageLayer):
    """A layer that draws what it does to pixels of a known range. Abstract.

    Args:
        value_range: the least and greatest value of a pixel.
        seed: a whole number, which fixes all draws that follow.
        data_format: see `ImageLayer`.

    Raises:
        InvalidArgumentError: no range.
    """

    def __init__(
        self,
        value_range: Sequence[float],
        seed: int | None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.value_range = bounds(self, value_range)
        self._begin(seed)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "value_range", "seed")


class FactorLayer(ToneLayer):
    """A layer of tones with a factor: how much an image changes, or how likely. Abstract.

    Args:
        factor: two numbers between which it is drawn for each image, or one for all from -factor,
            or from `least` where that is more, to factor.
        value_range, data_format, seed: see `ToneLayer`.

    Raises:
        InvalidArgumentError: a factor that is not from `least` to 1, or no range.
    """

    least: ClassVar[float] = 0.0

    def __init__(
        self,
        factor: Range,
        value_range: Sequence[float] = (0, 255),
        data_format: DataFormat | None = None,
        seed: int | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(value_range, seed, data_format, **kwargs)
        self.factor = span(self, "factor", factor, self.least, 1.0)

    def draw(self, x: Tensor, seed: Any) -> dict[str, Any]:
        return {"factor": between(seed, self.factor, *each_image(x))}

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "factor")


# Arguments


def span(layer: ImageLayer, name: str, value: Any, low: float, high: float) -> tuple[float, float]:
    """The range of a random factor: two numbers, or one for all from -value to value.

    Args:
        layer: whose argument it is.
        name: of the argument.
        value: as the user gave it.
        low: the lowest number that may be given.
        high: the greatest.

    Raises:
        InvalidArgumentError: another value, or one outside of the bounds.
    """
    is_pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    numbers = list(value) if is_pair else [value]
    fits = all(
        isinstance(v, int | float) and not isinstance(v, bool) and low <= v <= high for v in numbers
    )
    if not fits:
        raise InvalidArgumentError(
            f"{who(layer)}: {name} must be a number from {low:g} to {high:g}, or two of them, "
            f"got {value!r}"
        )
    if is_pair:
        return min(numbers), max(numbers)
    number = abs(numbers[0])
    return max(-number, low) if number else number, number


def bounds(layer: ImageLayer, value: Any) -> tuple[float, float]:
    """The least and greatest value that pixels have: the argument `value_range`.

    Raises:
        InvalidArgumentError: these are not two numbers, one above the other.
    """
    if (
        not isinstance(value, Sequence)
        or len(value) != 2
        or not all(isinstance(v, int | float) for v in value)
        or value[0] == value[1]
    ):
        raise InvalidArgumentError(
            f"{who(layer)}: value_range must be the least and the greatest value of a pixel, "
            f"got {value!r}"
        )
    return min(value), max(value)


# Draws and colours


def between(seed: SeedGenerator, limits: tuple[float, float], *shape: Any) -> Any:
    """Uniform numbers from the lower to the upper of `limits`."""
    return random.uniform(shape, limits[0], limits[1], dtype="float32", seed=seed)


def each_image(x: Tensor) -> tuple[Any, int, int, int]:
    """The shape of what there is one of for each image of the batch `x`."""
    return (ops.shape(x)[0], 1, 1, 1)


def some(seed: SeedGenerator, chance: tuple[float, float], x: Tensor) -> Any:
    """For each image of the batch `x` whether it is chosen, by a chance that is itself drawn."""
    chances = between(seed, chance, *each_image(x))
    return between(seed, (0.0, 1.0), *each_image(x)) < chances


def per_image(values: Any) -> Any:
    """Values of the images of a batch, in a shape that fits its pixels: (batch, 1, 1, 1)."""
    return ops.reshape(ops.convert_to_tensor(values), (-1, 1, 1, 1))


def as_like(drawn: Any, x: Tensor) -> Any:
    """Drawn numbers in the dtype of the images that they change."""
    return ops.cast(drawn, x.dtype)


def rescaled(x: Tensor, source: tuple[float, float], target: tuple[float, float]) -> Any:
    """Pixels in another range of values."""
    if source == target:
        return x
    scale = (target[1] - target[0]) / (source[1] - source[0])
    return (x - source[0]) * scale + target[0]


def clipped(x: Tensor, limits: tuple[float, float]) -> Any:
    """Pixels brought into their range."""
    return ops.clip(x, limits[0], limits[1])


def _at_some_size(layer: ImageLayer, data: Any) -> Any:
    """`data` of a symbolic call, with some height and width where they are unknown."""
    return _with_size(layer, data, lambda size: [_SOME_SIZE if n is None else n for n in size])


def _with_size(layer: ImageLayer, data: Any, size_for: Callable[[Any], Sequence[Any]]) -> Any:
    """Symbolic images, or those of a dict and the masks in it, of other heights and widths."""
    if isinstance(data, dict):
        pictures = {k: data[k] for k in ("images", "segmentation_masks") if k in data}
        return {**data, **{k: _with_size(layer, x, size_for) for k, x in pictures.items()}}
    shape, first = list(data.shape), -2 if layer.data_format == "channels_first" else -3
    first += len(shape)
    shape[first : first + 2] = size_for(shape[first : first + 2])
    return KerasTensor(tuple(shape), data.dtype)


def known_size(layer: ImageLayer, x: Tensor) -> tuple[int, int]:
    """Height and width of a batch of images.

    Raises:
        ShapeError: one is unknown.
    """
    height, width = x.shape[1], x.shape[2]
    if height is None or width is None:
        raise ShapeError(
            f"{who(layer)}: height and width of the images must be known, got {x.shape}",
            remedy="give Input a full shape (the batch alone may be unknown)",
        )
    return height, width
