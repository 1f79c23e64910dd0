"""Variables as ops: a handle, reads, and updates.

A variable's storage is a `VariableStore`; the ops take it as a resource input. A read gives the
array that is stored, and an update stores another one, so a value once read never changes.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import forks
from ...errors import DTypeError, FailedPreconditionError, InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    NUMERIC,
    Array,
    DType,
    EagerTensor,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    bool_,
    resource,
    stack,
)
from ..core.kernels import HOST
from ..core.op_def import Grads, OpDef
from ..core.recording import notify, recorders
from ..core.registry import define, no_gradient
from ..core.traits import Traits, Work

_RESOURCE = frozenset({resource})


class VariableStore:
    """What a variable's handle stands for: a name, and an array once it is initialised.

    `value` is replaced; native code that holds `lock` writes into it where nobody else has the
    array in hand. So the lock is held to read `value` too; stores that are updated together share
    one (see `one_lock`). `spec` is what a graph declared for one that a container holds; `owner`
    leads to the object that the user has in hand. The value goes with that object, although graphs
    may hold the store: they may not use it any more.
    `kept_for` leads to the variable that it is a slot of.
    `reshaped` says whether it has held values of several shapes: then whoever knows its shape from
    a graph looks at the value's.
    """

    __slots__ = (
        "__weakref__",
        "kept_for",
        "lock",
        "name",
        "owner",
        "reshaped",
        "spec",
        "trainable",
        "value",
    )

    def __init__(
        self,
        name: str,
        value: Array | None = None,
        *,
        trainable: bool = False,
        spec: TensorSpec | None = None,
        owner: Any = None,
    ) -> None:
        self.name = name
        self.value = value
        self.trainable = trainable
        self.reshaped = False
        self.spec = spec
        self.owner = None if owner is None else _Owner(owner, self)
        self.kept_for: weakref.ref[Any] | None = None
        self.lock = forks.lock()

    def read(self) -> Array:
        """The value; FailedPreconditionError before it is initialised."""
        while True:
            with (lock := self.lock):
                if self.lock is lock:  # it has not been given another meanwhile
                    value = self.value
                    break
        if value is None:
            self.check_owner()
            if (value := self.value_or_none()) is not None:
                return value
            raise FailedPreconditionError(
                f"variable {self.name!r} is read before it is initialised",
                remedy="run its initializer, or global_variables_initializer(), first",
            )
        return value

    def value_or_none(self) -> Array | None:
        """The value, None before it is initialised."""
        if self.value is None:
            for settle in _settlers:
                settle(self)
        return self.value

    def store(self, value: Array) -> None:
        """Hold another value; the lock is held."""
        old = self.value
        if old is not None and old.shape != value.shape:
            self.reshaped = True
            Sharing.count = next(_sharings)  # native code looks at its variables anew
        self.value = value

    def check_shape(self, shape: TensorShape, dtype: str) -> None:
        """ShapeError if the value does not have the shape that a graph was built for."""
        value = self.value
        if value is not None and not TensorShape(shape).is_compatible_with(value.shape):
            raise ShapeError(
                f"variable {self.name!r} has shape {TensorShape(value.shape)} now, and is read as "
                f"{dtype}{TensorShape(shape)}",
                remedy="declare the variable with validate_shape=False, or with None for the sizes "
                "that change, before it is used",
            )

    def check_owner(self) -> None:
        """FailedPreconditionError if the user's object has gone."""
        if self.owner is not None and self.owner() is None:
            raise FailedPreconditionError(
                f"variable {self.name!r} no longer exists: its last reference is gone",
                remedy="keep the variable where functions that use it can be called, "
                "as an attribute or a global; graphs do not keep it alive",
            )

    def __repr__(self) -> str:
        return f"variable {self.name!r}"


class _Owner(weakref.ref[Any]):
    """Refers to the user's object; when that goes, the store has no value any more.

    Native code that is running holds the array itself. The lock is not taken: an object can go at
    any time, in a thread that holds it.
    """

    __slots__ = ("_store",)

    _store: weakref.ref[VariableStore]

    def __new__(cls, owner: Any, store: VariableStore) -> _Owner:
        made = super().__new__(cls, owner, _release)
        made._store = weakref.ref(store)
        return made

    @property
    def store(self) -> VariableStore | None:
        """What the owner is the owner of."""
        return self._store()


class Released:
    """`count`: how many stores have lost their owners."""

    count = 0


def _release(owner: Any, released: type[Released] = Released) -> None:
    """The owner has gone, perhaps with the process, where the names of this module have too."""
    store = owner.store
    if store is not None:
        store.value = None
        released.count += 1


# Who may have a value for a store that has none, and give it that.
_settlers: list[Callable[[VariableStore], None]] = []


