"""Dashboard: five panels that show a classifier while it is trained."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.io.atomic import atomic_write
from laminar.engine.io.places import make_folder
from laminar.engine.state.stateless import StatelessScope
from laminar.tree import flatten
from laminar.utils.dashboard import QUANTILES, Guesses, Record, draw_dashboard, page_of
from laminar.utils.plotting import new_figure

from .bars import is_notebook
from .callback import Callback, Logs
from .checks import check_whole
from .notebook_picture import NotebookPicture

Array: TypeAlias = "np.ndarray[Any, Any]"

_CHUNK = 512  # examples that are predicted together
_MOST_VALUES = 200_000  # of weights, of which quantiles are taken
_REFRESH_SECONDS = 2
_ENDINGS = (".png", ".html")


class Dashboard(Callback):
    """Draws the batch, test examples, loss, accuracy, and the values of weights during `fit`.

    Of the current batch and of the test examples as many images as fit are shown, those that the
    model takes for something else first, on red, with their label to the left and the model's
    guess to the right. The curves are those of the batches that were looked at (after their step,
    without dropout) and of all test examples. The bands of weights (rank 2 and more) and of
    biases (the others) lie between the extremes and at 1.5, 1 and 0.5 standard deviations of a
    normal distribution; the line is the median.

    For models that give one score a class (or the probability of class 1 of two), trained on class
    numbers or one-hot labels.

    Args:
        path: a file ending in .png or .html, written anew each time; the page is complete in
            itself, and a browser that has it open shows each new state. None shows the picture in
            a notebook.
        test_data: (inputs, labels) of examples that are not trained on; by default
            `validation_data` of `fit` is not known here, so there are none.
        every: steps between two looks; each costs a prediction of the batch and the test examples.
        image_shape: (height, width) or (height, width, channels) of the inputs, where these are
            flat; a row of 784 numbers, say, is taken for a square image without that.
        names: of the classes.

    Raises:
        InvalidArgumentError: another ending of the file, no path outside a notebook, `every` below
            1, or test data of other form.
        UnimplementedError: matplotlib is not installed.

    Examples:
        >>> board = laminar.callbacks.Dashboard("run.html", every=50)  # fit(callbacks=[board])
        >>> isinstance(board, laminar.callbacks.Callback)
        True
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        test_data: tuple[Any, Any] | None = None,
        *,
        every: int = 100,
        image_shape: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        check_whole("Dashboard", 1, every=every)
        if path is None and not is_notebook():
            raise InvalidArgumentError(
                "Dashboard: outside a notebook a file is needed",
                remedy='Dashboard("dashboard.html") or Dashboard("dashboard.png")',
            )
        self._path = None if path is None else Path(path)
        if self._path is not None and self._path.suffix not in _ENDINGS:
            raise InvalidArgumentError(
                f"Dashboard: the file must end in .png or .html, got {str(self._path)!r}"
            )
        new_figure(1, 1)  # says what is missing
        self._every = every
        self._image_shape = None if image_shape is None else tuple(image_shape)
        self._names = names
        self._test = None if test_data is None else _pair(test_data)
        self._batch: tuple[Array, Array] | None = None
        self._step = -1
        self._picture: bytes | None = None  # of the record, once it is drawn
        self._shown = NotebookPicture()
        self.record = Record()

    def get_state(self) -> Mapping[str, Any]:
        record = self.record
        return {
            "step": self._step,
            "steps": list(record.steps),
            "losses": dict(record.losses),
            "accuracies": dict(record.accuracies),
            "weights": list(record.weights),
            "biases": list(record.biases),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._step = state["step"]
        names = ("steps", "losses", "accuracies", "weights", "biases")
        self.record = Record(**{name: state[name] for name in names})
        self._picture = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        if not self.params.get("resumed"):
            self._step, self.record, self._picture = -1, Record(), None

    def on_train_batch_data(self, batch: int, data: Any) -> None:
        self._step += 1
        self._batch = None
        if self._step % self._every == 0:
            x, y, *_ = data if isinstance(data, tuple) else (data,)
            self._batch = _pair((x, y), copies=True)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if self._batch is not None:
            self._look(*self._batch)
            self._write(is_over=False)
            self._batch = None

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.record.steps:
            self._write(is_over=True)

    def _look(self, x: Array, y: Array) -> None:
        """Add an entry to the record, of this batch."""
        record, self._picture = self.record, None
        record.batch = self._measure("training", x, y)
        if self._test is not None:
            record.test = self._measure("validation", *self._test)
        record.steps.append(self._step + 1)
        weights = self.model.trainable_weights
        record.weights.append(_quantiles([w for w in weights if len(w.shape) > 1]))
        record.biases.append(_quantiles([w for w in weights if len(w.shape) <= 1]))

    def _measure(self, kind: str, x: Array, y: Array) -> Guesses:
        """What the model takes examples for; its loss and accuracy go to the record."""
        parts = [
            np.asarray(self.model.predict_on_batch(x[i : i + _CHUNK]))
            for i in range(0, len(x), _CHUNK)
        ]
        scores = np.concatenate(parts)
        if scores.ndim != 2:
            raise ShapeError(
                f"Dashboard: expected one score a class, (examples, classes), got {scores.shape}"
            )
        with StatelessScope():  # the metrics of the epoch do not hear of it
            loss = self.model.compute_loss(x=x, y=y, y_pred=scores, training=False)
        found = Guesses(self._images(x), _labels(y), _guesses(scores))
        self.record.losses.setdefault(kind, []).append(float(np.asarray(loss)))
        self.record.accuracies.setdefault(kind, []).append(found.accuracy)
        return found

    def _images(self, x: Array) -> Array:
        shape = x.shape[1:] if self._image_shape is None else self._image_shape
        if len(shape) == 1 and (side := math.isqrt(shape[0])) ** 2 == shape[0]:
            shape = side, side
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[-1] not in (1, 3)):
            raise ShapeError(
                f"Dashboard: inputs of shape {x.shape[1:]} are no images",
                remedy="image_shape=(height, width) says how a row is one",
            )
        if int(np.prod(shape)) != int(np.prod(x.shape[1:])):
            raise ShapeError(
                f"Dashboard: image_shape is {shape}, but an input has the shape {x.shape[1:]}"
            )
        return x.reshape(len(x), *shape)

    def _write(self, *, is_over: bool) -> None:
        if self._picture is None:
            self._picture = draw_dashboard(self.record, self._names, self.model.name)
        picture = self._picture
        if self._path is None:
            self._shown.show(picture)
            return
        if self._path.suffix == ".html":
            page = page_of(picture, self.model.name, None if is_over else _REFRESH_SECONDS)
            picture = page.encode()
        make_folder(self._path.parent, "Dashboard")
        with atomic_write(self._path) as file:  # a browser may read it at any moment
            file.write(picture)


