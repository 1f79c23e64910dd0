"""Checkpoints written and read: against bytes that TensorFlow wrote, and against damage."""

import contextlib
import itertools
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar.engine import errors
from laminar.engine.checkpoint import (
    CheckpointReader,
    Part,
    checkpoint_exists,
    entries,
    merge_checkpoints,
    table,
    write_checkpoint,
)
from laminar.engine.checkpoint.entries import format_slice, parse_slice
from laminar.engine.checkpoint.table import read_table, write_table
from laminar.engine.graph import as_dtype
from laminar.engine.wire import field, integer

# tf.raw_ops.SaveV2 of TensorFlow 2.21 wrote these, of the tensors below.
INDEX = bytes.fromhex(
    "00000608011a020801000a150070000101028081807f080312081202080112020802201b280835bfdfdb7a06041581"
    "83807f0803120812020803120208022023281835ca06df1a0001136108011208120208011202080228083552961ac6"
    "00010d62080912002008280835bbd79f1100011168080e1204120208012010280235fa2912a700011e700803120812"
    "020804120208023a060a0210010a003a080a04080110030a0000011573080712081202080112020802201228093514"
    "4734350001117a08011206120012020803201b35d8ea82a2000000000100000000e3a50c84000000000100000000c0"
    "f2a1b00001037b00dc010000000001000000001070da3ae10108ee010f000000000000000000000000000000000000"
    "0000000000000000000000000000000057fb808b247547db"
)
DATA = bytes.fromhex(
    "0000803f000020c00700000000000000003f0003ecc6ea196162630100000002000000030000000400000005000000"
    "060000000700000008000000"
)


def strings(items: list[list[bytes]]) -> Any:
    found = np.empty((len(items), len(items[0])), object)
    found[:] = items
    return found


TENSORS = {
    "a": np.array([[1, -2.5]], np.float32),
    "b": np.array(7, np.int64),
    "h": np.array([0.5], ml_dtypes.bfloat16),
    "s": strings([[b"", b"abc"]]),
    "z": np.zeros((0, 3), np.float32),
}
P = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.int32)
PARTS = [Part(P[:1], (4, 2), ((0, 1), (0, -1))), Part(P[1:], (4, 2), ((1, 3), (0, -1)))]


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def read_all(reader: CheckpointReader) -> None:
    for name in reader.variables():
        reader.read(name)


def golden(folder: Path) -> Path:
    (folder / "g.index").write_bytes(INDEX)
    (folder / "g.data-00000-of-00001").write_bytes(DATA)
    return folder / "g"


def test_what_tensorflow_wrote_is_read(tmp_path: Path) -> None:
    with CheckpointReader(golden(tmp_path)) as reader:
        for name, value in TENSORS.items():
            same(reader.read(name), value)
        same(reader.read("p"), P)
        same(reader.read("p", ((1, 3), (0, -1))), P[1:])
        same(reader.read("p", ((0, 2), (1, 1))), P[:2, 1:])
        assert reader.variables()["p"] == ((4, 2), "int32")
        assert reader.get_variable_to_shape_map() == {
            "a": [1, 2],
            "b": [],
            "h": [1],
            "p": [4, 2],
            "s": [1, 2],
            "z": [0, 3],
        }
        assert reader.get_variable_to_dtype_map()["h"] == "bfloat16"
        assert reader.debug_string().decode().splitlines()[:3] == [
            "a (DT_FLOAT) [1,2]",
            "b (DT_INT64) []",
            "h (DT_BFLOAT16) [1]",
        ]
        assert "a" in reader
        assert not reader.has_tensor("q")


def test_the_same_bytes_are_written(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "m", [*TENSORS.items(), ("p", PARTS[0]), ("p", PARTS[1])])
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]
    # TensorFlow writes them in another order into the data file, so into the index other places.
    with CheckpointReader(tmp_path / "m") as reader, CheckpointReader(golden(tmp_path)) as other:
        assert list(reader.entries) == list(other.entries)
        for name, value in TENSORS.items():
            same(reader.read(name), value)
            mine, its = reader.entry(name), other.entry(name)
            assert (mine.size, mine.checksum, mine.dtype) == (its.size, its.checksum, its.dtype)


