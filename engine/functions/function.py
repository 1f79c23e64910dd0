"""`function`: a Python function as a callable that builds a graph once and runs it many times.

State of a `Function`: `_concrete[key]` is the graph of a trace key (see signature.py), made under
`_lock` and read without it, and dropped when an object that the key refers to has gone;
`_known[form]` is what a call on eager tensors, arrays and plain values has found before, and
`_last` the form of the last such call with what it found, as most are like the one before;
`_methods[id]` is the function of an instance, with what refers to that; `_calls` counts for the
warning alone, roughly. `_instance` keeps an object alive while somebody has its method in hand.

Source: "RFC: Functions, not sessions", 2018.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from .. import forks
from ..collector import few_full_passes
from ..errors import FailedPreconditionError, InvalidArgumentError
from ..graph import EagerTensor, building, form_of, get_default_graph
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import as_input
from ..ops.core.recording import paused
from ..runtime import Machine, RunMetadata, RunOptions
from ..source import warn
from ..state.autocasting import autocast_dtype
from ..state.creation import variables_made
from ..state.stateless import current_scope
from ..tree import flatten, pack_sequence_as
from .concrete import ConcreteFunction
from .converting import converted
from .func_graph import FuncGraph
from .signature import Arguments, Binder, is_variable, trace_key, with_specs
from .traces import Traces

# A function that traces more often than this, and on more than half of its calls, gets a warning.
_MANY_TRACES = 8


class _Known(NamedTuple):
    """What a call of a known form runs.

    `order` tells which of its tensors are the inputs, where they are not those in order;
    `converts` whether arrays are among them.
    """

    concrete: ConcreteFunction
    order: list[int] | None
    converts: bool


class Function:
    """What `function` makes of a Python function: call it as the original.

    A call traces the function into a graph when its trace key is new: the dtypes and shapes of the
    tensors, the values of all other arguments, the device scope. Then it runs the graph.

    Examples:
        >>> isinstance(engine.function(lambda x: 2 * x), engine.Function)
        True
    """

    __slots__ = ("__dict__", "__weakref__", "_instance")

    _instance: Any

    def __init__(
        self,
        fn: Callable[..., Any],
        input_signature: Sequence[Any] | None = None,
        infer_signature: bool = False,
        jit_compile: bool = True,
        autograph: bool = True,
        machine: Machine | None = None,
    ) -> None:
        for option, value in (("jit_compile", jit_compile), ("autograph", autograph)):
            if not isinstance(value, bool):
                raise InvalidArgumentError(
                    f"function: {option} must be True or False, got {value!r}"
                )
        functools.update_wrapper(self, fn)
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self._fn = fn
        self._options = (input_signature, infer_signature, jit_compile, autograph, machine)
        self._machine = machine
        self._autograph = autograph
        self._compiles = jit_compile
        self._binder = Binder(fn, input_signature)
        self._infers = infer_signature
        self._signature = input_signature
        self._concrete = Traces()
        self._known: dict[Any, _Known] = {}
        self._last: tuple[list[Any] | None, _Known | None] = [], None
        self._lock = forks.recursive_lock()
        self._calls = 0
        self._traces = 0
        self._methods: dict[int, tuple[Callable[[], Any], Function]] = {}
        self._warned = False

    def __get__(self, instance: Any, owner: Any = None) -> Function:
        """As a method: each instance has its own traces, and may make variables once."""
        if instance is None:
            return self
        key = id(instance)
        with self._lock:
            found = self._methods.get(key)
            if found is None:
                refer = _reference(instance, lambda _: self._methods.pop(key, None))
                method = _bound_method(self._fn, refer, self._autograph)
                bound = Function(method, *self._options)
                found = self._methods[key] = (refer, bound)
        in_hand = Function.__new__(Function)
        in_hand.__dict__ = found[1].__dict__  # all methods in hand of an instance are one function
        in_hand._instance = instance
        return in_hand

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.__dict__ is other.__dict__

    def __hash__(self) -> int:
        return id(self.__dict__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_scope() is not None:  # a graph would read the variables themselves
            return self._fn(*args, **kwargs)
        form, tensors = _form_at_hand(args, kwargs)
        last, known = self._last
        if form != last:
            known = None if form is None else self._known.get(tuple(form))
            if known is not None:
                self._last = form, known
        if known is not None:
            concrete, order, converts = known
            self._calls += 1
            if converts:
                tensors = list(map(convert_to_tensor, tensors))
            if order is not None:
                tensors = [tensors[i] for i in order]
            found = concrete.call_matching(tensors)
            return concrete.pack(found)
        arguments = self._binder.bind(args, kwargs)
        concrete = self._lookup(arguments)
        if form is not None and concrete.fits(None):
            given = [*args, *kwargs.values()]
            self._remember(tuple(form), concrete, arguments, given, list(kwargs))
        return concrete.pack(concrete.call_flat(arguments.tensors))

    def _remember(
        self,
        form: Any,
        concrete: ConcreteFunction,
        arguments: Arguments,
        given: Sequence[Any],
        keywords: Sequence[str],
    ) -> None:
        """That calls of this form run `concrete`, if its inputs are the tensors given as they are.

        The last of `given` are those by keyword.
        """
        order = self._binder.order(len(given) - len(keywords), keywords)
        if order is None:
            return
        tensors = [i for i, x in enumerate(given) if isinstance(x, EagerTensor | np.ndarray)]
        inputs = [i for i in order if i in tensors]
        if _are_same(arguments.tensors, [given[i] for i in inputs]):
            places = [tensors.index(i) for i in inputs]
            converts = any(isinstance(given[i], np.ndarray) for i in inputs)
            self._known[form] = _Known(
                concrete, None if places == sorted(places) else places, converts
            )

    def concrete(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The graph for given arguments, traced if it is new; it is not run.

        Args:
            args, kwargs: as for a call, where a TensorSpec, or a pair of dtype and shape, stands
                for a tensor; none for those of the input_signature. There is a warning where no
                tensor is among them.
        """
        if not args and not kwargs and self._signature is not None:
            args = tuple(self._signature)
        given = [with_specs(x) for x in args]
        named = {key: with_specs(x) for key, x in kwargs.items()}
        arguments = self._binder.bind(given, named)
        is_given = given or named
        if is_given and not arguments.tensors and not any(map(is_variable, arguments.leaves)):
            warn(
                f"{self.__name__}: the graph has no inputs, for no argument is a tensor or a spec: "
                f"{', '.join(f'{k}={v!r}' for k, v in arguments.structure.items())}. Give a "
                f"TensorSpec, or a pair (dtype, shape), for each tensor."
            )
        return self._lookup(arguments)

    graph_function = concrete  # its name in the RFC

    def with_options(
        self, options: RunOptions, run_metadata: RunMetadata | None = None
    ) -> Callable[..., Any]:
        """What calls the function, with options for each run.

        Args:
            options: a limit of time, and what is recorded.
            run_metadata: receives what was recorded of the last run.

        Raises:
            DeadlineExceededError: by the call, when the time is over; the function is usable after.
            FailedPreconditionError: by the call, where a graph is being built or a tape records.
        """

        def call(*args: Any, **kwargs: Any) -> Any:
            arguments = self._binder.bind(args, kwargs)
            concrete = self._lookup(arguments)
            return concrete.pack(concrete.run_with(arguments.tensors, options, run_metadata))

        return call

    def _lookup(self, arguments: Arguments) -> ConcreteFunction:
        key = trace_key(arguments, _context())
        self._calls += 1
        found = self._concrete.get(key)
        if found is None or not found.fits(building()):
            with self._lock:  # one trace at a time, of which other threads get the result
                found = self._concrete.get(key)
                if found is None or not found.fits(building()):
                    found = self._trace(arguments)
                    self._concrete.keep(key, found)
                    self._warn_of_traces()
        return found

    def _trace(self, arguments: Arguments) -> ConcreteFunction:
        first = not self._concrete
        with variables_made() as made:
            concrete = self._trace_once(arguments)
        if made and first:
            # State is made in the first trace alone; the graph to keep is one that makes none.
            del concrete
            with variables_made() as made:
                concrete = self._trace_once(arguments)
        if made:
            raise InvalidArgumentError(
                f"{self.__name__}: the function makes a variable ({made[0].path!r}) "
                f"each time it is traced; it may do so on its first call only",
                remedy="make the variable outside, or only `if self.v is None`",
            )
        if first and self._infers:
            self._binder.infer(arguments)
        return concrete

    @few_full_passes()
    def _trace_once(self, arguments: Arguments) -> ConcreteFunction:
        graph = FuncGraph(self.__name__)
        with graph.as_default(), paused():
            placeholders = [graph.add_argument(s, name) for name, s in arguments.named_specs()]
            graph.given = arguments.tensors
            fn = converted(self._fn) if self._autograph else self._fn
            result = self._binder.call(fn, arguments.with_tensors(placeholders))
            outputs = pack_sequence_as(result, [self._output(graph, y) for y in flatten(result)])
            graph.given = ()
        self._traces += 1
        found = ConcreteFunction(graph, graph.name, graph.arguments, outputs, graph.effects)
        found.structured_inputs = arguments.structured_specs()
        found.call_order = arguments.call_order()
        found.compiled, found.machine = self._compiles, self._machine
        return found

    def _output(self, graph: FuncGraph, y: Any) -> Any:
        if y is None:
            return None
        try:
            return as_input(graph, convert_to_tensor(y))
        except FailedPreconditionError:  # it has no value, or one of a graph that has ended
            raise
        except (TypeError, ValueError) as cause:
            raise InvalidArgumentError(
                f"{self.__name__}: a function may return tensors and None, got {y!r}",
                remedy="return tensors, and keep other results outside",
            ) from cause

    def _warn_of_traces(self) -> None:
        if self._warned or self._traces < _MANY_TRACES or 2 * self._traces < self._calls:
            return
        self._warned = True
        warn(
            f"{self.__name__} was traced {self._traces} times in {self._calls} calls: each Python "
            f"number or new shape is another graph. Pass tensors, or give an input_signature."
        )

    @property
    def trace_count(self) -> int:
        """How often the function has been traced; a trace that raised does not count."""
        return self._traces

    @property
    def traces(self) -> list[ConcreteFunction]:
        """Its graphs so far; with an input_signature of tensors, the one for that."""
        if not self._concrete and self._signature is not None:
            self.concrete(*self._signature)
        return list(self._concrete.values())

    @property
    def variables(self) -> list[Any]:
        """The variables (and other state) that its graphs use from outside, each once."""
        found = {id(s): s for c in list(self._concrete.values()) for s in c.captured_state}
        return list(found.values())

    captured_state = variables  # as of a `ConcreteFunction`

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        """What a checkpoint of attributes saves."""
        return {"variables": self.variables}

    def __repr__(self) -> str:
        return f"<function {self.__name__}, {self._traces} traces>"


