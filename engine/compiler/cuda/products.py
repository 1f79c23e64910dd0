"""Sums of products as CUDA C: matrix products, convolutions and their gradients.

All are C[z, m, n] = sum over k of A(z, m, k) * B(z, k, n), in tiles of 64 x 64 that a block of
256 threads makes from tiles of A and B in shared memory, 16 of the sum at a time. What a place of A
or B is, a line of code tells; so a convolution needs no copy of its input. Each element is summed
up in one order by one thread. They are what runs where no library is; see `LibraryCall`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ...cuda_program import Convolution, Kernel, LibraryName
from ...graph import DType
from .scalars import memory_type, register_type
from .source import kernel

TILE = 64
THREADS = 256

_TILED = """
static __device__ __forceinline__ $SUM load_a($PARAMETERS, long long z, long long m, long long k) {
$LOAD_A
}
static __device__ __forceinline__ $SUM load_b($PARAMETERS, long long z, long long k, long long n) {
$LOAD_B
}
@($PARAMETERS, long long rows, long long columns, long long inner, const int* failed) {
if (failed && *failed) return;
__shared__ $SUM tile_a[16][65], tile_b[16][65];
const long long z = blockIdx.z, m0 = (long long)blockIdx.x * 64, n0 = (long long)blockIdx.y * 64;
const int tm = threadIdx.x / 16 * 4, tn = threadIdx.x % 16 * 4;
$SUM sums[4][4];
for (int i = 0; i < 4; i++) {
for (int j = 0; j < 4; j++) sums[i][j] = 0;
}
for (long long k0 = 0; k0 < inner; k0 += 16) {
for (int i = threadIdx.x; i < 1024; i += 256) {
const int ka = $ALONG_A, ma = $ACROSS_A, kb = i / 64, nb = i % 64;
const bool is_a = k0 + ka < inner && m0 + ma < rows, is_b = k0 + kb < inner && n0 + nb < columns;
tile_a[ka][ma] = is_a ? load_a($NAMES, z, m0 + ma, k0 + ka) : ($SUM)0;
tile_b[kb][nb] = is_b ? load_b($NAMES, z, k0 + kb, n0 + nb) : ($SUM)0;
}
__syncthreads();
#pragma unroll
for (int k = 0; k < 16; k++) {
#pragma unroll
for (int i = 0; i < 4; i++) {
#pragma unroll
for (int j = 0; j < 4; j++) sums[i][j] += tile_a[k][tm + i] * tile_b[k][tn + j];
}
}
__syncthreads();
}
for (int i = 0; i < 4; i++) {
for (int j = 0; j < 4; j++) {
const long long m = m0 + tm + i, n = n0 + tn + j;
if (m < rows && n < columns) {
$STORE
}
}
}
}
"""


def _filled(text: str, values: Mapping[str, str]) -> Kernel:
    """The kernel of a text with names for `$NAME`."""
    for name, value in sorted(values.items(), reverse=True):  # the longer name first
        text = text.replace(f"${name}", value)
    return kernel([line for line in text.splitlines() if line], THREADS)


@functools.cache
def product_kernel(dtype: DType, out: DType, *, is_turned: bool) -> Kernel:
    """C = A @ B with any strides.

    It takes A, B, C; for each of them the strides of two axes of a batch, of rows and of columns;
    the size of the inner axis of the batch; rows, columns, inner, and the address of `failed` or 0.

    Args:
        dtype: of A and B.
        out: of C.
        is_turned: neighbouring rows of A are side by side in memory.
    """
    kind, strides = memory_type(dtype), []
    for name in "abc":
        strides += [f"long long {name}{i}" for i in ("z", "y", "m", "n")]
    parameters = [
        f"const {kind}* __restrict__ a",
        f"const {kind}* __restrict__ b",
        f"{memory_type(out)}* __restrict__ c",
        *strides,
        "long long batch",
    ]
    names = [p.split()[-1] for p in parameters]

    def place(x: str, row: str, column: str) -> str:
        batch = f"z / batch * {x}z + z % batch * {x}y"
        return f"{x}[{batch} + {row} * {x}m + {column} * {x}n]"

    values = {
        "PARAMETERS": ", ".join(parameters),
        "NAMES": ", ".join(names),
        "SUM": register_type(out),
        "LOAD_A": f"return lm_get({place('a', 'm', 'k')});",
        "LOAD_B": f"return lm_get({place('b', 'k', 'n')});",
        "STORE": f"lm_put({place('c', 'm', 'n')}, sums[i][j]);",
        "ALONG_A": "i / 64" if is_turned else "i % 16",
        "ACROSS_A": "i % 64" if is_turned else "i / 16",
    }
    return _filled(_TILED, values)


@functools.cache
def convolution_kernel(name: LibraryName, call: Convolution, out: DType) -> Kernel:
    """A convolution or one of its gradients, for any number of images.

    It takes the two operands, the result, rows, columns, inner, and the address of `failed` or 0;
    the groups are along z.

    Args:
        name: which of them.
        call: its sizes; the number of images is not looked at.
        out: of the result.
    """
    kind = memory_type(call.dtype)
    parameters = [
        f"const {kind}* __restrict__ a",
        f"const {kind}* __restrict__ b",
        f"{memory_type(out)}* __restrict__ c",
    ]
    maker = _MAKERS[name]
    load_a, load_b, store, is_turned = maker(call)
    values = {
        "PARAMETERS": ", ".join(parameters),
        "NAMES": "a, b, c",
        "SUM": register_type(out),
        "LOAD_A": load_a,
        "LOAD_B": load_b,
        "STORE": store,
        "ALONG_A": "i / 64" if is_turned else "i % 16",
        "ACROSS_A": "i % 64" if is_turned else "i / 16",
    }
    return _filled(_TILED, values)


def convolution_sizes(name: LibraryName, call: Convolution) -> tuple[int, int, int]:
    """Rows, columns and inner size of the sums of products that a call is."""
    inside, outside = call.channels // call.groups, call.filters // call.groups
    taps, points = _count(call.window), call.images * _count(call.out)
    if name == "convolution":
        return points, outside, taps * inside
    if name == "convolution_input_gradient":
        return call.images * _count(call.dims), inside, taps * outside
    return taps * inside, outside, points


def _count(sizes: tuple[int, ...]) -> int:
    found = 1
    for n in sizes:
        found *= n
    return found


def _split(name: str, sizes: tuple[int, ...], prefix: str) -> tuple[list[str], str]:
    """Lines that take a number apart, the last size fastest, and what is left of it."""
    lines, rest = [], name
    for i in reversed(range(len(sizes))):
        lines.append(f"const int {prefix}{i} = (int)({rest} % {sizes[i]});")
        lines.append(f"const long long {prefix}_{i} = {rest} / {sizes[i]};")
        rest = f"{prefix}_{i}"
    return lines, rest


def _flat(image: str, names: list[str], sizes: tuple[int, ...]) -> str:
    """The number of a point of an image."""
    found = image
    for name, size in zip(names, sizes, strict=True):
        found = f"({found} * {size} + {name})"
    return found


def _inputs_point(call: Convolution, lines: list[str]) -> list[str]:
    """Lines that find the point of the input which output o meets with tap t, or return 0."""
    names = []
    for i, n in enumerate(call.dims):
        start = f"o{i} * {call.strides[i]} + t{i} * {call.dilations[i]} - {call.pads[i][0]}"
        lines.append(f"const int x{i} = {start};")
        lines.append(f"if (x{i} < 0 || x{i} >= {n}) return 0;")
        names.append(f"x{i}")
    return names


def _forward(call: Convolution) -> tuple[str, str, str, bool]:
    inside, outside = call.channels // call.groups, call.filters // call.groups
    lines, image = _split("m", call.out, "o")
    more, tap = _split("k", (*call.window, inside), "t")
    channel = f"t{len(call.window)}"
    lines += more
    names = _inputs_point(call, lines)
    point = _flat(image, names, call.dims)
    lines.append(f"return lm_get(a[{point} * {call.channels} + z * {inside} + {channel}]);")
    filters = f"return lm_get(b[k * {call.filters} + z * {outside} + n]);"
    store = f"lm_put(c[m * {call.filters} + z * {outside} + n], sums[i][j]);"
    return "\n".join(lines), filters, store, False


def _input(call: Convolution) -> tuple[str, str, str, bool]:
    inside, outside = call.channels // call.groups, call.filters // call.groups
    rank = len(call.dims)
    lines, image = _split("m", call.dims, "x")
    more, _ = _split("k", (*call.window, outside), "t")
    lines += more
    names = []
    for i, n in enumerate(call.out):
        reach = f"x{i} + {call.pads[i][0]} - t{i} * {call.dilations[i]}"
        lines.append(f"const int r{i} = {reach};")
        lines.append(f"const int o{i} = r{i} / {call.strides[i]};")
        test = f"r{i} < 0 || o{i} * {call.strides[i]} != r{i} || o{i} >= {n}"
        lines.append(f"if ({test}) return 0;")
        names.append(f"o{i}")
    point = _flat(image, names, call.out)
    lines.append(f"return lm_get(a[{point} * {call.filters} + z * {outside} + t{rank}]);")
    tap, filter = f"(k / {outside})", f"(k % {outside})"
    place = f"({tap} * {inside} + n) * {call.filters} + z * {outside} + {filter}"
    filters = f"return lm_get(b[{place}]);"
    store = f"lm_put(c[m * {call.channels} + z * {inside} + n], sums[i][j]);"
    return "\n".join(lines), filters, store, False


def _filter(call: Convolution) -> tuple[str, str, str, bool]:
    inside, outside = call.channels // call.groups, call.filters // call.groups
    lines, image = _split("k", call.out, "o")
    more, _ = _split("m", (*call.window, inside), "t")
    lines += more
    names = _inputs_point(call, lines)
    point = _flat(image, names, call.dims)
    channel = f"t{len(call.window)}"
    lines.append(f"return lm_get(a[{point} * {call.channels} + z * {inside} + {channel}]);")
    gradient = f"return lm_get(b[k * {call.filters} + z * {outside} + n]);"
    store = f"lm_put(c[m * {call.filters} + z * {outside} + n], sums[i][j]);"
    return "\n".join(lines), gradient, store, True


_MAKERS = {
    "convolution": _forward,
    "convolution_input_gradient": _input,
    "convolution_filter_gradient": _filter,
}
