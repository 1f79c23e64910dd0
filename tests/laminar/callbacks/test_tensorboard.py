"""TensorBoard: event files, read back by a reader of their own."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, layers
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.io.events import EventWriter

from .event_reader import Events, crc32c, doubles

X = np.arange(40).reshape(10, 4) % 6
Y = X[:, :1].astype("float32")


def embedded() -> laminar.Model:
    inputs = layers.Input((4,), dtype="int32", name="x")
    x = layers.Flatten(name="flat")(layers.Embedding(6, 2, name="table")(inputs))
    a, b = layers.Dense(3, name="a")(x), layers.Dense(3, name="b")(x)
    model = laminar.Model(inputs, layers.Dense(1, name="out")(layers.Add(name="sum")([a, b])))
    model.compile("sgd", "mse", metrics=["mae"])
    return model


def single(values: Any) -> list[float]:
    """The values as a file keeps them, in single precision."""
    return [float(np.float32(value)) for value in values]


def test_the_reader_knows_its_checksum() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720


def test_values_of_epochs_and_evaluations(tmp_path: Path) -> None:
    model = embedded()
    board = callbacks.TensorBoard(tmp_path)
    history = model.fit(
        X, Y, batch_size=5, epochs=3, validation_data=(X, Y), verbose=0, callbacks=board
    ).history
    train, validation = Events(tmp_path / "train"), Events(tmp_path / "validation")
    assert sorted(train.scalars) == ["epoch_learning_rate", "epoch_loss", "epoch_mae"]
    for name in ("loss", "mae"):
        expected = list(enumerate(single(history[name])))
        assert train.scalars[f"epoch_{name}"] == expected
        values = single(history[f"val_{name}"])
        assert validation.scalars[f"epoch_{name}"] == list(enumerate(values))
        found = validation.scalars[f"evaluation_{name}_vs_iterations"]
        assert found == list(zip([2, 4, 6], values, strict=True))
    assert not train.histograms
    names = [name for name, _, _ in train.graph]
    assert names == ["x", "table", "flat", "a", "b", "sum", "out"]
    assert ("sum", "Add", ["a", "b"]) in train.graph


@pytest.mark.parametrize(("freq", "steps"), [("batch", [0, 1, 2, 3, 4, 5]), (2, [1, 3, 5])])
def test_values_of_batches(tmp_path: Path, freq: Any, steps: list[int]) -> None:
    board = callbacks.TensorBoard(tmp_path, update_freq=freq, write_steps_per_second=True)
    embedded().fit(X, Y, batch_size=5, epochs=3, verbose=0, callbacks=board)
    found = Events(tmp_path / "train").scalars
    assert [step for step, _ in found["batch_loss"]] == steps
    assert [step for step, _ in found["batch_steps_per_second"]] == steps
    assert all(value > 0 for _, value in found["epoch_steps_per_second"])


def test_histograms_and_images_of_weights(tmp_path: Path) -> None:
    model = embedded()
    board = callbacks.TensorBoard(tmp_path, histogram_freq=2, write_images=True)
    model.fit(X, Y, epochs=3, verbose=0, callbacks=board)
    train = Events(tmp_path / "train")
    assert [step for step, _ in train.histograms["a/kernel/histogram"]] == [0, 2]
    _, histogram = train.histograms["a/kernel/histogram"][-1]
    kernel = model.get_layer("a").get_weights()[0].astype("float64")
    low, high, count, total, squares = (histogram[i][0] for i in range(1, 6))
    np.testing.assert_allclose(
        [low, high, count, total, squares],
        [kernel.min(), kernel.max(), kernel.size, kernel.sum(), (kernel**2).sum()],
    )
    limits, buckets = doubles(histogram[6][0]), doubles(histogram[7][0])
    edges = np.asarray(limits)
    for i in range(1, len(limits)):
        inside = (kernel >= edges[i - 1]) & (kernel < edges[i])
        assert buckets[i] == inside.sum() + (i == len(limits) - 1)  # the greatest is in the last
    _, image = train.images["a/kernel/image"][-1]
    assert [image[i][0] for i in (1, 2, 3)] == [8, 3, 1]
    pixels = np.asarray(png(image[4][0])).reshape(8, 3)
    scaled = (kernel - kernel.min()) / (kernel.max() - kernel.min())
    np.testing.assert_array_equal(pixels, np.round(scaled * 255))


def png(data: bytes) -> list[int]:
    """The bytes of the pixels of an image of 8 bits whose rows have no filter."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (crc,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert crc == zlib.crc32(kind + content)
        parts[kind] = content
        at += 12 + size
    width, height, depth = struct.unpack(">IIB", parts[b"IHDR"][:9])
    assert depth == 8
    rows = zlib.decompress(parts[b"IDAT"])
    stride = len(rows) // height
    assert all(rows[i * stride] == 0 for i in range(height))
    return [b for i in range(height) for b in rows[i * stride + 1 : (i + 1) * stride]]


