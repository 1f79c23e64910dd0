"""Calls of `laminar.ops` whose results are compared with those of Keras."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, b, c, f, i, names, rng, u
from .network_cases import images, linear_algebra, mathematics, networks

_ONE_REAL = names("""
    abs absolute arcsinh arctan cbrt ceil conj conjugate copy cos cosh deg2rad exp exp2
    expm1 fabs floor i0 imag real isfinite isinf isnan isneginf isposinf isreal logical_not
    negative nan_to_num rad2deg reciprocal round sign signbit sin sinc sinh square tan tanh
    trunc angle relu selu softplus softsign leaky_relu hard_sigmoid hard_silu hard_swish
    hard_shrink soft_shrink tanh_shrink sparse_plus sparse_sigmoid squareplus log_sigmoid
    softmax log_softmax ravel flip fliplr flipud transpose tril triu sum mean max min prod
    std var all any amax amin argmax argmin argsort sort cumsum cumprod count_nonzero median
    ptp average diff trace ndim size diag diagonal nansum nanmean nanmax nanmin nanprod
    nanstd nanvar nanmedian nancumsum nancumprod nanargmax nanargmin zeros_like ones_like
    rot90 diagflat trapezoid nonzero stop_gradient
""")
_ONE_FLOAT = names("""
    elu celu gelu sigmoid silu swish relu6 hard_tanh glu erf erfc layer_normalization
    rms_normalization logsumexp norm normalize corrcoef
""")
_TWO = names("""
    add subtract multiply divide true_divide power maximum minimum mod floor_divide arctan2
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
    logaddexp hypot divide_no_nan fmod isclose heaviside fmax fmin
""")
_OF_TYPES = names("""
    sum prod mean max min std cumsum argmax sort relu exp abs square var any median all sqrt
    floor trunc logsumexp diff