def settle_with(settle: Callable[[VariableStore], None]) -> None:
    """Ask `settle`, too, for a value where a store that has none is read."""
    _settlers.append(settle)


class one_lock:  # noqa: N801  # used as a function is
    """`with one_lock(stores)`: holds the lock of all of them, which they share from then on."""

    __slots__ = ("_held", "_stores")

    def __init__(self, stores: Sequence[VariableStore]) -> None:
        self._stores = stores
        self._held: threading.Lock | None = None

    def __enter__(self) -> None:
        stores = self._stores
        while stores:
            lock = stores[0].lock
            for store in stores:
                if store.lock is not lock:
                    _share_lock(stores)
                    break
            else:
                lock.acquire()
                if all(store.lock is lock for store in stores):
                    self._held = lock
                    return
                lock.release()

    def __exit__(self, *error: object) -> None:
        if self._held is not None:
            self._held.release()


_sharing = forks.lock()


class Sharing:
    """`count`: another number once stores have got another lock, or values of another shape."""

    count = 0


_sharings = itertools.count(1)


def _share_lock(stores: Sequence[VariableStore]) -> None:
    """Give stores one lock, while nobody holds any of theirs."""
    with _sharing:
        locks = {id(store.lock): store.lock for store in stores}
        for key in sorted(locks):
            locks[key].acquire()
        for store in stores:
            store.lock = stores[0].lock
        Sharing.count = next(_sharings)
        for lock in locks.values():
            lock.release()


@define("VarHandle", stateful=True, traits=Traits(work=Work.NONE))
def var_handle(*, shape: TensorShape, dtype: str, container: str, shared_name: str) -> TensorSpec:
    """The handle of the variable `shared_name` in `container`, made when it does not exist."""
    return TensorSpec((), resource)


@var_handle.effect
def _var_handle_kernel(
    context: Any, *, shape: TensorShape, dtype: str, container: str, shared_name: str
) -> Any:
    spec = TensorSpec(shape, dtype)
    store = context.resource(container, shared_name, lambda: VariableStore(shared_name, spec=spec))
    if not isinstance(store, VariableStore):
        raise InvalidArgumentError(f"{shared_name!r} in container {container!r} is {store!r}")
    if store.spec != spec:
        raise InvalidArgumentError(
            f"variable {shared_name!r} is {spec} here, and {store.spec} in container {container!r}",
            remedy="declare it alike everywhere, or use another name or container",
        )
    return store


var_handle.grad(no_gradient)


@define("LocalVariable", stateful=True, traits=Traits(work=Work.NONE))
def local_variable(*, shape: TensorShape, dtype: str, name: str) -> TensorSpec:
    """The handle of a variable that is made each time that it runs, and goes with the last use."""
    return TensorSpec((), resource)


@local_variable.effect
def _local_variable_kernel(context: Any, *, shape: TensorShape, dtype: str, name: str) -> Any:
    return VariableStore(name, spec=TensorSpec(shape, dtype))


local_variable.grad(no_gradient)


def fetched(value: Any) -> Any:
    """A value that lies on whatever device, on the host.

    Arrays that are not NumPy's have `get()` for that, as cupy's do.
    """
    return value.get() if hasattr(value, "get") and hasattr(value, "dtype") else value


def _held(context: Any, store: VariableStore) -> Array:
    """The value for kernels of `context`: the host fetches it from where it was updated last."""
    value = store.read()
    if type(value) is np.ndarray or context.xp is not HOST:
        return value
    found = fetched(value)
    if found is not value:
        with one_lock((store,)):
            if store.value is value:  # nobody has stored a newer one meanwhile
                store.value = found
    return found


@define(
    "ReadVariable",
    dtypes={"handle": _RESOURCE},
    read_only=True,
    traits=Traits(work=Work.NONE),
)
def read_variable(handle: TensorSpec, *, shape: TensorShape, dtype: str) -> TensorSpec:
    """The value of the variable now."""
    return TensorSpec(shape, as_dtype(dtype))


@read_variable.effect
def _read_kernel(context: Any, handle: VariableStore, *, shape: TensorShape, dtype: str) -> Array:
    if handle.reshaped:
        handle.check_shape(shape, dtype)
    return _held(context, handle)


def read(handle: Tensor, shape: TensorShape, dtype: DType) -> Tensor:
    """The value of a variable, as `read_variable` gives it."""
    if type(handle) is EagerTensor and not stack.items and stack.place is None:
        store = handle._value
        if type(store) is VariableStore and not store.reshaped:
            value = store.read()
            if type(value) is np.ndarray:  # it lies on the host
                y = EagerTensor(value, dtype)
                if recorders.active:
                    notify(read_variable, (handle,), {"shape": shape, "dtype": dtype}, (y,))
                return y
    return read_variable(handle, shape=shape, dtype=dtype)


