"""Variables under the arguments of TensorFlow 1."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from laminar import engine, random
from laminar.engine.graph import Tensor, building
from laminar.engine.state import GraphKeys
from laminar.engine.state.assign import check_variable

from .adapting import Mode, graph_stack_is_empty, v1
from .values import static, tensor
from .variable_class import make_named, named


class VariableSynchronization(enum.Enum):
    """When copies of a variable are brought together."""

    AUTO, NONE, ON_WRITE, ON_READ = "auto", "none", "on_write", "on_read"


class VariableAggregation(enum.Enum):
    """How copies of a variable are brought together."""

    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = "none", "sum", "mean", "only_first_replica"
    ONLY_FIRST_TOWER = ONLY_FIRST_REPLICA


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _is_trainable(trainable: bool | None, synchronization: Any) -> bool:
    """Whether training changes it: unless told, all but what replicas keep apart until a read."""
    apart = _plain(synchronization) == "on_read"
    if trainable and apart:
        raise ValueError("Variable: synchronization ON_READ is for what training does not change")
    return not apart if trainable is None else trainable


class _MakesVariables(type):
    """Variables are laminar's own, whoever makes them."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _variable(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, engine.Variable)


class Variable(metaclass=_MakesVariables):
    """Makes a variable (see variable_class.py), and stands for the class in `isinstance`.

    Args:
        initial_value: a value, a tensor, or a function of nothing that gives one.
        trainable: whether training may change it.
        collections: keys under which the graph lists it.
        validate_shape: False for a variable that takes values of any shape.
        caching_device, variable_def, import_scope, use_resource: accepted.
        name: of its operation.
        dtype: by default that of the value.
        expected_shape, shape: what the value's is checked against.
        constraint: applied by optimizers after an update.
        synchronization, aggregation: see `laminar.engine.Variable`.
    """


@v1()
def _variable(
    initial_value: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    validate_shape: bool = True,
    caching_device: Any = None,
    name: str | None = None,
    variable_def: Any = None,
    dtype: Any = None,
    expected_shape: Any = None,
    import_scope: str | None = None,
    constraint: Callable[[Any], Any] | None = None,
    use_resource: bool | None = None,
    synchronization: Any = "auto",
    aggregation: Any = "none",
    shape: Any = None,
) -> engine.Variable:
    if initial_value is None:
        raise ValueError("Variable: give an initial_value")
    if callable(initial_value) and not hasattr(initial_value, "shape"):
        initial_value = initial_value()
    is_trainable = _is_trainable(trainable, synchronization)
    if collections and is_trainable:  # an empty list is for no group at all
        collections = [*dict.fromkeys((*collections, GraphKeys.TRAINABLE_VARIABLES))]
    made = engine.Variable(
        initial_value,
        shape=static(expected_shape if shape is None else shape),
        dtype=dtype,
        trainable=is_trainable,
        name=name,
        collections=collections,
        synchronization=_plain(synchronization),
        aggregation=_plain(aggregation),
        validate_shape=validate_shape,
    )
    made.constraint = constraint
    return named(made)


@v1()
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = "auto",
    aggregation: Any = "none",
) -> Any:
    """The variable of a name in the current scope; see `laminar.engine.get_variable`."""
    with engine.variable_creator_scope(make_named):
        return engine.get_variable(
            name,
            static(shape),
            dtype,
            initializer,
            regularizer,
            _is_trainable(trainable, synchronization),
            collections,
            partitioner=partitioner,
            custom_getter=custom_getter,
            constraint=constraint,
            synchronization=_plain(synchronization),
            aggregation=_plain(aggregation),
        )


@v1()
def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = "auto",
    aggregation: Any = "none",
) -> Any:
    """As `get_variable`, of a variable that belongs to this process and is not saved."""
    keys = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        keys,
        partitioner=partitioner,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


class variable_scope(engine.variable_scope):  # noqa: N801  # its name there
    """See `laminar.engine.variable_scope`."""

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        super().__init__(
            name_or_scope,
            default_name,
            values,
            initializer,
            regularizer,
            partitioner,
            custom_getter,
            reuse,
            dtype,
            constraint,
            auxiliary_name_scope=auxiliary_name_scope,
        )


