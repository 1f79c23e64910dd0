"""Each loader from its address to its arrays, with small files of the published formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import laminar.datasets
from laminar.datasets import (
    boston_housing,
    california_housing,
    cifar10,
    cifar100,
    fashion_mnist,
    imdb,
    mnist,
    reuters,
)
from laminar.datasets.download import KERAS_FILES
from laminar.engine.errors import DataLossError, InvalidArgumentError

Served = dict[str, bytes]
rng = np.random.default_rng(0)


class Publisher:
    """Puts a file on the test's server and points a module's address and digest to it."""

    def __init__(self, base_url: str, served: Served, patch: pytest.MonkeyPatch) -> None:
        self.base_url = base_url
        self.served = served
        self.patch = patch

    def __call__(
        self, module: ModuleType, data: bytes, url: str = "URL", digest: str = "SHA256"
    ) -> None:
        name = str(getattr(module, url)).rsplit("/", 1)[1]
        self.served[name] = data
        self.patch.setattr(module, url, self.base_url + name)
        algorithm = hashlib.md5 if digest.endswith("MD5") else hashlib.sha256
        self.patch.setattr(module, digest, algorithm(data).hexdigest())


@pytest.fixture
def publish(base_url: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    return Publisher(base_url, served, monkeypatch)


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=True, **arrays)
    return stream.getvalue()


def images(*shape: int) -> NDArray[np.uint8]:
    return rng.integers(0, 256, shape, dtype=np.uint8)


def check(found: Any, expected: Any) -> None:
    for pair, expected_pair in zip(found, expected, strict=True):
        for array, other in zip(pair, expected_pair, strict=True):
            np.testing.assert_array_equal(array, other, strict=True)


def test_addresses() -> None:
    modules = (mnist, imdb, reuters, boston_housing, california_housing)
    for module in modules:
        name = module.__name__.rsplit(".", 1)[1]
        assert f"{KERAS_FILES}{name}.npz" == module.URL
    assert fashion_mnist.URL == KERAS_FILES
    digests = [m.SHA256 for m in (*modules, cifar10, cifar100)] + [*fashion_mnist.SHA256.values()]
    assert len({d for d in digests if len(bytes.fromhex(d)) == 32}) == 11


def test_mnist(publish: Publisher) -> None:
    x, y = images(12, 28, 28), images(12)
    publish(mnist, npz(x_train=x[:9], y_train=y[:9], x_test=x[9:], y_test=y[9:]))
    found = mnist.load_data()
    check(found, ((x[:9], y[:9]), (x[9:], y[9:])))
    found[0][0][0] = 0  # writable
    check(mnist.load_data("other.npz"), ((x[:9], y[:9]), (x[9:], y[9:])))


@pytest.mark.parametrize(
    "data",
    [
        b"no archive",
        npz(x_train=images(3)),
        npz(x_train=np.array([{}, print]), y_train=images(1), x_test=images(1), y_test=images(1)),
    ],
    ids=["no archive", "arrays missing", "a function"],
)
def test_npz_of_another_kind(publish: Publisher, data: bytes) -> None:
    publish(mnist, data)
    with pytest.raises(DataLossError, match=r"mnist\.npz"):
        mnist.load_data()


def bad_header(shape: str, dtype: str, data: bytes) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            archive.writestr(f"{name}.npy", member)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("shape", "dtype", "data"),
    [
        ("(1099511627776,)", "<f8", b""),
        ("(2,)", "<f8", b"12345678"),
        ("(1,)", "<f8", b"123456789"),
        ("(-1,)", "<f8", b"12345678"),
        ("(2,)", "|O", pickle.dumps(np.array([None]), 2)),
        ("(2,)", "|O", pickle.dumps([1, 2], 2)),
        ("(1,)", "|O", b""),
        ("__import__('os')", "<f8", b""),
        ("(" * 300 + ")" * 300, "<f8", b""),
        ("(1,), []: 1", "<f8", b"12345678"),
        ("(1,), 2: 1", "<f8", b"12345678"),
        ('"""', "<f8", b""),
    ],
)
def test_npz_whose_header_lies(publish: Publisher, shape: str, dtype: str, data: bytes) -> None:
    publish(mnist, bad_header(shape, dtype, data))
    with pytest.raises(DataLossError):
        mnist.load_data()


def idx(array: NDArray[np.uint8]) -> bytes:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes())


def publish_fashion(
    base_url: str, served: Served, patch: pytest.MonkeyPatch, files: list[bytes]
) -> None:
    names = dict(zip(fashion_mnist.SHA256, files, strict=True))
    served.update(names)
    patch.setattr(fashion_mnist, "URL", base_url)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in names.items()}
    patch.setattr(fashion_mnist, "SHA256", digests)


