"""Native functions of clusters: made for the shapes that come, called on NumPy arrays.

A cluster has a `Structure` for each pattern of sizes (which of the unknown ones are equal), and an
`Instance` for each set of real sizes: a batch of another size is planned anew, never compiled anew.
All of them work in the same memory, as large as the largest needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import operator
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
from .instance import Arena, Instance, Recipe
from .layout import lay_out
from .llvm import vector_bytes
from .lower import Lowering
from .making_do import planning
from .mishaps import go_on_without
from .native_loops import LOOPS
from .plan import Planner
from .records import Recipes
from .size_inputs import sizes_among_inputs
from .sizes import stand_in
from .structure import Structure
from .threads import num_threads

_log = logging.getLogger(__name__)

# What refers to a variable's array while a cluster runs: its store, and the list of objects.
_OWN_REFERENCES = 2
_shape_of = operator.attrgetter("shape")
_value_of = operator.attrgetter("value")


class _Ready:
    """An instance with what a call needs besides."""

    __slots__ = (
        "allocate",
        "instance",
        "lock",
        "outputs",
        "run",
        "sharing",
        "stores",
        "stores_of",
        "threads",
    )

    def __init__(
        self,
        instance: Instance,
        outputs: list[tuple[tuple[int, ...], np.dtype[Any]]],
        threads: int,
    ) -> None:
        self.instance = instance
        self.run = instance.run
        self.stores_of = _picker(instance.recipe.variables)
        self.outputs = outputs
        self.allocate = heap.allocator(outputs)
        self.threads = threads
        # The stores of the last call and the lock they have, as long as no store gets another.
        self.stores: tuple[VariableStore, ...] = ()
        self.lock = threading.Lock()
        self.sharing = -1

    def learn(self, stores: tuple[VariableStore, ...]) -> None:
        """Note the stores of a call and their lock."""
        with one_lock(stores):
            self.stores, self.lock = stores, stores[0].lock
            self.sharing = Sharing.count


class _Place(Arena):
    """An arena, and what is ready to run in it."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: dict[Any, _Ready] = {}


