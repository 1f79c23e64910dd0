"""Loop programs and kernels as text, for people.

A storage is a letter for its role and its number: x an input, v a variable, c a constant, w a
window, t a temporary. It stands alone where it is read as it is, or broadcast as NumPy
does; else the element follows that is at place i, j, ... of what is computed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...graph import FLOATING
from .kernel import Kernel, squeezed
from .program import (
    Check,
    Fence,
    IndirectLoad,
    Iota,
    KernelCall,
    Literal,
    Loop,
    LoopProgram,
    Operand,
    Pointwise,
    Reduce,
    Size,
    Statement,
    Storage,
    View,
    contiguous,
    views_of,
)
from .sizes import shown, shown_size

_LETTERS = {
    "input": "x",
    "variable": "v",
    "constant": "c",
    "window": "w",
    "output": "y",
    "temporary": "t",
}
_AXES = "ijklpqrs"  # what the places along the first axes are called


def program_text(program: LoopProgram) -> str:
    """Derived sizes, storages, statements with what they came from, and what goes out."""
    lines = [f"{shown_size(n)} = {size}" for n, size in program.derived.items()]
    lines += [storage_text(program, n) for n in range(len(program.storages))]
    lines.extend(_statement_lines(program, program.statements))
    lines.extend(
        f"{name_of(program, n)} becomes {_operand(program, view)}"
        for n, view in program.updates.items()
    )
    if program.outputs:
        lines.append(f"gives {', '.join(_operand(program, view) for view in program.outputs)}")
    return "\n".join(lines) + "\n"


def name_of(program: LoopProgram, number: int) -> str:
    """The name of a storage."""
    return f"{_LETTERS[program.storages[number].role]}{number}"


def storage_text(program: LoopProgram, number: int) -> str:
    """A storage: its name, its type, its role."""
    storage = program.storages[number]
    text = f"{name_of(program, number)}: {storage.dtype}{shown(storage.shape)} {storage.role}"
    if storage.name:
        text += f" {storage.name}"
    if storage.window is None:
        return text
    base, offset, step = storage.window
    return f"{text} of {name_of(program, base)}[{_sum([(step, 'iteration')], offset)}]"


def describe(
    program: LoopProgram,
    kernel: Kernel,
    stored: Collection[int],
    numbers: Mapping[int, int] | None = None,
) -> str:
    """A kernel: its loops, what it loads, computes and stores.

    Args:
        program: where it belongs.
        kernel: what is described.
        stored: the storages that are in memory; others are in registers.
        numbers: by the id() of a kernel, its number, which those inside of it show.
    """
    return "\n".join(_kernel_lines(program, kernel, stored, numbers or {}))


def _kernel_lines(
    program: LoopProgram, kernel: Kernel, stored: Collection[int], numbers: Mapping[int, int]
) -> Iterator[str]:
    if kernel.loop is not None:
        yield _with_label(program, kernel.loop, _loop_head(program, kernel.loop))
        for title, part in (("test", kernel.test), ("body", kernel.body)):
            if part:
                yield f"  {title}"
            for inner in part:
                first, *rest = _kernel_lines(program, inner, stored, numbers)
                known = f"kernel {numbers[id(inner)]}: " if id(inner) in numbers else ""
                yield from (f"    {line}" for line in (known + first, *rest))
        yield from _indented(_carried_lines(program, kernel.loop))
        return
    if kernel.check is not None:
        yield _with_label(program, kernel.check, _check_text(program, kernel.check))
        return
    if kernel.call is not None:
        yield _with_label(program, kernel.call, _kernel_call_text(program, kernel.call))
    if kernel.statements:
        yield _loops_head(program, kernel)
    made = {n for s in kernel.statements for n in s.writes}
    loaded = {v.storage for s in kernel.statements for v in views_of(s.operands)} - made
    yield from _indented(_named(program, "loads", loaded))
    yield from _indented(_statement_lines(program, kernel.statements))
    yield from _indented(_named(program, "stores", made.intersection(stored)))


def _loops_head(program: LoopProgram, kernel: Kernel) -> str:
    """The loops over elements, or what an epilogue goes over."""
    text = f"for {shown(kernel.shape)}" if kernel.shape else "for one element"
    if kernel.call is not None:
        return f"epilogue, {text}"
    if kernel.axes is not None:
        text += f", reduced along {', '.join(_axis(a) for a in sorted(kernel.axes))}"
    if kernel.split is not None:
        axis, parts = kernel.split
        text += f", {_axis(axis)} in {shown_size(parts)} parts"
    return text


def _named(program: LoopProgram, verb: str, numbers: Iterable[int]) -> list[str]:
    names = [name_of(program, n) for n in sorted(numbers)]
    return [f"{verb} {', '.join(names)}"] if names else []


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _with_label(program: LoopProgram, statement: Statement, text: str) -> str:
    label = program.labels.get(id(statement))
    return f"{text}  # {label}" if label else text


def _statement_lines(program: LoopProgram, statements: Sequence[Statement]) -> Iterator[str]:
    for s in statements:
        yield _with_label(program, s, _statement_text(program, s))
        if isinstance(s, Loop):
            for title, part in (("test", s.test), ("body", s.body)):
                if part:
                    yield f"  {title}"
                yield from _indented(_indented(_statement_lines(program, part)))
            yield from _indented(_carried_lines(program, s))


def _statement_text(program: LoopProgram, s: Statement) -> str:
    """A statement in one line; of a loop the head."""
    if isinstance(s, Pointwise):
        operands = [_operand(program, x) for x in s.operands]
        return f"{_target(program, s.target)} = {s.expression.text(operands)}"
    if isinstance(s, Reduce):
        axes = ", ".join(_axis(a) for a in s.axes)
        text = f"{_target(program, s.target)} = {s.kind}({_operand(program, s.operand)})"
        text += f" along {axes} of {shown(s.shape)}"
        if s.split is not None:
            text += f", {_axis(s.split[0])} in {shown_size(s.split[1])} parts"
        return text
    if isinstance(s, KernelCall):
        return _kernel_call_text(program, s)
    if isinstance(s, Check):
        return _check_text(program, s)
    if isinstance(s, Fence):
        return f"fence {s.number}"
    return _loop_head(program, s)


def _kernel_call_text(program: LoopProgram, s: KernelCall) -> str:
    made = ", ".join(_target(program, program.whole(n)) for n in s.writes)
    given = [_operand(program, x) for x in s.inputs]
    given += [f"{name}={_parameter(x)}" for name, x in s.planner.parameters().items()]
    return f"{made} = {s.name}({', '.join(given)})"


def _parameter(value: object) -> str:
    """A parameter of a planner; numbers in it may be symbolic sizes."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_parameter, value))}]"
    return shown_size(value) if type(value) is int else str(value)


