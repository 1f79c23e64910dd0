"""Data sets of folders and of series: files, labels, parts and values."""

from __future__ import annotations

import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import preprocessing, utils
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    MissingFileError,
    UnimplementedError,
)

rng = np.random.default_rng(0)


def arrays(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


@pytest.fixture
def images(tmp_path: Path) -> Path:
    pytest.importorskip("PIL")
    for number, name in enumerate(["cats", "dogs", "eels"]):
        folder = tmp_path / name / "inner"
        folder.mkdir(parents=True)
        for i in range(4):
            x = np.full((6 + i, 8, 3), 60 * number + i, "uint8")
            place = folder.parent if i % 2 else folder
            utils.save_img(str(place / f"{i}.png"), x, scale=False)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "cats" / "note.md").write_text("no image")
    return tmp_path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(5):
            (tmp_path / name / f"{i}.txt").write_text(f"{name}{i} text")
    return tmp_path


def write_wav(path: Path, samples: Any, width: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(width)
        file.setframerate(8000)
        scaled = np.round(samples * (2 ** (8 * width - 1) - 1)).astype("<i4")
        if width == 1:
            file.writeframes((scaled + 128).astype("uint8").tobytes())
        else:
            pieces = scaled.reshape(-1, 1).view("uint8")[:, :width]
            file.writeframes(np.ascontiguousarray(pieces).tobytes())


def silent(make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return make(*args, **{"verbose": False, **options})


def test_images(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = utils.image_dataset_from_directory(images, image_size=(5, 4), batch_size=5)
    assert capsys.readouterr().out == "Found 12 files belonging to 3 classes.\n"
    assert data.class_names == ["cats", "dogs", "eels"]
    assert len(data.file_paths) == 12
    assert len(data) == 3
    x, y = next(iter(data))
    assert (x.shape, x.dtype, y.dtype) == ((5, 5, 4, 3), "float32", "int32")
    seen = np.concatenate([np.stack([x[:, 0, 0, 0] // 60, y]) for x, y in arrays(data)], 1)
    np.testing.assert_array_equal(seen[0], seen[1])
    again = np.concatenate([y for _, y in arrays(data)])
    assert not np.array_equal(again, seen[1])  # another order


def test_order_without_shuffling(images: Path) -> None:
    data = silent(
        utils.image_dataset_from_directory,
        images,
        shuffle=False,
        image_size=(6, 8),
        batch_size=None,
    )
    values = [round(float(x[0, 0, 0])) for x, _ in arrays(data)]
    assert values == [60 * k + i for k in range(3) for i in (1, 3, 0, 2)]  # folders before files
    names = [Path(p).name for p in data.file_paths]
    assert names == ["1.png", "3.png", "0.png", "2.png"] * 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"label_mode": "int"}, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]),
        ({"label_mode": "categorical"}, np.eye(3)[[0] * 4 + [1] * 4 + [2] * 4].tolist()),
        ({"class_names": ["eels", "cats", "dogs"]}, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]),
        ({"labels": list(range(12))}, list(range(12))),
    ],
)
def test_labels(images: Path, options: Any, expected: Any) -> None:
    data = silent(
        utils.image_dataset_from_directory, images, shuffle=False, image_size=(6, 8), **options
    )
    (_, y), *rest = arrays(data)
    assert not rest
    assert y.tolist() == expected


def test_no_labels_and_colours(images: Path) -> None:
    for mode, channels in (("grayscale", 1), ("rgb", 3), ("rgba", 4)):
        data = silent(
            *(utils.image_dataset_from_directory, images),
            labels=None,
            image_size=(3, 3),
            color_mode=mode,
        )
        assert arrays(data)[0].shape == (12, 3, 3, channels)
        assert data.class_names is None
    data = silent(
        *(utils.image_dataset_from_directory, images), label_mode=None, data_format="channels_first"
    )
    assert arrays(data)[0].shape == (12, 3, 256, 256)


def test_parts(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"validation_split": 0.25, "seed": 3, "image_size": (6, 8)}
    make = utils.image_dataset_from_directory
    train, kept = make(images, subset="both", **options)
    out = capsys.readouterr().out.splitlines()
    assert out[1:] == ["Using 9 files for training.", "Using 3 files for validation."]
    assert sorted(train.file_paths + kept.file_paths) == sorted(map(str, images.rglob("*.png")))
    first = silent(make, images, subset="training", **options)
    last = silent(make, images, subset="validation", **options)
    assert first.file_paths == train.file_paths
    assert last.file_paths == kept.file_paths
    for a, b in zip(arrays(kept), arrays(kept), strict=True):  # validation keeps its order
        np.testing.assert_array_equal(a[1], b[1])


def test_fit_on_images(images: Path) -> None:
    data = silent(utils.image_dataset_from_directory, images, image_size=(4, 4), batch_size=4)
    model = laminar.Sequential(
        [
            laminar.layers.Input((4, 4, 3)),
            laminar.layers.Rescaling(1 / 255),
            laminar.layers.Flatten(),
            laminar.layers.Dense(3),
        ]
    )
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(laminar.optimizers.Adam(0.1), loss, metrics=["accuracy"])
    history = model.fit(data, epochs=10, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_texts(texts: Path) -> None:
    data = silent(utils.text_dataset_from_directory, texts, shuffle=False, batch_size=4)
    x, y = arrays(data)[0]
    assert x.tolist() == [b"a0 text", b"a1 text", b"a2 text", b"a3 text"]
    assert y.tolist() == [0] * 4
    assert next(iter(data))[0].dtype == "string"
    data = silent(utils.text_dataset_from_directory, texts, label_mode="binary", max_length=2)
    x, y = arrays(data)[0]
    assert sorted(x.tolist()) == [f"{n}{i}".encode() for n in "ab" for i in range(5)]
    assert (y.dtype, y.shape) == ("float32", (10, 1))
    assert [text[:1] == b"b" for text in x.tolist()] == (y[:, 0] == 1).tolist()


def test_sounds(tmp_path: Path) -> None:
    waves = {}
    for number, name in enumerate("xy"):
        (tmp_path / name).mkdir()
        for width in (1, 2, 3, 4):
            waves[name, width] = rng.uniform(-1, 1, (50 * width + number, 2))
            write_wav(tmp_path / name / f"{width}.wav", waves[name, width], width)
    data = silent(utils.audio_dataset_from_directory, tmp_path, shuffle=False, batch_size=8)
    ((x, y),) = arrays(data)
    assert x.shape == (8, 201, 2)
    assert y.tolist() == [0] * 4 + [1] * 4
    for row, (key, samples) in zip(x, sorted(waves.items()), strict=True):
        np.testing.assert_allclose(row[: len(samples)], samples, atol=2.0 ** (1 - 8 * key[1]) * 1.5)
        assert not row[len(samples) :].any()
    data = silent(
        *(utils.audio_dataset_from_directory, tmp_path),
        output_sequence_length=60,
        sampling_rate=8000,
    )
    assert arrays(data)[0][0].shape == (8, 60, 2)
    other = silent(utils.audio_dataset_from_directory, tmp_path, sampling_rate=44_100)
    with pytest.raises(InvalidArgumentError, match="has 8000 samples a second"):
        arrays(other)
    (tmp_path / "x" / "1.wav").write_bytes(b"RIFF____WAVE")
    with pytest.raises(DataLossError, match="not a PCM sound file"):
        arrays(silent(utils.audio_dataset_from_directory, tmp_path))


MISTAKES: list[Any] = [
    ({"labels": "given"}, InvalidArgumentError, "labels must be"),
    ({"label_mode": "one-hot"}, InvalidArgumentError, "label_mode must be"),
    ({"label_mode": "binary", "labels": [0, 1, 2] * 4}, InvalidArgumentError, "needs two classes"),
    ({"labels": [1, 2]}, InvalidArgumentError, "there are 2 labels for 12 files"),
    ({"class_names": ["cats", "dogs"]}, InvalidArgumentError, "class_names must be those"),
    ({"class_names": ["a"], "labels": None}, InvalidArgumentError, "class_names go with"),
    ({"color_mode": "bw"}, InvalidArgumentError, "color_mode must be"),
    ({"validation_split": 0.2}, InvalidArgumentError, "go together"),
    ({"subset": "training"}, InvalidArgumentError, "go together"),
    ({"validation_split": 2, "subset": "both"}, InvalidArgumentError, "between 0 and 1"),
    ({"validation_split": 0.2, "subset": "test"}, InvalidArgumentError, "subset must be"),
    ({"validation_split": 0.2, "subset": "both"}, InvalidArgumentError, "needs a seed"),
    (
        {"validation_split": 0.01, "subset": "both", "seed": 1},
        InvalidArgumentError,
        "leaves none for validation",
    ),
    (
        {"crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True},
        InvalidArgumentError,
        "exclude one another",
    ),
    ({"batch_size": 0}, InvalidArgumentError, "batch_size must be"),
    ({"interpolation": "area"}, InvalidArgumentError, "interpolation must be one of bilinear"),
    ({"image_size": 16}, InvalidArgumentError, r"image_size must be \(height, width\).*got 16"),
    ({"image_size": (16, 0)}, InvalidArgumentError, r"image_size must be .*got \(16, 0\)"),
    ({"image_size": (16, 1.5)}, InvalidArgumentError, r"image_size must be .*got \(16, 1.5\)"),
]


@pytest.mark.parametrize(("options", "kind", "message"), MISTAKES)
def test_mistakes(images: Path, options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        silent(utils.image_dataset_from_directory, images, **options)


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no folder"):
        utils.text_dataset_from_directory(tmp_path / "none")
    with pytest.raises(InvalidArgumentError, match="there are no files .txt"):
        utils.text_dataset_from_directory(tmp_path)
    with pytest.raises(UnimplementedError, match="ragged"):
        utils.audio_dataset_from_directory(tmp_path, ragged=True)


# Series


def test_windows_of_a_series() -> None:
    data, targets = np.arange(20), np.arange(20) * 10
    make = utils.timeseries_dataset_from_array
    (batch,) = arrays(make(data, None, 4, sampling_rate=2, end_index=9))
    assert batch.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7], [2, 4, 6, 8]]
    found = arrays(make(data, targets, 3, sequence_stride=5, batch_size=2, start_index=1))
    assert [x.tolist() for x, _ in found] == [[[1, 2, 3], [6, 7, 8]], [[11, 12, 13], [16, 17, 18]]]
    assert [y.tolist() for _, y in found] == [[10, 60], [110, 160]]
    short = arrays(make(data, targets[:5], 3, batch_size=None))
    assert [int(y) for _, y in short] == [0, 10, 20, 30, 40]
    shuffled = make(data, targets, 3, shuffle=True, seed=1, batch_size=100)
    ((x, y),) = arrays(shuffled)
    assert sorted(y.tolist()) == [10 * n for n in range(18)]
    np.testing.assert_array_equal(x[:, 0] * 10, y)
    assert arrays(shuffled)[0][1].tolist() != y.tolist()
    spec = make(rng.normal(size=(9, 2)), targets[:9], 3).element_spec
    assert str(spec[0]) == "float64[?, 3, 2]"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_length": 0}, "sequence_length must be at least 1"),
        ({"sequence_length": 20}, "sequence_length must be less than the 10 steps"),
        ({"sequence_stride": 0}, "sequence_stride must be"),
        ({"sampling_rate": 30}, "sampling_rate must be less"),
        ({"start_index": 5, "end_index": 5}, "start_index < end_index"),
        ({"start_index": -1}, "start_index < end_index"),
        ({"sampling_rate": 9}, "no room for a window"),
    ],
)
def test_mistakes_with_series(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"sequence_length": 3, **options}
    with pytest.raises(InvalidArgumentError, match=message):
        utils.timeseries_dataset_from_array(np.arange(10), None, **given)


