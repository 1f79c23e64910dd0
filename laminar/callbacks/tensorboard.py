"""TensorBoard: event files of a training, without TensorFlow."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.io.events import EventWriter
from laminar.engine.io.places import make_folder
from laminar.engine.source import warn
from laminar.layers import Embedding
from laminar.paths import file_name

from .callback import Callback, LazyLogs, Logs
from .checks import check_whole
from .learning_rates import logged_rates

_Node = tuple[str, str, list[str]]


class TensorBoard(Callback):
    """Writes what TensorBoard shows: `tensorboard --logdir logs`.

    The runs are `log_dir/train` and `log_dir/validation`. Each epoch has "epoch_loss" and the like,
    and "epoch_learning_rate"; each evaluation "evaluation_loss_vs_iterations".

    Args:
        log_dir: the folder, made if it is not there.
        histogram_freq: after how many epochs the weights are written as histograms; 0 for never.
        write_graph: whether to write the graph of layers, of models made of symbolic calls.
        write_images: whether weights are written as images, too, along with the histograms.
        write_steps_per_second: whether to write how many steps are done in a second.
        update_freq: "epoch"; or "batch", or a number of batches, after which to write values as
            "batch_loss" and the like, too.
        profile_batch: taken for Keras's sake, where it must be 0, too: `model.profile(x)` gives
            time and memory of each layer.
        embeddings_freq: after how many epochs the tables of the embedding layers are written for
            the projector; 0 for never.
        embeddings_metadata: file with a label for each row; or such files by name of layer.

    Raises:
        InvalidArgumentError: an argument of another kind.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> board = laminar.callbacks.TensorBoard("logs")
        >>> history = model.fit(np.ones((8, 1)), np.ones((8, 1)), callbacks=[board], verbose=0)
        >>> import os
        >>> os.listdir("logs")
        ['train']
    """

    reads_logs_later = True

    is_for_first = True

    def __init__(
        self,
        log_dir: str | os.PathLike[str] = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: int | str = "epoch",
        profile_batch: int | Sequence[int] = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: str | Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        who = type(self).__name__
        check_whole(who, 0, histogram_freq=histogram_freq, embeddings_freq=embeddings_freq)
        if isinstance(update_freq, str):
            if update_freq not in ("epoch", "batch"):
                raise InvalidArgumentError(
                    f"{who}: update_freq must be 'epoch', 'batch' or a number of batches, "
                    f"got {update_freq!r}",
                    remedy="update_freq='epoch'",
                )
        else:
            check_whole(who, 1, update_freq=update_freq)
        if profile_batch:
            warn(f"{who}: profile_batch={profile_batch!r} has no effect; use model.profile(x)")
        self.log_dir = file_name(log_dir, "TensorBoard")
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_images = write_images
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = update_freq
        self.embeddings_freq = embeddings_freq
        self.embeddings_metadata = embeddings_metadata
        self._every = {"epoch": 0, "batch": 1}.get(str(update_freq), update_freq)
        self._writers: dict[str, EventWriter] = {}
        self._is_training = False
        self._step = 0  # batches of all epochs
        self._last_batch = -1
        self._marks: dict[str, tuple[float, int]] = {}  # when a span began, and at which step

    def _writer(self, run: str) -> EventWriter:
        if run not in self._writers:
            self._writers[run] = EventWriter(Path(self.log_dir) / run)
        return self._writers[run]

    def get_state(self) -> Mapping[str, Any]:
        return {"step": self._step, "last_batch": self._last_batch}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._step, self._last_batch = state["step"], state["last_batch"]

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._is_training = True
        if not self.params.get("resumed"):
            self._step = 0
        if self.write_graph and self.model._laminar_network is not None:
            self._writer("train").graph(_nodes(self.model._laminar_network))
        if self.embeddings_freq:
            self._write_projector()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._last_batch = -1
        self._marks["epoch"] = self._marks["batch"] = (time.perf_counter(), self._step)

    def on_train_batch_end(self, batch: int, logs: LazyLogs = None) -> None:
        before = self._step
        self._step += batch - self._last_batch  # some are told of together
        self._last_batch = batch
        if not isinstance(self._every, int) or not self._every:
            return
        if self._step // self._every == before // self._every:
            return
        writer = self._writer("train")
        for name, value in _scalars(logs() if callable(logs) else logs or {}):
            writer.scalar(f"batch_{name}", value, self._step - 1)
        self._write_speed("batch", self._step - 1)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        values = dict(_scalars(logs or {}))
        train = self._writer("train")
        for name, value in values.items():
            if name.startswith("val_"):
                name = name.removeprefix("val_")
                self._writer("validation").scalar(f"epoch_{name}", value, epoch)
            else:
                train.scalar(f"epoch_{name}", value, epoch)
        for name, rate in logged_rates(self.model).items():
            if name not in values:
                train.scalar(f"epoch_{name}", rate, epoch)
        self._write_speed("epoch", epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._write_weights(epoch)
        if self.embeddings_freq and epoch % self.embeddings_freq == 0:
            self._write_embeddings()
        for writer in self._writers.values():
            writer.flush()

    def on_test_end(self, logs: Logs | None = None) -> None:
        step = int(np.asarray(self.model.optimizer.iterations))
        writer = self._writer("validation")
        for name, value in _scalars(logs or {}):
            writer.scalar(f"evaluation_{name}_vs_iterations", value, step)
        if not self._is_training:
            self.break_off()

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._is_training = False
        self.break_off()

    def break_off(self) -> None:
        """Close the files, if they are open."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _write_speed(self, what: str, step: int) -> None:
        """The steps in a second, since this was written the last time."""
        begin, first = self._marks[what]
        now = time.perf_counter()
        self._marks[what] = (now, self._step)
        if self.write_steps_per_second and now > begin:
            speed = (self._step - first) / (now - begin)
            self._writer("train").scalar(f"{what}_steps_per_second", speed, step)

    def _write_weights(self, epoch: int) -> None:
        writer = self._writer("train")
        for weight in self.model.weights:
            value = weight.numpy()
            writer.histogram(f"{weight.path}/histogram", value, epoch)
            image = _as_image(value) if self.write_images else None
            if image is not None:
                writer.image(f"{weight.path}/image", image, epoch)

    # The projector reads tables of numbers, and a file that lists them.

    def _embeddings(self) -> Iterator[Any]:
        for layer in self.model._laminar_flatten_layers():
            if isinstance(layer, Embedding):
                yield layer

    def _write_embeddings(self) -> None:
        for layer in self._embeddings():
            path = Path(self.log_dir) / "train" / f"{layer.name}.tsv"
            with path.open("w", newline="") as file:
                writer = csv.writer(file, delimiter="\t", lineterminator="\n")
                writer.writerows(layer.embeddings.numpy().astype("float32").tolist())

    def _write_projector(self) -> None:
        given = self.embeddings_metadata
        entries = []
        for layer in self._embeddings():
            labels = given.get(layer.name) if isinstance(given, Mapping) else given
            lines = [f'  tensor_name: "{layer.name}"', f'  tensor_path: "{layer.name}.tsv"']
            if labels:
                lines.append(f'  metadata_path: "{os.fspath(labels)}"')
            entries.append("embeddings {\n" + "\n".join(lines) + "\n}\n")
        folder = make_folder(os.path.join(self.log_dir, "train"), "TensorBoard")
        (folder / "projector_config.pbtxt").write_text("".join(entries))


def _scalars(logs: Logs) -> Iterator[tuple[str, float]]:
    for name, value in logs.items():
        if np.ndim(value) == 0 and not isinstance(value, str):
            yield name, float(value)


def _as_image(value: Any) -> Any:
    """A weight as an image, from its least value in black to its greatest in white; None if it has
    more than three axes. Three axes are taken for one image of many channels: their first alone."""
    array = np.squeeze(value).astype("float64")
    if array.ndim > 3 or not array.size:
        return None
    array = array.reshape(1, -1) if array.ndim < 2 else array
    array = array[..., 0] if array.ndim == 3 else array
    low, high = array.min(), array.max()
    return ((array - low) / (high - low) if high > low else np.zeros_like(array))[..., None]


def _nodes(network: Any) -> Iterator[_Node]:
    """The operations of a model of symbolic calls, each once, with those that it takes from."""
    sources: dict[str, _Node] = {}
    for node in network.nodes:
        operation = node.operation
        name = operation.name
        _, _, inputs = sources.setdefault(name, (name, type(operation).__name__, []))
        inputs += [x.history[0].name for x in node.inputs if x.history[0].name not in inputs]
    yield from sources.values()
