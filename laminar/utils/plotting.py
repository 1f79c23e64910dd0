"""Curves of a training: as a picture, by matplotlib, or as text.

This module owns matplotlib, which is optional and loaded when a picture is drawn.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import UnimplementedError

# One colour for training and one for validation in every panel, told apart in any light.
COLOURS = {"training": "#2a6fbb", "validation": "#d1650f"}
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDE = 40  # so many times the least value: a panel is logarithmic

Curves = Mapping[str, Sequence[Any]]


def has_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401  # whether it is there is the question
    except ImportError:
        return False
    return True


def draw(epochs: Sequence[int], history: Curves, title: str = "") -> bytes:
    """The curves as a PNG picture: a panel for each value, training and validation together.

    Args:
        epochs: their numbers, from 0.
        history: the values of the epochs by name, those of the validation as "val_...".
        title: over all.

    Raises:
        UnimplementedError: matplotlib is not installed.
    """
    panels = _panels(history)
    columns = min(len(panels), 3) or 1
    rows = math.ceil(len(panels) / columns) or 1
    figure = new_figure(4.2 * columns, 3.1 * rows)
    if title:
        figure.suptitle(title, fontsize=11)
    for i, (name, curves) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, i + 1)
        for kind, values in curves.items():
            x = np.asarray(epochs[-len(values) :]) + 1
            marker = "o" if len(values) < 25 else None
            axes.plot(x, values, color=COLOURS[kind], label=kind, marker=marker, markersize=3)
        axes.set_title(name, fontsize=10)
        axes.xaxis.get_major_locator().set_params(integer=True)
        style_axes(axes, "epoch")
        if _is_wide(curves):
            axes.set_yscale("log")
        if len(curves) > 1:
            axes.legend(fontsize=8, frameon=False)
    return png_of(figure)


def draw_curve(
    x: Sequence[float], y: Sequence[float], x_label: str, y_label: str, mark: float
) -> bytes:
    """One curve over a logarithmic axis as a PNG picture, with a line at `mark`.

    Raises:
        UnimplementedError: matplotlib is not installed.
    """
    figure = new_figure(5.0, 3.4)
    axes = figure.add_subplot()
    axes.plot(x, y, color=COLOURS["training"])
    axes.axvline(mark, color=COLOURS["validation"], linewidth=1, label=f"{mark:.3g}")
    axes.set_xscale("log")
    axes.set_ylabel(y_label, fontsize=9)
    axes.legend(fontsize=8, frameon=False)
    style_axes(axes, x_label)
    return png_of(figure)


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, drawn without a display.

    Raises:
        UnimplementedError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise UnimplementedError(
            "pictures need matplotlib, which is not installed",
            remedy="pip install matplotlib; without a file to draw into, plot() prints text",
        ) from cause
    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Any, x_label: str) -> None:
    """The look of all panels with curves."""
    axes.set_xlabel(x_label, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def png_of(figure: Any) -> bytes:
    """The figure as a PNG picture."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def sparklines(history: Curves, width: int = 40) -> str:
    """The curves as text, a line for each: name, curve, first and last value, and the range."""
    curves = {name: _numbers(values) for name, values in history.items()}
    curves = {name: values for name, values in curves.items() if values is not None}
    longest = max(map(len, curves), default=0)
    return "\n".join(
        f"{name.ljust(longest)}  {_spark(values, width)}  "
        f"{values[0]:.4g} to {values[-1]:.4g}, between {np.nanmin(values):.4g} "
        f"and {np.nanmax(values):.4g}"
        for name, values in curves.items()
        if values is not None and not np.isnan(values).all()
    )


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """One curve as a line of blocks."""
    return _spark(np.asarray(values, "float64"), width)


def _spark(values: Any, width: int) -> str:
    if len(values) > width:  # the mean of each part
        values = np.array([part.mean() for part in np.array_split(values, width)])
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "?" * len(values)
    low, high = finite.min(), finite.max()
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(
        _BLOCKS[round((v - low) * scale)] if np.isfinite(v) else "?" for v in values.tolist()
    )


def _panels(history: Curves) -> dict[str, dict[str, Any]]:
    panels: dict[str, dict[str, Any]] = {}
    for name, values in history.items():
        numbers = _numbers(values)
        if numbers is not None:
            base = name.removeprefix("val_")
            kind = "training" if base == name else "validation"
            panels.setdefault(base, {})[kind] = numbers
    return panels


def _numbers(values: Sequence[Any]) -> Any:
    """One number for each epoch as an array; None for values of another kind."""
    if not len(values) or any(np.ndim(v) or isinstance(v, str) for v in values):
        return None
    return np.asarray(values, "float64")


def _is_wide(curves: Mapping[str, Any]) -> bool:
    values = np.concatenate(list(curves.values()))
    values = values[np.isfinite(values)]
    return bool(values.size and values.min() > 0 and values.max() / values.min() > _WIDE)
