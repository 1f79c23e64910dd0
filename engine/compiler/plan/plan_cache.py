"""PlanCache on disk: a plan that was made once is read, not made again.

An executable plan is looked up by all that decides about it: what a cluster computes, the sizes,
the processor and its L2 cache, the number of threads, and the source code of the compiler. A
file holds the executable plan and the object code of its functions; disk_cache.py says whether its
content can be trusted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Array, DType, int64
from ...ops.core.cluster import ClusterBody
from ...ops.core.op_def import OpDef
from ..lower.loops import GRAPHS, LOOPS, traced
from ..lower.rules import LOWERINGS
from ..target import disk_cache, host, llvm
from ..target.bfloat16_unit import pair_unit
from ..target.code_cache import Native, content_of, kept_of
from ..target.fingerprint import NoDigestError, digest, encoded, is_covered, sources
from .executable_plan import ExecutablePlan

_SUFFIX = ".plan"
_HEADER_BYTES = 8
# What JSON can say of an executable plan.
_PLAIN = (
    *("places", "counts", "arena_bytes", "outputs", "variables", "is_parallel", "is_long"),
    "cancellable",
)
# That a process keeps for one body: a program may meet many sizes. Plans of loaded code are short.
_MOST_SIZES = 8
_MOST_OF_LOADED = 64
_MOST_BYTES = 1 << 22  # of constants; what holds more is not kept


class PlanCache:
    """The executable plans of a body.

    Args:
        body: the operations of a cluster.
    """

    def __init__(self, body: ClusterBody) -> None:
        self._labels = [step.label for step in body.steps]
        self._num_kept = {False: 0, True: 0}
        try:
            self._digest = _digest(body)
        except NoDigestError:
            self._digest = ""

    def _name(self, sizes: Any, threads: int, uses_loaded: bool) -> str:
        vector = llvm.vector_bytes()
        # What is read may use the matrix unit, which this process must have asked for. Blocks are
        # as large as the L2 cache lets them be; object code does not depend on that.
        machine = f"{llvm.identity(vector)} {vector} {host.l2_cache()}"
        identity = f"{machine} {threads} {pair_unit()}"
        return digest(identity, sources(), self._digest, repr(sizes), str(uses_loaded)) + _SUFFIX

    def read(
        self, sizes: Any, threads: int, *, uses_loaded: bool = False
    ) -> tuple[ExecutablePlan, dict[str, bytes]] | None:
        """The executable plan for some sizes and threads and the object code of it, if they are
        there.

        One made of code that was loaded comes with what is not loaded now; it is not
        there if some of that is not on disk.
        """
        if not self._digest:
            return None
        content = disk_cache.read(self._name(sizes, threads, uses_loaded))
        found = None if content is None else _decoded(content, self._labels)
        if uses_loaded and found is not None:
            executable_plan, _ = found
            contents = kept_of(executable_plan.codes)
            return None if contents is None else (executable_plan, contents)
        return found

    def write(
        self,
        sizes: Any,
        threads: int,
        executable_plan: ExecutablePlan,
        *,
        uses_loaded: bool = False,
    ) -> None:
        """Keep an executable plan for some sizes and threads.

        The object code is kept with the first ones, unless they are made of code that is loaded.
        """
        uses_loaded |= self._num_kept[False] == _MOST_SIZES
        if not self._digest or self._num_kept[uses_loaded] == _MOST_OF_LOADED:
            return
        if sum(x.nbytes for x in executable_plan.constants) > _MOST_BYTES:
            return
        self._num_kept[uses_loaded] += 1
        contents = {} if uses_loaded else {f.key: content_of(f.key) for f in executable_plan.codes}
        disk_cache.write(
            self._name(sizes, threads, uses_loaded),
            _encoded(executable_plan, contents, self._labels),
        )


def _digest(body: ClusterBody) -> str:
    """The digest of what a body computes.

    Raises:
        NoDigestError: there is none.
    """
    for definition in {step.definition.type: step.definition for step in body.steps}.values():
        if not decides(definition):
            raise NoDigestError(f"{definition.type} is not laminar's own")
    steps = [
        f"{s.definition.type}{s.inputs}{s.outputs}{attributes(s.definition, s.attrs)}"
        for s in body.steps
    ]
    specs = [encoded(spec) for spec in body.specs]
    return digest(f"{body.num_inputs} {body.outputs}", "\n".join(specs), "\n".join(steps))


def attributes(definition: OpDef, attrs: Mapping[str, Any]) -> str:
    """The attributes of an operation as text, as far as native code depends on them.

    Raises:
        NoDigestError: an attribute has no digest.
    """
    rule = LOWERINGS.get(definition.type)
    if rule is not None and rule.ignores_attributes:
        return ""
    if definition not in LOOPS:
        return encoded(dict(attrs))
    graphs = {name: attrs[name] for name in GRAPHS & attrs.keys()}
    found = [encoded({name: value for name, value in attrs.items() if name not in graphs})]
    for name in sorted(graphs):
        graph = graphs[name]
        found += [name, _digest(traced(graph, range(len(graph.outputs))))]
    return digest(*found)


def decides(definition: OpDef) -> bool:
    """Whether the type of an op says what is made of it: laminar's own source code alone does."""
    rule = LOWERINGS.get(definition.type)
    makers = (definition.rule, definition.scalar, rule and rule.lower)
    return all(is_covered(getattr(f, "__module__", "")) for f in makers if f is not None)