def _pair(data: Any, *, copies: bool = False) -> tuple[Array, Array]:
    """Inputs and labels as arrays, of as many examples."""
    given = flatten(data)
    if len(given) != 2 or any(part is None for part in given):
        raise InvalidArgumentError(
            f"Dashboard: expected inputs and labels, one array of each, got {len(given)} arrays"
        )
    x, y = (np.array(part, copy=copies or None) for part in given)
    if not x.ndim or not y.ndim or len(x) != len(y) or not len(x):
        raise ShapeError(
            f"Dashboard: expected as many inputs as labels, got the shapes {x.shape} and {y.shape}"
        )
    return x, y


def _labels(y: Array) -> Array:
    """Class numbers, of class numbers or of one-hot rows."""
    if y.ndim == 2 and y.shape[1] > 1:
        return np.asarray(y.argmax(axis=1))
    return y.reshape(-1).astype("int64")


def _guesses(scores: Array) -> Array:
    """The class of the greatest score; of one score, whether it is above one half."""
    if scores.shape[1] > 1:
        return np.asarray(scores.argmax(axis=1))
    return (scores[:, 0] > 0.5).astype("int64")


def _quantiles(weights: Sequence[Any]) -> list[float]:
    parts = [np.asarray(w, "float32").reshape(-1) for w in weights]
    total = sum(part.size for part in parts)
    if not total:
        return [0.0] * len(QUANTILES)
    stride = max(total // _MOST_VALUES, 1)
    sampled = np.concatenate([part[:: min(stride, part.size or 1)] for part in parts])
    return [float(q) for q in np.quantile(sampled, QUANTILES)]
