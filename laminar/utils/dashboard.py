"""The picture of a training: images with what a model takes them for, curves, and the values of
weights and biases, in five panels.

`Record` is what is drawn, as `laminar.callbacks.Dashboard` collects it.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .plotting import COLOURS, new_figure, png_of, style_axes

Array: TypeAlias = "np.ndarray[Any, Any]"

# The quantiles that bound the bands of a distribution: the extremes, 1.5, 1 and 0.5 standard
# deviations of a normal distribution to both sides of the median, and the median.
QUANTILES = (0.0, 0.07, 0.16, 0.31, 0.5, 0.69, 0.84, 0.93, 1.0)
_RED = np.array([0.94, 0.45, 0.42])
_BATCH_COLUMNS, _TEST_COLUMNS = 10, 18
_BATCH_ROWS, _TEST_ROWS = 10, 12


@dataclass
class Guesses:
    """Images, and what a model takes them for.

    Attributes:
        images: (examples, height, width) or (examples, height, width, 1 or 3); any range.
        labels: the class of each.
        guesses: the class that the model gives each.
    """

    images: Array
    labels: Array
    guesses: Array

    @property
    def accuracy(self) -> float:
        """The share of right guesses."""
        return float(np.mean(self.labels == self.guesses))

    def wrong_first(self, count: int) -> Guesses:
        """`count` of them, those with wrong guesses first."""
        order = np.argsort(self.labels == self.guesses, kind="stable")[:count]
        return Guesses(self.images[order], self.labels[order], self.guesses[order])


@dataclass
class Record:
    """What a training has shown so far; lists have an entry for each time it was looked at.

    Attributes:
        steps: numbers of the steps.
        losses: by "training" and "validation", the loss.
        accuracies: the same, the share of right guesses.
        weights: the quantiles (`QUANTILES`) of all weights of rank 2 and more.
        biases: those of the other weights.
        batch: the last batch that was looked at.
        test: the examples that are not trained on.
    """

    steps: list[int] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)
    accuracies: dict[str, list[float]] = field(default_factory=dict)
    weights: list[list[float]] = field(default_factory=list)
    biases: list[list[float]] = field(default_factory=list)
    batch: Guesses | None = None
    test: Guesses | None = None


def draw_dashboard(record: Record, names: Sequence[str] | None = None, title: str = "") -> bytes:
    """The five panels as one PNG picture.

    Args:
        record: what is drawn; a panel that there is nothing for says so.
        names: of the classes, for the labels beside wrong guesses; by default their numbers.
        title: over all.

    Raises:
        UnimplementedError: matplotlib is not installed.
    """
    figure = new_figure(13.0, 7.4)
    if title:
        figure.suptitle(title, fontsize=12)
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 0.95))
    batch, test = upper.subplots(1, 2, width_ratios=(1.0, 1.6))
    _draw_guesses(batch, record.batch, "current batch", _BATCH_ROWS, _BATCH_COLUMNS, names)
    _draw_guesses(test, record.test, "test examples", _TEST_ROWS, _TEST_COLUMNS, names)
    losses, accuracies, values = lower.subfigures(1, 3)
    _draw_curves(losses.subplots(), record.steps, record.losses, "loss")
    _draw_curves(accuracies.subplots(), record.steps, record.accuracies, "accuracy")
    weights, biases = values.subplots(2, 1, sharex=True)
    _draw_bands(weights, record.steps, record.weights, "weights", "")
    _draw_bands(biases, record.steps, record.biases, "biases", "step")
    return png_of(figure)


def page_of(picture: bytes, title: str, refresh_seconds: int | None = None) -> str:
    """A picture as an HTML page that needs no other file.

    Args:
        picture: PNG.
        title: of the page.
        refresh_seconds: how soon a browser reads the page again; None while nothing changes.
    """
    again = (
        f'<meta http-equiv="refresh" content="{refresh_seconds}">'
        if refresh_seconds is not None
        else ""
    )
    name = html.escape(title)
    data = base64.b64encode(picture).decode("ascii")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{again}<title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>body{margin:0;background:#fff;text-align:center}img{max-width:100%}</style></head>"
        f'<body><img alt="{name}" src="data:image/png;base64,{data}"></body></html>\n'
    )


def _draw_guesses(
    axes: Any,
    found: Guesses | None,
    title: str,
    rows: int,
    columns: int,
    names: Sequence[str] | None,
) -> None:
    axes.set_axis_off()
    if found is None or not len(found.labels):
        axes.set_title(title, fontsize=10)
        axes.text(0.5, 0.5, "none", ha="center", transform=axes.transAxes, color="#888888")
        return
    count = len(found.labels)
    wrong = int(np.sum(found.labels != found.guesses))
    shown = found.wrong_first(rows * columns)
    text = f"{title}: {wrong} of {count} wrong, accuracy {found.accuracy:.2%}"
    axes.set_title(text, fontsize=10)
    page, centers, cell = _mosaic(shown, columns)
    axes.imshow(page, interpolation="nearest")
    size = min(8.0, 420.0 / (columns * max(_longest(names), 2)))
    for (x, y), label, guess in zip(centers, shown.labels, shown.guesses, strict=True):
        if label == guess:
            continue
        for side, number, colour in ((-1, label, "#111111"), (1, guess, "#7a0c06")):
            axes.text(
                x + side * cell * 0.47,
                y,
                _name(number, names),
                ha="left" if side < 0 else "right",
                va="center",
                fontsize=size,
                color=colour,
            )


def _longest(names: Sequence[str] | None) -> int:
    return max((len(str(name)) for name in names or ()), default=1)


def _name(number: Any, names: Sequence[str] | None) -> str:
    number = int(number)
    return str(names[number]) if names is not None and number < len(names) else str(number)


def _mosaic(shown: Guesses, columns: int) -> tuple[Array, list[tuple[float, float]], int]:
    """One picture of all images, in rows; the center of each, and the width of a cell.

    A cell leaves room for a label on both sides of its image, which is red where the guess is
    wrong.
    """
    images = _as_colours(shown.images)
    count, height, width, _ = images.shape
    side, gap = max(math.ceil(width * 0.4), 1), max(math.ceil(width * 0.1), 1)
    cell, line = width + 2 * side, height + gap
    rows = math.ceil(count / columns)
    page = np.ones((rows * line, columns * (cell + gap), 3))
    centers = []
    for i, image in enumerate(images):
        top, left = i // columns * line, i % columns * (cell + gap)
        if shown.labels[i] != shown.guesses[i]:
            page[top : top + height, left : left + cell] = _RED
            image = image * (1 - 0.45) + _RED * 0.45
        page[top : top + height, left + side : left + side + width] = image
        centers.append((left + cell / 2 - 0.5, top + height / 2 - 0.5))
    return page, centers, cell


def _as_colours(images: Array) -> Array:
    """Red, green and blue from 0 to 1."""
    found = np.asarray(images, "float64")
    low, high = found.min(), found.max()
    found = (found - low) / ((high - low) or 1.0)
    if found.ndim == 3:
        found = found[..., None]
    return np.broadcast_to(found, (*found.shape[:3], 3))


def _draw_curves(
    axes: Any, steps: Sequence[int], curves: dict[str, list[float]], title: str
) -> None:
    for kind, values in curves.items():
        x = steps[-len(values) :]
        axes.plot(x, values, color=COLOURS[kind], label=kind, linewidth=1.2)
    axes.set_title(title, fontsize=10)
    style_axes(axes, "step")
    if curves:
        axes.legend(fontsize=8, frameon=False)


def _draw_bands(
    axes: Any, steps: Sequence[int], quantiles: list[list[float]], title: str, x_label: str
) -> None:
    if quantiles:
        bounds = np.asarray(quantiles).T
        middle = len(QUANTILES) // 2
        for i in range(middle):
            alpha = 0.12 + 0.16 * i
            low, high = bounds[i], bounds[-1 - i]
            colour = COLOURS["training"]
            axes.fill_between(steps, low, high, color=colour, alpha=alpha, linewidth=0)
        axes.plot(steps, bounds[middle], color=COLOURS["training"], linewidth=1)
    axes.set_title(title, fontsize=10)
    style_axes(axes, x_label)