class NativeCluster:
    """A body as a function of a kernel context and its inputs."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._lock = threading.Lock()
        # Where nobody runs: a call takes a place out, so calls at the same time each have memory of
        # their own. It takes the one that was used last, which is nearest in cache.
        self._places = [_Place()]
        self._kept: dict[Any, Recipe] = {}  # by the sizes and the number of threads
        self._structures: dict[Any, tuple[Structure, Lowering]] = {}
        self._making_do: set[Any] = set()  # which of them do with what was loaded: making_do.py
        self._recipes: Recipes | None = None
        self._refused = False
        self.events: list[report.Event] = []
        specs = body.specs[: body.num_inputs]
        self._data = [i for i, s in enumerate(specs) if s.dtype != resource]
        self._handles = [i for i, s in enumerate(specs) if s.dtype == resource]
        self._sizes = sizes_among_inputs(body)
        self._loops = any(step.definition.type in LOOPS for step in body.steps)
        self._arrays = [i for i in self._data if i not in self._sizes]
        self._arrays_of = _picker(self._arrays)

    def __call__(self, context: Any, *inputs: Any) -> list[Any]:
        """The outputs for inputs; variables among them are updated."""
        arrays = self._arrays_of(inputs)
        key: Any = tuple(map(_shape_of, arrays))
        if self._sizes:
            key = (*key, *(int(inputs[i]) for i in self._sizes))
        try:
            place = self._places.pop()
        except IndexError:
            place = _Place()
        try:
            ready = place.ready.get(key)
            if ready is None or ready.threads != num_threads():
                ready = self._prepare(key, place)
                if ready is None:
                    return run_steps(context, *inputs, body=self._body)
            stores = ready.stores_of(inputs)
            if stores != ready.stores and len(set(map(id, stores))) < len(stores):
                # Two handles of one variable.
                return run_steps(context, *inputs, body=self._body)
            while stores:
                if ready.sharing != Sharing.count or stores != ready.stores:
                    ready.learn(stores)
                with ready.lock:
                    if ready.sharing == Sharing.count:  # no store has got another lock meanwhile
                        found = self._run(context, ready, arrays, stores)
                        break
            else:
                found = self._run(context, ready, arrays, stores)
        finally:
            self._places.append(place)
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
        outputs = list(starmap(ready.allocate, ready.outputs))
        objects = [*arrays, *map(_value_of, stores), *outputs]
        status = self._call(context, ready, objects) if self._loops else ready.run(objects)
        if status == driver.DONE:
            return outputs
        if status == driver.REFUSES:
            if any(store.value is None for store in stores):
                return None  # the reference kernels say which one is not initialised
            refused = ready.instance.refused.tolist()
            for i, array in enumerate(arrays):
                if refused[i]:
                    objects[i] = np.require(array, requirements=["C", "A"]).view(np.ndarray)
            for i, store in enumerate(stores, len(arrays)):
                if refused[i]:  # others go on with the old one
                    store.value = objects[i] = _at_line(store.value)
            status = self._call(context, ready, objects)
            if status == driver.DONE:
                return outputs
        if status == driver.CHECK_FAILED:
            return None
        go_on_without(self._body.name, InternalError("the arrays cannot be used in place"))
        return None

    def _call(self, context: Any, ready: _Ready, objects: list[Any]) -> int:
        """Run an instance; loops in it end when the step is cancelled."""
        if not self._loops:
            return ready.run(objects)
        instance = ready.instance
        instance.go_on()
        token = context.cancellation.register(instance.cancel)
        if token is None:
            raise context.cancelled
        try:
            return ready.run(objects)
        finally:
            context.cancellation.deregister(token)

    # Making what a call needs

    def _prepare(self, key: Any, place: _Place) -> _Ready | None:
        """What calls with these shapes need; None when no code can be made for them."""
        with self._lock:
            if self._refused or any(0 in shape for shape in key if isinstance(shape, tuple)):
                return None
            if self._loops and 0 in key:
                return None  # no iterations
            has_run = any(count == num_threads() for _, count in self._kept)
            try:
                self._make_ready([key], place, makes_do=has_run)
            except Exception as error:
                if (key, num_threads()) in self._kept:  # there may be no memory for another place
                    go_on_without(self._body.name, error)
                else:
                    self._refuse(error)
                return None
            return place.ready[key]

    def prepare(self, batches: Sequence[int]) -> None:
        """Make what calls on batches of these sizes need: all unknown sizes are those of a batch.

        What all of them need is compiled together, and none makes do with less. If that fails,
        each call will see to itself.
        """
        shapes = [self._body.specs[i].shape for i in self._arrays]
        if self._refused or self._sizes or any(shape.rank is None for shape in shapes):
            return
        forms: list[Any] = [
            tuple(tuple(n if d is None else d for d in shape) for shape in shapes) for n in batches
        ]
        if any(0 in shape for form in forms for shape in form):
            return
        try:
            place = self._places.pop()
        except IndexError:
            place = _Place()
        with self._lock, contextlib.suppress(Exception):
            threads, ready = num_threads(), place.ready
            known = {x for x in forms if x in ready and ready[x].threads == threads}
            missing = [x for x in forms if x not in known or (x, threads) in self._making_do]
            if missing:
                self._make_ready(missing, place)
        self._places.append(place)

    def _make_ready(self, keys: Sequence[Any], place: _Place, *, makes_do: bool = False) -> None:
        """Make instances for shapes, which may make do with what is loaded; the lock is held."""
        start = time.perf_counter()
        report.begin()
        with report.LongCompileNote(self._body.name):
            found, reason = self._make(keys, place, makes_do)
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
        place.ready.update(zip(keys, found, strict=True))

    def _refuse(self, error: Exception) -> None:
        """From now on the reference kernels run."""
        self._refused = True
        go_on_without(self._body.name, error)

    def _make(self, keys: Sequence[Any], place: _Place, makes_do: bool) -> tuple[list[_Ready], str]:
        """Instances for shapes, and why something had to be compiled, if it had."""
        if self._recipes is None:
            self._recipes = Recipes(self._body)
        store = self._recipes
        reason = "" if self._kept else "first run"
        threads = 0
        while threads != num_threads():  # which another thread may set meanwhile
            threads = num_threads()
            recipes, contents = list[Recipe](), dict[str, bytes]()
            planned: list[tuple[Any, Recipe]] = []
            names, making_do = [(key, threads) for key in keys], set[Any]()
            for key, name in zip(keys, names, strict=True):
                found = self._found(store, name, makes_do)
                if found is None:
                    recipe, why, has_made_do = self._planned(key, makes_do=makes_do)
                    reason = reason or why
                    planned.append((key, recipe))
                else:
                    recipe, objects, has_made_do = found
                    contents.update(objects)
                if has_made_do:
                    making_do.add(name)
                recipes.append(recipe)
        addresses_of([code for recipe in recipes for code in recipe.codes], contents)
        if place.grow(max(recipe.arena_bytes for recipe in recipes)):
            place.ready.clear()  # what is asked for again moves to the new memory
        ready = [self._with(Instance(recipe, place.memory, threads), threads) for recipe in recipes]
        for key, recipe in planned:
            store.write(key, threads, recipe, makes_do=(key, threads) in making_do)
        self._kept.update(zip(names, recipes, strict=True))
        self._making_do = self._making_do.difference(names) | making_do
        return ready, reason

    def _found(
        self, store: Recipes, name: tuple[Any, int], makes_do: bool
    ) -> tuple[Recipe, dict[str, bytes], bool] | None:
        """A recipe that is there, the object code of it, and whether it makes do: that may be."""
        if name in self._kept and (makes_do or name not in self._making_do):
            return self._kept[name], {}, name in self._making_do
        if dumps.folder() is None:
            for has_made_do in (False, True)[: 1 + makes_do]:
                found = store.read(*name, makes_do=has_made_do)
                if found is not None:
                    return *found, has_made_do
        return None

    def _with(self, instance: Instance, threads: int) -> _Ready:
        dtypes = [self._body.specs[v].dtype.numpy for v in self._body.outputs]
        outputs = list(zip(instance.recipe.outputs, dtypes, strict=True))
        return _Ready(instance, outputs, threads)

    def _planned(self, key: Any, *, makes_do: bool = False) -> tuple[Recipe, str, bool]:
        """The recipe for shapes, why its structure had to be made, and whether it makes do."""
        shapes, values, pattern = self._with_stand_ins(key)
        reason = ""
        try:
            if pattern not in self._structures:
                reason = "first run"
                if self._structures:
                    reason = "other sizes are equal than before"
                elif self._kept:
                    reason = "sizes for which there is no plan on disk"
                self._structures[pattern] = self._structure(shapes, len(values))
            with planning(has_sizes=bool(values), makes_do=makes_do) as has_made_do:
                recipe = self._recipe(pattern, values)
                return recipe, reason, has_made_do()
        except (ShapeError, NotLoweredError):  # only right for these very sizes
            pattern = ("exact", key)
            if pattern not in self._structures:
                reason = "sizes that depend on each other"
                self._structures[pattern] = self._structure(self._given(key), 0)
            return self._recipe(pattern, []), reason, False

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
    """Whether native code can be made and run here; where it cannot, all runs without.

    Raises:
        InvalidArgumentError: LAMINAR_ISA is not the name of instructions.
    """
    reason = host.why_not()
    if not reason and not _layout_is_known():
        reason = "this Python lays out its arrays otherwise"
    if reason:
        _log.debug("no native code is made: %s", reason)
        return False
    llvm.asked_vector_bytes()  # what it raises is no mistake of the compiler
    return True


def _picker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes some items out of a tuple, as a tuple; `places` rise."""
    if not places:
        return operator.itemgetter(slice(0))
    first, last = places[0], places[-1]
    if last - first == len(places) - 1:
        return operator.itemgetter(slice(first, last + 1))
    return operator.itemgetter(*places)


def _at_line(x: Array) -> Array:
    """A copy that begins at a line of the cache, in memory that nothing else refers to."""
    found = heap.aligned(x.shape, x.dtype)
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
    items = [object(), object()]
    found = ctypes.c_int64.from_address(id(items) + 24).value
    return [ctypes.c_int64.from_address(found + 8 * i).value for i in (0, 1)] == [*map(id, items)]


heap.keep_freed()
set_compiler(NativeCompiler())