""")


def elementwise() -> Iterator[Case]:
    for name in _ONE_REAL:
        yield c(name, f(4, 4))
        yield c(name, i(4, 4))
    for name in _ONE_FLOAT:
        yield c(name, f(4, 4))
    for name in names("sqrt log log1p log2 log10 rsqrt arcsin arccos arctanh erfinv"):
        yield c(name, u(3, 4))
    for name in names("sqrt log log1p log2 log10 arccosh"):
        yield c(name, i(3, 4))
    yield c("arccosh", u(3) + 1)
    yield c("round", f(5) * 10, decimals=1)
    yield c("round", f(5) * 100, decimals=-1)
    yield c("ldexp", f(3), i(3))
    yield c("nextafter", f(3), f(3))
    yield c("clip", f(5), -0.5, 0.5)
    yield c("clip", i(5), 2, 3)
    yield c("elu", f(3), alpha=0.3)
    yield c("celu", f(3), alpha=0.3)
    yield c("gelu", f(5), approximate=False)
    yield c("squareplus", f(3), b=2)
    yield c("leaky_relu", f(4), 0.4)
    yield c("threshold", f(4), 0.2, 9.0)
    yield c("polar", u(3), u(3))


def operands() -> Iterator[Case]:
    for name in _TWO:
        yield c(name, u(3, 4), u(4))
        yield c(name, i(3, 4), u(4))
        yield c(name, i(3, 4), i(4))
        yield c(name, u(3, 4), 2.0)
        yield c(name, i(3, 4), 2)
        yield c(name, i(3, 4), 2.5)
        yield c(name, 2, u(3))
        yield c(name, i(3, 4).astype("int8"), i(4).astype("uint8"))
        yield c(name, u(3, 4).astype("float16"), u(4), rtol=4e-3)
    yield c("logaddexp2", u(3, 4), u(4))
    for name in names("add multiply maximum minimum equal logical_and"):
        yield c(name, b(3), b(3))
    for name in names("""bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
            left_shift right_shift gcd lcm"""):
        yield c(name, i(3, 4), i(4))
    for name in names("bitwise_not bitwise_invert"):
        yield c(name, i(3))
        yield c(name, b(3))
    for dtype in names("bool uint8 int8 int16 uint16 uint32 float16"):
        for name in _OF_TYPES:
            yield c(name, rng.integers(0, 3, (2, 3)).astype(dtype), rtol=1e-2)


def reductions() -> Iterator[Case]:
    for (
        name
    ) in names("""sum mean max min prod std var all any argmax argmin median ptp count_nonzero
            nansum logsumexp norm"""):
        for axis in (0, -1):
            yield c(name, f(3, 4, 2), axis=axis)
        if name not in ("argmax", "argmin"):
            yield c(name, f(3, 4, 2), axis=(0, 2))
        if name != "count_nonzero":
            yield c(name, f(3, 4, 2), axis=1, keepdims=True)
    yield c("max", f(3), initial=9.0)
    yield c("min", f(3), initial=-9.0)
    yield c("average", f(3, 4), axis=1, weights=u(4))
    yield c("average", f(3, 4), weights=u(3, 4))
    yield c("average", f(3, 4), axis=0, weights=u(3, 4))
    yield c("quantile", f(5, 6), 0.3)
    yield c("quantile", f(5, 6), np.array([0.1, 0.5], "float32"), axis=1)
    yield c("percentile", f(5, 6), 30.0, axis=0, keepdims=True)
    yield c("nanquantile", f(5, 6), np.array([0.2, 0.7], "float32"), axis=1)
    yield c("nanpercentile", f(5, 6), 30.0)
    gaps = f(3, 4)
    gaps[0, 1] = gaps[2] = np.nan
    for name in names("nansum nanmean nanmax nanmin nanprod nanstd nanvar nanmedian"):
        yield c(name, gaps)
        yield c(name, gaps, axis=1)
        yield c(name, gaps, axis=0, keepdims=True)
    yield c("nanargmax", gaps, axis=1)
    yield c("nanquantile", gaps, 0.4, axis=1)
    yield c("nancumsum", gaps, axis=0)
    yield c("nan_to_num", gaps)
    yield c("diff", f(3, 4), n=2)
    yield c("diff", i(3, 4), axis=0)
    yield c("trapezoid", f(3, 4), dx=0.5)
    yield c("trapezoid", f(3, 4), x=f(4))
    yield c("cumsum", f(3, 4), axis=1)
    yield c("cumsum", b(3, 4), axis=1)
    yield c("cumprod", i(3), dtype="float32")
    yield c("bincount", i(8))
    yield c("bincount", i(8), minlength=9)
    yield c("bincount", i(8), weights=u(8))
    yield c("bincount", i(2, 8), minlength=9)
    yield c("histogram", f(20))
    yield c("histogram", f(20), bins=4, range=(-1.0, 1.0))


def shapes() -> Iterator[Case]:
    yield c("reshape", f(3, 4), (2, 6))
    yield c("reshape", f(3, 4), (-1, 2))
    yield c("transpose", f(2, 3, 4), axes=(2, 0, 1))
    yield c("swapaxes", f(2, 3, 4), 0, 2)
    yield c("moveaxis", f(2, 3, 4), 0, -1)
    yield c("moveaxis", f(2, 3, 4), (0, 1), (1, 2))
    yield c("expand_dims", f(3), 0)
    yield c("expand_dims", f(3), (0, 2))
    yield c("squeeze", f(2, 3, 1), axis=2)
    yield c("broadcast_to", f(3), (2, 3))
    yield c("flip", f(2, 3), axis=1)
    yield c("roll", f(3, 4), 2)
    yield c("roll", f(3, 4), (1, 2), axis=(0, 1))
    yield c("repeat", f(3, 2), 2, axis=0)
    yield c("repeat", f(3, 2), 3)
    yield c("tile", f(3, 2), 2)
    yield c("tile", f(3, 2), (2, 1, 2))
    yield c("rot90", f(3, 4), k=2)
    yield c("rot90", f(3, 4, 2), k=3, axes=(1, 2))
    yield c("pad", f(2, 3), ((1, 0), (0, 2)))
    yield c("pad", f(3, 4), ((1, 1), (2, 2)), constant_values=3.0)
    for mode in ("reflect", "symmetric", "edge"):
        yield c("pad", f(3, 4), ((1, 1), (2, 2)), mode=mode)
    yield c("concatenate", [f(2, 3), f(1, 3)])
    yield c("concatenate", [f(2, 3), i(2, 1)], axis=1)
    yield c("stack", [f(2), i(2)])
    yield c("stack", [f(2), f(2)], axis=1)
    for name in ("hstack", "vstack", "dstack"):
        yield c(name, [f(3), f(3)])
        yield c(name, [f(2, 3), f(2, 3)])
    yield c("append", f(3), f(2, 2))
    yield c("append", f(2, 2), f(1, 2), axis=0)
    yield c("split", f(6, 2), 3)
    yield c("split", f(6, 2), [1, 4])
    yield c("split", f(2, 6), [2], axis=-1)
    yield c("array_split", f(7, 2), 3, static=True)
    yield c("hsplit", f(2, 4), 2)
    yield c("vsplit", f(4, 2), 2)
    yield c("dsplit", f(2, 2, 4), 2)
    yield c("meshgrid", f(3), f(2))
    yield c("meshgrid", f(3), f(2), f(4), indexing="ij")
    yield c("unstack", f(3, 2), axis=1)
    yield c("view", f(2, 4), dtype="int32")
    yield c("rearrange", f(2, 6, 4), "b (h w) c -> b h (w c)", h=2)
    yield c("shape", f(2, 3), static=True)


def creation() -> Iterator[Case]:
    yield c("zeros", (2, 3))
    yield c("ones", (2,), dtype="int32")
    yield c("full", (2, 3), 7)
    yield c("full_like", f(2), 3)
    yield c("eye", 3)
    yield c("eye", 3, 4, k=1, dtype="int32")
    yield c("identity", 3)
    yield c("tri", 3, 4, k=-1)
    yield c("arange", 5)
    yield c("arange", 1, 5, 2)
    yield c("arange", 0.0, 1.0, 0.25)
    yield c("arange", 5, dtype="float32")
    yield c("linspace", 0, 1, 5)
    yield c("linspace", 0.0, 4.0, 5, endpoint=False)
    yield c("linspace", 0, 1, 5, retstep=True)
    yield c("linspace", f(2), f(2), 4, axis=1)
    yield c("linspace", 0, 10, 5, dtype="int32")
    yield c("logspace", 0, 2, 5)
    yield c("geomspace", 1, 100, 5)
    yield c("diag", f(3, 4), k=1)
    yield c("diagonal", f(3, 4, 2), offset=1)
    yield c("trace", f(3, 4, 2))
    yield c("tril", f(3, 4), k=-1)
    yield c("triu", f(2, 3, 4), k=1)
    yield c("vander", f(3), static=True)
    yield c("vander", i(3), N=2, increasing=True)
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        for points in (1, 5, 6):
            yield c(name, points)
    yield c("kaiser", 6, 2.5)


def indexing() -> Iterator[Case]:
    yield c("take", f(5, 3), i(2, 2) - 1, axis=0)
    yield c("take", f(5, 3), [0, 2], axis=1)
    yield c("take", f(5, 3), i(3))
    yield c("take", f(5, 3), -1, axis=0)
    yield c("take_along_axis", f(3, 4), rng.integers(0, 4, (3, 2)), axis=1)
    yield c("take_along_axis", f(3, 4), rng.integers(0, 12, 5))
    yield c("get_item", f(5, 3), 1)
    yield c("get_item", f(5, 3), (slice(1, 3), -1))
    yield c("searchsorted", np.sort(f(6)), f(4))
    yield c("searchsorted", np.sort(f(6)), f(2, 2), side="right")
    yield c("digitize", f(5), np.sort(f(3)))
    yield c("unravel_index", i(3), (2, 4))
    yield c("isin", i(3, 2), i(3))
    yield c("isin", i(3, 2), i(3), invert=True)
    yield c("unique", i(8), return_index=True, return_inverse=True, return_counts=True)
    yield c("unique", i(6, 2), axis=0)
    yield c("unique", i(8), size=7, fill_value=0)
    yield c("unique", i(8), size=2, return_counts=True)
    yield c("where", b(3, 4), f(3, 4), i(4))
    yield c("where", b(3, 4), f(3, 4), 1.0)
    yield c("where", b(3, 4))
    yield c("where", i(3) - 2, 1, 2.0)
    yield c("select", [b(3), b(3)], [f(3), i(3)], 2.0)
    special = np.array([1.0, np.inf, np.nan], "float32")
    yield c("isclose", special, special, equal_nan=True)
    yield c("allclose", f(3), f(3))
    yield c("sort", f(3, 4), axis=0)
    yield c("scatter", np.array([[0, 1], [2, 0]]), f(2), (3, 2))
    yield c("scatter_update", f(3, 2), np.array([[0, 1], [2, 0]]), f(2))
    for reduction in ("add", "max", "min", "mul"):
        yield c("scatter_update", f(3, 2), np.array([[0], [0]]), f(2, 2), reduction=reduction)
    yield c("slice", f(4, 5), (1, 2), (2, 3))
    yield c("slice", f(4, 5), (1, 2), (2, -1))
    yield c("slice_update", f(4, 5), (1, 2), f(2, 2))
    yield c("cast", f(3) * 5, "int32")
    yield c("saturate_cast", f(5) * 300, "uint8")
    yield c("saturate_cast", i(3) * 100, "uint8")


def products() -> Iterator[Case]:
    yield c("matmul", f(3, 4), f(4, 5))
    yield c("matmul", f(2, 3, 4), f(4))
    yield c("matmul", f(4), f(2, 4, 3))
    yield c("matmul", i(2, 3).astype("int8"), i(3, 2).astype("int8"))
    yield c("matmul", i(2, 3), f(3, 2))
    yield c("dot", f(3, 4), f(4, 5))
    yield c("dot", f(2, 3, 4), f(5, 4, 2))
    yield c("dot", 3.0, f(2))
    yield c("inner", f(3, 4), f(2, 4))
    yield c("outer", f(3), f(4))
    yield c("vdot", f(3, 2), f(3, 2))
    yield c("kron", f(2, 2), f(2, 3))
    yield c("tensordot", f(3, 4, 5), f(4, 5, 2))
    yield c("tensordot", f(3, 4, 5), f(5, 3), axes=([0, 2], [1, 0]))
    yield c("einsum", "ij,jk->ik", f(3, 4), f(4, 2))
    yield c("einsum", "...ij,jk", f(2, 3, 4), f(4, 2))
    yield c("cross", f(4, 3), f(4, 3))
    yield c("cross", f(4, 2), f(4, 2))
    for mode in ("valid", "same", "full"):
        for m, n in ((7, 3), (3, 7), (6, 4), (4, 6), (4, 5)):
            yield c("correlate", f(m), f(n), mode=mode, static=True)


def _all() -> list[Case]:
    makers = (
        *(elementwise, operands, reductions, shapes, creation, indexing, products),
        *(networks, mathematics, linear_algebra, images),
    )
    cases: list[Case] = []
    for seed, maker in enumerate(makers):  # a case added to one group leaves the others alone
        rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        cases += maker()
    return cases


CASES = _all()
