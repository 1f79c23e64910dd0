"""Programs of all families of kernels, as clusters: to be compiled for other processors too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from laminar import ops
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.gradients import gradients
from laminar.engine.graph import Graph
from laminar.engine.ops.array.first_occurrence import first_occurrence
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.cluster import ClusterBody, run_steps
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.linalg.few_bits_matmul import few_bits_matmul
from laminar.engine.ops.math.elementary import root_quotient
from laminar.engine.ops.nn.dropout import dropout
from laminar.engine.ops.random.draws import (
    random_bernoulli,
    random_int,
    random_normal,
    random_uniform,
)
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Plan, StepContext

from ..ops.native import Array, every_cluster

Build = Callable[..., Sequence[Any]]
rng = np.random.default_rng(7)


def normal(*shape: int, dtype: Any = "float32") -> Array:
    return rng.normal(size=shape).astype(dtype)


def products(a: Any, b: Any, c: Any, bias: Any) -> Sequence[Any]:
    """All transpositions, few and many rows, batches, epilogues."""
    turned, other = ops.transpose(a), ops.transpose(b)
    hidden = ops.gelu(ops.matmul(a, b) + bias)
    grads = gradients([hidden], [a, b])
    narrow = ops.matmul(a[:1], b), ops.matmul(a, b[:, :1]), ops.matmul(b[:, :3], c[:1, :3, 0:1])
    batches = ops.matmul(c, ops.transpose(c, (0, 2, 1))), ops.einsum("bij,bkj->ik", c, c)
    double = ops.cast(a, "float64")
    doubles = ops.matmul(double, ops.cast(b, "float64"))
    return [
        *(hidden, *grads, *narrow[:2], *batches, doubles),
        *(ops.matmul(other, turned), ops.matmul(turned, a), ops.matmul(b, other)),
    ]


def rows(x: Any, scale: Any, labels: Any) -> Sequence[Any]:
    """Rows and columns in one pass, and their gradients."""
    mean, variance = ops.moments(x, axes=[-1], keepdims=True)
    y = (x - mean) * ops.rsqrt(variance + 1e-3) * scale
    losses = ops.sparse_categorical_crossentropy(labels, y, from_logits=True)
    z = ops.softmax(y) + ops.log_softmax(y * 0.5)
    sums = [f(x, axis=0) for f in (ops.sum, ops.max, ops.mean, ops.argmax, ops.var)]
    sums += [f(x, axis=1) for f in (ops.prod, ops.min, ops.argmin, ops.logsumexp)]
    return [losses, z, *gradients([losses, z], [x, scale]), *sums, ops.sum(x), ops.cumsum(x, 1)]


def functions(x: Any, y: Any) -> Sequence[Any]:
    """Elementwise functions, and an update as optimizers make it."""
    found = [f(x) for f in (ops.exp, ops.tanh, ops.erf, ops.sigmoid, ops.sin, ops.log1p, ops.silu)]
    found += [ops.maximum(x, y), ops.floor_divide(x, y), ops.mod(x, y), ops.arctan2(x, y)]
    found += [ops.power(ops.abs(x), y), ops.round(x * 3), ops.ceil(y), ops.where(x > y, x, -y)]
    found.append(ops.power(ops.cast(ops.abs(x), "float64"), ops.cast(y, "float64")))
    return [*found, x - 0.1 * root_quotient(y, x * x, epsilon=1e-7)]


def convolved(images: Any, filters: Any, single: Any, each: Any, wide: Any) -> Sequence[Any]:
    """Convolutions with gradients: as they are, Winograd's, of one channel, of channels alone."""
    y = ops.relu(ops.conv(images, filters, padding="same"))
    flat = ops.conv(images[..., :1], single, strides=2)
    apart = ops.depthwise_conv(images, each, padding="same")
    strided = ops.depthwise_conv(images, each, strides=2)
    tiled = ops.conv(ops.concatenate([y] * 2, -1), wide, padding="same")
    grown = ops.conv_transpose(images, ops.transpose(filters, (0, 1, 3, 2)), strides=2)
    pooled = ops.max_pool(y, 2), ops.average_pool(y, 3, 1, padding="same")
    ys = [y, flat, apart, strided, tiled, grown, *pooled]
    return [*ys, *gradients(ys, [images, filters, single, each, wide])]


def moved(x: Any, at: Any, y: Any) -> Sequence[Any]:
    """Gather, scatter, shapes, padding, one-hot."""
    taken = ops.take(x, at, axis=0)
    summed = ops.scatter(ops.expand_dims(at, -1), y, (9, 21))
    return [
        *(taken, summed, *gradients([ops.take(x, at, axis=0) * y], [x])),
        *(ops.one_hot(at, 9), ops.pad(x, ((1, 2), (0, 3))), ops.roll(x, 2, axis=1)),
        *(ops.repeat(x, 2, axis=0), ops.tile(x, (1, 2)), ops.flip(x, axis=1)),
        *(*ops.top_k(x, 5), *ops.top_k(ops.cast(x, "float64"), 3), ops.sort(x), ops.argsort(x)),
        ops.scatter_update(x, ops.expand_dims(at, -1), y),
        first_occurrence(at),
        ops.searchsorted(ops.cumsum(ops.exp(ops.reshape(ops.tile(x, (2, 1)), (-1,)))), y),
    ]


