from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar.engine.compiler.kernels import (
    Buffer,
    Launch,
    Matrix,
    Scratch,
    Stream,
    Target,
    plan_gemm,
)
from laminar.engine.compiler.kernels.gemm import (
    gemm_kernel,
)
from laminar.engine.compiler.target import host
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import DType, float32, float64

from .....sampling import examples
from ..epilogues import adding, check_epilogue
from ..products import Product, Tiles, products
from ..running import VECTOR_BYTES, Array, Prepared, aligned, results

ANY_PRODUCT = products(
    accumulate=st.booleans(),
    dtype=st.sampled_from([float32, float64]),
    vector_bytes=st.sampled_from(VECTOR_BYTES),
)


@pytest.fixture(autouse=True)
def _l2_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied, and the blocks, depend on it: tests are of a processor with so much."""
    let_the_second_cache_have(2048, monkeypatch)


def let_the_second_cache_have(kilobytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "l2_cache", lambda: kilobytes * 1024)


def check(product: Product) -> None:
    arrays = product.arrays()
    found = results(product.plan(), *arrays)
    np.testing.assert_allclose(found, product.expected(*arrays), rtol=0, atol=product.tolerance)


@settings(examples(60), derandomize=True)
@given(ANY_PRODUCT)
def test_products_of_any_size(product: Product) -> None:
    check(product)


@pytest.mark.slow
@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
@pytest.mark.parametrize(
    "product",
    [
        pytest.param(Product(1, 200, 300), id="one-row"),
        pytest.param(Product(1, 200, 400, accumulate=True), id="one-row-in-parts"),
        pytest.param(Product(1, 100, 480, dtype=float64, gap=3), id="one-row-in-parts-of-doubles"),
        pytest.param(Product(200, 1, 30), id="one-column"),
        pytest.param(Product(200, 1, 50, transpose_b=True), id="one-column-dots"),
        pytest.param(Product(3, 200, 77, transpose_b=True, accumulate=True), id="dots"),
        pytest.param(Product(61, 10, 1024, accumulate=True), id="narrow-rows-of-a-page"),
        pytest.param(
            Product(2, 9, 40, transpose_b=True, batch=(2, 3), gap=3), id="dots-of-a-batch"
        ),
        pytest.param(Product(300, 530, 1100), id="copied-b-and-blocks-of-k"),
        pytest.param(Product(270, 40, 1100, transpose_b=True), id="transposed-b"),
        pytest.param(Product(1024, 70, 600, transpose_a=True), id="copied-a"),
        pytest.param(Product(300, 40, 1800, transpose_a=True), id="copied-a-that-is-large"),
        pytest.param(Product(1024, 70, 600, True, True, accumulate=True), id="both-transposed"),
        pytest.param(Product(1100, 100, 130), id="many-rows-in-parts"),
        pytest.param(Product(130, 270, 2100, True, True), id="few-panels-of-a-transposed-b"),
        pytest.param(Product(130, 140, 525), id="copied-narrow-panels"),
        pytest.param(Product(70, 270, 1030, accumulate=True), id="copied-narrow-panels-of-pages"),
        pytest.param(Product(1100, 1030, 520, True, gap=1), id="a-that-is-turned-first"),
        pytest.param(
            Product(1030, 1040, 530, True, True, accumulate=True, dtype=float64),
            id="a-of-doubles-that-is-turned-first",
        ),
        pytest.param(Product(700, 300, 530, True, gap=1), id="copied-a-in-parts-and-blocks-of-k"),
        pytest.param(Product(600, 90, 300, True, True), id="copied-a-and-transposed-b-in-parts"),
        pytest.param(Product(132, 128, 140), id="a-b-that-crowds"),
        pytest.param(Product(134, 256, 515, True, accumulate=True), id="short-vectors-of-both"),
        pytest.param(Product(130, 128, 270, True, True), id="a-transposed-b-and-a-copied-a"),
        pytest.param(Product(140, 96, 130, True, dtype=float64), id="a-copied-a-of-doubles"),
        pytest.param(Product(1024, 1100, 1030, accumulate=True), id="long-sums-of-a-large-result"),
        pytest.param(Product(1030, 2100, 1025, False, True), id="blocks-of-k-of-a-large-result"),
    ],
)
def test_large_products(product: Product, vector_bytes: int) -> None:
    check(replace(product, vector_bytes=vector_bytes))


STOCKS = [Tiles(), Tiles((1, 1)), Tiles((4, 2), (3, 2)), Tiles((2, 4), (5, 1)), Tiles((3, 3))]


@settings(examples(60), derandomize=True)
@given(ANY_PRODUCT, st.sampled_from(STOCKS))
def test_available_code_gives_the_same_bits(product: Product, available: Tiles) -> None:
    arrays = product.arrays()
    found = results(replace(product, available=available).plan(), *arrays)
    np.testing.assert_array_equal(found, results(product.plan(), *arrays))
    np.testing.assert_allclose(found, product.expected(*arrays), rtol=0, atol=product.tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
@pytest.mark.parametrize(
    "product",
    [
        pytest.param(Product(1, 200, 400, accumulate=True), id="one-row-in-parts"),
        pytest.param(Product(130, 140, 525), id="copied-narrow-panels"),
        pytest.param(Product(300, 530, 1100), id="copied-b-and-blocks-of-k"),
        pytest.param(Product(270, 40, 1100, transpose_b=True), id="transposed-b"),
        pytest.param(Product(300, 40, 1800, transpose_a=True), id="copied-a"),
        pytest.param(Product(600, 300, 530, True, True), id="both-transposed"),
        pytest.param(Product(1100, 1030, 520, True, gap=1), id="a-that-is-turned-first"),
        pytest.param(Product(1030, 400, 520, gap=60), id="fetched-ahead"),
    ],
)
def test_large_products_of_available_code(product: Product, vector_bytes: int) -> None:
    product = replace(product, vector_bytes=vector_bytes)
    arrays = product.arrays()
    expected = results(product.plan(), *arrays)
    for available in (Tiles(), Tiles((4, 2))):
        found = results(replace(product, available=available).plan(), *arrays)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_any_tile_keeps_to_its_rows_and_columns(special: float) -> None:
    """Numbers that are not finite stay in the row and the column that they are in."""
    product = Product(7, 21, 5, available=Tiles())
    a, b, c = product.arrays()
    a[3, 2] = special
    found = results(product.plan(), a, b, c)
    with np.errstate(invalid="ignore"):
        expected = product.expected(a, b, c)
    np.testing.assert_allclose(found, expected, rtol=0, atol=product.tolerance)
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


CACHES = [512, 1024, 2048]  # in kilobytes


@pytest.mark.parametrize("kilobytes", CACHES)
@pytest.mark.parametrize(
    "product",
    [
        pytest.param(Product(300, 530, 1100, accumulate=True), id="copied-b"),
        pytest.param(Product(270, 330, 2500, transpose_b=True), id="transposed-b"),
        pytest.param(Product(530, 530, 1030, True, gap=1), id="turned-or-copied-a"),
        pytest.param(Product(600, 700, 300, True, True), id="both-transposed"),
        pytest.param(Product(140, 60, 525, dtype=float64), id="doubles"),
    ],
)
def test_second_caches_of_other_sizes(
    product: Product, kilobytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_the_second_cache_have(kilobytes, monkeypatch)
    check(replace(product, vector_bytes=VECTOR_BYTES[-1]))


@pytest.mark.parametrize("kilobytes", CACHES)
@pytest.mark.parametrize("kind", ["nn", "tn", "nt", "tt"])
@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize("size", [300, 512, 1024, 2048])
def test_blocks_are_within_the_l2_cache(
    size: int, dtype: DType, kind: str, kilobytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_the_second_cache_have(kilobytes, monkeypatch)
    x, y = (Matrix(Buffer(i), *((size, 1) if t == "n" else (1, size))) for i, t in enumerate(kind))
    z = Matrix(Buffer(2), size, 1)
    launches = plan_gemm(x, y, z, size, size, size, dtype, Target(64, 1))
    words = dict(zip(gemm_kernel.WORDS, launches[-1].words, strict=True))
    names = ("tile_rows", "part_tiles", "block_inner", "packed_b_bytes")
    height, part, inner, block = (int(str(words[name])) for name in names)
    assert height * part * inner * dtype.size + block <= kilobytes * 1024


@pytest.mark.parametrize(
    "product",
    [
        Product(37, 90, 20),
        Product(300, 600, 1100),
        Product(5, 33, 8, batch=(2, 3)),
        Product(7, 9, 0),
        Product(1, 200, 400),
        Product(1030, 1040, 515, transpose_a=True),
    ],
)
def test_the_epilogue_sees_each_element_once_when_it_is_complete(product: Product) -> None:
    a, b, c = product.arrays()
    wanted = product.expected(a, b, c)
    check_epilogue(
        product.plan,
        [a, b],
        wanted,
        product.vector_bytes,
        2,
        rtol=1e-6,
        atol=product.tolerance,
    )


STREAMED = [
    Product(300, 300, 20, transpose_a=True),
    Product(350, 270, 1, transpose_a=True),
    Product(350, 256, 70, transpose_b=True),
    Product(50, 301, 8, batch=(2, 3)),
]


@pytest.mark.parametrize("product", STREAMED)
@pytest.mark.parametrize("threads", [1, 3])
def test_streams_of_the_epilogue_are_fetched_and_change_nothing(
    product: Product, threads: int
) -> None:
    a, b, c = product.arrays()
    expected = product.expected(a, b, c)
    of_rows = np.zeros(c.size // product.columns, np.float32)
    of_columns = np.arange(product.columns, dtype=np.float32)
    plain = adding(Buffer(2), c.strides[-2], Buffer(3), Buffer(4), product.vector_bytes)
    streams = tuple(Stream(Buffer(5), c.strides[-2]) for _ in range(3))
    (launch,) = product.plan(plain._replace(streams=streams))
    assert "ahead" in str(launch.words)
    prepared = Prepared([launch], [a, b, c, of_rows, of_columns, np.zeros_like(c)])
    prepared.run(threads)
    np.testing.assert_allclose(c, expected + of_columns, rtol=1e-6, atol=product.tolerance)


@pytest.mark.parametrize("product", STREAMED)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_result_that_only_the_epilogue_reads_is_not_stored(
    product: Product, threads: int
) -> None:
    a, b, c = product.arrays()
    expected = product.expected(a, b, c)
    of_rows = np.arange(c.size // product.columns, dtype=np.float32)
    of_columns = np.arange(product.columns, dtype=np.float32) * 0.5
    to = aligned(c.shape)
    epilogue = adding(
        Buffer(2), c.strides[-2], Buffer(3), Buffer(4), product.vector_bytes, Buffer(5)
    )
    streams = tuple(Stream(Buffer(5), c.strides[-2]) for _ in range(3))
    (launch,) = product.plan(epilogue._replace(streams=streams, result=0))
    before = c.copy()
    Prepared([launch], [a, b, c, of_rows, of_columns, to]).run(threads)
    np.testing.assert_array_equal(c, before)
    expected = expected + of_rows.reshape(*c.shape[:-1], 1) + of_columns
    np.testing.assert_allclose(to, expected, rtol=1e-6, atol=product.tolerance)


def test_a_with_rows_apart_both_ways() -> None:
    """No row of it, nor column, can be copied as a run, however large it is."""
    size, wide = 700, 800
    a, b, c = aligned((size, 2 * wide)), aligned((wide, 8)), aligned((size, 8))
    a[...] = np.random.default_rng(0).standard_normal(a.shape)
    b[...] = np.random.default_rng(1).standard_normal(b.shape)
    strides = [(2 * wide, 2), (8, 1), (8, 1)]
    x, y, z = (Matrix(Buffer(i), *s) for i, s in enumerate(strides))
    launches = plan_gemm(x, y, z, size, 8, wide, float32, Target(32, 1))
    Prepared(launches, [a, b, c]).run()
    expected = a[:, ::2].astype(np.float64) @ b
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "how"),
    [
        pytest.param(256, 784, 512, gemm_kernel.B_IF_BESIDE, id="stays-in-cache"),
        pytest.param(128, 256, 512, gemm_kernel.B_IF_BESIDE, id="is-small"),
        pytest.param(256, 256, 500, gemm_kernel.B_AS_IT_IS, id="is-beside-lines-anyway"),
        pytest.param(64, 256, 512, gemm_kernel.B_AS_IT_IS, id="is-used-for-very-few-rows"),
        pytest.param(256, 1024, 1024, gemm_kernel.B_BY_INNER, id="is-pages-apart"),
        pytest.param(128, 1024, 1024, gemm_kernel.B_AS_IT_IS, id="is-used-for-few-rows"),
        pytest.param(256, 8192, 500, gemm_kernel.B_AS_IT_IS, id="has-rows-that-are-near"),
    ],
)
def test_b_is_copied_only_if_that_pays(rows: int, inner: int, columns: int, how: int) -> None:
    x, y, z = (Matrix(Buffer(i), n, 1) for i, n in enumerate((inner, columns, columns)))
    target = Target(64, 1, unaligned=frozenset({1}))
    (launch,) = plan_gemm(x, y, z, rows, columns, inner, float32, target)
    assert launch.words[gemm_kernel.WORDS.index("pack_b")] == how


@pytest.mark.parametrize(
    ("columns", "inner", "how", "deep"),
    [
        pytest.param(128, 128, gemm_kernel.B_BY_INNER, 128, id="on-few-sets"),
        pytest.param(512, 600, gemm_kernel.B_BY_INNER, 200, id="pages-apart"),
        pytest.param(200, 128, gemm_kernel.B_AS_IT_IS, 128, id="on-all-sets"),
        pytest.param(24, 1024, gemm_kernel.B_AS_IT_IS, 1024, id="one-panel"),
    ],
)
def test_panels_of_short_vectors_stay_in_the_l1_cache(
    columns: int, inner: int, how: int, deep: int
) -> None:
    """All of 16 registers are used where no vector is partial; what lines push out is copied."""
    x, y, z = (Matrix(Buffer(i), n, 1) for i, n in enumerate((inner, columns, columns)))
    (launch,) = plan_gemm(x, y, z, 128, columns, inner, float32, Target(32, 1))
    found = dict(zip(gemm_kernel.WORDS, launch.words, strict=True))
    assert (found["tile_rows"], found["panel_columns"]) == (4, 24)
    assert (found["pack_b"], found["block_inner"]) == (how, deep)


@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
@pytest.mark.parametrize(
    "product",
    [
        pytest.param(Product(130, 144, 37), id="product"),
        pytest.param(Product(130, 100, 37, gap=12), id="columns-that-are-no-vectors"),
        pytest.param(Product(300, 320, 300, True, gap=16), id="a-copied-too"),
        pytest.param(Product(300, 432, 500, accumulate=True), id="blocks-of-k"),
        pytest.param(Product(140, 48, 20, batch=(2, 2)), id="batch"),
        pytest.param(Product(130, 72, 37, dtype=float64), id="doubles"),
    ],
)
def test_an_unaligned_b_is_copied_and_makes_the_same_bits(
    product: Product, vector_bytes: int
) -> None:
    case = replace(product, vector_bytes=vector_bytes)
    a, b, c = case.arrays()
    beside = aligned((b.size + 1,), b.dtype)[1:].reshape(b.shape)
    beside[...] = b
    launches = case.plan()
    assert has_copied(launches, a, beside, c.copy())
    assert not has_copied(launches, a, b, c.copy())
    found = results(launches, a, beside, c)
    np.testing.assert_array_equal(found, results(launches, a, b, c))
    np.testing.assert_allclose(found, case.expected(a, b, c), rtol=0, atol=case.tolerance)


def has_copied(launches: list[Launch], *arrays: Array) -> bool:
    """Whether memory for copies of B is written to."""
    (copies,) = {w for w in launches[-1].words if isinstance(w, Scratch) and w.key == "packed_b"}
    held = list[Array]()

    def allocate(size: int) -> Array:
        held.append(aligned((size,), np.uint8))
        return held[-1]

    Prepared(launches, arrays, allocate).run()
    return any(memory.size == copies.bytes and memory.any() for memory in held)


@pytest.mark.parametrize("vector_bytes", [32, 64])
@pytest.mark.parametrize("kind", ["nn", "tn", "nt", "tt"])
def test_a_large_result_is_read_again_for_few_blocks_of_k(kind: str, vector_bytes: int) -> None:
    size, inner = 1024, 4096
    x = Matrix(Buffer(0), *((inner, 1) if kind[0] == "n" else (1, size)))
    y = Matrix(Buffer(1), *((size, 1) if kind[1] == "n" else (1, inner)))
    z = Matrix(Buffer(2), size, 1)
    launches = plan_gemm(x, y, z, size, size, inner, float32, Target(vector_bytes, 1))
    words = dict(zip(gemm_kernel.WORDS, launches[-1].words, strict=True))
    assert words["block_inner"] == 2048
    height, part, block = (words[n] for n in ("tile_rows", "part_tiles", "packed_b_bytes"))
    assert isinstance(height, int)
    assert isinstance(part, int)
    assert isinstance(block, int)
    assert height * part * 2048 * 4 + block < 1536 * 1024, "A and B stay in the L2 cache"


@pytest.mark.parametrize(
    ("product", "how"),
    [
        pytest.param(Product(1030, 400, 520), gemm_kernel.A_BY_ROWS, id="rows"),
        pytest.param(Product(1030, 400, 520, gap=60), gemm_kernel.A_BY_ROWS, id="rows-near"),
        pytest.param(Product(1030, 400, 520, gap=200), gemm_kernel.A_UNFETCHED, id="rows-apart"),
        pytest.param(
            Product(700, 530, 520, True, accumulate=True), gemm_kernel.A_BY_INNER, id="columns"
        ),
        pytest.param(Product(700, 530, 120), gemm_kernel.A_UNFETCHED, id="near"),
        pytest.param(
            Product(120, 530, 150, True, batch=(3,)), gemm_kernel.A_UNFETCHED, id="one-part"
        ),
    ],
)
@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
def test_a_is_fetched_for_the_next_part(
    product: Product, how: int, vector_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_the_second_cache_have(1900, monkeypatch)
    product = replace(product, vector_bytes=vector_bytes)
    how = how if vector_bytes == 64 else gemm_kernel.A_UNFETCHED
    (launch,) = product.plan()
    assert launch.words[gemm_kernel.WORDS.index("fetch_a")] == how
    assert ("ahead" in str(launch.words)) == (how != gemm_kernel.A_UNFETCHED)
    check(product)


@pytest.mark.parametrize(
    ("product", "is_far"),
    [
        pytest.param(Product(700, 401, 530), True, id="tail"),
        pytest.param(Product(700, 401, 90, True, accumulate=True), True, id="short-sums"),
        pytest.param(Product(700, 401, 20, batch=(2,)), True, id="shorter-sums"),
        pytest.param(Product(460, 301, 130, dtype=float64), True, id="float64"),
        pytest.param(Product(440, 401, 530), False, id="near"),
    ],
)
@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
def test_lines_of_a_far_result_come_one_after_the_other(
    product: Product, is_far: bool, vector_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_the_second_cache_have(1900, monkeypatch)
    product = replace(product, vector_bytes=vector_bytes)
    (launch,) = product.plan()
    assert ("paced" in str(launch.words)) == (is_far and vector_bytes == 64)
    check(product)


def test_nan_and_infinity_stay_in_their_rows() -> None:
    product = Product(20, 20, 20)
    a, b, c = product.arrays()
    a[3, 4], a[5, 6] = np.nan, np.inf
    found = results(product.plan(), a, b, c)
    assert np.isnan(found[3]).all()
    assert np.isinf(found[5]).all()
    assert np.isfinite(np.delete(found, [3, 5], axis=0)).all()


@pytest.mark.parametrize(
    ("a", "b", "c", "batch"),
    [
        pytest.param((4, 1), (4, 1), (1, 4), (), id="c-by-columns"),
        pytest.param((4, 1), (8, 2), (4, 1), (), id="b-without-a-contiguous-axis"),
        pytest.param((4, 1), (4, 1), (4, 1), (2,), id="batch-without-strides"),
    ],
)
def test_what_no_kernel_takes(
    a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], batch: tuple[int, ...]
) -> None:
    x, y, z = (Matrix(Buffer(i), *strides) for i, strides in enumerate((a, b, c)))
    with pytest.raises(InvalidArgumentError, match="plan_gemm"):
        plan_gemm(x, y, z, 4, 4, 4, float32, Target(32, 1), batch=batch)


@pytest.mark.parametrize(
    ("row_stride", "column_stride", "highest"),
    [
        pytest.param(1024, 1, 8, id="a-page-apart"),
        pytest.param(3072, 1, 8, id="pages-apart"),
        pytest.param(512, 1, 16, id="half-a-page-apart"),
        pytest.param(1000, 1, 29, id="on-many-sets"),
        pytest.param(1, 1024, 29, id="across"),
    ],
)
def test_rows_of_narrow_tiles_stay_in_the_l1_cache(
    row_stride: int, column_stride: int, highest: int
) -> None:
    a = Matrix(Buffer(0), row_stride, column_stride)
    rest = (Matrix(Buffer(1), 10, 1), Matrix(Buffer(2), 10, 1), 1024, 10, 512)
    (launch,) = plan_gemm(a, *rest, float32, Target(64, 1), accumulate=True)
    words = dict(zip(gemm_kernel.WORDS, launch.words, strict=True))
    assert words["tile_rows"] == highest


@pytest.mark.parametrize(
    ("product", "is_turned"),
    [
        pytest.param(Product(130, 10, 70, True, gap=3), True, id="few-columns"),
        pytest.param(Product(300, 1, 40, True, gap=1), True, id="one-column"),
        pytest.param(Product(37, 7, 0, True, gap=3), True, id="no-inner"),
        pytest.param(Product(65, 11, 33, True, True, dtype=float64), True, id="doubles"),
        pytest.param(Product(130, 13, 300, True, True, gap=3), True, id="b-transposed-too"),
        pytest.param(Product(130, 10, 70), False, id="a-by-rows"),
        pytest.param(Product(130, 70, 70, True, True), False, id="many-columns"),
        pytest.param(Product(9, 10, 70, True), False, id="fewer-rows"),
        pytest.param(Product(130, 10, 70, True, accumulate=True), False, id="added"),
        pytest.param(Product(30, 10, 70, True, batch=(3,)), False, id="batch"),
    ],
)
@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
def test_few_columns_are_made_as_rows(product: Product, is_turned: bool, vector_bytes: int) -> None:
    product = replace(product, vector_bytes=vector_bytes)
    is_few = product.columns * product.dtype.size < 2 * vector_bytes or product.transpose_b
    is_few &= product.columns * product.dtype.size <= 4 * vector_bytes
    assert ("turn_block" in str(product.plan())) == (is_turned and is_few)
    check(product)
