"""Sorted tables: what is written is read, and only that."""

import io
from contextlib import suppress

import numpy as np
import pytest

from laminar.engine import errors
from laminar.engine.checkpoint.ordered_code import slice_key
from laminar.engine.checkpoint.table import read_table, write_table
from laminar.engine.io.crc32c import masked_crc32c


def table(items: list[tuple[bytes, bytes]]) -> bytes:
    file = io.BytesIO()
    write_table(file, items)
    return file.getvalue()


def test_bytes_of_a_small_table() -> None:
    # By hand from the format: two entries that share "ab", one restart, none compressed.
    block = bytes.fromhex("00 03 01 616261 3102 01 01 63 3200000000 01000000")
    data = table([(b"aba", b"1"), (b"abc", b"2")])
    assert data[: len(block) + 1] == block + b"\0"
    assert data[-8:] == bytes.fromhex("57fb808b247547db")


def test_many_blocks_are_read_in_order() -> None:
    items = [(b"layer/%06d/kernel" % i, b"v" * (i % 200)) for i in range(9000)]
    data = table(items)
    assert len(data) > 3 * 256 * 1024
    assert read_table(data, "a.index") == items


def test_an_empty_one() -> None:
    assert read_table(table([]), "a.index") == []


def test_other_files_are_refused() -> None:
    for data in (b"", b"x", b"\0" * 100, table([(b"a", b"b")])[:-1]):
        with pytest.raises(errors.DataLossError, match=r"a\.index"):
            read_table(data, "a.index")


def test_blocks_that_are_compressed_are_refused() -> None:
    data = bytearray(table([(b"a", b"b")]))
    size = data.index(b"\0\x01\x01ab") + 5 + 8
    data[size] = 1
    data[size + 1 : size + 5] = masked_crc32c(bytes(data[: size + 1])).to_bytes(4, "little")
    with pytest.raises(errors.UnimplementedError, match="compressed"):
        read_table(bytes(data), "a.index")


def test_changed_bytes_are_noticed_or_do_not_matter() -> None:
    items = [(b"name/%03d" % i, bytes(20)) for i in range(40)]
    data = table(items)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        changed = bytearray(data)
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            changed[place] ^= 1 << rng.integers(8)
        with suppress(errors.DataLossError, errors.UnimplementedError):
            assert read_table(bytes(changed), "a.index") == items  # zeros before the magic number


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        # From indexes that TensorFlow 2.21 wrote.
        (((100, 200), (0, -1)), "00 7000 01 01 02 c064 c0c8 80 7f"),
        (((0, 100), (0, -1)), "00 7000 01 01 02 80 c064 80 7f"),
    ],
)
def test_keys_of_parts(parts: tuple[tuple[int, int], ...], key: str) -> None:
    assert slice_key("p", parts) == bytes.fromhex(key)


def test_keys_of_parts_sort_as_the_numbers_do() -> None:
    numbers = [0, 1, 63, 64, 8191, 8192, 1 << 20, 1 << 31, 1 << 40, (1 << 62) - 1]
    keys = [slice_key("p", ((n, -1),)) for n in numbers]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
