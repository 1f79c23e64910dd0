"""Random draws: words from a kernel, and expressions that make numbers of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....graph import bfloat16, bool_, float16, float32, float64, int32, uint32, uint64
from ...ir.builder import Builder
from ...ir.launch import Launch
from ...ir.not_lowered import NotLoweredError
from ...ir.program import KernelArguments, KernelPlanner, Operand, Shape, View
from ...ir.sizes import DerivedSize, is_known
from ...kernels.other.philox import plan_random_bools, plan_random_words
from .cumulative import running
from .table import Lowered, filled, lowers

_WORD_BITS = 32
# Of uniform numbers of a type: all that it can tell apart in [1/2, 1).
_UNIFORM_BITS = {bfloat16: 8, float16: 11, float32: 24}


@lowers("RandomAdvance", takes_halves=True)
def _advance(b: Builder, step: Lowered, state: Operand) -> Operand:
    places = b.iota((4,), 0, int32)
    low, high = (b.broadcast(_part(b, state, i), (4,)) for i in (2, 3))
    steps = step.attrs["steps"]

    def advanced(s: Any, own: Any, low: Any, high: Any, place: Any) -> Any:
        wide = s.cast(low, uint64) | s.shift_left(s.cast(high, uint64), _WORD_BITS)
        counter = wide + steps
        upper = s.cast(s.shift_right(counter, _WORD_BITS), uint32)
        found = s.where(place == 2, s.cast(counter, uint32), upper)
        return s.where(place < 2, own, found)

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
    planner = BoolsPlanner(math.prod(shape), least)
    return b.kernel_call("random bools", [state], [(shape, bool_)], planner, hoisted=True)[0]


@dataclass(frozen=True)
class BoolsPlanner(KernelPlanner):
    """Whether each of the first `count` words of a draw is `least` or more."""

    count: int = field(repr=False)
    least: int

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        (state,), (y,) = arguments.inputs, arguments.outputs
        count = arguments.real(self.count)
        return plan_random_bools(state, y, count, self.least, arguments.target)


@dataclass(frozen=True)
class WordsPlanner(KernelPlanner):
    """The first `count` words of a draw."""

    count: int = field(repr=False)

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        (state,), (y,) = arguments.inputs, arguments.outputs
        return plan_random_words(state, y, arguments.real(self.count), arguments.target)


def _words(b: Builder, state: Operand, count: int) -> View:
    """The first words of a draw."""

    def make() -> View:
        made, planner = [((count,), uint32)], WordsPlanner(count)
        return b.kernel_call("random words", [state], made, planner, hoisted=True)[0]

    return b.once(("words", state, count), make)


def _every(b: Builder, words: View, number: int, start: int) -> View:
    """Of groups of `number` words, those at `start`."""
    return b.narrow(words, [start], (words.shape[0] // number,), [number])


def _groups(b: Builder, state: Operand, count: int, size: int) -> list[View]:
    """The words of a draw in groups: the first of each, then the second, ..."""
    words = _words(b, state, size * count)
    return [_every(b, words, size, i) for i in range(size)]


@lowers("RandomUniform", takes_halves=True)
def _uniform(b: Builder, step: Lowered, state: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    dtype, count = step.dtypes[0], math.prod(shape)
    if dtype == float64:
        found = b.map(_unit_interval, _groups(b, state, count, 2), dtype)
        return b.reshape(found, shape)
    bits = _UNIFORM_BITS[dtype]

    def single(s: Any, word: Any) -> Any:
        found = s.shift_right(word, _WORD_BITS - bits)
        return s.cast(s.cast(found, int32), float32) * 2.0**-bits

    return b.reshape(b.map(single, [_words(b, state, count)], dtype), shape)


def _unit_interval(s: Any, first: Any, second: Any) -> Any:
    """Two words as a float64 in [0, 1), of 53 bits."""
    upper, lower = (
        s.cast(s.cast(s.shift_right(x, bits), int32), float64)
        for x, bits in ((first, 5), (second, 6))
    )
    return (upper * 2.0**26 + lower) * 2.0**-53


@lowers("RandomNormal", takes_halves=True)
def _normal(b: Builder, step: Lowered, state: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    dtype, count = step.dtypes[0], math.prod(shape)
    polar = _double_polar if dtype == float64 else _polar
    pairs = _half(b, count)
    y = b.storage((2 * pairs,), dtype)
    for i, turn in enumerate(("cos", "sin")):

        def one(s: Any, *words: Any, turn: str = turn) -> Any:
            radius, angle = polar(s, *words)
            return radius * getattr(s, turn)(angle)

        words = _groups(b, state, pairs, 4 if dtype == float64 else 2)
        b.map_into(_every(b, y, 2, i), one, words)
    if 2 * pairs != count:  # one is left over, if the count is odd
        if not is_known(count):
            b.program.places.add(count)
        y = b.copy(y._replace(shape=(count,)))
    return b.reshape(y, shape)


def _half(b: Builder, count: int) -> int:
    """count / 2, rounded up."""
    if count % 2 == 0 or is_known(count):
        return (count + 1) // 2
    return b.derive(Half(count))


@dataclass(frozen=True)
class Half(DerivedSize):
    """count / 2, rounded up."""

    count: int

    def value(self, real: Callable[[int], int]) -> int:
        return (real(self.count) + 1) // 2


def _polar(s: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """The radius and the angle of a pair of normal numbers, of two words."""
    # (k + 1/2) 2**-32: rounded as the reference does, in float32.
    u = (s.cast(first, float32) + 0.5) * 2.0**-_WORD_BITS
    bits = s.cast(s.shift_right(second, _WORD_BITS - 24), int32)
    angle = s.cast(bits, float32) * (2 * math.pi * 2.0**-24)
    return s.sqrt(s.log(u) * -2.0), angle


def _double_polar(s: Any, *words: Any) -> tuple[Any, Any]:
    """The same in float64, of four words."""
    u, turn = (_unit_interval(s, *words[i : i + 2]) for i in (0, 2))
    return s.sqrt(s.log1p(-u) * -2.0), turn * (2 * math.pi)


@lowers("RandomCategorical")
def _categorical(b: Builder, step: Lowered, state: Operand, logits: Operand) -> Operand:
    number, dtype = step.attrs["num_samples"], step.dtypes[0]
    batch, classes = b.shape(logits)
    x = b.cast(logits, float64)
    greatest = b.reduce("max", x, [1], keepdims=True)
    weights = b.compute(lambda s, x, most: s.exp(x - most), x, greatest)
    sums = running(b, "sum", weights, 1)
    total = b.narrow(sums, [0, classes - 1], (batch, 1), [1, 1])
    drawn = b.map(_unit_interval, _groups(b, state, batch * number, 2), float64)
    # Below the total, so that what is found has a weight of its own.
    place = b.compute(
        lambda s, u, most: s.min(u * most, s.next_after(most, 0.0)),
        b.reshape(drawn, (batch, number)),
        total,
    )
    before = b.compute(
        lambda s, sums, u: sums <= u,
        b.reshape(sums, (batch, 1, classes)),
        b.reshape(place, (batch, number, 1)),
        dtype=bool_,
    )
    return b.cast(b.reduce("sum", b.cast(before, int32), [2]), dtype)


@lowers("RandomInt", takes_halves=True)
def _int(b: Builder, step: Lowered, state: Operand, *dims: Operand) -> Operand:
    low, high, dtype = step.attrs["low"], step.attrs["high"], step.dtypes[0]
    if low is None or high is None or not 0 < high - low <= 1 << _WORD_BITS:
        raise NotLoweredError(f"RandomInt from {low} to {high}")
    bits = 8 * dtype.size
    least = 0 if dtype.startswith("u") else -(1 << bits - 1)
    if low < least or high > least + (1 << bits):
        raise NotLoweredError(f"RandomInt from {low} to {high} as {dtype}")
    shape = filled(step.attrs["shape"], dims)

    def within(s: Any, *words: Any) -> Any:
        lower, upper = (s.cast(x, uint64) * (high - low) for x in words)
        found = s.shift_right(upper + s.shift_right(lower, _WORD_BITS), _WORD_BITS)
        return s.cast(found + low % (1 << 64), dtype)

    return b.reshape(b.map(within, _groups(b, state, math.prod(shape), 2), dtype), shape)


@lowers("RandomBernoulli", takes_halves=True)
def _bernoulli(b: Builder, step: Lowered, state: Operand, p: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    words = b.reshape(_words(b, state, math.prod(shape)), shape)

    def below(s: Any, word: Any, p: Any) -> Any:
        word, p = s.cast(word, float64), s.cast(p, float64)
        return word < p * 2.0**_WORD_BITS

    return b.map(below, [words, b.broadcast(p, shape)], bool_)
