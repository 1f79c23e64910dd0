"""Bounding boxes of images: as many for each image."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops

from .image_layer import BoxOptions, ImageLayer
from .options import config_of, whole


class MaxNumBoundingBoxes(ImageLayer):
    """Each image gets the same number of bounding boxes: the rest is cut off, or filled up.

    Args:
        max_number: how many.
        fill_value: of the boxes that are added, and of their labels.

    Shapes:
        images: any -> the same; boxes: (batch, boxes, 4) -> (batch, max_number, 4), labels:
        (batch, boxes) -> (batch, max_number)

    Raises:
        InvalidArgumentError: a number below 1.

    Examples:
        >>> layer = layers.MaxNumBoundingBoxes(max_number=3)
        >>> boxes = {"boxes": np.ones((1, 2, 4), "float32"), "labels": np.array([[1.0, 2.0]])}
        >>> y = layer({"images": np.zeros((1, 8, 8, 3)), "bounding_boxes": boxes})
        >>> y["bounding_boxes"]["labels"]
        Tensor([[ 1.,  2., -1.]], shape=(1, 3), dtype=float32)
    """

    always = True
    keeps_dtype = True

    def __init__(self, max_number: int, fill_value: int = -1, **kwargs: Unpack[BoxOptions]) -> None:
        super().__init__(**kwargs)
        self.max_number = whole(self, "max_number", max_number)
        self.fill_value = int(fill_value)

    def call(self, data: Any, training: bool = True) -> Any:
        if not isinstance(data, dict) or "bounding_boxes" not in data:
            return data
        images, found = data["images"], data["bounding_boxes"]
        axis = len(images.shape) - 3  # 0 for one image, 1 for a batch
        boxes = {name: self._fitted(value, axis) for name, value in found.items()}
        return {**data, "bounding_boxes": boxes}

    def _fitted(self, values: Any, axis: int) -> Any:
        kept = values[:, : self.max_number] if axis else values[: self.max_number]
        missing = self.max_number - kept.shape[axis]
        margins = [(0, missing if i == axis else 0) for i in range(len(values.shape))]
        return ops.pad(kept, margins, constant_values=self.fill_value) if missing else kept

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "max_number", "fill_value")