@read_variable.grad
def _read_grad(op: OpView, dy: Tensor) -> Grads:
    return (dy,)  # the handle stands for the value: its gradient is the value's


@read_variable.rows
def _read_rows(op: OpView, dy: Any) -> Any:
    return dy


@define(
    "IsInitialized", dtypes={"handle": _RESOURCE}, read_only=True, traits=Traits(work=Work.NONE)
)
def is_initialized(handle: TensorSpec) -> TensorSpec:
    """Whether a variable, or a table that is filled once, has a value."""
    return TensorSpec((), bool_)


@is_initialized.effect
def _is_initialized_kernel(context: Any, handle: Any) -> Array:
    value = handle.value_or_none() if isinstance(handle, VariableStore) else handle.value
    return np.asarray(value is not None)


is_initialized.grad(no_gradient)


def _same_as_value(handle: TensorSpec, value: TensorSpec) -> TensorSpec:
    """What a variable holds, or else `value`, which is its initial value."""
    return value


initialized_value = define(
    "InitializedValue",
    dtypes={"handle": _RESOURCE, "value": ANY},
    same_dtype=False,
    read_only=True,
    traits=Traits(work=Work.NONE),
)(_same_as_value)


@initialized_value.effect
def _initialized_value_kernel(context: Any, handle: VariableStore, value: Array) -> Array:
    return value if handle.value_or_none() is None else _held(context, handle)


@initialized_value.grad
def _initialized_value_grad(op: OpView, dy: Tensor) -> Grads:
    return dy, None  # as of a read


@define("EnsureInitialized", dtypes={"handle": _RESOURCE, "value": ANY}, same_dtype=False)
def ensure_initialized(handle: TensorSpec, value: TensorSpec) -> tuple[TensorSpec, ...]:
    """Have a variable hold `value`, which is its initial value, if it has none."""
    return ()


@ensure_initialized.effect
def _ensure_initialized_kernel(context: Any, handle: VariableStore, value: Array) -> tuple[()]:
    if handle.value_or_none() is None:
        with one_lock((handle,)):
            if handle.value is None:
                handle.value = value
    return ()


ensure_initialized.grad(no_gradient)


def _update(
    type: str,
    doc: str,
    combine: Callable[[Array | None, Array], Array],
    any_: bool,
    work: Work = Work.COMPUTE,
) -> OpDef:
    """Define an op that replaces the value by combine(old value, operand) and gives the new one."""

    def rule(
        handle: TensorSpec, value: TensorSpec, *, shape: TensorShape, dtype: str
    ) -> TensorSpec:
        if value.dtype != dtype:
            raise DTypeError(
                f"{type}: the variable is {dtype}{TensorShape(shape)}, the value is {value}",
                remedy=f'cast the value to "{dtype}"',
            )
        if not value.shape.is_compatible_with(shape):
            raise ShapeError(
                f"{type}: the variable is {dtype}{TensorShape(shape)}, the value is {value}",
                remedy="give a value of the variable's shape",
            )
        return TensorSpec(TensorShape(shape).merge_with(value.shape), as_dtype(dtype))

    rule.__doc__ = doc
    op = define(
        type,
        dtypes={"handle": _RESOURCE, "value": ANY if any_ else NUMERIC},
        same_dtype=False,
        traits=Traits(work=work),
    )(rule)

    @op.effect
    def kernel(
        context: Any, handle: VariableStore, value: Array, *, shape: TensorShape, dtype: str
    ) -> Array:
        if value.shape != shape and not TensorShape(shape).is_compatible_with(value.shape):
            raise ShapeError(
                f"{type}: variable {handle.name!r} is {dtype}{TensorShape(shape)}, "
                f"the value has shape {TensorShape(value.shape)}"
            )
        handle.check_owner()
        if not any_ and _held(context, handle).shape != value.shape:  # it must be initialised
            raise ShapeError(
                f"{type}: variable {handle.name!r} has shape {TensorShape(handle.read().shape)}, "
                f"the value has shape {TensorShape(value.shape)}"
            )
        with one_lock((handle,)):
            handle.store(combine(handle.value, value))
            return handle.value

    op.grad(no_gradient)
    return op


assign = _update(
    "Assign",
    "Store `value`, and give it back.",
    lambda old, value: value,
    any_=True,
    work=Work.COPY,
)
assign_add = _update(
    "AssignAdd",
    "Add `value` to the variable, and give the sum.",
    lambda old, value: (old + value).astype(value.dtype, copy=False),
    any_=False,
)
assign_sub = _update(
    "AssignSub",
    "Subtract `value` from the variable, and give the difference.",
    lambda old, value: (old - value).astype(value.dtype, copy=False),
    any_=False,
)
