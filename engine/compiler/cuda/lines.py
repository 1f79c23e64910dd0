"""What is no loop over elements, as CUDA C: running sums, transposes, random bits, scatters, ...

Each kernel takes its arrays, then its sizes, then the address of `failed`, or 0 where nothing is
checked. All have one order of operations for each element, so their results are the same bits in
every run.
"""

from __future__ import annotations

import functools

from ...cuda_program import Kernel
from ...graph import DType, int32, int64
from ..ir.not_lowered import NotLoweredError
from ..ir.sort_keys import order_type
from .scalars import memory_type, register_type
from .source import kernel

THREADS = 256
_WARPS = THREADS // 32


def _kernel(text: str) -> Kernel:
    return kernel([line.strip() for line in text.splitlines() if line.strip()], THREADS)


@functools.cache
def scan_kernel(kind: str, dtype: DType) -> Kernel:
    """Running sums, products or a recurrence: see `ScanCall`. A thread takes a line."""
    t, value = memory_type(dtype), register_type(dtype)
    step = {
        "sum": "lm_add(x[at], total)",
        "prod": "lm_mul(x[at], total)",
        "recurrence": "lm_add(x[at], lm_mul(factor[at], total))",
    }[kind]
    return _kernel(
        f"""
        @(const {t}* __restrict__ x, const {t}* __restrict__ factor, {t}* __restrict__ y,
        long long outer, long long size, long long inner, long long reverse, const int* failed) {{
        if (failed && *failed) return;
        const long long line = (long long)blockIdx.x * {THREADS} + threadIdx.x;
        if (line >= outer * inner) return;
        const long long first = line / inner * size * inner + line % inner;
        {value} total = {"1" if kind == "prod" else "0"};
        for (long long i = 0; i < size; i++) {{
        const long long at = first + (reverse ? size - 1 - i : i) * inner;
        total = {f"i ? {step} : x[at]"};
        y[at] = total;
        }}
        }}
        """
    )


@functools.cache
def transpose_kernel(dtype: DType, out: DType) -> Kernel:
    """y[j, i] = x[i, j], as another element type; with one row, a conversion.

    It takes x, y, rows and columns of x, and the address of `failed` or 0. A thread makes one
    element; those beside it write beside it.

    Args:
        dtype: of x.
        out: of y.
    """
    return _kernel(
        f"""
        @(const {memory_type(dtype)}* __restrict__ x, {memory_type(out)}* __restrict__ y,
        long long rows, long long columns, const int* failed) {{
        if (failed && *failed) return;
        const long long at = (long long)blockIdx.x * {THREADS} + threadIdx.x;
        if (at >= rows * columns) return;
        lm_put(y[at], lm_get(x[at % rows * columns + at / rows]));
        }}
        """
    )


@functools.cache
def random_kernel(is_bools: bool) -> Kernel:
    """Words of Philox 4x32-10, or whether they are `least` or more. A thread makes four of them.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3.
    """
    kind = "bool" if is_bools else "lm_uint32"
    value = "words[i] >= (lm_uint32)least" if is_bools else "words[i]"
    return _kernel(
        f"""
        @(const lm_uint32* __restrict__ state, {kind}* __restrict__ out, long long count,
        long long least, const int* failed) {{
        if (failed && *failed) return;
        const long long step = (long long)gridDim.x * {THREADS};
        for (long long block = (long long)blockIdx.x * {THREADS} + threadIdx.x;
        block * 4 < count; block += step) {{
        lm_uint32 words[4] = {{ (lm_uint32)block, (lm_uint32)(block >> 32), state[2], state[3] }};
        lm_uint32 key0 = state[0], key1 = state[1];
        #pragma unroll
        for (int round = 0; round < 10; round++) {{
        const lm_uint64 p0 = (lm_uint64)words[0] * 0xD2511F53u;
        const lm_uint64 p1 = (lm_uint64)words[2] * 0xCD9E8D57u;
        words[0] = (lm_uint32)(p1 >> 32) ^ words[1] ^ key0;
        words[2] = (lm_uint32)(p0 >> 32) ^ words[3] ^ key1;
        words[1] = (lm_uint32)p1;
        words[3] = (lm_uint32)p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
        }}
        #pragma unroll
        for (int i = 0; i < 4; i++) {{
        if (block * 4 + i < count) out[block * 4 + i] = {value};
        }}
        }}
        }}
        """
    )