@pytest.mark.parametrize(
    "dtype",
    ["bool", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))]
    + ["float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16, ">f4"],
)
def test_types(tmp_path: Path, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    values = {
        "full": (rng.normal(size=(3, 2, 5)) * 50).astype(dtype),
        "scalar": np.array(3).astype(dtype),
        "none": np.zeros((2, 0), dtype),
        "turned": (rng.normal(size=(3, 4)) * 9).astype(dtype).T,
    }
    write_checkpoint(tmp_path / "m", values.items())
    with CheckpointReader(tmp_path / "m") as reader:
        for name, value in values.items():
            same(reader.read(name), value.astype(value.dtype.newbyteorder("=")))


def test_many_bytes_and_strings(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = strings([[b"x" * int(n)] for n in rng.integers(0, 300, 500)])
    big = rng.normal(size=(1100, 1000))  # more than is summed at a time
    write_checkpoint(tmp_path / "m", {"words": words, "big": big, "ä/\0": big[0]}.items())
    with CheckpointReader(tmp_path / "m") as reader:
        same(reader.read("words"), words)
        same(reader.read("big"), big)
        same(reader.read("ä/\0"), big[0])


def test_shards_are_merged(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / "parts").mkdir(exist_ok=True)
        part = Part(P[i : i + 1], (3, 2), ((i, 1), (0, -1)))
        write_checkpoint(tmp_path / "parts" / str(i), [(f"v{i}", np.array(i)), ("p", part)])
    write_checkpoint(tmp_path / "m", [("old", np.zeros(3))])
    merge_checkpoints([str(tmp_path / "parts" / str(i)) for i in range(3)], tmp_path / "m")
    assert sorted(os.listdir(tmp_path)) == [
        *(f"m.data-0000{i}-of-00003" for i in range(3)),
        "m.index",
    ]
    with CheckpointReader(tmp_path / "m") as reader:
        assert [int(reader.read(f"v{i}")) for i in range(3)] == [0, 1, 2]
        same(reader.read("p"), P[:3])


def test_bad_values(tmp_path: Path) -> None:
    for tensors in (
        [("a", np.zeros(1)), ("a", np.zeros(1))],
        [("a", np.array([1, None], object))],
        [("a", PARTS[0]), ("a", PARTS[0])],
        [("a", PARTS[0]), ("a", np.zeros(1))],
        [("", np.zeros(1))],
    ):
        with pytest.raises(errors.InvalidArgumentError):
            write_checkpoint(tmp_path / "m", tensors)
    with pytest.raises(errors.InvalidArgumentError, match="shape"):
        Part(np.zeros((2, 2)), (4, 2), ((0, 1), (0, -1)))
    assert not os.listdir(tmp_path)


def test_bad_places(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="folder"):
        write_checkpoint(tmp_path, [("a", np.zeros(1))])
    with pytest.raises(errors.MissingFileError, match="no folder"):
        write_checkpoint(tmp_path / "none" / "m", [("a", np.zeros(1))])
    with pytest.raises(errors.MissingFileError, match="folder"):
        CheckpointReader(tmp_path)
    with pytest.raises(errors.MissingFileError, match="no checkpoint"):
        CheckpointReader(tmp_path / "m")
    with pytest.raises(errors.PermissionDeniedError):
        write_checkpoint("/proc/m", [("a", np.zeros(1))])
    with pytest.raises(errors.ResourceExhaustedError), limited_files(100):
        write_checkpoint(tmp_path / "m", [("a", np.zeros(100))])
    assert not os.listdir(tmp_path)


class limited_files:  # noqa: N801  # used as a function is
    """Files of this process cannot grow beyond `size` bytes, as on a full disk."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __enter__(self) -> None:
        self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.before[1]))

    def __exit__(self, *error: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
        signal.signal(signal.SIGXFSZ, self.handler)


def test_an_older_one_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "m", [("a", np.arange(3))])
    for size in (0, 10, 300, 1000):
        with pytest.raises(errors.ResourceExhaustedError), limited_files(size):
            write_checkpoint(tmp_path / "m", [("a", np.zeros(200))])
    with CheckpointReader(tmp_path / "m") as reader:
        same(reader.read("a"), np.arange(3))
    assert len(os.listdir(tmp_path)) == 2


def test_missing_tensors_parts_and_files(tmp_path: Path) -> None:
    prefix = golden(tmp_path)
    with CheckpointReader(prefix) as reader:
        with pytest.raises(errors.NotFoundError, match="'q'.*it has a, b, h"):
            reader.read("q")
        with pytest.raises(errors.InvalidArgumentError):
            reader.read("a", ((0, 2), (0, -1)))
    write_checkpoint(tmp_path / "m", [("p", PARTS[0])])
    with CheckpointReader(tmp_path / "m") as reader:
        with pytest.raises(errors.DataLossError, match="2 elements, it has 8"):
            reader.read("p")
        same(reader.read("p", ((0, 1), (0, -1))), P[:1])
    (tmp_path / "g.data-00000-of-00001").unlink()
    with CheckpointReader(prefix) as reader:
        assert len(reader.variables()) == 6  # the index says that
        with pytest.raises(errors.DataLossError, match="data-00000-of-00001"):
            reader.read("a")


def test_every_flipped_bit_of_the_data_is_noticed(tmp_path: Path) -> None:
    prefix = golden(tmp_path)
    for byte, bit in itertools.product(range(len(DATA)), range(0, 8, 3)):
        changed = bytearray(DATA)
        changed[byte] ^= 1 << bit
        (tmp_path / "g.data-00000-of-00001").write_bytes(changed)
        with CheckpointReader(prefix) as reader, pytest.raises(errors.DataLossError):
            read_all(reader)


def test_truncated_data_are_noticed(tmp_path: Path) -> None:
    prefix = golden(tmp_path)
    for size in range(len(DATA)):
        (tmp_path / "g.data-00000-of-00001").write_bytes(DATA[:size])
        with CheckpointReader(prefix) as reader, pytest.raises(errors.DataLossError):
            read_all(reader)


def test_another_version_is_refused(tmp_path: Path) -> None:
    header = entries.header_bytes(1) + field(3, integer(2, 9))
    with open(tmp_path / "m.index", "wb") as file:
        table.write_table(file, [(b"", header)])
    with pytest.raises(errors.UnimplementedError, match="version 9"):
        CheckpointReader(tmp_path / "m")


def test_tensors_that_share_bytes_are_refused(tmp_path: Path) -> None:
    with open(tmp_path / "m.index", "wb") as file:
        same_place = entries.entry_bytes(entries.Entry(as_dtype("uint8"), (100,), 0, 0, 100, 1))
        items = [(b"%03d" % i, same_place) for i in range(500)]
        table.write_table(file, [(b"", entries.header_bytes(1)), *items])
    with pytest.raises(errors.DataLossError, match="share"):
        CheckpointReader(tmp_path / "m")


def test_parts_as_text() -> None:
    assert parse_slice("") is None
    assert parse_slice("4 10 0,2:-") == ((4, 10), ((0, 2), (0, -1)))
    assert format_slice((4, 10), ((0, 2), (0, -1))) == "4 10 0,2:-"
    for text in ("4", "4 10 0,2", "4 0,5", "a 0,1", "4 x", "4 0"):
        with pytest.raises(errors.InvalidArgumentError):
            parse_slice(text)


def test_a_folder_where_the_index_belongs(tmp_path: Path) -> None:
    (tmp_path / "m.index").mkdir()
    with pytest.raises(errors.InvalidArgumentError, match="where the index belongs, is a folder"):
        write_checkpoint(tmp_path / "m", [("a", np.arange(3))])
    assert [path.name for path in tmp_path.iterdir()] == ["m.index"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_format_that_says_that_this_reader_reads_it_wrongly(tmp_path: Path, packed: bool) -> None:
    write_checkpoint(tmp_path / "m", [("a", np.arange(3))])
    path = tmp_path / "m.index"
    _, *items = read_table(path.read_bytes(), "index")
    readers = field(3, b"\x01\x07") if packed else integer(3, 7) + integer(3, 1)
    with open(path, "wb") as file:
        write_table(file, [(b"", integer(1, 1) + field(3, integer(1, 1) + readers)), *items])
    with pytest.raises(errors.UnimplementedError, match="readers of version 1, as this one is"):
        CheckpointReader(tmp_path / "m")


def test_a_child_forked_meanwhile_does_not_keep_the_folder_locked(tmp_path: Path) -> None:
    script = """
import os, sys, time
from laminar.engine.checkpoint.files import folder_lock
with folder_lock(sys.argv[1]):
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
try:
    with folder_lock(sys.argv[1]):
        print("locked again")
finally:
    os.kill(child, 9)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "locked again\n"


def test_several_writers_of_one_prefix(tmp_path: Path) -> None:
    """One of them wins: what is read is from one writer, or known to have changed meanwhile."""

    def values(number: float) -> list[tuple[str, Any]]:
        return [("a", np.full(500, number)), ("b", np.full(7, number))]

    def write(number: float) -> None:
        for _ in range(10):
            write_checkpoint(tmp_path / "m", values(number))

    write_checkpoint(tmp_path / "m", values(0))
    writers = [threading.Thread(target=write, args=(k,)) for k in (1.0, 2.0)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        with (
            contextlib.suppress(errors.AbortedError),
            CheckpointReader(tmp_path / "m") as reader,
        ):
            assert len({*reader.read("a").tolist(), *reader.read("b").tolist()}) == 1
    for writer in writers:
        writer.join()
    assert len(os.listdir(tmp_path)) == 2


KILLED = """
import os, sys
import numpy as np
from laminar.engine.checkpoint import files, write_checkpoint
real, left = os.replace, int(sys.argv[2])
def replace(a, b):
    global left
    if not left:
        os.kill(os.getpid(), 9)
    left -= 1
    real(a, b)
os.replace = replace
write_checkpoint(sys.argv[1], [("a", np.full(1000, 2.0)), ("b", np.ones(3))])
"""


@pytest.mark.slow
def test_killed_between_any_two_steps(tmp_path: Path) -> None:
    """The prefix names the old checkpoint or the new one, whole, whatever has been renamed."""
    found = []
    for step in range(5):
        prefix = tmp_path / f"{step}"
        write_checkpoint(prefix, [("a", np.ones(1000))])
        run = subprocess.run(
            [sys.executable, "-c", KILLED, str(prefix), str(step)], timeout=60, check=False
        )
        assert run.returncode == (-9 if step < 4 else 0)
        with CheckpointReader(prefix) as reader:
            found.append(float(reader.read("a").mean()))
        # The next who writes begins from there.
        write_checkpoint(prefix, [("a", np.full(10, 7.0))])
        with CheckpointReader(prefix) as reader:
            same(reader.read("a"), np.full(10, 7.0))
    assert found == [1, 1, 2, 2, 2]
    assert checkpoint_exists(tmp_path / "0")
    assert not [name for name in os.listdir(tmp_path) if "next" in name or "tmp" in name]
