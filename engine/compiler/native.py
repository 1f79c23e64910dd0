"""Native functions of clusters: made for the shapes that come, called on NumPy arrays.

A cluster has a `Structure` for each pattern of sizes (which of the unknown ones are equal), and an
`Instance` for each set of real sizes: a batch of another size is planned anew, never compiled anew.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import operator
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import numpy as np

from .. import dumps
from ..errors import InternalError, ShapeError
from ..graph import Array, Operation, resource
from ..ops.cluster import Body, run_steps, set_compiler
from ..ops.state import Sharing, VariableStore, one_lock
from . import driver, heap, host, llvm, report
from .acceptance import Acceptance
from .codes import addresses_of
from .digest import sources
from .emit import NotLoweredError
from .instance import Instance, Recipe
from .layout import lay_out
from .llvm import vector_bytes
from .lower import Lowering
from .mishaps import go_on_without
from .native_loops import LOOPS
from .plan import Planner
from .records import Recipes
from .size_inputs import sizes_among_inputs
from .sizes import stand_in
from .structure import Structure
from .threads import num_threads

_log = logging.getLogger(__name__)

# What refers to a variable's array while a cluster runs: its store, and the list of arrays.
_OWN_REFERENCES = 2
_NOTHING = type(None)
_empty = np.empty
_shape_of = operator.attrgetter("shape")
_value_of = operator.attrgetter("value")


class _Ready:
    """An instance with what a call needs besides."""

    __slots__ = (
        "instance",
        "lock",
        "outputs",
        "pack",
        "sharing",
        "stores",
        "threads",
        "variables",
    )

    def __init__(
        self,
        instance: Instance,
        variables: tuple[int, ...],
        outputs: list[tuple[tuple[int, ...], np.dtype[Any]]],
        count: int,
    ) -> None:
        self.instance = instance
        self.variables = variables
        self.outputs = outputs
        self.pack = struct.Struct(f"{count}q").pack
        self.threads = num_threads()
        # The stores of the last call and the lock they have, as long as no store gets another.
        self.stores: list[VariableStore] = []
        self.lock: threading.Lock | None = None
        self.sharing = -1


class NativeCluster:
    """A body as a function of a kernel context and its inputs."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._lock = threading.Lock()
        self._ready: dict[Any, _Ready] = {}
        self._spare: dict[Any, list[_Ready]] = {}  # for calls at the same time
        self._structures: dict[Any, tuple[Structure, Lowering]] = {}
        self._recipes: Recipes | None = None
        self._refused = False
        self.events: list[report.Event] = []
        specs = body.specs[: body.num_inputs]
        self._data = [i for i, s in enumerate(specs) if s.dtype != resource]
        self._handles = [i for i, s in enumerate(specs) if s.dtype == resource]
        self._sizes = sizes_among_inputs(body)
        self._loops = any(step.definition.type in LOOPS for step in body.steps)
        self._arrays = [i for i in self._data if i not in self._sizes]
        self._takes_arrays = len(self._arrays) == len(specs)

    def __call__(self, context: Any, *inputs: Any) -> list[Any]:
        """The outputs for inputs; variables among them are updated."""
        arrays = inputs if self._takes_arrays else [inputs[i] for i in self._arrays]
        key: Any = tuple(map(_shape_of, arrays))
        if self._sizes:
            key = (*key, *(int(inputs[i]) for i in self._sizes))
        ready = self._ready.get(key)
        if ready is None or ready.threads != num_threads():
            ready = self._prepare(key)
            if ready is None:
                return run_steps(context, *inputs, body=self._body)
        spare = not ready.instance.lock.acquire(False)
        if spare:  # another thread runs it: here is one with memory of its own
            another = self._another(key)
            if another is None:
                return run_steps(context, *inputs, body=self._body)
            ready = another
        try:
            stores = [inputs[i] for i in ready.variables] if ready.variables else []
            lock = ready.lock
            if not stores:
                found = self._run(context, ready, arrays, stores)
            elif lock is not None and ready.sharing == Sharing.count and stores == ready.stores:
                with lock:
                    found = self._run(context, ready, arrays, stores)
            else:
                if len(set(map(id, stores))) < len(stores):  # two handles of one variable
                    return run_steps(context, *inputs, body=self._body)
                with one_lock(stores):
                    ready.lock, ready.stores = stores[0].lock, stores
                    ready.sharing = Sharing.count
                    found = self._run(context, ready, arrays, stores)
        finally:
            ready.instance.lock.release()
            if spare:
                self._spare[key].append(ready)
        if found is None:  # a check has failed: the reference kernels tell what is wrong
            return run_steps(context, *inputs, body=self._body)
        return found

    def _run(
        self,
        context: Any,
        ready: _Ready,
        arrays: Sequence[Any],
        stores: Sequence[VariableStore],
    ) -> list[Any] | None:
        outputs = list(starmap(_empty, ready.outputs))
        values = list(map(_value_of, stores))
        if _NOTHING in map(type, values):
            return None  # the reference kernels say which one is not initialised
        objects = ready.pack(*map(id, arrays), *map(id, values), *map(id, outputs))
        instance = ready.instance
        status = self._call(context, instance, objects) if self._loops else instance.run(objects)
        if status == driver.DONE:
            return outputs
        if status == driver.REFUSES:
            arrays = list(arrays)
            refused = ready.instance.refused.tolist()
            for i, is_refused in enumerate(refused[: len(arrays)]):
                if is_refused:
                    arrays[i] = np.require(arrays[i], requirements=["C", "A"]).view(np.ndarray)
            for store, is_refused in zip(stores, refused[len(arrays) :], strict=False):
                if is_refused:  # others go on with the old one
                    store.value = _at_line(store.value)
            values = [store.value for store in stores]
            objects = ready.pack(*map(id, arrays), *map(id, values), *map(id, outputs))
            status = self._call(context, instance, objects)
            if status == driver.DONE:
                return outputs
        if status == driver.CHECK_FAILED:
            return None
        go_on_without(self._body.name, InternalError("the arrays cannot be used in place"))
        return None

    def _call(self, context: Any, instance: Instance, objects: bytes) -> int:
        """Run an instance; loops in it end when the step is cancelled."""
        if not self._loops:
            return instance.run(objects)
        instance.go_on()
        token = context.cancellation.register(instance.cancel)
        if token is None:
            raise context.cancelled
        try:
            return instance.run(objects)
        finally:
            context.cancellation.deregister(token)

    # Making what a call needs

    def _another(self, key: Any) -> _Ready | None:
        """An instance that nobody runs; its lock is held. None where no more can be made."""
        spares = self._spare.setdefault(key, [])
        found = None
        while found is None or found.threads != num_threads():
            try:
                found = spares.pop()
            except IndexError:
                try:
                    (found,), _ = self._make([key])
                except Exception as error:  # as no memory for it
                    go_on_without(self._body.name, error)
                    return None
        found.instance.lock.acquire()
        return found

    def _prepare(self, key: Any) -> _Ready | None:
        """What calls with these shapes need; None when no code can be made for them."""
        with self._lock:
            ready = self._ready.get(key)
            if ready is not None and ready.threads == num_threads():
                return ready
            if self._refused or any(0 in shape for shape in key if isinstance(shape, tuple)):
                return None
            if self._loops and 0 in key:
                return None  # no iterations
            try:
                self._make_ready([key])
            except Exception as error:
                self._refuse(error)
                return None
            return self._ready[key]

    def prepare(self, batches: Sequence[int]) -> None:
        """Make what calls on batches of these sizes need: all unknown sizes are those of a batch.

        What all of them need is compiled together. If that fails, each call will see to itself.
        """
        shapes = [self._body.specs[i].shape for i in self._arrays]
        if self._refused or self._sizes or any(shape.rank is None for shape in shapes):
            return
        forms: list[Any] = [
            tuple(tuple(n if d is None else d for d in shape) for shape in shapes) for n in batches
        ]
        if any(0 in shape for form in forms for shape in form):
            return
        with self._lock, contextlib.suppress(Exception):
            threads = num_threads()
            missing = [
                x for x in forms if x not in self._ready or self._ready[x].threads != threads
            ]
            if missing:
                self._make_ready(missing)

    def _make_ready(self, keys: Sequence[Any]) -> None:
        """Make instances for shapes; the lock is held."""
        start = time.perf_counter()
        report.begin()
        with report.LongCompileNote(self._body.name):
            found, reason = self._make(keys)
        if not reason and any(made.fresh for made in report.compiles()):
            reason = "products of other sizes have other tiles"
        if reason:
            instance = found[0].instance
            self.events.append(
                report.Event(
                    self._body.name,
                    reason,
                    tuple(tuple(s.shape) for s in self._body.specs[: self._body.num_inputs]),
                    instance.num_kernels,
                    report.compiles(),
                    time.perf_counter() - start,
                    instance.arena_bytes,
                )
            )
        self._ready.update(zip(keys, found, strict=True))

    def _refuse(self, error: Exception) -> None:
        """From now on the reference kernels run."""
        self._refused = True
        go_on_without(self._body.name, error)

    def _make(self, keys: Sequence[Any]) -> tuple[list[_Ready], str]:
        """Instances for shapes, and why something had to be compiled, if it had."""
        if self._recipes is None:
            self._recipes = Recipes(self._body)
        reason = "" if self._ready else "first run"
        recipes, contents = list[Recipe](), dict[str, bytes]()
        planned: list[tuple[Any, Recipe]] = []
        for key in keys:
            found = None if dumps.folder() is not None else self._recipes.read(key)
            if found is None:
                recipe, why = self._planned(key)
                reason = reason or why
                planned.append((key, recipe))
            else:
                recipe, objects = found
                contents.update(objects)
            recipes.append(recipe)
        addresses_of([code for recipe in recipes for code in recipe.codes], contents)
        ready = [self._with(Instance(recipe)) for recipe in recipes]
        for key, recipe in planned:
            self._recipes.write(key, recipe)
        return ready, reason

    def _with(self, instance: Instance) -> _Ready:
        recipe = instance.recipe
        dtypes = [self._body.specs[v].dtype.numpy for v in self._body.outputs]
        outputs = list(zip(recipe.outputs, dtypes, strict=True))
        return _Ready(instance, recipe.variables, outputs, recipe.counts[-1])

    def _planned(self, key: Any) -> tuple[Recipe, str]:
        """The recipe for shapes, and why its structure had to be made, if it had."""
        shapes, values, pattern = self._with_stand_ins(key)
        reason = ""
        try:
            if pattern not in self._structures:
                reason = "first run"
                if self._structures:
                    reason = "other sizes are equal than before"
                elif self._ready:
                    reason = "sizes for which there is no plan on disk"
                self._structures[pattern] = self._structure(shapes, len(values))
            return self._recipe(pattern, values), reason
        except (ShapeError, NotLoweredError):  # only right for these very sizes
            pattern = ("exact", key)
            if pattern not in self._structures:
                reason = "sizes that depend on each other"
                self._structures[pattern] = self._structure(self._given(key), 0)
            return self._recipe(pattern, []), reason

    def _recipe(self, pattern: Any, values: Sequence[int]) -> Recipe:
        """The recipe of a structure for real sizes."""
        structure, lowering = self._structures[pattern]
        variables = sorted(lowering.variables)
        externals: dict[int, int] = {}
        wants: list[int] = []
        for i in self._arrays:
            externals[lowering.inputs[i]] = len(wants)
            wants.append(0)
        for i in variables:
            written = lowering.variables[i] in lowering.program.updates
            externals[lowering.variables[i]] = len(wants)
            own = driver.WANT_OWN | _OWN_REFERENCES << 8 if written else 0
            wants.append(driver.WANT_LINE | own)
        for view in lowering.program.outputs:
            externals[view.storage] = len(wants)
            wants.append(0)
        return Planner(structure, values, externals, wants).plan(variables)

    def _given(self, key: Any) -> list[Any]:
        """What each input is: a shape, or the number that a size is."""
        given: list[Any] = [()] * self._body.num_inputs
        for i, part in zip((*self._arrays, *self._sizes), key, strict=True):
            given[i] = part
        return given

    def _with_stand_ins(self, key: Any) -> tuple[list[Any], list[int], Any]:
        """The same with a stand-in for each unknown size, their real values, and the pattern."""
        given = self._given(key)
        numbers: dict[int, int] = {}
        pattern = []

        def stand(real: int) -> int:
            number = numbers.setdefault(real, len(numbers))
            pattern.append(number)
            return stand_in(number)

        for i in (*self._arrays, *self._sizes):
            part = given[i]
            if isinstance(part, int):
                given[i] = stand(part)
                continue
            spec = self._body.specs[i].shape
            given[i] = tuple(stand(n) if d is None else n for d, n in zip(spec, part, strict=True))
        return given, list(numbers), tuple(pattern)

    def _structure(self, shapes: Sequence[Any], num_sizes: int) -> tuple[Structure, Lowering]:
        lowering = Lowering(self._body, shapes, num_sizes)
        layout = lay_out(lowering.program, lowering.builder.copy)
        lowering.program.verify()
        report.dump_program(self._body.name, layout)
        structure = Structure(layout, lowering.builder.derived, vector_bytes(), self._body.name)
        return structure, lowering


