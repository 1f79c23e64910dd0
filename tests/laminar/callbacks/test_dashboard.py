"""Dashboard: what it records is what NumPy finds, and the picture shows it."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.callbacks import Dashboard
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.utils.dashboard import QUANTILES, Guesses, Record, draw_dashboard
from tests.browser import browser

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 4, 4)).astype("float32")
Y = rng.integers(0, 3, 12)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The steps of each record that would be drawn, which takes half a second a time."""
    found: list[list[int]] = []

    def draw(record: Record, names: Any, title: str) -> bytes:
        found.append(list(record.steps))
        return b"a picture"

    monkeypatch.setattr("laminar.callbacks.dashboard.draw_dashboard", draw)
    return found


def classifier() -> laminar.Model:
    laminar.set_random_seed(1)
    model = laminar.Sequential(
        [layers.Input((4, 4)), layers.Flatten(), layers.Dense(3, activation="softmax")],
        name="small",
    )
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def expected(model: laminar.Model, x: Any, y: Any) -> tuple[float, float]:
    """Cross-entropy and accuracy in float64."""
    kernel, bias = (np.asarray(w, "float64") for w in model.trainable_weights)
    scores = x.reshape(len(x), -1).astype("float64") @ kernel + bias
    scores -= scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -logs[np.arange(len(y)), y].mean(), float(np.mean(scores.argmax(axis=1) == y))


@pytest.mark.usefixtures("drawn")
def test_a_record_is_what_numpy_finds(tmp_path: Path) -> None:
    """The last look, at the last four examples, comes after their step."""
    model = classifier()
    board = Dashboard(tmp_path / "board.png", (X[:5], Y[:5]), every=1)
    history = model.fit(X, Y, batch_size=8, shuffle=False, verbose=0, callbacks=[board]).history
    record = board.record
    assert record.steps == [1, 2]
    loss, accuracy = expected(model, X[8:], Y[8:])
    assert record.losses["training"][-1] == pytest.approx(loss, rel=1e-5)
    assert record.accuracies["training"][-1] == accuracy
    loss, accuracy = expected(model, X[:5], Y[:5])
    assert record.losses["validation"][-1] == pytest.approx(loss, rel=1e-5)
    assert record.accuracies["validation"][-1] == accuracy
    assert record.batch is not None
    np.testing.assert_array_equal(record.batch.images, X[8:])
    np.testing.assert_array_equal(record.batch.labels, Y[8:])
    kernel, bias = (np.asarray(w, "float64") for w in model.trainable_weights)
    np.testing.assert_allclose(record.weights[-1], np.quantile(kernel, QUANTILES), rtol=1e-5)
    np.testing.assert_allclose(record.biases[-1], np.quantile(bias, QUANTILES), rtol=1e-5)

    alone = classifier().fit(X, Y, batch_size=8, shuffle=False, verbose=0).history
    assert history == alone, "looking changes no metric"


def test_every_so_many_steps_over_epochs(tmp_path: Path, drawn: list[list[int]]) -> None:
    """It is drawn anew when there is something new, which the end is not."""
    board = Dashboard(tmp_path / "board.png", every=4)
    classifier().fit(X, Y, batch_size=4, epochs=3, verbose=0, callbacks=[board])
    assert board.record.steps == [1, 5, 9]
    assert board.record.test is None
    assert drawn == [[1], [1, 5], [1, 5, 9]]
    assert (tmp_path / "board.png").read_bytes() == b"a picture"


def test_one_hot_labels_flat_inputs_and_two_classes(tmp_path: Path) -> None:
    flat = laminar.Sequential([layers.Input((16,)), layers.Dense(1, activation="sigmoid")])
    flat.compile("sgd", "binary_crossentropy")
    x, y = X.reshape(12, 16), (Y > 0).astype("float32")
    board = Dashboard(tmp_path / "a.png", every=1, image_shape=(4, 4))
    flat.fit(x, y, batch_size=12, shuffle=False, verbose=0, callbacks=[board])
    guesses = np.asarray(flat.predict(x, verbose=0))[:, 0] > 0.5
    assert board.record.accuracies["training"] == [pytest.approx(np.mean(guesses == (y > 0.5)))]

    assert board.record.batch is not None
    np.testing.assert_array_equal(board.record.batch.images, X)
    board = Dashboard(tmp_path / "square.png", every=1)  # rows of 16 are images of 4 x 4
    flat.fit(x, y, batch_size=12, shuffle=False, verbose=0, callbacks=[board])
    assert board.record.batch is not None
    np.testing.assert_array_equal(board.record.batch.images, X)

    model = classifier()
    model.compile("sgd", "categorical_crossentropy")
    board = Dashboard(tmp_path / "b.png", every=1)
    model.fit(X, np.eye(3)[Y], batch_size=12, shuffle=False, verbose=0, callbacks=[board])
    assert board.record.accuracies["training"] == [expected(model, X, Y)[1]]


