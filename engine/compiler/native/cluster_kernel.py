"""Native functions of clusters: made for the shapes that come, called on NumPy arrays.

A cluster has a `CompiledProgram` for each pattern of sizes (specializations.py), and an
`Executable` for each set of real sizes: a batch of another size is planned anew, never compiled
anew. All of them work in the same memory, as large as the largest needs.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import operator
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dumps, forks
from ...collector import few_full_passes
from ...errors import InternalError
from ...graph import Operation, resource
from ...ops.control.structured import WHILE
from ...ops.core.cluster import ClusterBody, run_steps
from ...ops.state.variable import Sharing, VariableStore
from ...timeline import Recording, Timeline
from ..codegen import driver_words
from ..codegen.cpython_code import OTHER_SHAPES
from ..lower.cluster_body import variables_of
from ..lower.loops import LOOPS
from ..lower.size_inputs import sizes_among_inputs
from ..plan.executable_plan import ExecutablePlan
from ..plan.fallback import fall_back
from ..plan.kernel_table import KernelRow, KernelTable
from ..plan.plan_cache import PlanCache
from ..plan.specializations import Specializations
from ..plan.supported_ops import Acceptance
from ..target import compile_log, host, llvm
from ..target.code_cache import addresses_of
from ..target.fingerprint import sources
from ..target.thread_count import num_threads
from . import heap
from .call_context import BoundExecutable, CallContext, ReadyCalls, picker
from .call_path import reads_structs
from .cpython_calls import make_tensors_natively
from .executable import Arena, Executable
from .interrupts import run_cancellable
from .kernel_times import seconds_of_launches
from .traced_run import bind_recorded

_log = logging.getLogger(__name__)

_shape_of = operator.attrgetter("shape")
_value_of = operator.attrgetter("value")


class NativeCluster:
    """A body as a function of a kernel context and its inputs."""

    def __init__(self, body: ClusterBody) -> None:
        self._body = body
        self._lock = forks.lock()
        # Those that no call uses: a call takes one out, so calls at the same time each have memory
        # of their own. It takes the one that was used last, which is in cache.
        self._contexts = [CallContext()]
        self._plans: dict[Any, ExecutablePlan] = {}  # by the sizes and the number of threads
        # Which of them use loaded code only: loaded_code.py.
        self._of_loaded_code = set[Any]()
        self._plan_cache: PlanCache | None = None
        # What runs on the reference kernels: everything, or some sizes.
        self._refused = False
        self._refused_sizes: set[Any] = set()
        self.events: list[compile_log.Event] = []
        specs = body.specs[: body.num_inputs]
        self._data = [i for i, s in enumerate(specs) if s.dtype != resource]
        self._handles = [i for i, s in enumerate(specs) if s.dtype == resource]
        self._sizes = sizes_among_inputs(body)
        self._loops = any(step.definition in LOOPS for step in body.steps)
        self._is_endless = any(step.definition in WHILE for step in body.steps)
        self._variables = variables_of(body)
        self._arrays = [i for i in self._data if i not in self._sizes]
        self._arrays_of = picker(self._arrays)
        self._specializations = Specializations(body, self._arrays, self._sizes)

    def __call__(self, context: Any, *inputs: Any) -> list[Any]:
        """The outputs for inputs; variables among them are updated."""
        timeline = Recording.active
        try:
            call = self._contexts.pop()
        except IndexError:
            call = CallContext()
        try:
            ready = call.last if timeline is None else call.recorded(timeline.native).last
            if ready is not None and ready.threads == num_threads():
                if ready.is_plain:
                    found = ready.run([*self._arrays_of(inputs), *ready.places])
                    if type(found) is list:
                        return found
                found = self._run_locked(context, ready, inputs)
                if type(found) is list:
                    return found
            else:
                found = OTHER_SHAPES
            if found == OTHER_SHAPES:
                ready = self._ready_for(inputs, call, timeline)
                found = None if ready is None else self._run_locked(context, ready, inputs)
                if type(found) is list:
                    return found
        finally:
            self._contexts.append(call)
        return self._without_native(context, inputs)

    def _without_native(self, context: Any, inputs: Sequence[Any]) -> list[Any]:
        """The outputs where native code has given none."""
        empty = [x for x in inputs if isinstance(x, VariableStore) and x.value is None]
        if empty and all(store.value_or_none() is not None for store in empty):
            return self(context, *inputs)  # a restoration had values for them
        return run_steps(context, *inputs, body=self._body)

    def _key(self, inputs: Sequence[Any]) -> Any:
        """The sizes that decide what runs."""
        key: Any = tuple(map(_shape_of, self._arrays_of(inputs)))
        return (*key, *(int(inputs[i]) for i in self._sizes)) if self._sizes else key

    def _ready_for(
        self, inputs: Sequence[Any], call: CallContext, timeline: Timeline | None
    ) -> BoundExecutable | None:
        """What is ready for inputs, made if it is not there; None if it cannot be made."""
        key = self._key(inputs)
        ready = call.ready.get(key)
        if ready is None or ready.threads != num_threads():
            ready = self._prepare(key, call)
        calls: ReadyCalls = call
        if timeline is not None and ready is not None:
            calls = call.recorded(timeline.native)
            ready = self._recorded(key, ready, call, timeline)
        if not self._sizes:  # a call looks at shapes alone
            calls.last = ready
        return ready

    def _recorded(
        self, key: Any, plain: BoundExecutable, call: CallContext, timeline: Timeline
    ) -> BoundExecutable:
        """What runs as `plain` does and tells a timeline, made if it is not there."""
        known = call.recorded(timeline.native).ready
        ready = known.get(key)
        plan = plain.executable.executable_plan
        if ready is None or ready.executable.executable_plan is not plan:
            about = self, key, self._body.name
            ready = known[key] = bind_recorded(plain, call.memory, timeline.native, *about)
        return ready

    def _run_locked(
        self, context: Any, ready: BoundExecutable, inputs: Sequence[Any]
    ) -> list[Any] | int | None:
        """The outputs, or OTHER_SHAPES; None if the reference kernels are to run."""
        arrays = self._arrays_of(inputs)
        stores = ready.stores_of(inputs)
        if not stores:
            return self._run(context, ready, arrays, stores)
        if stores != ready.stores and len(set(map(id, stores))) < len(stores):
            return None  # two handles of one variable
        while True:
            if ready.sharing != Sharing.count or stores != ready.stores:
                variables = ready.executable.executable_plan.variables
                ready.learn(stores, [self._variables[i] for i in variables])
            with ready.lock:
                if ready.sharing == Sharing.count:  # no store has got another lock meanwhile
                    return self._run(context, ready, arrays, stores)

    def _run(
        self,
        context: Any,
        ready: BoundExecutable,
        arrays: Sequence[Any],
        stores: Sequence[VariableStore],
    ) -> list[Any] | int | None:
        objects = [*arrays, *map(_value_of, stores), *ready.places]
        found = self._call(context, ready, objects) if ready.is_long else ready.run(objects)
        if type(found) is list:
            return found
        if found == driver_words.NO_ROOM:
            found = self._call(context, ready, objects)
            if type(found) is list:
                return found
        if found == driver_words.REFUSES:
            if any(store.value is None for store in stores):
                return None  # the reference kernels say which one is not initialised
            refused = ready.executable.refused.tolist()
            for i, array in enumerate(arrays):
                if refused[i]:
                    objects[i] = np.require(array, requirements=["C", "A"]).view(np.ndarray)
            for i, store in enumerate(stores, len(arrays)):
                if refused[i]:  # others go on with the old one
                    store.value = objects[i] = heap.copied(objects[i])
            found = self._call(context, ready, objects)
            if type(found) is list:
                return found
        if found == OTHER_SHAPES:
            return OTHER_SHAPES
        if found != driver_words.CHECK_FAILED:  # of which the reference kernels tell what is wrong
            fall_back(self._body.name, InternalError("the arrays cannot be used in place"))
        return None

    def _call(self, context: Any, ready: BoundExecutable, objects: list[Any]) -> Any:
        """Run an executable; a long one ends early when the step is cancelled."""
        if ready.is_long:
            found = run_cancellable(context, ready.executable, objects)
        else:
            found = ready.run(objects)
        if type(found) is int and found == driver_words.NO_ROOM:
            ready.executable.turn_page()
            return self._call(context, ready, objects)
        return found

    # Making what a call needs

    def _prepare(self, key: Any, call: CallContext) -> BoundExecutable | None:
        """What calls with these shapes need; None when no code can be made for them."""
        with self._lock:
            if self._refused or any(0 in shape for shape in key if isinstance(shape, tuple)):
                return None
            if key in self._refused_sizes:
                return None
            if self._loops and 0 in key:
                return None  # no iterations
            try:
                self._make_ready([key], call, uses_loaded=self._has_run())
            except Exception as error:
                if (
                    key,
                    num_threads(),
                ) in self._plans:  # no memory for another context
                    fall_back(self._body.name, error)
                else:
                    self._refuse(key, error)
                return None
            return call.ready[key]

    def _has_run(self) -> bool:
        """Whether something is loaded that another plan can use."""
        return any(count == num_threads() for _, count in self._plans)

    def prepare(self, calls: Sequence[Sequence[tuple[int, ...]]]) -> None:
        """Make what calls on inputs of these shapes need.

        What all of them need is compiled together, and none is limited to less. Once something has
        run, this holds for the first call alone: the last batch of an epoch is one of many, and to
        wait for its best kernels would take longer than they save. If making fails, each call makes
        what it needs.
        """
        if self._refused or self._sizes:
            return
        forms: list[Any] = [tuple(self._arrays_of(tuple(shapes))) for shapes in calls]
        if any(0 in shape for form in forms for shape in form):
            return
        try:
            call = self._contexts.pop()
        except IndexError:
            call = CallContext()
        with self._lock, contextlib.suppress(Exception):
            threads, ready = num_threads(), call.ready
            if self._has_run():
                del forms[1:]
            known = {x for x in forms if x in ready and ready[x].threads == threads}
            missing = [x for x in forms if x not in known or (x, threads) in self._of_loaded_code]
            if missing:
                self._make_ready(missing, call)
        self._contexts.append(call)

    def kernels_of(self, key: Any) -> list[KernelRow]:
        """What each launch of a run for these sizes computes, loops with what is inside of them;
        none where that is not known.

        The plan is made anew: one that was read from disk does not tell.
        """
        name = key, num_threads()
        with self._lock:
            if name not in self._plans:
                return []
            uses_loaded = name in self._of_loaded_code
            _, table, launched = self._specializations.explained(key, uses_loaded=uses_loaded)
        rows = table.by_launch()
        return [rows[number] for number in launched]

    def explain(self) -> list[KernelTable]:
        """What runs for the sizes that were prepared first, kernel by kernel, with times.

        Nothing where that is the reference kernels. The plan is made anew: one that was read from
        disk does not tell.
        """
        with self._lock:
            name = next((name for name in self._plans if name[1] == num_threads()), None)
            if name is None:
                return []
            key, threads = name
            uses_loaded = name in self._of_loaded_code
            found = self._specializations.explained(key, uses_loaded=uses_loaded)
            executable_plan, table, launched = found
            bound = [call.ready[key] for call in self._contexts if key in call.ready]
            values = [store.value for store in bound[0].stores] if bound else []
            is_known = len(values) == len(executable_plan.variables)
            if self._is_endless or not is_known or any(value is None for value in values):
                return [table]
            arena = Arena()
            arena.grow(executable_plan.arena_bytes)
            shapes, forms = self._forms(key, executable_plan)
            executable = Executable(executable_plan, arena.memory, threads, shapes, forms)
        dtypes = [self._body.specs[i].dtype.numpy for i in self._arrays]
        given = list(zip(shapes, dtypes, strict=True))
        times = seconds_of_launches(executable, given, values)
        if times is None:
            return [table]
        seconds: dict[int, float] = {}
        for number, time_of in zip(launched, times, strict=True):
            seconds[number] = seconds.get(number, 0.0) + time_of
        return [table.with_seconds(seconds)]

    @few_full_passes()
    def _make_ready(
        self, keys: Sequence[Any], call: CallContext, *, uses_loaded: bool = False
    ) -> None:
        """Make executables for shapes, of loaded code alone if `uses_loaded`; the lock is held."""
        start = time.perf_counter()
        compile_log.begin()
        with compile_log.LongCompileNote(self._body.name):
            found, reason = self._make(keys, call, uses_loaded)
        if not reason and any(made.fresh for made in compile_log.compiles()):
            reason = "products of other sizes have other tiles"
        if reason:
            executable = found[0].executable
            self.events.append(
                compile_log.Event(
                    self._body.name,
                    reason,
                    tuple(tuple(s.shape) for s in self._body.specs[: self._body.num_inputs]),
                    executable.num_kernels,
                    compile_log.compiles(),
                    time.perf_counter() - start,
                    executable.arena_bytes,
                )
            )
        call.ready.update(zip(keys, found, strict=True))
        call.settle()  # another may be the one for these shapes now

    def _refuse(self, key: Any, error: Exception) -> None:
        """From now on the reference kernels run, for these sizes if others have native code."""
        if self._plans:
            self._refused_sizes.add(key)
        else:
            self._refused = True
        fall_back(self._body.name, error)

    def _make(
        self, keys: Sequence[Any], call: CallContext, uses_loaded: bool
    ) -> tuple[list[BoundExecutable], str]:
        """Executables for shapes, and why something had to be compiled, if it had."""
        if self._plan_cache is None:
            self._plan_cache = PlanCache(self._body)
        store = self._plan_cache
        reason = "" if self._plans else "first run"
        threads = 0
        while threads != num_threads():  # which another thread may set meanwhile
            threads = num_threads()
            executable_plans, contents = list[ExecutablePlan](), dict[str, bytes]()
            planned: list[tuple[Any, ExecutablePlan]] = []
            names, loaded_code = [(key, threads) for key in keys], set[Any]()
            for key, name in zip(keys, names, strict=True):
                found = self._found(store, name, uses_loaded)
                if found is None:
                    made = self._specializations.planned(key, uses_loaded=uses_loaded)
                    executable_plan, why, used_loaded = made
                    reason = reason or why
                    planned.append((key, executable_plan))
                else:
                    executable_plan, objects, used_loaded = found
                    contents.update(objects)
                if used_loaded:
                    loaded_code.add(name)
                executable_plans.append(executable_plan)
        addresses_of(
            [code for executable_plan in executable_plans for code in executable_plan.codes],
            contents,
        )
        if reads_structs():
            make_tensors_natively()
        if call.grow(max(executable_plan.arena_bytes for executable_plan in executable_plans)):
            call.forget()  # what is asked for again moves to the new memory
        ready = []
        for key, executable_plan in zip(keys, executable_plans, strict=True):
            executable = Executable(
                executable_plan, call.memory, threads, *self._forms(key, executable_plan)
            )
            ready.append(BoundExecutable(executable, threads))
        for key, executable_plan in planned:
            store.write(key, threads, executable_plan, uses_loaded=(key, threads) in loaded_code)
        self._plans.update(zip(names, executable_plans, strict=True))
        self._of_loaded_code = self._of_loaded_code.difference(names) | loaded_code
        return ready, reason

    def _found(
        self, store: PlanCache, name: tuple[Any, int], uses_loaded: bool
    ) -> tuple[ExecutablePlan, dict[str, bytes], bool] | None:
        """A plan that is kept, its object code, and whether it is of loaded code: that may be."""
        if name in self._plans and (uses_loaded or name not in self._of_loaded_code):
            return self._plans[name], {}, name in self._of_loaded_code
        if dumps.folder() is None:
            for used_loaded in (False, True)[: 1 + uses_loaded]:
                found = store.read(*name, uses_loaded=used_loaded)
                if found is not None:
                    return *found, used_loaded
        return None

    def _forms(
        self, key: Any, executable_plan: ExecutablePlan
    ) -> tuple[Sequence[tuple[int, ...]], list[heap.Form]]:
        """The shapes of the arrays of a call, and the forms of its results."""
        dtypes = [self._body.specs[v].dtype.numpy for v in self._body.outputs]
        return key[: len(self._arrays)], list(zip(executable_plan.outputs, dtypes, strict=True))


class NativeCompiler:
    """Compiles clusters for the processor of this host."""

    def __init__(self) -> None:
        self._acceptance = Acceptance()

    def prepare(self) -> None:
        """Load LLVM, and learn what object code depends on."""
        if is_offered():
            try:
                llvm.prepare()
                sources()
            except Exception as error:
                fall_back("anything", error)

    def accepts(self, operations: Sequence[Operation]) -> list[bool]:
        """Which operations have native code."""
        if is_offered():
            try:
                return self._acceptance(operations)
            except Exception as error:
                fall_back("a graph", error)
        return [False] * len(operations)

    def build(self, body: ClusterBody) -> Callable[..., Any] | None:
        """The native function of a body; None where there is no native code."""
        return NativeCluster(body) if is_offered() else None


@functools.cache
def is_offered() -> bool:
    """Whether native code can be made and run here; where it cannot, all runs without.

    Raises:
        InvalidArgumentError: LAMINAR_ISA is not the name of instructions, or LAMINAR_CALLS no way
            to call them.
    """
    reason = host.why_not()
    if reason:
        _log.debug("no native code is made: %s", reason)
        return False
    llvm.asked_vector_bytes()  # what these raise is no mistake of the compiler
    reads_structs()
    return True


heap.keep_freed()