# Against Keras, where it and what it makes data sets with are installed


def keras_with_grain() -> Any:
    if "torch" not in sys.modules:
        pytest.importorskip("torch")
    pytest.importorskip("grain")
    return pytest.importorskip("keras")


def as_arrays(batch: Any) -> list[Any]:
    return [np.asarray(part) for part in (batch if isinstance(batch, tuple | list) else [batch])]


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": False},
        {"shuffle": False, "crop_to_aspect_ratio": True},
        {"shuffle": False, "pad_to_aspect_ratio": True, "interpolation": "nearest"},
        {"shuffle": False, "color_mode": "grayscale", "label_mode": "categorical"},
        {"seed": 7, "validation_split": 0.3, "subset": "validation"},
        {"shuffle": False, "validation_split": 0.3, "subset": "training"},
        {"label_mode": None, "shuffle": False},
    ],
)
def test_images_as_in_keras(images: Path, options: Any) -> None:
    keras = keras_with_grain()
    image = pytest.importorskip("PIL.Image")
    for path in images.rglob("*.png"):  # with something to see
        with image.open(path) as old:
            size = (old.height, old.width, 3)
        image.fromarray(rng.integers(0, 256, size, dtype="uint8")).save(path)
    options = {"image_size": (5, 7), "batch_size": 5, "verbose": False, **options}
    expected = keras.utils.image_dataset_from_directory(images, format="grain", **options)
    found = utils.image_dataset_from_directory(images, **options)
    if options.get("subset") == "validation":  # Keras shuffles it again
        assert sorted(found.file_paths) == sorted(expected.file_paths)
        return
    for theirs, ours in zip(expected, arrays(found), strict=True):
        for a, b in zip(as_arrays(theirs), as_arrays(ours), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(b, a, atol=2e-3)


def test_windows_as_in_keras() -> None:
    keras = keras_with_grain()
    data = rng.normal(size=(40, 2)).astype("float32")
    targets = np.arange(40)
    for length, stride, rate, start, end in [
        (4, 1, 1, None, None),
        (3, 2, 4, 2, 33),
        (5, 7, 1, 0, 39),
    ]:
        options: dict[str, Any] = {"start_index": start, "end_index": end, "batch_size": 4}
        given = (data, targets, length, stride, rate)
        expected = keras.utils.timeseries_dataset_from_array(*given, format="grain", **options)
        found = utils.timeseries_dataset_from_array(*given, **options)
        for theirs, ours in zip(expected, arrays(found), strict=True):
            for a, b in zip(as_arrays(theirs), ours, strict=True):
                np.testing.assert_array_equal(a, b)


def test_older_names() -> None:
    assert preprocessing.image_dataset_from_directory is utils.image_dataset_from_directory
    assert preprocessing.timeseries_dataset_from_array is utils.timeseries_dataset_from_array
    assert preprocessing.sequence.pad_sequences is utils.pad_sequences
    assert preprocessing.image.load_img is utils.load_img