@functools.cache
def scatter_kernel(mode: str, dtype: DType, index: DType) -> Kernel:
    """Rows combined with those of tables that indices name: see `ScatterCall`.

    A block of width x groups threads has some rows of a table for each group; all go through the
    indices in order, and a thread has its columns of those that name a row of its group.
    """
    t = memory_type(dtype)
    old, new = "lm_get(out[to])", "lm_get(rows[from])"
    combined = {
        "update": new,
        "add": f"lm_add({old}, {new})",
        "mul": f"lm_mul({old}, {new})",
        "max": f"lm_max({old}, {new})",
        "min": f"lm_min({old}, {new})",
    }[mode]
    if index not in (int32, int64):
        raise NotLoweredError(f"indices of {index}")
    return _kernel(
        f"""
        @(const {t}* __restrict__ rows, const {memory_type(index)}* __restrict__ indices,
        const {t}* start, {t}* out, long long has_start, long long count, long long size,
        long long width, long long own_places, long long each, long long blocks,
        const int* failed) {{
        if (failed && *failed) return;
        __shared__ lm_int64 named[{THREADS}];
        const long long table = blockIdx.x / blocks, part = blockIdx.x % blocks;
        const long long low = (part * blockDim.y + threadIdx.y) * each;
        const long long high = low + each < size ? low + each : size;
        const int thread = threadIdx.y * blockDim.x + threadIdx.x;
        out += table * size * width;
        rows += table * count * width;
        if (own_places) indices += table * count;
        if (has_start) start += table * size * width;
        if (!has_start || start != out) {{
        for (long long i = low; i < high; i++) {{
        for (long long c = threadIdx.x; c < width; c += blockDim.x) {{
        const long long to = i * width + c;
        if (has_start) out[to] = start[to];
        else out[to] = {t}();
        }}
        }}
        }}
        for (long long first = 0; first < count; first += {THREADS}) {{
        __syncthreads();
        if (first + thread < count) named[thread] = (lm_int64)indices[first + thread];
        __syncthreads();
        const int many = (int)(count - first < {THREADS} ? count - first : {THREADS});
        for (int k = 0; k < many; k++) {{
        const lm_int64 i = named[k];
        if (i < low || i >= high) continue;
        for (long long c = threadIdx.x; c < width; c += blockDim.x) {{
        const long long to = i * width + c, from = (first + k) * width + c;
        lm_put(out[to], {combined});
        }}
        }}
        }}
        }}
        """
    )


@functools.cache
def first_kernel(dtype: DType) -> Kernel:
    """first[k] = the least j with x[j] = x[k]. A thread looks through those before its own."""
    t = memory_type(dtype)
    return _kernel(
        f"""
        @(const {t}* __restrict__ x, lm_int32* __restrict__ first, long long count,
        const int* failed) {{
        if (failed && *failed) return;
        const long long k = (long long)blockIdx.x * {THREADS} + threadIdx.x;
        if (k >= count) return;
        const {t} own = x[k];
        long long j = 0;
        while (x[j] != own) j++;
        first[k] = (lm_int32)j;
        }}
        """
    )


@functools.cache
def top_k_kernel(dtype: DType) -> Kernel:
    """The places of the greatest elements of lines: see `TopKCall`. A block takes a line.

    Each round finds the first, in order, of those that come after the one found before.
    """
    t, key = memory_type(dtype), memory_type(order_type(dtype))
    as_key = "x[first + i]"
    if dtype.is_floating:
        word = "lm_uint32" if dtype.size == 4 else "lm_uint64"
        most = f"({key})((({word})-1) >> 1)"
        as_key = f"key_of_bits(x[first + i], lm_bits<{key}>(x[first + i] + ({t})0), {most})"
    return _kernel(
        f"""
        static __device__ __forceinline__ {key} key_of_bits({t} x, {key} bits, {key} most) {{
        return x != x ? most : bits < 0 ? ({key})(bits ^ most) : bits;
        }}
        @(const {t}* __restrict__ x, lm_int32* __restrict__ places, long long size,
        long long count, const int* failed) {{
        if (failed && *failed) return;
        __shared__ {key} keys[{_WARPS}];
        __shared__ lm_int32 found[{_WARPS}];
        const long long first = (long long)blockIdx.x * size;
        {key} last_key = 0;
        lm_int32 last = -1;
        for (long long round = 0; round < count; round++) {{
        {key} best = 0;
        lm_int32 place = -1;
        for (long long i = threadIdx.x; i < size; i += {THREADS}) {{
        const {key} own = {as_key};
        if (last >= 0 && !(own < last_key || (own == last_key && i > last))) continue;
        if (place < 0 || own > best) {{
        best = own;
        place = (lm_int32)i;
        }}
        }}
        for (int distance = 16; distance > 0; distance >>= 1) {{
        const {key} other = lm_from_lane(best, distance);
        const lm_int32 at = lm_from_lane(place, distance);
        if (at >= 0 && (place < 0 || other > best || (other == best && at < place))) {{
        best = other;
        place = at;
        }}
        }}
        if (threadIdx.x % 32 == 0) {{
        keys[threadIdx.x / 32] = best;
        found[threadIdx.x / 32] = place;
        }}
        __syncthreads();
        best = keys[0];
        place = found[0];
        for (int w = 1; w < {_WARPS}; w++) {{
        const bool is_first = keys[w] > best || (keys[w] == best && found[w] < place);
        if (found[w] >= 0 && (place < 0 || is_first)) {{
        best = keys[w];
        place = found[w];
        }}
        }}
        __syncthreads();
        if (threadIdx.x == 0) places[blockIdx.x * count + round] = place;
        last_key = best;
        last = place;
        }}
        }}
        """
    )
