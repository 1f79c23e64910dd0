"""A step of training, evaluation or prediction as one traced function.

The batch dimension is unknown in the trace, so a short last batch or another batch size runs the
same graph; but where layers keep states for each example, as there is one size for these.
`_concrete[form]` is the graph for batches of one form (structure, dtypes, sizes); where sizes
change, forms share one (traces.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from laminar.distribute import DataParallel
from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.graph import EagerTensor, TensorSpec, value_of
from laminar.tree import flatten, map_structure

from .batches import size_of
from .traces import Sizes, Traces


class Step:
    """`step(batch)` on tensors: traced once for each form of batch, or run op by op.

    Args:
        step: what a batch goes through.
        eager: whether to run it op by op, for debugging.
        native: whether to run native code where there is some.
        strategy: which devices run it, and share the calls of models in it.
        one_size: whether the size of a batch is part of its form.
    """

    def __init__(
        self,
        step: Callable[[Any], Any],
        *,
        eager: bool,
        native: bool = True,
        strategy: DataParallel | None = None,
        one_size: bool = False,
    ) -> None:
        self._strategy = strategy
        self._one_size = one_size
        self._step = step
        self._native = native
        self._function = None if eager else Function(step)
        # For batches that have an example for each device, where devices share them.
        self._shared: Function | None = None
        self._least = 0
        if not eager and strategy is not None and strategy.shares_batches:
            self._shared = Function(strategy.shared(step))
            self._least = strategy.num_replicas
        self._concrete: dict[Any, ConcreteFunction] = {}
        self._traces = Traces(native=native)
        self._prepared: set[tuple[Any, tuple[int, ...]]] = set()

    def __call__(self, batch: Any) -> Any:
        """Run the step."""
        if self._function is None:
            return self._step(batch)
        tensors: list[EagerTensor] = []
        # As `_form` does; written here, for it runs in each step.
        form = batch_form(batch, tensors)
        if self._one_size or (self._least and self._are_few(batch)):
            form = self._form(batch, [])
        found = self._concrete.get(form)
        if found is None:
            found = self._concrete[form] = self._trace(batch)
        return found.pack(found.call_matching(tensors))

    @property
    def compiles(self) -> list[Any]:
        """What was compiled for the batches so far, and why: see plan/compile_log.py."""
        found = []
        for number, concrete in enumerate(dict.fromkeys(self._concrete.values())):
            given = ", ".join(str(x.spec) for x in concrete.inputs)
            for body in concrete.clusters:
                for event in getattr(body.native, "events", ()):
                    if number:  # the first form is what everybody expects
                        event = event._replace(reason=f"{event.reason} on batches of {given}")
                    found.append(event)
        return found

    @property
    def kernels(self) -> list[Any]:
        """What the native code of each trace computes: see plan/kernel_table.py."""
        found: list[Any] = []
        for concrete in dict.fromkeys(self._concrete.values()):
            for body in concrete.clusters:
                explain = getattr(body.native, "explain", None)
                found += explain() if explain is not None else []
        return found

    def close(self) -> None:
        """Nothing to do: a call has ended when it returns."""

    def traced(self) -> Step:
        """This step if it is traced; else one that is."""
        if self._function is not None:
            return self
        return Step(
            self._step,
            eager=False,
            native=self._native,
            strategy=self._strategy,
            one_size=self._one_size,
        )

    def trace(self, batch: Any) -> ConcreteFunction | None:
        """The graph for batches of this form, made if it is not there; None when run op by op."""
        if self._function is None:
            return None
        form = self._form(batch, [])
        if form not in self._concrete:
            self._concrete[form] = self._trace(batch)
        return self._concrete[form]

    def prepare(self, batch: Any, sizes: tuple[int, ...]) -> None:
        """Make what batches of this form with so many examples need, so that none waits for it."""
        if self._function is None or not self._native or self._least or self._one_size:
            return
        tensors: list[EagerTensor] = []
        key = self._form(batch, tensors), sizes
        if len({value_of(x).shape[0] for x in tensors}) > 1:
            return  # the parts of a batch have sizes of their own
        if key not in self._prepared:
            concrete = self.trace(batch)
            assert concrete is not None, "it is traced"
            shapes = [value_of(x).shape[1:] for x in tensors]
            concrete.prepare([[(n, *shape) for shape in shapes] for n in sizes])
            self._prepared.add(key)

    def _form(self, batch: Any, tensors: list[EagerTensor]) -> Any:
        """What the trace for a batch depends on; its tensors are added to `tensors`."""
        form = batch_form(batch, tensors)
        if self._one_size:
            form = (form, size_of(batch))
        return (form, "few") if self._are_few(batch) else form

    def _are_few(self, batch: Any) -> bool:
        """Whether there are fewer examples than devices to share them."""
        return bool(self._least) and size_of(batch) < self._least

    def _trace(self, batch: Any) -> ConcreteFunction:
        """The graph that runs batches like this one."""
        few = self._are_few(batch)
        function = self._function if few else self._shared or self._function
        assert function is not None, "only what is traced gets here"
        size = size_of(batch) if self._one_size else None
        sizes = tuple(tuple(x.shape[1:]) for x in flatten(batch) if x is not None)
        return self._traces.graph_for(
            (_kind(batch), size, few), sizes, partial(self._trace_for, function, batch, size)
        )

    def _trace_for(
        self, function: Function, batch: Any, size: int | None, sizes: Sizes
    ) -> ConcreteFunction:
        """The graph for batches as this one, but of some sizes."""
        left = iter(sizes)

        def spec(x: Any) -> Any:
            return None if x is None else TensorSpec((size, *next(left)), x.dtype)

        concrete = function.concrete(map_structure(spec, batch))
        if self._strategy is not None:
            concrete.machine = self._strategy.machine
        concrete.compiled = self._native
        return concrete


def close_step(step: Any) -> None:
    """Wait for what other threads do for a step; models may make steps that know of no threads."""
    close = getattr(step, "close", None)
    if close is not None:
        close()


def prepare_step(step: Any, batch: Any, sizes: tuple[int, ...], num_steps: int | None) -> None:
    """Have a step make what batches need, before it runs on the first one.

    What comes later without being known here uses that.

    Args:
        step: models may make steps that know nothing of it.
        batch: the first one.
        sizes: those that are known to come, if any are.
        num_steps: how often it is going to run; one run uses what is loaded.
    """
    prepare = getattr(step, "prepare", None)
    if prepare is not None and num_steps != 1:
        size = size_of(batch)
        prepare(batch, sizes if size in sizes else (size,))


def batch_form(value: Any, tensors: list[EagerTensor]) -> Any:
    """What a trace depends on; the tensors of `value` are added to `tensors`, as flattened."""
    if isinstance(value, EagerTensor):
        tensors.append(value)
        array = value_of(value)
        return array.dtype.num, array.shape[1:]
    if isinstance(value, dict):
        return tuple([(key, batch_form(value[key], tensors)) for key in sorted(value)])
    if isinstance(value, list | tuple):
        return type(value), *[batch_form(part, tensors) for part in value]
    return None


def batch_spec(tensor: Any) -> Any:
    """The spec of a batch of any size."""
    if tensor is None:
        return None
    return TensorSpec((None, *tensor.shape[1:]), tensor.dtype)


def _kind(value: Any) -> Any:
    """What batches have in common that differ in sizes alone."""
    if isinstance(value, EagerTensor):
        return value.dtype, len(value.shape)
    if isinstance(value, dict):
        return tuple([(key, _kind(value[key])) for key in sorted(value)])
    if isinstance(value, list | tuple):
        return type(value), *[_kind(part) for part in value]
    return None
