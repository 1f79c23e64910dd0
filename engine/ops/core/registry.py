"""The one table of ops, by name; `define` makes one of its shape rule (see op_def.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ... import forks
from ...errors import (
    AlreadyExistsError,
    NotFoundError,
    did_you_mean,
)
from ...graph import ANY, DType, Operation, OpView, Tensor
from ...late import load
from ..names import ALIASES, declared_names, module_of
from .op_def import NO_TRAITS, Grads, OpDef
from .traits import Traits

# Those that are loaded: see `find`.
_OPS: dict[str, OpDef] = {}
_lock = forks.lock()


def register(op: OpDef) -> OpDef:
    """Put an op into the table; AlreadyExistsError when its name is taken."""
    if module_of(op.type) not in sys.modules:  # where it is not the one that declares this op
        find(op.type)
    with _lock:
        if op.type in _OPS:
            raise AlreadyExistsError(
                f"op {op.type!r} is defined twice: in {_OPS[op.type].rule.__module__} "
                f"and in {op.rule.__module__}",
                remedy="give the new op another name",
            )
        _OPS[op.type] = op
    return op


def define(
    type: str,
    *,
    dtypes: Collection[DType] | Mapping[str, Collection[DType]] = ANY,
    same_dtype: bool = True,
    stateful: bool = False,
    read_only: bool = False,
    takes_dead: bool = False,
    tagged: bool = False,
    traits: Traits = NO_TRAITS,
) -> Callable[[Callable[..., Any]], OpDef]:
    """Make an op of its shape rule, which the decorator wraps (see the head of op_def.py).

    Args:
        type: the op's name, unique.
        dtypes: element types of all inputs, or of the inputs named in a mapping.
        same_dtype: whether the inputs covered by `dtypes` must agree.
        stateful: whether it reads or changes something besides its inputs and their resources.
        read_only: whether it only reads the resources among its inputs.
        takes_dead: whether it runs even if an input is dead.
        tagged: whether its kernel receives the iteration and the loop that it runs in.
        traits: what passes and compilers may know of it (see traits.py).

    Examples:
        >>> from laminar.engine import TensorSpec
        >>> @engine.define("DocDouble")
        ... def double(x: TensorSpec) -> TensorSpec:
        ...     return x
        >>> @double.reference
        ... def _double(xp, x):
        ...     return 2 * x
        >>> double(engine.constant([1.0, 2.0]))
        Tensor([2., 4.], shape=(2,), dtype=float32)
    """

    def decorate(rule: Callable[..., Any]) -> OpDef:
        return register(
            OpDef(
                type,
                rule,
                dtypes=dtypes,
                same_dtype=same_dtype,
                stateful=stateful,
                read_only=read_only,
                takes_dead=takes_dead,
                tagged=tagged,
                traits=traits,
            )
        )

    return decorate


def find(type: str) -> OpDef | None:
    """The op of that name, None when there is none. The module that declares it is loaded."""
    op = _OPS.get(type)
    if op is None:
        module = module_of(type)
        if module is not None:
            load(module)
            op = _OPS.get(type)
        elif type in ALIASES:
            return find(ALIASES[type])
    return op


def lookup(type: str) -> OpDef:
    """The op of that name; NotFoundError when there is none.

    The names of the whitepaper's table of ops, such as "ReLU" and "Leave", are known, too.

    Examples:
        >>> engine.lookup("MatMul").type
        'MatMul'
    """
    op = find(type)
    if op is None:
        raise NotFoundError(f"no op is named {type!r}", remedy=did_you_mean(type, op_names()))
    return op


def definition_of(op: Operation) -> OpDef:
    """The op that an operation is an instance of."""
    found: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    return found


def op_names() -> list[str]:
    """The names of all ops in the table, and those that some of them have in the whitepaper.

    Examples:
        >>> "MatMul" in engine.op_names()
        True
    """
    return sorted({*_OPS, *declared_names(), *ALIASES})


def all_ops() -> Mapping[str, OpDef]:
    """The whole table, for which all modules with ops are loaded."""
    return {op.type: op for op in map(lookup, op_names())}


def no_gradient(op: OpView, *douts: Tensor) -> Grads:
    """The rule of an op through which no gradient flows."""
    return (None,) * len(op.inputs)