def _check_text(program: LoopProgram, s: Check) -> str:
    return f"stop if {_operand(program, s.view)}"


def _loop_head(program: LoopProgram, s: Loop) -> str:
    text = "loop" if s.count is None else f"loop {shown_size(s.count)} times"
    if s.stop is not None:
        text += f", until {_operand(program, s.stop)}"
    return text


def _carried_lines(program: LoopProgram, s: Loop) -> Iterator[str]:
    for number, view in s.carried.items():
        yield f"{name_of(program, number)} becomes {_operand(program, view)}"


# Operands


def _target(program: LoopProgram, view: View) -> str:
    if _is_broadcast(program.storages[view.storage], view):
        return f"{name_of(program, view.storage)}{shown(view.shape)}"
    return f"{_element(program, view)} over {shown(view.shape)}"


def _operand(program: LoopProgram, x: Operand) -> str:
    if isinstance(x, Literal):
        return str(x.value if x.dtype not in FLOATING else x.dtype.numpy.type(x.value))
    if isinstance(x, Size):
        return _as_operand(shown_size(x.value))
    if isinstance(x, Iota):
        return _as_operand(_sum(_moves(x), x.offset))
    if isinstance(x, IndirectLoad):
        places = [(s, _operand(program, i)) for s, i in zip(x.strides, x.indices, strict=True)]
        place = _sum([*places, *_moves(x.view)], x.view.offset)
        return f"{name_of(program, x.view.storage)}[{place}]"
    if _is_broadcast(program.storages[x.storage], x):
        return name_of(program, x.storage)
    return _element(program, x)


def _element(program: LoopProgram, view: View) -> str:
    """The element of a storage at a place of the view, counted from the first one."""
    return f"{name_of(program, view.storage)}[{_sum(_moves(view), view.offset)}]"


def _moves(x: View | Iota) -> list[tuple[int, str]]:
    """How far each axis moves on, with its letter."""
    sizes = enumerate(zip(x.shape, x.strides, strict=True))
    return [(stride, _axis(a)) for a, (n, stride) in sizes if n != 1 and stride]


def _axis(a: int) -> str:
    """The place along an axis."""
    return _AXES[a] if a < len(_AXES) else f"i{a}"


def _sum(terms: Sequence[tuple[int, str]], offset: int) -> str:
    """offset + factor * name + ..."""
    parts = [] if not offset and terms else [shown_size(offset)]
    for factor, name in terms:
        text = shown_size(factor)
        parts.append(name if factor == 1 else f"{f'({text})' if ' ' in text else text}*{name}")
    return " + ".join(parts)


def _as_operand(text: str) -> str:
    return f"({text})" if set(text) & set(" *") else text


def _is_broadcast(storage: Storage, view: View) -> bool:
    """Whether a view is a storage as it is, or broadcast as NumPy does."""
    own = storage.shape
    if view.is_contiguous and (
        squeezed(view.shape) == squeezed(own)
        or (storage.window is not None and math.prod(view.shape) == storage.num_elements)
    ):
        return True
    extra = len(view.shape) - len(own)
    if view.offset or extra < 0:
        return False
    strides = (s if n != 1 else 0 for n, s in zip(own, contiguous(own), strict=True))
    wanted, sizes = [*[0] * extra, *strides], [*[1] * extra, *own]
    return all(
        n == 1 or (s == w and m in (1, n))
        for n, m, s, w in zip(view.shape, sizes, view.strides, wanted, strict=True)
    )