def _reference(instance: Any, callback: Callable[[Any], Any]) -> Callable[[], Any]:
    """What leads to `instance` without keeping it alive, if its class allows that."""
    try:
        return weakref.ref(instance, callback)
    except TypeError:  # __slots__ without "__weakref__"
        return lambda: instance


def _bound_method(
    fn: Callable[..., Any], refer: Callable[[], Any], autograph: bool
) -> Callable[..., Any]:
    """`fn` bound to the object that `refer` leads to, which a method in hand keeps alive."""

    @functools.wraps(fn)
    def method(*args: Any, **kwargs: Any) -> Any:
        return (converted(fn) if autograph else fn)(refer(), *args, **kwargs)

    signature = inspect.signature(fn)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]  # what inspect reads
        parameters=list(signature.parameters.values())[1:]
    )
    return method


def _context() -> Any:
    """What besides the arguments decides about a trace: devices, and the compute type."""
    return (get_default_graph().scopes.device_name, autocast_dtype())


_PLAIN = frozenset((bool, int, str, bytes, type(None)))


def _form_at_hand(
    args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any] | None, list[Any]]:
    """What decides about a trace of tensors with values, arrays and plain values; the tensors.

    The form is None where there is anything else.
    """
    form: list[Any] = [get_default_graph().scopes.device_name, autocast_dtype()]
    tensors: list[Any] = []
    given: Sequence[Any] = args
    if kwargs:
        form.append(tuple(kwargs))
        given = [*args, *kwargs.values()]
    for x in given:
        kind = type(x)
        if kind is EagerTensor:
            try:
                known = form_of(x)
                if known[0] is None:
                    known = x.dtype, known[1]
            except AttributeError:  # a resource has no shape
                known = x.dtype, None
            form.append(known)
            tensors.append(x)
        elif kind is np.ndarray:
            form += (kind, x.dtype, x.shape)
            tensors.append(x)
        elif kind in _PLAIN:
            form += (kind, x)
        elif kind is float:
            form += (kind, x.hex())  # NaN equals itself, -0.0 differs from 0.0
        else:
            return None, []
    return form, tensors