def test_wrong_guesses_come_first() -> None:
    found = Guesses(np.arange(4), np.array([0, 1, 2, 3]), np.array([0, 9, 2, 9]))
    first = found.wrong_first(3)
    assert first.images.tolist() == [1, 3, 0]
    assert found.accuracy == 0.5


def red_share(png: bytes) -> float:
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), "float64")
    is_red = (pixels[..., 0] - pixels[..., 1:].max(axis=-1)) > 60
    return float(is_red.mean())


def test_the_picture_shows_wrong_guesses_on_red() -> None:
    images, labels = np.zeros((100, 4, 4)), np.zeros(100)
    assert red_share(draw_dashboard(Record(batch=Guesses(images, labels, labels)))) < 0.002
    assert red_share(draw_dashboard(Record(batch=Guesses(images, labels, labels + 1)))) > 0.03


def test_a_page_is_complete_and_stops_to_refresh(tmp_path: Path) -> None:
    path = tmp_path / "pages" / "board.html"
    seen = []

    class Reader(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(path.read_text())

    model = classifier()
    model.fit(X, Y, verbose=0, callbacks=[Dashboard(path, (X, Y)), Reader()])
    assert 'http-equiv="refresh"' in seen[0]
    page = path.read_text()
    assert 'http-equiv="refresh"' not in page
    assert "<title>small</title>" in page
    sources = re.findall(r'src="([^"]*)"', page)
    assert len(sources) == 1
    picture = base64.b64decode(sources[0].removeprefix("data:image/png;base64,"))
    assert Image.open(io.BytesIO(picture)).size[0] > 800
    assert [p.name for p in path.parent.iterdir()] == ["board.html"]


@pytest.mark.slow
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    path = tmp_path / "board.html"
    classifier().fit(X, Y, verbose=0, callbacks=[Dashboard(path, (X, Y))])
    with browser(tmp_path / "profile") as chromium:
        chromium.go(path)
        for width in (1400, 390):
            chromium.resize(width, 900)
            chromium.wait("document.querySelector('img').naturalWidth > 800")
            assert chromium.run("return document.documentElement.scrollWidth") <= width
            assert chromium.colours(tmp_path / "seen.png") > 30
        assert not chromium.errors()


@pytest.mark.usefixtures("drawn")
def test_a_resumed_training_goes_on_with_the_curves(tmp_path: Path) -> None:
    def fit(epochs: int) -> Dashboard:
        board = Dashboard(tmp_path / "board.png", every=1)
        classifier().fit(
            X,
            Y,
            batch_size=4,
            epochs=epochs,
            verbose=0,
            callbacks=[board],
            resume=tmp_path / f"state{'' if epochs < 4 else '-whole'}",
        )
        return board

    fit(1)
    resumed, whole = fit(3), fit(4)
    assert resumed.record.steps == list(range(1, 10))
    assert resumed.record.losses["training"] == whole.record.losses["training"][:9]
    assert resumed.record.weights == whole.record.weights[:9]


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"must end in .png or .html, got 'a.pdf'"):
        Dashboard("a.pdf")
    with pytest.raises(InvalidArgumentError, match="outside a notebook a file is needed"):
        Dashboard()
    with pytest.raises(InvalidArgumentError, match="every must be a whole number of at least 1"):
        Dashboard("a.png", every=0)
    with pytest.raises(ShapeError, match=r"as many inputs as labels, got the shapes \(12, 4, 4\)"):
        Dashboard("a.png", (X, Y[:3]))
    flat = laminar.Sequential([layers.Input((16,)), layers.Dense(3)])
    flat.compile("sgd", laminar.losses.SparseCategoricalCrossentropy(from_logits=True))
    small = laminar.Sequential([layers.Input((15,)), layers.Dense(3)])
    small.compile("sgd", laminar.losses.SparseCategoricalCrossentropy(from_logits=True))
    with pytest.raises(ShapeError, match=r"inputs of shape \(15,\) are no images"):
        small.fit(np.zeros((12, 15)), Y, verbose=0, callbacks=[Dashboard(tmp_path / "a.png")])
    board = Dashboard(tmp_path / "a.png", image_shape=(3, 3))
    with pytest.raises(ShapeError, match=r"image_shape is \(3, 3\), but an input has the shape"):
        flat.fit(X.reshape(12, 16), Y, verbose=0, callbacks=[board])
    assert not list(tmp_path.iterdir())
