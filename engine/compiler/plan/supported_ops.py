"""Which operations have native code: found by trying, and kept on disk by what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph import Operation, TensorShape, TensorSpec
from ...ops.core.basic import const_op
from ...ops.core.cluster import ClusterBody, ClusterOp
from ...ops.core.registry import definition_of
from ..codegen.dry_run import check_writable
from ..ir.element_types import check_computed
from ..ir.not_lowered import NotLoweredError
from ..ir.sizes import symbolic_size
from ..lower.cluster_body import STATE, ClusterLowering
from ..lower.loops import LOOPS
from ..lower.rules import LOWERINGS
from ..lower.size_inputs import is_size
from ..target import disk_cache, llvm
from ..target.fingerprint import NoDigestError, digest, encoded, sources
from .fallback import NOT_COMPILABLE, fall_back
from .plan_cache import attributes, decides
from .split_dimensions import accept_reshapes, parts_a_size

_SUFFIX = ".kinds"
_NO, _YES = 0, 1


class Acceptance:
    """Tells which operations have native code.

    `_known` remembers it for each kind of operation: what it is, on what, with what attributes.
    """

    def __init__(self) -> None:
        self._known: dict[Any, bool] = {}

    def __call__(self, operations: Sequence[Operation]) -> list[bool]:
        """Whether each operation has native code."""
        found = [_at_once(op) for op in operations]
        kinds: list[Any] = [None] * len(operations)
        unknown: dict[Any, Operation] = {}
        for i, op in enumerate(operations):
            if found[i] is None:
                kind = kinds[i] = _kind(op)
                if kind is not None and kind not in self._known:
                    unknown.setdefault(kind, op)
        if unknown:
            self._known.update(zip(unknown, _found_out(list(unknown.values())), strict=True))
        decided = [
            bool(self._known.get(kind)) if is_so is None else is_so
            for is_so, kind in zip(found, kinds, strict=True)
        ]
        undecided = [
            i
            for i, op in enumerate(operations)
            if found[i] is None and not decided[i] and parts_a_size(op)
        ]
        if undecided:
            accept_reshapes(operations, decided, undecided)
        return decided


def _at_once(op: Operation) -> bool | None:
    """Whether an operation has native code; None where that must be tried."""
    definition = definition_of(op)
    if definition.stateful or definition.label:
        return False
    if definition.context_kernel and definition not in STATE and definition not in LOOPS:
        return False
    rule = LOWERINGS.get(definition.type)
    if definition.scalar is None and rule is None and definition not in STATE:
        return False
    if not op.outputs or any(t.shape.rank is None for t in (*op.inputs, *op.outputs)):
        return False
    if definition in STATE and not TensorShape(op.attrs["shape"]).is_fully_defined:
        return False  # native code knows the shapes of its variables
    if any(0 in t.shape for t in (*op.inputs, *op.outputs)):
        return False  # nothing to compute
    if rule is not None and rule.any_attributes:
        return all(_has_type(x.spec) for x in (*op.inputs, *op.outputs))
    return None


def _kind(op: Operation) -> Any:
    """What operations have in common of which all or none have native code; None for no kind."""
    if op.definition in LOOPS:
        try:
            return _loop_kind(op)
        except NoDigestError:
            return object()  # it is tried each time
    kind = (
        op.definition.type,
        tuple([x.spec for x in op.inputs]),
        tuple([y.spec for y in op.outputs]),
        tuple(op.attrs.items()),
        tuple(map(type, op.attrs.values())),
        tuple([is_size(x) for x in op.inputs]),
    )
    try:
        hash(kind)
    except TypeError:  # an attribute that cannot be compared
        return None
    return kind


def _loop_kind(op: Operation) -> str:
    """The kind of a loop; a number of iterations that is known is part of it."""
    first = op.inputs[0].op
    count = first.attrs["value"] if first.definition is const_op else None
    specs = [(str(x.spec), is_size(x)) for x in op.inputs]
    outputs = [str(y.spec) for y in op.outputs]
    return f"{op.type} {attributes(definition_of(op), op.attrs)} {count} {specs} {outputs}"


def _found_out(operations: Sequence[Operation]) -> list[bool]:
    """Whether operations have native code: as it stands on disk, or tried."""
    name = _name(operations)
    content = None if name is None else disk_cache.read(name)
    if content is not None and len(content) == len(operations):
        return [number == _YES for number in content]
    found = [_can_lower(op) for op in operations]
    if name is not None and None not in found:
        disk_cache.write(name, bytes([_YES if is_so else _NO for is_so in found]))
    return [bool(is_so) for is_so in found]


def _name(operations: Sequence[Operation]) -> str | None:
    """The file for what is found out about operations."""
    try:
        kinds = [
            _loop_kind(op)
            if op.definition in LOOPS
            else f"{op.definition.type} {encoded(dict(op.attrs))} "
            f"{[(str(x.spec), is_size(x)) for x in op.inputs]} {[str(y.spec) for y in op.outputs]}"
            for op in operations
            if decides(definition_of(op))
        ]
    except NoDigestError:
        return None
    if len(kinds) < len(operations):
        return None
    vector = llvm.vector_bytes()
    return digest(f"{llvm.identity(vector)} {vector}", sources(), *kinds) + _SUFFIX


def _has_type(spec: TensorSpec) -> bool:
    try:
        check_computed(spec.dtype)
    except NotLoweredError:
        return False
    return True


def _can_lower(op: Operation) -> bool | None:
    """Whether the operation alone can be lowered, and has code; None after a mistake."""
    definition, sizes = definition_of(op), [is_size(x) for x in op.inputs]
    unknown = symbolic_size(0)
    specs = [t.spec for t in (*op.inputs, *op.outputs)]
    count = len(op.inputs)
    step = ClusterOp(
        definition, tuple(range(count)), op.attrs, tuple(range(count, count + len(op.outputs)))
    )
    shapes: list[Any] = [
        unknown if is_size else tuple(unknown if n is None else n for n in x.shape)
        for x, is_size in zip(op.inputs, sizes, strict=True)
    ]
    if definition in LOOPS and op.inputs[0].op.definition is const_op:
        shapes[0] = int(op.inputs[0].op.attrs["value"])  # it decides about sizes inside
    body = ClusterBody([step], specs, count, step.outputs, op.type)
    try:
        program = ClusterLowering(body, shapes, 1).program
        program.verify()
        check_writable(program)
    except NOT_COMPILABLE:
        return False
    except Exception as error:
        fall_back(op.type, error)
        return None
    return True
