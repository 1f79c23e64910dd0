"""How a reduction combines elements: what it begins with, one step, the threads at the end."""

from __future__ import annotations

import math

from ...graph import DType, bool_, int32
from ..ir.element_types import wide
from ..ir.not_lowered import NotLoweredError
from .scalars import literal, register_type
from .source import Source

_PLACE_LIMIT = 2**31 - 1
_WARP = 32


class Combine:
    """A reduction of elements of one type, and the names of what a thread carries.

    Raises:
        NotLoweredError: the kind has no form for the type.
    """

    def __init__(self, source: Source, kind: str, dtype: DType) -> None:
        if dtype == bool_ and kind not in ("any", "all"):
            raise NotLoweredError(f"{kind} of bool")
        self.source = source
        self.kind = kind
        self.dtype = wide(dtype)
        self.is_place = kind.startswith("arg")
        self.value = source.name()
        self.place = source.name() if self.is_place else ""

    def begin(self) -> None:
        """Name what changes nothing."""
        neutral = literal(self._neutral(), self.dtype)
        self.source.add(f"{register_type(self.dtype)} {self.value} = {neutral};")
        if self.is_place:
            self.source.add(f"lm_int32 {self.place} = {_PLACE_LIMIT};")

    def _neutral(self) -> float | int | bool:
        kind = self.kind
        if kind in ("sum", "any"):
            return 0
        if kind in ("prod", "all"):
            return 1
        lowest = kind in ("max", "argmax")
        if self.dtype.is_floating:
            return -math.inf if lowest else math.inf
        if self.dtype.startswith("u"):
            return 0 if lowest else (1 << (8 * self.dtype.size)) - 1
        top = 1 << (8 * self.dtype.size - 1)
        return -top if lowest else top - 1

    def step(self, value: str, place: str = "") -> list[str]:
        """Lines that combine one more element into what is carried."""
        if self.is_place:
            sign = ">" if self.kind == "argmax" else "<"
            test = f"lm_beats({value} {sign} {self.value}, {self.value}, {self.place}, "
            return [
                f"if ({test}{value}, (lm_int32)({place}))) {{",
                f"{self.value} = {value};",
                f"{self.place} = (lm_int32)({place});",
                "}",
            ]
        return [f"{self.value} = {self._combined(self.value, value)};"]

    def _combined(self, a: str, b: str) -> str:
        if self.kind in ("any", "all"):
            kind = register_type(self.dtype)
            return f"({kind})({a} {'|' if self.kind == 'any' else '&'} {b})"
        name = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}[self.kind]
        return f"lm_{name}({a}, {b})"

    @property
    def result(self) -> tuple[str, DType]:
        """The name and the type of what it gives."""
        return (self.place, int32) if self.is_place else (self.value, self.dtype)

    def across_lanes(self) -> None:
        """Combine what the threads of a warp carry, which all of them get."""
        source = self.source
        distance = source.name()
        with source.block(f"for (int {distance} = {_WARP // 2}; {distance} > 0; {distance} >>= 1)"):
            other, place = source.name(), source.name()
            kind = register_type(self.dtype)
            source.add(f"const {kind} {other} = lm_from_lane({self.value}, {distance});")
            if self.is_place:
                source.add(f"const lm_int32 {place} = lm_from_lane({self.place}, {distance});")
            source.add(*self.step(other, place))
        if self.kind in ("max", "min"):  # of zeros of either sign, lanes may have different ones
            source.add(f"{self.value} = lm_first_lane({self.value});")

    def across_rows(self, rows: int, row: str, column: str, width: int) -> None:
        """Combine what `rows` threads carry for each of `width` columns, in order, by memory.

        All threads of the block take part; all get the result of their column.
        """
        source, held = self.source, source_names(self)
        for name, kind in held:
            source.add(f"__shared__ {kind} {name}_s[{rows}][{width}];")
            source.add(f"{name}_s[{row}][{column}] = {name};")
        source.add("__syncthreads();")
        for name, _ in held:
            source.add(f"{name} = {name}_s[0][{column}];")
        step = source.name()
        with source.block(f"for (int {step} = 1; {step} < {rows}; {step}++)"):
            place = f"{self.place}_s[{step}][{column}]" if self.is_place else ""
            source.add(*self.step(f"{self.value}_s[{step}][{column}]", place))

    def across_warps(self, warps: int) -> None:
        """Combine what the warps of a block carry, in order; all threads get the result."""
        source, held = self.source, source_names(self)
        for name, kind in held:
            source.add(f"__shared__ {kind} {name}_s[{warps}];")
            source.add(f"if (threadIdx.x % 32 == 0) {name}_s[threadIdx.x / 32] = {name};")
        source.add("__syncthreads();")
        for name, _ in held:
            source.add(f"{name} = {name}_s[0];")
        step = source.name()
        with source.block(f"for (int {step} = 1; {step} < {warps}; {step}++)"):
            place = f"{self.place}_s[{step}]" if self.is_place else ""
            source.add(*self.step(f"{self.value}_s[{step}]", place))


def source_names(combine: Combine) -> list[tuple[str, str]]:
    """What a thread carries: names, and types in C."""
    found = [(combine.value, register_type(combine.dtype))]
    if combine.is_place:
        found.append((combine.place, "lm_int32"))
    return found
