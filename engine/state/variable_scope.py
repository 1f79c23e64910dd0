"""get_variable, and the scopes that name what it makes and say what it makes it with."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from ..errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError
from ..graph import as_dtype, building, get_default_graph
from ..graph.context import graph_of
from .collections import GraphKeys
from .named_variables import NamedVariables, get_named, named_variables


class ReuseMode(enum.Enum):
    """How a scope treats a name that may be there."""

    AUTO_REUSE = "auto_reuse"


# Find the variable of a name, or make it.
AUTO_REUSE = ReuseMode.AUTO_REUSE


def no_regularizer(_: Any) -> None:
    """Says that a variable is not regularized, whatever its scope says.

    Examples:
        >>> engine.no_regularizer(engine.constant(1.0)) is None
        True
    """
    return


class VariableScope:
    """A scope, as an object: what `variable_scope` gives, and can be given again.

    Attributes:
        name: the prefix of variables, "a/b".
        original_name_scope: the name scope of when it was first opened, "a/b/".
        reuse: False, True or AUTO_REUSE.
        initializer, regularizer, partitioner, custom_getter, dtype, constraint: what
            `get_variable` takes where it is given none.

    Examples:
        >>> with engine.Graph().as_default(), engine.variable_scope("layer") as scope:
        ...     isinstance(scope, engine.VariableScope), scope.reuse
        (True, False)
    """

    def __init__(
        self,
        name: str = "",
        reuse: Any = False,
        initializer: Any = None,
        regularizer: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = "float32",
        constraint: Any = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.original_name_scope = name_scope
        self.dtype = as_dtype(dtype)
        self.constraint = constraint

    def reuse_variables(self) -> None:
        """From now on, find variables instead of making them."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Make variables with this initializer from now on."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Regularize variables with this from now on."""
        self.regularizer = regularizer

    def set_partitioner(self, partitioner: Any) -> None:
        """Divide variables with this from now on."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Have this make variables from now on."""
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: Any) -> None:
        """Make variables of this type from now on."""
        self.dtype = as_dtype(dtype)

    def get_collection(self, name: str) -> list[Any]:
        """What the default graph lists under a key and whose name is inside this scope."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else "")

    def global_variables(self) -> list[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def get_variable(
        self,
        store: NamedVariables,
        name: str,
        *,
        reuse: Any,
        regularizer: Any,
        partitioner: Any,
        custom_getter: Any,
        arguments: dict[str, Any],
    ) -> Any:
        """A variable of this scope; see `get_variable`."""
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"get_variable: the name must be a string, got {name!r}")
        full = f"{self.name}/{name}" if self.name else name
        given = {
            **arguments,
            "regularizer": self.regularizer if regularizer is None else regularizer,
            "partitioner": self.partitioner if partitioner is None else partitioner,
            "reuse": self.reuse if reuse is None else reuse,
        }
        for key in ("initializer", "constraint"):
            if given[key] is None:
                given[key] = getattr(self, key)
        value = given["initializer"]
        has_type = value is not None and not callable(value)
        if given["dtype"] is None and not has_type:
            given["dtype"] = self.dtype
        getter = _composed(custom_getter, self.custom_getter)

        def make(name: str, **final: Any) -> Any:
            return _make(store, name, final)

        if getter is None:
            return make(full, **given)
        return getter(make, name=full, **given)


def _make(store: NamedVariables, name: str, given: dict[str, Any]) -> Any:
    regularizer, partitioner = given.pop("regularizer", None), given.pop("partitioner", None)
    reuse = given.pop("reuse", None)
    arguments = {**_DEFAULTS, **given}
    is_known = name in store.variables
    found = get_named(store, name, reuse, arguments, partitioner)
    if not is_known and regularizer is not None and regularizer is not no_regularizer:
        for variable in found if hasattr(found, "partitions") else [found]:
            _regularize(variable, regularizer)
    return found


# Of a variable, where a getter leaves something out.
_DEFAULTS: dict[str, Any] = {
    "shape": None,
    "dtype": None,
    "initializer": None,
    "trainable": True,
    "collections": None,
    "constraint": None,
    "synchronization": "auto",
    "aggregation": "none",
}


def _regularize(variable: Any, regularizer: Callable[[Any], Any]) -> None:
    """Give it a regularizer; a graph also lists the penalty."""
    variable.regularizer = regularizer
    graph = building()
    if graph is None:
        return
    root = graph.root
    with root.as_default(), root.control_dependencies(None), root.name_scope(None):
        with root.name_scope(f"{variable.path}/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            root.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _composed(inner: Any, outer: Any) -> Any:
    """The getter of a scope in another: `inner` gets, through `outer`."""
    for getter in (inner, outer):
        if getter is not None and not callable(getter):
            raise InvalidArgumentError(
                f"custom_getter {getter!r} is not callable",
                remedy="def getter(getter, name, **arguments): return getter(name, **arguments)",
            )
    if inner is None or outer is None:
        return inner or outer

    def composed(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return composed


def get_variable_scope() -> VariableScope:
    """The scope that this thread is in.

    Examples:
        >>> with engine.Graph().as_default(), engine.variable_scope("layer"):
        ...     engine.get_variable_scope().name
        'layer'
    """
    here = named_variables().here
    if here.scope is None:
        here.scope = VariableScope()
    found: VariableScope = here.scope
    return found


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    *,
    reuse: Any = None,
    partitioner: Callable[..., Sequence[int]] | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: str = "auto",
    aggregation: str = "none",
) -> Any:
    """The variable of a name in the current scope: found, or made.

    Whether it may be found is what the scope says (`reuse`). In a branch, a body or an inner
    function it belongs to the graph around. Eagerly each call makes a new one.

    Args:
        name: inside the scope.
        shape: of a new one, where the initializer is a function.
        dtype: by default that of the scope, or of the initial values.
        initializer: a value, or a function of (shape, dtype=) or of nothing; by default that of the
            scope, else Glorot's uniform, zeros for whole numbers and bools.
        regularizer: a function of the variable, whose result the graph lists under
            GraphKeys.REGULARIZATION_LOSSES.
        trainable: whether training may change it.
        collections: keys under which the graph lists it.
        reuse: instead of what the scope says.
        partitioner: gives for shape and dtype how many parts each axis is divided in.
        custom_getter: called as `custom_getter(getter, name=..., **arguments)`.
        constraint: applied by optimizers after an update.
        synchronization: see `Variable`.
        aggregation: see `Variable`.

    Raises:
        AlreadyExistsError: it exists, and the scope does not reuse.
        ShapeError, DTypeError: it exists with another shape or dtype.
        InvalidArgumentError: it does not exist, and the scope reuses; or a new one without a shape.

    Source: "RFC: Functions, not sessions", 2018, section "Transitioning from 1.x".

    Examples:
        >>> with engine.Graph().as_default():
        ...     with engine.variable_scope("layer"):
        ...         w = engine.get_variable("w", (2, 3))
        ...     with engine.variable_scope("layer", reuse=True):
        ...         w is engine.get_variable("w")
        True
    """
    return get_variable_scope().get_variable(
        named_variables(),
        name,
        reuse=reuse,
        regularizer=regularizer,
        partitioner=partitioner,
        custom_getter=custom_getter,
        arguments={
            "shape": shape,
            "dtype": dtype,
            "initializer": initializer,
            "trainable": trainable,
            "collections": collections,
            "constraint": constraint,
            "synchronization": synchronization,
            "aggregation": aggregation,
        },
    )


class variable_scope:  # noqa: N801  # used as a function
    """A block whose `get_variable` calls make variables named "name/...".

    Args:
        name_or_scope: the name, inside the scope around; or a scope, which is opened again.
        default_name: made unique and used where there is no name.
        values: tensors whose graph is meant when none is being built.
        initializer, regularizer, partitioner, custom_getter, dtype, constraint: what
            `get_variable` takes in the block where it is given none; by default as around.
        reuse: True to find variables only, AUTO_REUSE to find or make; it holds for all scopes
            inside, which cannot undo it.
        auxiliary_name_scope: whether operations are named under the scope too.

    Raises:
        InvalidArgumentError: neither a name nor a default, or an argument of another kind.

    Source: "RFC: Functions, not sessions", 2018, section "Transitioning from 1.x".

    Examples:
        >>> with engine.Graph().as_default(), engine.variable_scope("layer"):
        ...     engine.get_variable("w", (2, 3)).name
        'layer/w'
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Iterable[Any] = (),
        initializer: Any = None,
        regularizer: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        constraint: Any = None,
        *,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if name_or_scope is None and default_name is None:
            raise InvalidArgumentError("variable_scope: give a name, a scope or a default_name")
        if name_or_scope is not None and not isinstance(name_or_scope, str | VariableScope):
            raise ArgumentTypeError(
                f"variable_scope: expected a name or a VariableScope, got {name_or_scope!r}"
            )
        if name_or_scope is None and reuse:
            raise InvalidArgumentError(
                "variable_scope: reuse needs a name, a default_name is a new one each time"
            )
        if not isinstance(auxiliary_name_scope, bool):
            raise InvalidArgumentError(
                f"variable_scope: auxiliary_name_scope must be True or False, "
                f"got {auxiliary_name_scope!r}"
            )
        if reuse not in (None, True, False, AUTO_REUSE):
            raise InvalidArgumentError(
                f"variable_scope: reuse must be True, False, None or AUTO_REUSE, got {reuse!r}"
            )
        self._given = name_or_scope
        self._default = default_name
        self._values = [] if values is None else list(values)
        self._reuse = reuse
        self._names_operations = auxiliary_name_scope
        self._own = {
            "initializer": initializer,
            "regularizer": regularizer,
            "partitioner": partitioner,
            "dtype": dtype,
            "constraint": constraint,
        }
        self._getter = custom_getter
        self._entered: list[tuple[NamedVariables, Any, Any, Any, Any]] = []

    def __enter__(self) -> VariableScope:
        graph = graph_of(self._values)
        store = graph.root.attached(NamedVariables)
        here = store.here
        outer: VariableScope = here.scope or VariableScope()
        here.scope = outer
        opened = None
        if isinstance(self._given, VariableScope):
            name, around = self._given.name, self._given
            last = name.rpartition("/")[2]
            opened = here.opened.copy()
        else:
            part = self._given
            around = outer
            if part is None:
                assert self._default is not None
                part = store.unique_scope(outer.name, self._default)
            name = f"{outer.name}/{part}" if outer.name else part
            last = (self._default if self._given is None else part) or ""
        block = graph.name_scope(last) if self._names_operations and last else None
        entered = block.__enter__() if block is not None else graph.scopes.name
        if isinstance(self._given, VariableScope):
            entered = self._given.original_name_scope
        here.scope = self._inside(around, name, entered)
        store.open(name)
        self._entered.append((store, outer, here.scope, block, (name, opened)))
        found: VariableScope = here.scope
        return found

    def _inside(self, around: VariableScope, name: str, name_scope: str) -> VariableScope:
        own = {k: getattr(around, k) if v is None else v for k, v in self._own.items()}
        return VariableScope(
            name,
            self._reuse or around.reuse,
            custom_getter=_composed(self._getter, around.custom_getter),
            name_scope=name_scope,
            **own,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        store, outer, inside, block, (name, opened) = self._entered[-1]
        if store.here.scope is not inside and error is None:
            raise FailedPreconditionError("variable scopes must be left in the order of entering")
        self._entered.pop()
        if block is not None:
            block.__exit__(kind, error, trace)
        store.here.scope = outer
        if opened is None:
            store.close_inside(name)
        else:
            store.here.opened = opened
