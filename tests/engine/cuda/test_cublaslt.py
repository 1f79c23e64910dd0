"""Arguments of cuBLASLt: a library of NumPy that reads memory as the real one does."""

from __future__ import annotations

import itertools
from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar.engine.cuda.libraries import cublaslt
from laminar.engine.cuda_program import Product, Strides
from laminar.engine.graph import as_dtype

from .fake_gpu import FakeGpu, array_at

DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}


class Descriptions(IntEnum):
    TRANSA, TRANSB = 3, 4


class Layouts(IntEnum):
    BATCH_COUNT, STRIDED_BATCH_OFFSET = 5, 6


class Preferences(IntEnum):
    MAX_WORKSPACE_BYTES, MIN_ALIGNMENT_A_BYTES, MIN_ALIGNMENT_B_BYTES = 1, 5, 6
    MIN_ALIGNMENT_C_BYTES, MIN_ALIGNMENT_D_BYTES = 7, 8


class Library:
    """`nvmath.bindings.cublasLt` on the memory of a fake GPU."""

    MatmulDescAttribute, MatrixLayoutAttribute = Descriptions, Layouts
    MatmulPreferenceAttribute = Preferences
    matmul_heuristic_result_dtype = np.dtype([("algo", "u8", 8), ("workspace", "u8")])

    class cuBLASLtError(Exception):  # noqa: N801  # its name
        """The library's error."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu
        self.things: dict[int, dict[Any, Any]] = {}
        self.numbers = itertools.count(1)
        self.has_algorithm = True
        self.alignments: list[int] = []

    def create(self) -> int:
        return self._make()

    def _make(self, **fields: Any) -> int:
        number = next(self.numbers)
        self.things[number] = dict(fields)
        return number

    def matmul_desc_create(self, compute: int, scale: int) -> int:
        return self._make(compute=compute, scale=scale)

    def matrix_layout_create(self, type: int, rows: int, columns: int, leading: int) -> int:
        assert leading >= rows
        return self._make(type=type, rows=rows, columns=columns, leading=leading)

    def matmul_preference_create(self) -> int:
        return self._make()

    def matmul_preference_destroy(self, what: int) -> None:
        found = self.things.pop(what)
        self.alignments = [found[x] for x in Preferences if "ALIGNMENT" in x.name]

    def _dtype(self, attribute: IntEnum) -> Any:
        return np.int64 if attribute == Layouts.STRIDED_BATCH_OFFSET else np.int32

    get_matmul_desc_attribute_dtype = get_matrix_layout_attribute_dtype = _dtype
    get_matmul_preference_attribute_dtype = _dtype

    def _set(self, what: int, attribute: IntEnum, buffer: int, size: int) -> None:
        dtype = np.dtype(self._dtype(attribute))
        assert size == dtype.itemsize
        self.things[what][attribute] = int(array_at(buffer, [1], dtype)[0])

    matmul_desc_set_attribute = matrix_layout_set_attribute = _set
    matmul_preference_set_attribute = _set

    def matmul_algo_get_heuristic(self, *arguments: Any) -> None:
        *_, results, count = arguments
        array_at(results, [1], self.matmul_heuristic_result_dtype)["algo"] = 7
        array_at(count, [1], "int32")[0] = self.has_algorithm

    def matmul(self, *arguments: Any) -> None:
        _, description, alpha, a, la, b, lb, beta, c, lc, d, ld, algo, space, size, stream = (
            arguments
        )
        about = self.things[description]
        wide = np.float64 if about["compute"] == 70 else np.float32
        assert [float(array_at(x, [1], wide)[0]) for x in (alpha, beta)] == [1, 0]
        assert (c, lc) == (d, ld)
        assert space
        assert size
        assert array_at(algo, [8], "u8").tolist() == [7] * 8
        x, y, z = self._matrix(a, la), self._matrix(b, lb), self._matrix(c, lc)
        x = x.swapaxes(-1, -2) if about.get(Descriptions.TRANSA) else x
        y = y.swapaxes(-1, -2) if about.get(Descriptions.TRANSB) else y
        z[...] = x.astype(wide) @ y.astype(wide)

    def _matrix(self, address: int, layout: int) -> Any:
        about = self.things[layout]
        dtype = np.dtype(DTYPES[about["type"]])
        count, step = about.get(Layouts.BATCH_COUNT, 1), about.get(Layouts.STRIDED_BATCH_OFFSET, 0)
        rows, columns, leading = about["rows"], about["columns"], about["leading"]
        size = (count - 1) * step + (columns - 1) * leading + rows
        strides = tuple(n * dtype.itemsize for n in (step, 1, leading))
        flat = array_at(address, [size], dtype)
        return np.lib.stride_tricks.as_strided(flat, (count, rows, columns), strides)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    gpu = FakeGpu()
    gpu.architecture = "sm_90"
    found = Library(gpu)
    monkeypatch.setattr(cublaslt, "bindings_or_none", lambda: found)
    return found


def strides_of(array: Any, batch: int) -> Strides:
    steps = [n // array.itemsize for n in array.strides]
    return Strides(tuple(steps[:batch]), steps[batch], steps[batch + 1])


def laid_out(array: Any, order: str) -> Any:
    """The same values with rows ("r") or columns ("c") contiguous, or with gaps ("g")."""
    if order == "c":
        return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    if order == "g":
        wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
        wide[..., : array.shape[-1]] = array
        return wide[..., : array.shape[-1]]
    return np.ascontiguousarray(array)


CASES = [
    *[(a + b + c, (), (3, 4, 5), "float32") for a in "rcg" for b in "rcg" for c in "rcg"],
    *[("rrr", (), shape, "float32") for shape in ((1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1))],
    *[("rrr", (), (3, 4, 5), dtype) for dtype in ("float64", "float16", "bfloat16")],
    ("rcr", (6,), (3, 4, 5), "float32"),
    ("crr", (2, 3), (3, 4, 5), "bfloat16"),
]


@pytest.mark.parametrize(("orders", "batch", "sizes", "dtype"), CASES)
def test_products(
    orders: str, batch: tuple[int, ...], sizes: tuple[int, int, int], dtype: str, library: Library
) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(0)
    of = as_dtype(dtype).numpy
    out = as_dtype("float64" if dtype == "float64" else "float32")
    a = laid_out(rng.normal(size=(*batch, m, k)).astype(of), orders[0])
    b = laid_out(rng.normal(size=(*batch, k, n)).astype(of), orders[1])
    c = laid_out(np.zeros((*batch, m, n), out.numpy), orders[2])
    axes = len(batch)
    product = Product(
        batch, m, n, k, as_dtype(dtype), out, *(strides_of(x, axes) for x in (a, b, c))
    )
    places = [x.ctypes.data for x in (a, b, c)]
    run = cublaslt.plan_product(library.gpu, product, places)
    assert run is not None
    run(library.gpu.stream)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)
    assert {*library.alignments} <= {2**i for i in range(9)}


def test_one_matrix_for_a_whole_batch(library: Library) -> None:
    a, b = np.ones((2, 3, 4), np.float32), np.arange(20, dtype=np.float32).reshape(4, 5)
    c = np.zeros((2, 3, 5), np.float32)
    f32 = as_dtype("float32")
    product = Product(
        (2,), 3, 5, 4, f32, f32, strides_of(a, 1), Strides((0,), 5, 1), strides_of(c, 1)
    )
    run = cublaslt.plan_product(library.gpu, product, [x.ctypes.data for x in (a, b, c)])
    assert run is not None
    run(library.gpu.stream)
    np.testing.assert_array_equal(c, a @ b)


def test_what_it_cannot_do_is_left_to_kernels(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    f32 = as_dtype("float32")

    def planned(**changes: Any) -> Any:
        rows = Strides((12,), 4, 1)
        sizes: dict[str, Any] = {"batch": (2,), "rows": 3, "columns": 4, "inner": 4}
        types = {"dtype": f32, "out_dtype": f32}
        fields = {**sizes, **types, "a": rows, "b": rows, "c": rows}
        product = Product(**{**fields, **changes})
        return cublaslt.plan_product(library.gpu, product, [256, 512, 1024])

    assert planned() is not None
    assert planned(a=Strides((24,), 8, 2)) is None  # neither rows nor columns are contiguous
    assert planned(c=Strides((24,), 8, 2)) is None
    assert planned(dtype=as_dtype("int32")) is None
    assert (
        planned(
            batch=(2, 2),
            a=Strides((100, 12), 4, 1),
            b=Strides((24, 12), 4, 1),
            c=Strides((24, 12), 4, 1),
        )
        is None
    )  # no one axis
    library.has_algorithm = False
    assert planned() is None
    monkeypatch.setattr(cublaslt, "bindings_or_none", lambda: None)
    cublaslt._library.cache_clear()
    assert planned() is None  # it is not installed
    library.gpu.architecture = ""
    cublaslt._library.cache_clear()
    assert planned() is None


def test_alignments() -> None:
    assert [cublaslt.alignment(x) for x in (256, 1024, 48, 3, 0)] == [256, 256, 16, 1, 256]