class NativeCompiler:
    """Compiles clusters for this host."""

    def __init__(self) -> None:
        self._acceptance = Acceptance()

    def prepare(self) -> None:
        """Load LLVM, and learn what object code depends on."""
        if is_offered():
            try:
                llvm.prepare()
                sources()
            except Exception as error:
                go_on_without("anything", error)

    def accepts(self, operations: Sequence[Operation]) -> list[bool]:
        """Which operations have native code."""
        if is_offered():
            try:
                return self._acceptance(operations)
            except Exception as error:
                go_on_without("a graph", error)
        return [False] * len(operations)

    def build(self, body: Body) -> Callable[..., Any] | None:
        """The native function of a body; None where there is no native code."""
        return NativeCluster(body) if is_offered() else None


@functools.cache
def is_offered() -> bool:
    """Whether native code can be made and run here; where it cannot, all runs without."""
    reason = host.why_not()
    if not reason and not _layout_is_known():
        reason = "this Python lays out its arrays otherwise"
    if reason:
        _log.debug("no native code is made: %s", reason)
    return not reason


def _at_line(x: Array) -> Array:
    """A copy that begins at a line of the cache, in memory that nothing else refers to."""
    memory = np.empty(x.nbytes + driver.LINE, np.uint8)
    start = -memory.ctypes.data % driver.LINE
    found: Array = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def _layout_is_known() -> bool:
    """Whether the parts of an array are where the native code looks for them."""
    for a in (np.zeros(3), np.zeros((2, 2), np.float32), np.zeros(())):
        fields = [ctypes.c_int64.from_address(id(a) + 8 * i).value for i in range(9)]
        held = a[...]
        base = ctypes.c_int64.from_address(id(held) + 48).value
        if (
            fields[0] != sys.getrefcount(a) - 2
            or fields[1] != id(np.ndarray)
            or fields[2] != a.ctypes.data
            or fields[6] != 0
            or base != id(a)
            or ctypes.c_int32.from_address(id(a) + 64).value & 0x501 != 0x501
        ):
            return False
    return True


heap.keep_freed()
set_compiler(NativeCompiler())