def _encoded(
    executable_plan: ExecutablePlan, contents: Mapping[str, bytes], labels: Sequence[str]
) -> bytes:
    """An executable plan as bytes; operations are written as their numbers."""
    numbers = {label: i for i, label in reversed(list(enumerate(labels)))}
    header = {
        **{name: getattr(executable_plan, name) for name in _PLAIN},
        "constants": [(DType(c.dtype.name), c.shape) for c in executable_plan.constants],
        "codes": [
            (f.key, f.symbol, [numbers[label] for label in f.labels if label in numbers])
            for f in executable_plan.codes
        ],
        "sizes": [executable_plan.memory.size, executable_plan.moves.size],
        "objects": [(key, len(content)) for key, content in contents.items()],
    }
    text = json.dumps(header).encode()
    arrays = (executable_plan.memory, executable_plan.moves, *executable_plan.constants)
    parts = [np.int64(len(text)).tobytes(), text, *(a.tobytes() for a in arrays)]
    return b"".join([*parts, *contents.values()])


def _decoded(content: bytes, labels: Sequence[str]) -> tuple[ExecutablePlan, dict[str, bytes]]:
    place = _HEADER_BYTES + int(np.frombuffer(content, np.int64, 1)[0])
    header = json.loads(content[_HEADER_BYTES:place])

    def taken(num_bytes: int) -> bytes:
        nonlocal place
        place += num_bytes
        return content[place - num_bytes : place]

    def array(dtype: DType, shape: Sequence[int]) -> Array:
        num_bytes = math.prod(shape) * dtype.size
        return np.frombuffer(taken(num_bytes), dtype.numpy).reshape(shape)

    num_words, num_moves = header["sizes"]
    memory = array(int64, [num_words])
    moves = array(int64, [num_moves // 2, 2])
    constants = tuple(array(DType(dtype), shape) for dtype, shape in header["constants"])
    codes = tuple(
        Native(key, symbol, tuple(labels[i] for i in numbers))
        for key, symbol, numbers in header["codes"]
    )
    contents = {key: taken(num_bytes) for key, num_bytes in header["objects"]}
    plain = {name: _tuples(header[name]) for name in _PLAIN}
    return ExecutablePlan(
        memory=memory, moves=moves, constants=constants, codes=codes, **plain
    ), contents


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