def _are_same(found: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether these are the very same objects, or tensors made of the arrays given."""
    return len(found) == len(given) and all(
        t is x or isinstance(x, np.ndarray) for t, x in zip(found, given, strict=True)
    )


@overload
def function(
    fn: Callable[..., Any],
    *,
    input_signature: Sequence[Any] | None = None,
    infer_signature_from_first_call: bool = False,
    jit_compile: bool = True,
    autograph: bool = True,
    machine: Machine | None = None,
) -> Function: ...
@overload
def function(
    fn: None = None,
    *,
    input_signature: Sequence[Any] | None = None,
    infer_signature_from_first_call: bool = False,
    jit_compile: bool = True,
    autograph: bool = True,
    machine: Machine | None = None,
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    fn: Callable[..., Any] | None = None,
    *,
    input_signature: Sequence[Any] | None = None,
    infer_signature_from_first_call: bool = False,
    jit_compile: bool = True,
    autograph: bool = True,
    machine: Machine | None = None,
) -> Any:
    """Make a Python function run as a graph: decorator, with or without arguments.

    The function is traced once for each combination of tensor dtypes and shapes and of other
    argument values (an object by identity: a change inside of it is not seen). Python code in it
    runs while tracing only; variables that it uses are inputs by reference, and the order of their
    reads and updates is kept. It may make variables on its first call. A call that fails changes
    none; run op by op, without `function`, what came before the error stays.

    Args:
        fn: returns tensors, None, or a structure of these.
        input_signature: for each argument a TensorSpec, a pair (dtype, shape), a structure of
            these, or PYTHON_VALUE; None in a shape stands for any size, [spec] for a list of any
            length. Calls then share one graph. With TRACE_ON_NEW_VALUE as the dtype, each new
            dtype is traced.
        infer_signature_from_first_call: take the tensors of the first call as the signature.
        jit_compile: whether calls run native code where there is some; results then differ from
            those of single operations in their last bits.
        autograph: whether `if`, `while`, `for`, `and`, `or`, `not` and `assert` on tensors become
            operations of the graph, in the function and in those of the user's that it calls. On
            Python values they are Python's, as ever.
        machine: the devices that calls run on, by default those of the process: such as
            `Machine(SessionConfig(device_count={"cpu": 2}))`.

    Returns:
        A `Function`: callable, with `.concrete(*specs)`, `.with_options(options)`, `.trace_count`
        and `.variables`.

    Source: "RFC: Functions, not sessions", 2018.

    Examples:
        >>> @engine.function
        ... def double(x):
        ...     return 2 * x
        >>> double(engine.constant([1.0, 2.0]))
        Tensor([2., 4.], shape=(2,), dtype=float32)
        >>> double.trace_count
        1
    """

    def wrap(f: Callable[..., Any]) -> Function:
        infer = infer_signature_from_first_call
        return Function(f, input_signature, infer, jit_compile, autograph, machine)

    return wrap if fn is None else wrap(fn)
