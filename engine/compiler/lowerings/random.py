"""Random draws: words from a kernel, and expressions that make numbers of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...graph import bool_, float32, float64, int32, uint32, uint64
from .. import vector_math as v
from ..builder import Builder
from ..emit import Function, NotLoweredError, Value
from ..kernels.launch import Buffer
from ..kernels.philox import plan_random_bools, plan_random_words
from ..program import Operand, Shape, View
from .contractions import target
from .table import Lowered, filled, lowers

_WORD_BITS = 32


@lowers("RandomAdvance")
def _advance(b: Builder, step: Lowered, state: Operand) -> Operand:
    places = b.iota((4,), 0, int32)
    low, high = (b.broadcast(_part(b, state, i), (4,)) for i in (2, 3))
    steps = step.attrs["steps"]

    def advanced(fn: Function, values: Sequence[Value]) -> Value:
        own, low, high, place = values
        wide = fn.convert(low, uint64) | fn.binary("shl", fn.convert(high, uint64), _WORD_BITS)
        counter = wide + steps
        upper = fn.convert(fn.binary("lshr", counter, _WORD_BITS), uint32)
        found = fn.select(place == 2, fn.convert(counter, uint32), upper)
        return fn.select(place < 2, own, found)

    return b.map(advanced, [state, low, high, places], uint32)


def _part(b: Builder, x: Operand, place: int) -> View:
    return b.narrow(x, [place], (1,), [1])


@lowers("Dropout")
def _dropout(b: Builder, step: Lowered, x: Operand, state: Operand) -> Operand:
    rate, noise = step.attrs["rate"], step.attrs["noise_shape"]
    dtype, shape = b.dtype(x), b.shape(x)
    if dtype not in (float32, float64):
        raise NotLoweredError(f"Dropout of {dtype}")
    if rate == 1:
        return b.full(shape, 0.0, dtype)
    sizes = shape if noise is None else noise
    drawn = tuple(n if d is None else d for d, n in zip(sizes, shape, strict=True))
    least = min(round(rate * 2**_WORD_BITS), 2**_WORD_BITS - 1)
    # The gradient takes the same state, and so the bools that are there already.
    kept = b.once(("kept", state, drawn, least), lambda: _bools(b, state, drawn, least))
    return b.compute(lambda s, k, x: s.where(k, x / (1 - rate), 0), kept, x, dtype=dtype)


def _bools(b: Builder, state: Operand, shape: Shape, least: int) -> View:
    """For each place of a shape, whether its word is `least` or more."""
    count = math.prod(shape)

    def plan(real: Callable[[int], int], inputs: Any, outputs: Any) -> Any:
        return plan_random_bools(
            Buffer(inputs[0]), Buffer(outputs[0]), real(count), least, target()
        )

    return b.library("random bools", [state], [(shape, bool_)], plan, early=True)[0]


def _words(b: Builder, state: Operand, count: int) -> View:
    """The first words of a draw."""

    def make() -> View:
        def plan(real: Callable[[int], int], inputs: Any, outputs: Any) -> Any:
            return plan_random_words(Buffer(inputs[0]), Buffer(outputs[0]), real(count), target())

        return b.library("random words", [state], [((count,), uint32)], plan, early=True)[0]

    return b.once(("words", state, count), make)


def _every(b: Builder, words: View, number: int, start: int) -> View:
    """Of groups of `number` words, those at `start`."""
    return b.narrow(words, [start], (words.shape[0] // number,), [number])


def _pairs(b: Builder, state: Operand, count: int) -> tuple[View, View]:
    words = _words(b, state, 2 * count)
    return _every(b, words, 2, 0), _every(b, words, 2, 1)


@lowers("RandomUniform")
def _uniform(b: Builder, step: Lowered, state: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    dtype, count = step.dtypes[0], math.prod(shape)
    if dtype == float32:

        def single(fn: Function, values: Sequence[Value]) -> Value:
            bits = fn.binary("lshr", values[0], _WORD_BITS - 24)
            return fn.convert(fn.convert(bits, int32), float32) * 2.0**-24

        return b.reshape(b.map(single, [_words(b, state, count)], dtype), shape)
    if dtype != float64:
        raise NotLoweredError(f"RandomUniform of {dtype}")

    def double(fn: Function, values: Sequence[Value]) -> Value:
        upper, lower = (
            fn.convert(fn.convert(fn.binary("lshr", x, bits), int32), float64)
            for x, bits in zip(values, (5, 6), strict=True)
        )
        return (upper * 2.0**26 + lower) * 2.0**-53

    return b.reshape(b.map(double, _pairs(b, state, count), dtype), shape)


@lowers("RandomNormal")
def _normal(b: Builder, step: Lowered, state: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    dtype, count = step.dtypes[0], math.prod(shape)
    if dtype != float32 or count % 2:
        raise NotLoweredError(f"RandomNormal of {count} {dtype}")
    words = _words(b, state, count)
    pair = [_every(b, words, 2, 0), _every(b, words, 2, 1)]

    def part(turn: Callable[[Function, Value], Value]) -> Callable[..., Value]:
        def one(fn: Function, values: Sequence[Value]) -> Value:
            first, second = values
            # (k + 1/2) 2**-32: rounded as the reference does, in float32.
            u = (fn.convert(first, float32) + 0.5) * 2.0**-_WORD_BITS
            bits = fn.convert(fn.binary("lshr", second, _WORD_BITS - 24), int32)
            angle = fn.convert(bits, float32) * (2 * math.pi * 2.0**-24)
            return v.sqrt(fn, v.log(fn, u) * -2.0) * turn(fn, angle)

        return one

    y = b.storage((count,), dtype)
    b.map_into(_every(b, y, 2, 0), part(v.cos), pair)
    b.map_into(_every(b, y, 2, 1), part(v.sin), pair)
    return b.reshape(y, shape)


@lowers("RandomInt")
def _int(b: Builder, step: Lowered, state: Operand, *dims: Operand) -> Operand:
    low, high, dtype = step.attrs["low"], step.attrs["high"], step.dtypes[0]
    if low is None or high is None or not 0 < high - low <= 1 << _WORD_BITS:
        raise NotLoweredError(f"RandomInt from {low} to {high}")
    bits = 8 * dtype.size
    least = 0 if dtype.startswith("u") else -(1 << bits - 1)
    if low < least or high > least + (1 << bits):
        raise NotLoweredError(f"RandomInt from {low} to {high} as {dtype}")
    shape = filled(step.attrs["shape"], dims)

    def within(fn: Function, values: Sequence[Value]) -> Value:
        lower, upper = (fn.convert(x, uint64) * (high - low) for x in values)
        found = fn.binary("lshr", upper + fn.binary("lshr", lower, _WORD_BITS), _WORD_BITS)
        return fn.convert(found + low % (1 << 64), dtype)

    return b.reshape(b.map(within, _pairs(b, state, math.prod(shape)), dtype), shape)


@lowers("RandomBernoulli")
def _bernoulli(b: Builder, step: Lowered, state: Operand, p: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    words = b.reshape(_words(b, state, math.prod(shape)), shape)

    def below(fn: Function, values: Sequence[Value]) -> Value:
        word, p = (fn.convert(x, float64) for x in values)
        return word < p * 2.0**_WORD_BITS

    return b.map(below, [words, b.broadcast(p, shape)], bool_)