class variable_op_scope(variable_scope):  # noqa: N801  # its name there
    """`variable_scope` with its values first."""

    def __init__(
        self, values: Any, name_or_scope: Any, default_name: str | None = None, **options: Any
    ) -> None:
        super().__init__(name_or_scope, default_name, values, **options)


def _update(method: str) -> Callable[..., Any]:
    @v1()
    def update(
        ref: Any,
        value: Any,
        validate_shape: bool | None = None,
        use_locking: bool | None = None,
        name: str | None = None,
    ) -> Any:
        check_variable(f"tf.{method}", ref)
        opened = {"validate_shape": False} if validate_shape is False else {}
        return getattr(ref, method)(value, name=name, **opened)

    return update


assign = _update("assign")
assign_add = _update("assign_add")
assign_sub = _update("assign_sub")


def _scatter(fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1()
    def scatter(
        ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return fn(ref, tensor(indices), updates, name=name)

    scatter.__doc__ = fn.__doc__
    return scatter


scatter_update = _scatter(engine.scatter_update)
scatter_add = _scatter(engine.scatter_add)
scatter_sub = _scatter(engine.scatter_sub)
scatter_mul = _scatter(engine.scatter_mul)
scatter_div = _scatter(engine.scatter_div)
scatter_min = _scatter(engine.scatter_min)
scatter_max = _scatter(engine.scatter_max)
scatter_nd_update = _scatter(engine.scatter_nd_update)
scatter_nd_add = _scatter(engine.scatter_nd_add)
scatter_nd_sub = _scatter(engine.scatter_nd_sub)


@v1()
def is_variable_initialized(variable: Any, name: str | None = None) -> Tensor:
    """Whether it has a value."""
    found: Tensor = variable.is_initialized(name)
    return found


@v1()
def assert_variables_initialized(var_list: Any = None) -> Any:
    """An operation that fails where a variable has no value; None without variables."""
    found = var_list
    if found is None:
        found = [*engine.global_variables(), *engine.local_variables()]
    if not found:
        return None
    return engine.group(*(v.read_value() for v in found))


def _initializer(of: Callable[[], Sequence[Any]], default_name: str) -> Callable[..., Any]:
    @v1()
    def initializer(name: str | None = None) -> Any:
        if building() is None:
            return None  # eager variables have their values
        return engine.variables_initializer(of(), name or default_name)

    return initializer


global_variables_initializer = _initializer(engine.global_variables, "init")
local_variables_initializer = _initializer(engine.local_variables, "init_local")


@v1()
def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Any:
    """An operation that gives variables their initial values."""
    return None if building() is None else engine.variables_initializer(var_list, name)


@v1()
def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that training changes."""
    return engine.trainable_variables(scope)


def executing_eagerly() -> bool:
    """Whether what has these names computes at once here."""
    return building() is None and (Mode.is_eager or not graph_stack_is_empty())


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> None:
    """Have these names compute at once, in the whole process."""
    Mode.is_eager = True


def disable_eager_execution() -> None:
    """Have these names build in the default graph again, as they do when they are imported."""
    Mode.is_eager = False


def set_random_seed(seed: int) -> None:
    """Begin the draws of the default graph at a seed; eagerly, all of laminar's."""
    if executing_eagerly():
        random.set_random_seed(seed)
    else:
        engine.get_default_graph().seed = seed


def nothing(*args: Any, **kwargs: Any) -> None:
    """Accepted: laminar is so already, or has no such setting."""


@v1()
def create_partitioned_variables(
    shape: Any,
    slicing: Any,
    initializer: Any,
    dtype: Any = "float32",
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Any]:
    """The parts of a variable that is cut along one axis.

    Args:
        shape: of the whole.
        slicing: how many parts each axis has; one of the numbers may be above 1.
        initializer: of the parts.
        dtype: element type.
        trainable: whether they are trained.
        collections: what lists them.
        name: of the whole.
        reuse: whether they exist already.
    """
    parts = [int(n) for n in slicing]
    with variable_scope(None, name or "PartitionedVariable", reuse=reuse):
        found = get_variable(
            "part",
            shape,
            dtype,
            initializer,
            trainable=trainable,
            collections=collections,
            partitioner=lambda **_: parts,
        )
    return list(found)