def whole(a: Any, b: Any, tiny: Any, x: Any) -> Sequence[Any]:
    """Whole numbers, also where they divide by zero; floats that become some."""
    found = [a + b, a * b, ops.floor_divide(a, b), ops.mod(a, b), ops.maximum(a, b)]
    found += [ops.right_shift(a, b), ops.left_shift(a, b), ops.bitwise_xor(a, b)]
    found += [ops.floor_divide(tiny, ops.flip(tiny, axis=0)), ops.matmul(tiny, ops.transpose(tiny))]
    return [*found, *(ops.cast(x, d) for d in ("int8", "int32", "int64", "uint8", "float64"))]


def halves(a: Any, b: Any, x: Any) -> Sequence[Any]:
    """float16 and bfloat16: products, rows, rounding."""
    found = [ops.matmul(y, ops.transpose(y)) for y in (a, b)] + [ops.softmax(y) for y in (a, b)]
    found += [ops.cast(x, d) for d in ("float16", "bfloat16")] + [a * a + a, ops.tanh(b)]
    return [*found, ops.cast(a, "float32"), ops.cast(b, "float32")]


def drawn(state: Any, x: Any) -> Sequence[Any]:
    """Philox's words, and what is made of them."""
    found = [random_uniform(state, (50, 3)), random_normal(state, (41, 4)), dropout(x, state, 0.3)]
    found.append(random_int(state, (99,), -5, 17))
    return [*found, random_bernoulli(state, (51, 7), 0.3)]


def looped(x: Any, h: Any, w: Any) -> Sequence[Any]:
    """A recurrence with its gradient, and a loop whose end depends on data."""

    def step(h: Any, x: Any) -> Any:
        new = ops.tanh(ops.matmul(h, w) + x)
        return new, new * 2

    last, ys = ops.scan(step, h, x)
    grown = ops.while_loop(lambda v: ops.sum(v * v) < 1e4, lambda v: (v * 1.5,), (h,))[0]
    return [last, ys, *gradients([last, ys], [x, h, w]), grown]


def few_bits(x: Any, a: Any, b: Any, packed: Any, scale: Any, zero: Any) -> Sequence[Any]:
    """Whole numbers of 8 and 4 bits, of few rows and of many."""
    found = [ops.matmul(a[:2], b), ops.matmul(a, b), ops.matmul(a, ops.transpose(a))]
    for y in (x, x[:1]):
        found.append(few_bits_matmul(y, b, bits=8, columns=37))
        found.append(few_bits_matmul(y, packed, scale, zero, bits=4, columns=37, group_size=32))
    return found


_BYTES = [rng.integers(-128, 128, size).astype("int8") for size in ((9, 70), (70, 37), (70, 19))]
_TINY = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
_ODD = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, 300.7, -1.5, 0.0, 65504, 1e-8], "f4")

FAMILIES: Mapping[str, tuple[Build, Sequence[Array]]] = {
    "products": (products, [normal(45, 70), normal(70, 37), normal(3, 20, 21), normal(37)]),
    "few bits": (
        few_bits,
        [
            *(normal(9, 70), *_BYTES),
            *(normal(3, 37), rng.integers(-8, 8, (3, 37)).astype("int8")),
        ],
    ),
    "rows": (rows, [normal(37, 53), normal(53), rng.integers(0, 53, 37).astype("int32")]),
    "functions": (functions, [normal(999), normal(999)]),
    "convolved": (
        convolved,
        [
            *(normal(9, 12, 10, 16), normal(3, 3, 16, 16), normal(3, 3, 1, 5)),
            *(normal(3, 3, 16, 1), normal(3, 3, 32, 16)),
        ],
    ),
    "moved": (moved, [normal(9, 21), rng.integers(0, 9, 30).astype("int32"), normal(30, 21)]),
    "whole": (
        whole,
        [*(rng.integers(-9, 9, (2, 300)).astype("int32")), _TINY, np.tile(_ODD, 9)],
    ),
    "halves": (
        halves,
        [normal(19, 33, dtype="float16"), normal(19, 33, dtype=ml_dtypes.bfloat16), normal(333)],
    ),
    "drawn": (drawn, [np.array([5, 7, 0xFFFF_FFFF, 3], np.uint32), normal(60, 5)]),
    "looped": (looped, [normal(6, 5, 18), normal(5, 18), normal(18, 18) / 4]),
}


@dataclass
class Case:
    """A cluster, what it was given, and what the reference kernels made of that."""

    body: ClusterBody
    inputs: list[Array]
    expected: list[Array]


def cases(build: Build, arrays: Sequence[Array]) -> list[Case]:
    """The clusters of a program."""
    graph = Graph()
    with graph.as_default():
        xs = [placeholder(convert_to_tensor(a).dtype, a.shape) for a in arrays]
        ys: Any = [y for y in build(*xs) if y is not None]
    found: list[Case] = []

    def recorded(body: ClusterBody) -> Callable[..., list[Any]]:
        def run(context: Any, *inputs: Any) -> list[Any]:
            outputs = run_steps(context, *inputs, body=body)
            found.append(Case(body, [np.array(x) for x in inputs], [np.array(y) for y in outputs]))
            return outputs

        return run

    with every_cluster(), np.errstate(all="ignore"):
        plan = Plan(StepGraph(ys, xs), compiled=True)
        others = sorted({op.type for op in plan.operations} - {"Cluster"})
        assert not others, f"{others} have no native code"
        for op in plan.operations:
            body: Any = op.attrs["body"]
            body.native = recorded(body)
        plan.run(arrays, StepContext())
    return found


def key_of(case: Case) -> tuple[Any, ...]:
    """What a native cluster is told about its inputs."""
    native = NativeCluster(case.body)
    sizes = tuple(int(case.inputs[i]) for i in native._sizes)
    return (*(case.inputs[i].shape for i in native._arrays), *sizes)