def test_tables_for_the_projector(tmp_path: Path) -> None:
    model = embedded()
    board = callbacks.TensorBoard(
        tmp_path, embeddings_freq=1, embeddings_metadata={"table": "names.tsv"}
    )
    model.fit(X, Y, verbose=0, callbacks=board)
    table = np.loadtxt(tmp_path / "train" / "table.tsv", delimiter="\t", dtype="float32")
    np.testing.assert_array_equal(table, model.get_layer("table").get_weights()[0])
    config = (tmp_path / "train" / "projector_config.pbtxt").read_text()
    assert 'tensor_path: "table.tsv"' in config
    assert 'metadata_path: "names.tsv"' in config


def test_evaluation_alone_and_an_error(tmp_path: Path) -> None:
    model = embedded()
    model.evaluate(X, Y, verbose=0, callbacks=callbacks.TensorBoard(tmp_path / "e"))
    assert list(Events(tmp_path / "e" / "validation").scalars) == [
        "evaluation_loss_vs_iterations",
        "evaluation_mae_vs_iterations",
    ]

    def fail(epoch: int, logs: Any) -> None:
        raise KeyboardInterrupt

    board = callbacks.TensorBoard(tmp_path / "i")
    stop = callbacks.LambdaCallback(on_epoch_end=fail)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, verbose=0, callbacks=[board, stop])
    assert list(Events(tmp_path / "i" / "train").scalars)  # written, and closed


def test_steps_go_on_when_training_is_resumed(tmp_path: Path) -> None:
    for epochs in (1, 2):
        laminar.set_random_seed(0)
        embedded().fit(
            X,
            Y,
            batch_size=5,
            epochs=epochs,
            verbose=0,
            callbacks=callbacks.TensorBoard(tmp_path / "logs", update_freq=1),
            resume=tmp_path / "state",
        )
    found = Events(tmp_path / "logs" / "train").scalars["batch_loss"]
    assert [step for step, _ in found] == [0, 1, 2, 3]


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="update_freq must be 'epoch', 'batch' or a"):
        callbacks.TensorBoard(tmp_path, update_freq="step")
    with pytest.raises(InvalidArgumentError, match="histogram_freq must be a whole number"):
        callbacks.TensorBoard(tmp_path, histogram_freq=-1)
    with pytest.warns(UserWarning, match="profile_batch=2 has no effect; use model.profile"):
        callbacks.TensorBoard(tmp_path, profile_batch=2)


def test_what_else_a_writer_writes(tmp_path: Path) -> None:
    with EventWriter(tmp_path) as writer:
        writer.start(7)
        writer.scalar("s", 1e39, 1)
        writer.scalar("ümlaut", -2.5, 2**40)
        writer.text("note", "**äöü**", 3)
        writer.histogram("empty", [np.nan], 1)
        writer.histogram("one", [2.0], 1)
        writer.image("rgb", np.zeros((2, 3, 3)), 1)
        with pytest.raises(ShapeError, match=r"expected \(height, width, 1, 3 or 4\)"):
            writer.image("flat", np.zeros((2, 3)), 1)
        with pytest.raises(InvalidArgumentError, match="0 x 3 pixels"):
            writer.image("none", np.zeros((0, 3, 1)), 1)
    found = Events(tmp_path)
    assert found.starts == [7]
    assert found.scalars == {"s": [(1, np.inf)], "ümlaut": [(2**40, -2.5)]}
    assert found.texts == {"note": "**äöü**"}
    assert list(found.histograms) == ["one"]
    assert png(found.images["rgb"][0][1][4][0]) == [0] * 18