def test_fashion_mnist(
    base_url: str, served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x, y = images(12, 28, 28), images(12)
    files = [idx(x[:9]), idx(y[:9]), idx(x[9:]), idx(y[9:])]
    publish_fashion(base_url, served, monkeypatch, files)
    check(fashion_mnist.load_data(), ((x[:9], y[:9]), (x[9:], y[9:])))
    assert len(list((tmp_path / "home/datasets/fashion-mnist").iterdir())) == 4


@pytest.mark.parametrize(
    "data",
    [
        b"no gzip",
        gzip.compress(b""),
        gzip.compress(struct.pack(">HBBI", 0, 8, 1, 5) + b"1234"),
        gzip.compress(struct.pack(">HBBI", 0, 8, 1, 5) + b"123456"),
        gzip.compress(struct.pack(">HBBI", 0, 13, 1, 4) + b"1234"),
        gzip.compress(struct.pack(">HBB", 0, 8, 200)),
        idx(images(12))[:-9],
    ],
    ids=["no gzip", "empty", "too short", "too long", "floats", "200 axes", "cut off"],
)
def test_fashion_mnist_of_another_kind(
    base_url: str, served: Served, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    publish_fashion(base_url, served, monkeypatch, [data] * 4)
    with pytest.raises(DataLossError, match="IDX"):
        fashion_mnist.load_data()


def tar_gz(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def planes(x: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return x.transpose(0, 3, 1, 2).reshape(len(x), 3072)


def batch(x: NDArray[np.uint8], protocol: int = 2, **labels: list[int]) -> bytes:
    fields = {name.encode(): values for name, values in labels.items()}
    return pickle.dumps({b"data": planes(x), b"filenames": [b"a.png"] * len(x), **fields}, protocol)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_cifar10(publish: Publisher, protocol: int) -> None:
    x, y = images(12, 32, 32, 3), rng.integers(0, 10, 12).tolist()
    files = {"cifar-10-batches-py/test_batch": batch(x[10:], protocol, labels=y[10:])}
    for i in (3, 1, 5, 2, 4):  # in no order, as in the archive
        part = slice(2 * i - 2, 2 * i)
        name = f"cifar-10-batches-py/data_batch_{i}"
        files[name] = batch(x[part], protocol, labels=y[part])
    files["cifar-10-batches-py/readme.html"] = b"<p>"
    publish(cifar10, tar_gz(files))
    labels = np.array(y, np.uint8)[:, None]
    found = cifar10.load_data()
    check(found, ((x[:10], labels[:10]), (x[10:], labels[10:])))
    assert found[0][0].flags.c_contiguous
    assert found[1][0].flags.c_contiguous
    found[1][0][:] = 0  # writable


@pytest.mark.parametrize("mode", ["fine", "coarse"])
def test_cifar100(publish: Publisher, mode: str) -> None:
    x = images(6, 32, 32, 3)
    y = {"fine": rng.integers(0, 100, 6).tolist(), "coarse": rng.integers(0, 20, 6).tolist()}
    files = {
        f"cifar-100-python/{name}": batch(
            x[part], fine_labels=y["fine"][part], coarse_labels=y["coarse"][part]
        )
        for name, part in {"test": slice(4, 6), "train": slice(4)}.items()
    }
    publish(cifar100, tar_gz(files))
    labels = np.array(y[mode], np.int64)[:, None]
    check(cifar100.load_data(mode), ((x[:4], labels[:4]), (x[4:], labels[4:])))


def test_cifar100_label_mode() -> None:
    with pytest.raises(InvalidArgumentError, match="label_mode"):
        cifar100.load_data("finest")


GOOD = batch(images(2, 32, 32, 3), fine_labels=[1, 2])


@pytest.mark.parametrize(
    "files",
    [
        {"train": GOOD},
        {"train": GOOD, "test": b"cos\nsystem\n(U\x02lstR."},
        {"train": GOOD, "test": pickle.dumps([1], 2)},
        {"train": GOOD, "test": batch(images(2, 32, 32, 3), labels=[1, 2])},
        {"train": GOOD, "test": batch(images(2, 32, 32, 3), fine_labels=[1])},
        {"train": GOOD, "test": batch(images(2, 32, 32, 3), fine_labels=[1, 256])},
        {"train": GOOD, "test": pickle.dumps({b"data": images(2, 5), b"fine_labels": [1, 2]}, 2)},
    ],
    ids=["missing", "code", "a list", "other labels", "few labels", "a large label", "other rows"],
)
def test_cifar100_of_another_kind(publish: Publisher, files: dict[str, bytes]) -> None:
    publish(cifar100, tar_gz({f"cifar-100-python/{name}": data for name, data in files.items()}))
    with pytest.raises(DataLossError, match=r"cifar-100-python\.tar\.gz"):
        cifar100.load_data()


def texts(count: int) -> NDArray[Any]:
    lists = np.empty(count, object)
    for i in range(count):
        lists[i] = rng.integers(1, 400, rng.integers(1, 30)).tolist()
    return lists


def orders(seed: int, *counts: int) -> list[list[int]]:
    """One generator shuffles one set after the other."""
    legacy = np.random.RandomState(seed)
    found = []
    for count in counts:
        indices = np.arange(count)
        legacy.shuffle(indices)
        found.append(indices.tolist())
    return found


def encode_one_by_one(lists: list[list[int]], options: dict[str, Any]) -> list[list[int] | None]:
    """What Keras documents, word by word; None for a text that is left out."""
    start, oov = options.get("start_char", 1), options.get("oov_char", 2)
    shift, maxlen = options.get("index_from", 3), options.get("maxlen")
    marked: list[list[int] | None] = []
    for words in lists:
        text = ([] if start is None else [start]) + [w + shift for w in words]
        marked.append(None if maxlen and len(text) >= maxlen else text)
    highest = max((w for text in marked if text for w in text), default=0)
    low, high = options.get("skip_top", 0), options.get("num_words") or highest
    result: list[list[int] | None] = []
    for kept in marked:
        if kept is None:
            result.append(None)
        elif oov is None:
            result.append([w for w in kept if low <= w < high])
        else:
            result.append([w if low <= w < high else oov for w in kept])
    return result


OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_words": 100},
    {"num_words": 100, "oov_char": None, "skip_top": 20},
    {"skip_top": 5, "start_char": None, "index_from": 0},
    {"maxlen": 12, "seed": 7},
    {"maxlen": 12, "start_char": None, "index_from": 5, "num_words": 50, "oov_char": None},
    {"oov_char": 9, "start_char": 0, "num_words": 1},
]


def check_texts(found: NDArray[Any], expected: list[list[int]]) -> None:
    assert found.dtype == object
    assert found.shape == (len(expected),)
    assert all(type(text) is list for text in found)
    assert {type(word) for text in found for word in text} <= {int}
    assert found.tolist() == expected


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_imdb(publish: Publisher, options: dict[str, Any]) -> None:
    x, y = texts(60), rng.integers(0, 2, 60)
    publish(imdb, npz(x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:]))
    (x_train, y_train), (x_test, y_test) = imdb.load_data(**options)
    seed = options.get("seed", 113)
    train, test = orders(seed, 40, 20)
    places = train + [40 + i for i in test]
    encoded = encode_one_by_one([x[i] for i in places], options)
    rows = list(zip(places, encoded, strict=True))
    for found_x, found_y, part in ((x_train, y_train, rows[:40]), (x_test, y_test, rows[40:])):
        check_texts(found_x, [text for _, text in part if text is not None])
        kept = [i for i, text in part if text is not None]
        np.testing.assert_array_equal(found_y, y[kept], strict=True)


@pytest.mark.parametrize("test_split", [0.2, 0.0, 0.55])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_reuters(publish: Publisher, options: dict[str, Any], test_split: float) -> None:
    x, y = texts(50), rng.integers(0, 46, 50)
    publish(reuters, npz(x=x, y=y))
    (x_train, y_train), (x_test, y_test) = reuters.load_data(test_split=test_split, **options)
    (places,) = orders(options.get("seed", 113), 50)
    encoded = encode_one_by_one([x[i] for i in places], options)
    rows = [(i, text) for i, text in zip(places, encoded, strict=True) if text is not None]
    count = int(len(rows) * (1 - test_split))
    for found_x, found_y, part in (
        (x_train, y_train, rows[:count]),
        (x_test, y_test, rows[count:]),
    ):
        check_texts(found_x, [text for _, text in part])
        np.testing.assert_array_equal(found_y, y[[i for i, _ in part]].reshape(-1), strict=True)


def numbered(start: int, stop: int) -> NDArray[Any]:
    lists = np.empty(stop - start, object)
    for place, number in enumerate(range(start, stop)):
        lists[place] = [number]
    return lists


def test_the_orders_are_those_of_keras(publish: Publisher) -> None:
    # Keras 3.15 on the same files.
    first, second, ten = numbered(1, 8), numbered(11, 16), numbered(1, 11)
    publish(imdb, npz(x_train=first, y_train=np.arange(7), x_test=second, y_test=np.arange(5)))
    publish(reuters, npz(x=ten, y=np.arange(10)))
    options: dict[str, Any] = {"start_char": None, "index_from": 0, "num_words": 100}
    (x_train, y_train), (x_test, y_test) = imdb.load_data(**options)
    assert x_train.tolist() == [[2], [4], [1], [7], [3], [5], [6]]
    assert y_train.tolist() == [1, 3, 0, 6, 2, 4, 5]
    assert x_test.tolist() == [[13], [14], [15], [12], [11]]
    assert y_test.tolist() == [2, 3, 4, 1, 0]
    (x_train, y_train), (x_test, y_test) = reuters.load_data(**options)
    assert x_train.tolist() == [[10], [4], [7], [2], [1], [8], [5], [9]]
    assert y_train.tolist() == [9, 3, 6, 1, 0, 7, 4, 8]
    assert x_test.tolist() == [[3], [6]]
    assert y_test.tolist() == [2, 5]


def test_texts_of_one_length_stay_lists(publish: Publisher) -> None:
    x = np.empty(4, object)
    x[:] = [[5, 6], [7, 8], [9, 10], []]
    x[3] = [11, 12]
    publish(reuters, npz(x=x, y=np.arange(4)))
    assert reuters.load_data()[0][0].shape == (3,)


def test_maxlen_that_leaves_nothing(publish: Publisher) -> None:
    x, y = texts(8), np.arange(8)
    publish(imdb, npz(x_train=x, y_train=y, x_test=x, y_test=y))
    publish(reuters, npz(x=x, y=y))
    for module in (imdb, reuters):
        with pytest.raises(InvalidArgumentError, match="maxlen=1"):
            module.load_data(maxlen=1)


def test_texts_that_name_code_are_refused(publish: Publisher) -> None:
    x = np.empty(2, object)
    x[0] = [1, 2]
    x[1] = print
    publish(reuters, npz(x=x, y=np.arange(2)))
    with pytest.raises(DataLossError, match="print"):
        reuters.load_data()


@pytest.mark.parametrize("module", [imdb, reuters])
def test_word_index(publish: Publisher, module: Any) -> None:
    index = {"the": 1, "café": 2}
    data = json.dumps(index, ensure_ascii=False).encode()
    publish(module, data, url="INDEX_URL", digest="INDEX_MD5")
    assert module.get_word_index() == index


def test_reuters_label_names() -> None:
    names = reuters.get_label_names()
    assert len(names) == len(set(names)) == 46
    assert (names[0], names[3], names[4], names[45]) == ("cocoa", "earn", "acq", "lead")


@pytest.mark.parametrize("seed", [113, 5])
@pytest.mark.parametrize(
    ("module", "width", "options", "count"),
    [
        (boston_housing, 13, {}, 700),
        (california_housing, 8, {}, 700),
        (california_housing, 8, {"version": "small"}, 600),
        (boston_housing, 13, {"test_split": 0.0}, 700),
        (california_housing, 8, {"test_split": 0.31}, 700),
    ],
)
def test_housing(
    publish: Publisher, module: Any, width: int, options: dict[str, Any], count: int, seed: int
) -> None:
    x, y = rng.normal(size=(700, width)), rng.normal(size=700)
    publish(module, npz(x=x, y=y))
    (places,) = orders(seed, count)
    first = int(count * (1 - options.get("test_split", 0.2)))
    found = module.load_data(seed=seed, **options)
    expected = [(x[part], y[part]) for part in (places[:first], places[first:])]
    check(found, [(a.reshape(-1, width), b.reshape(-1)) for a, b in expected])


@pytest.mark.parametrize("test_split", [-0.1, 1.0, 2, float("nan")])
@pytest.mark.parametrize("module", [boston_housing, california_housing, reuters])
def test_test_split_outside(module: Any, test_split: float) -> None:
    with pytest.raises(InvalidArgumentError, match="test_split"):
        module.load_data(test_split=test_split)


def test_california_version() -> None:
    with pytest.raises(InvalidArgumentError, match="version"):
        california_housing.load_data("medium")


def test_importing_datasets_loads_nothing() -> None:
    script = (
        "import sys; import laminar.datasets as d; before = set(sys.modules); "
        "print(*(m for m in sys.modules if m.startswith('laminar.datasets.'))); "
        "d.digits.load_data(); "
        "new = set(sys.modules) - before; print('urllib.request' in new or 'tqdm' in new)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split("\n")[:2] == ["", "False"]


def test_names() -> None:
    assert set(laminar.datasets.__all__) <= set(dir(laminar.datasets))
    pipelines = {"AUTOTUNE", "Dataset", "DatasetIterator", "GraphIterator"}
    pipelines |= {"DataSets", "MiniBatches", "read_data_sets"}
    for name in set(laminar.datasets.__all__) - pipelines:
        assert callable(getattr(laminar.datasets, name).load_data)
    with pytest.raises(AttributeError, match="cifar1000"):
        _ = laminar.datasets.cifar1000
