"""Images side by side.

This module owns matplotlib's windows, which are optional and loaded when a gallery is drawn.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, UnimplementedError

from .drawing import Color, _batch, draw_bounding_boxes, draw_segmentation_masks


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as cause:
        raise UnimplementedError(
            "galleries need matplotlib, which is not installed", remedy="pip install matplotlib"
        ) from cause
    return plt


def plot_image_gallery(
    images: Any,
    y_true: Any = None,
    y_pred: Any = None,
    label_map: Mapping[int, str] | None = None,
    rows: int | None = None,
    cols: int | None = None,
    value_range: tuple[float, float] = (0, 255),
    scale: float = 2,
    path: str | os.PathLike[str] | None = None,
    show: bool | None = None,
    transparent: bool = True,
    dpi: int = 60,
    legend_handles: Sequence[Any] | None = None,
    data_format: str | None = None,
) -> None:
    """Show images in rows and columns, with what they are and what they are taken for.

    Args:
        images: (batch, height, width, channels).
        y_true: the class of each image.
        y_pred: the class that was predicted of each.
        label_map: the names of the classes; needed where there are any.
        rows: by default as many as there must be, near a square.
        cols: likewise.
        value_range: what is black, and what is white.
        scale: inches of an image.
        path: a file to write; None shows the gallery.
        show: whether to show it; by default if there is no path.
        transparent: whether the background of the file is.
        dpi: of the file.
        legend_handles: patches of matplotlib for a legend.
        data_format: where the channels are.

    Raises:
        ShapeError: the images are no batch.
        InvalidArgumentError: a path and `show=True`, or classes without names.
        UnimplementedError: matplotlib is not installed.

    Examples:
        >>> laminar.visualization.plot_image_gallery(
        ...     np.zeros((4, 8, 8, 3), "uint8"), path="images.png"
        ... )
    """
    if path is not None and show:
        raise InvalidArgumentError("plot_image_gallery: give either path or show=True")
    if label_map is None and not (y_true is None and y_pred is None):
        raise InvalidArgumentError(
            "plot_image_gallery: y_true and y_pred need label_map", remedy="label_map={0: 'cat'}"
        )
    pictures = _batch(images, data_format, "plot_image_gallery").astype("float32")
    low, high = value_range
    pictures = np.clip((pictures - low) / (high - low) * 255, 0, 255).astype("uint8")
    rows, cols = _grid(len(pictures), rows, cols)
    plt = _pyplot()
    figure, axes = plt.subplots(
        rows, cols, figsize=(cols * scale, rows * scale), layout="tight", squeeze=False
    )
    for place in axes.flat:
        place.axis("off")
    for i, (place, picture) in enumerate(zip(axes.flat, pictures, strict=False)):
        place.imshow(picture if picture.shape[-1] > 1 else picture[..., 0], cmap="gray")
        titles = [
            f"{what}: {(label_map or {}).get(int(np.asarray(labels)[i]), 'Unknown')}"
            for what, labels in (("Label", y_true), ("Pred", y_pred))
            if labels is not None
        ]
        place.set_title("  ".join(titles), fontsize=8)
    if legend_handles:
        figure.legend(handles=legend_handles, loc="lower center")
    try:
        if path is not None:
            figure.savefig(
                path, pad_inches=0, bbox_inches="tight", transparent=transparent, dpi=dpi
            )
        elif show is not False:
            plt.show()
    finally:
        plt.close(figure)


def _grid(count: int, rows: int | None, cols: int | None) -> tuple[int, int]:
    if cols is None:
        cols = math.ceil(math.sqrt(count)) if rows is None else math.ceil(count / rows)
    return (math.ceil(count / cols) if rows is None else rows), cols


def plot_bounding_box_gallery(
    images: Any,
    bounding_box_format: str,
    y_true: Mapping[str, Any] | None = None,
    y_pred: Mapping[str, Any] | None = None,
    value_range: tuple[float, float] = (0, 255),
    true_color: Color = (0, 188, 212),
    pred_color: Color = (255, 235, 59),
    line_thickness: int = 2,
    font_scale: float = 1.0,
    text_thickness: int | None = None,
    class_mapping: Mapping[int, str] | None = None,
    ground_truth_mapping: Mapping[int, str] | None = None,
    prediction_mapping: Mapping[int, str] | None = None,
    legend: bool = False,
    legend_handles: Sequence[Any] | None = None,
    rows: int | None = None,
    cols: int | None = None,
    data_format: str | None = None,
    **kwargs: Any,
) -> None:
    """Show images with their boxes, and with those that were predicted.

    Args:
        images: see `plot_image_gallery`.
        bounding_box_format: see `draw_bounding_boxes`.
        y_true: the boxes; see `draw_bounding_boxes`.
        y_pred: those that were predicted.
        value_range: what is black, and what is white.
        true_color: of the boxes; `pred_color` is that of the predicted ones.
        line_thickness: see `draw_bounding_boxes`; `font_scale` and `text_thickness` likewise.
        class_mapping: the texts of the labels; `ground_truth_mapping` and `prediction_mapping`
            take its place for one of both.
        legend: whether to say which color is which.
        legend_handles: patches of matplotlib for another legend.
        rows: see `plot_image_gallery`; `cols`, `data_format` and what is left likewise.

    Raises:
        InvalidArgumentError: both `legend` and `legend_handles`.

    Examples:
        >>> boxes = {"boxes": np.array([[[2.0, 2.0, 8.0, 8.0]]]), "labels": np.array([[1]])}
        >>> images = np.zeros((1, 16, 16, 3), "uint8")
        >>> laminar.visualization.plot_bounding_box_gallery(images, "xyxy", boxes, path="boxes.png")
    """
    if legend and legend_handles:
        raise InvalidArgumentError(
            "plot_bounding_box_gallery: give either legend or legend_handles"
        )
    pictures = _batch(images, data_format, "plot_bounding_box_gallery").astype("float32")
    low, high = value_range
    drawn = np.clip((pictures - low) / (high - low) * 255, 0, 255).astype("uint8")
    for boxes, color, names in (
        (y_true, true_color, ground_truth_mapping or class_mapping),
        (y_pred, pred_color, prediction_mapping or class_mapping),
    ):
        if boxes is not None:
            drawn = draw_bounding_boxes(
                drawn,
                boxes,
                bounding_box_format,
                names,
                color,
                line_thickness,
                text_thickness,
                font_scale,
                "channels_last",
            )
    if legend:
        _pyplot()
        from matplotlib.patches import Patch

        kinds = ((true_color, "Ground Truth"), (pred_color, "Prediction"))
        legend_handles = [
            Patch(color=(red / 255, green / 255, blue / 255), label=label)
            for (red, green, blue), label in kinds
        ]
    plot_image_gallery(
        drawn,
        legend_handles=legend_handles,
        rows=rows,
        cols=cols,
        data_format="channels_last",
        **kwargs,
    )


def plot_segmentation_mask_gallery(
    images: Any,
    num_classes: int,
    value_range: tuple[float, float] = (0, 255),
    y_true: Any = None,
    y_pred: Any = None,
    color_mapping: Mapping[int, Color] | None = None,
    blend: bool = True,
    alpha: float = 0.8,
    ignore_index: int = -1,
    data_format: str | None = None,
    **kwargs: Any,
) -> None:
    """Show each image, beside it the image with its mask, and with the one that was predicted.

    Args:
        images: see `plot_image_gallery`.
        num_classes: see `draw_segmentation_masks`.
        value_range: what is black, and what is white.
        y_true: the masks; `y_pred` those that were predicted.
        color_mapping: see `draw_segmentation_masks`; `blend`, `alpha` and `ignore_index` likewise.
        data_format: where the channels are.
        kwargs: see `plot_image_gallery`.

    Examples:
        >>> images, masks = np.zeros((1, 8, 8, 3), "uint8"), np.ones((1, 8, 8, 1), "int32")
        >>> laminar.visualization.plot_segmentation_mask_gallery(
        ...     images, 2, y_true=masks, path="masks.png"
        ... )
    """
    pictures = _batch(images, data_format, "plot_segmentation_mask_gallery").astype("float32")
    low, high = value_range
    pictures = np.clip((pictures - low) / (high - low) * 255, 0, 255).astype("uint8")
    columns = [pictures]
    for masks in (y_true, y_pred):
        if masks is not None:
            found = np.asarray(masks).astype("int32")
            if found.ndim == 4:
                found = _batch(found, data_format, "plot_segmentation_mask_gallery")
            columns.append(
                draw_segmentation_masks(
                    pictures,
                    found,
                    num_classes,
                    color_mapping,
                    alpha,
                    blend,
                    ignore_index,
                    "channels_last",
                )
            )
    shown = np.stack(columns, axis=1).reshape(-1, *pictures.shape[1:])
    plot_image_gallery(
        shown, rows=len(pictures), cols=len(columns), data_format="channels_last", **kwargs
    )
