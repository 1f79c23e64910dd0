"""OpDef: an op's shape rule, with the kernels, the gradient and the traits that hang on it.

    @define("MatMul", dtypes=FLOATING)
    def matmul(a: TensorSpec, b: TensorSpec, *, transpose_a: bool = False) -> TensorSpec: ...

The rule's positional parameters are the inputs (a last `*xs` takes any number), its keyword-only
parameters the attributes with their defaults, its result the spec of each output. The OpDef is
callable: `matmul(a, b)` computes or builds, whichever the calling thread is doing.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

from ... import ops
from ...errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    LaminarError,
    UnimplementedError,
    did_you_mean,
)
from ...graph import ANY, DType, Tensor, TensorSpec, resource
from ...late import later
from .attributes import Allowed, allowed_values, check_attribute
from .kernels import HOST, HOST_TYPE, ByType, Kernels
from .traits import Traits

if TYPE_CHECKING:
    from ...cancellation import CancellationManager

F = TypeVar("F", bound=Callable[..., Any])
Grads: TypeAlias = Sequence[Tensor | None]
Gradient: TypeAlias = Callable[..., Grads | Tensor | None]
Preparation: TypeAlias = Callable[
    [Mapping[str, Any], Sequence[bool], "PlanOptions"], Callable[..., Any]
]
NO_TRAITS = Traits()
# How many inferences one op remembers; a trace repeats few, an eager loop a handful.
_MEMORY = 512
_like = operator.attrgetter("_value.shape", "_value.dtype")  # of an eager tensor, no handle


class PlanOptions(NamedTuple):
    """How a plan runs, for the plans of the graphs inside its operations.

    Attributes:
        compiled: whether clusters run as native code.
        device: what binds the kernels, None for the plain CPU.
    """

    compiled: bool = False
    device: Any = None


class KernelContext(Protocol):
    """What a kernel with effects sees of the machine it runs on."""

    @property
    def xp(self) -> Any:
        """The array library of the device."""

    @property
    def cancelled(self) -> LaminarError | None:
        """Why the step is to stop, None while it is to go on."""

    @property
    def cancellation(self) -> CancellationManager:
        """What to register with to be notified of that."""

    @property
    def frame_iter(self) -> tuple[int, int]:
        """For a `tagged` op, the loop it runs in and the iteration there; else (0, 0)."""

    def resource(self, container: str, name: str, make: Callable[[], Any]) -> Any:
        """The resource of that name, made when it does not exist yet."""

    @property
    def files(self) -> Callable[[str], str]:
        """Gives the path of a file or folder; PermissionDeniedError if it is out of bounds."""


class OpDef:
    """Everything laminar knows of one op.

    Attributes:
        type: the op's name.
        rule: infers the outputs from the inputs and attributes.
        dtypes: the element types it takes; for an op with inputs of several kinds, by input name.
        same_dtype: whether all inputs restricted by `dtypes` must have one element type.
        stateful: whether it reads or changes something besides its inputs and their resources.
        read_only: whether it only reads the resources among its inputs.
        takes_dead: whether it runs even if an input is dead (see runtime/frames.py).
        tagged: whether its kernel receives the iteration and the loop that it runs in.
        traits: what passes and compilers may know of it (see traits.py).
        scalar: for elementwise ops, the expression of one element (see elementwise.py).
        label: of the kernels that compute it; "" but for what `labelled` gives.
        kernels: by device type, the functions that compute it; `reference` serves every other type.
        host_kernel: the function of the host's arrays and attributes; dispatch.py finds it.
        applied: what a call of any op is; dispatch.py sets it.

    Examples:
        >>> isinstance(engine.lookup("MatMul"), engine.OpDef)
        True
    """

    applied: ClassVar[Callable[..., tuple[Tensor, ...]]] = staticmethod(
        later("laminar.engine.ops.core.dispatch", "apply")
    )

    def __init__(
        self,
        type: str,
        rule: Callable[..., Any],
        *,
        dtypes: Collection[DType] | Mapping[str, Collection[DType]] = ANY,
        same_dtype: bool = True,
        stateful: bool = False,
        read_only: bool = False,
        takes_dead: bool = False,
        tagged: bool = False,
        traits: Traits = NO_TRAITS,
    ) -> None:
        self.type = type
        self.rule = rule
        self.same_dtype = same_dtype
        self.stateful = stateful
        self.read_only = read_only
        self.takes_dead = takes_dead
        self.tagged = tagged
        self.traits = traits
        self.scalar: Callable[..., Any] | None = None
        self.label = ""
        self.reference_kernel: Callable[..., Any] | None = None
        self.context_kernel: Callable[..., Any] | None = None
        self.async_kernel: Callable[..., None] | None = None
        self.prepared: Preparation | None = None
        self.host_kernel: Callable[..., Any] | None = None
        self.gradient: Gradient | None = None
        self.row_gradient: Callable[..., Any] | None = None
        self.inner_row_gradient: Callable[..., Any] | None = None
        self.doc = inspect.getdoc(rule) or ""
        self._learn_signature()
        self.kernels = Kernels(type, self.input_names)
        self._labelled: dict[str, OpDef] = {}
        self._allowed: dict[str, Allowed] | None = None  # when it is first asked for
        if isinstance(dtypes, Mapping):
            self.dtypes: Mapping[str, Collection[DType]] = dtypes
        else:
            self.dtypes = dict.fromkeys(self.input_names, dtypes)
        self._takes_handles = any(resource in d for d in self.dtypes.values() if d)
        self._memory: dict[Any, tuple[TensorSpec, ...]] = {}
        self._eager_memory: dict[Any, tuple[tuple[TensorSpec, ...], dict[str, Any]]] = {}

    def _learn_signature(self) -> None:
        self.input_names: list[str] = []
        self.variadic = False
        self.defaults: dict[str, Any] = {}
        self.required: list[str] = []
        for name, parameter in inspect.signature(self.rule).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                if parameter.default is parameter.empty:
                    self.required.append(name)
                else:
                    self.defaults[name] = parameter.default
            else:
                self.input_names.append(name)
                self.variadic |= parameter.kind is parameter.VAR_POSITIONAL

    # Declaring

    def reference(self, fn: F, *, replace: bool = False) -> F:
        """Register `fn(xp, *arrays, **attrs)`, for any device whose arrays `xp` handles.

        Numbers below the normal ones (2**-126 in float32) are here what `xp` takes them for; to
        NumPy they are numbers like others. Native code takes them for 0.
        """
        self._check_free("a reference kernel", self.reference_kernel, replace)
        self.reference_kernel = self._checked(fn, 1)
        self.forget_host_kernel()
        return fn

    def kernel(
        self,
        device_type: str,
        *,
        dtypes: Collection[str] | Mapping[str, Collection[str]] | None = None,
        label: str = "",
        replace: bool = False,
    ) -> Callable[[F], F]:
        """Register `fn(*arrays, **attrs)` as a kernel for one type of device.

        Args:
            device_type: "cpu", "gpu", or another one.
            dtypes: the element types that it is for: of the first input, or by the name of an input
                or an attribute. It goes before a kernel for all of them. None: for all.
            label: only what asks for it (`labelled`, `Graph.kernel_labels`) is computed by it.
            replace: whether it takes the place of those for the same.

        Raises:
            AlreadyExistsError: there is one for the same, and it is not to be replaced.
        """

        def register(fn: F) -> F:
            kernel = self._checked(fn, 0)
            self.kernels.add(kernel, device_type.lower(), dtypes, label, replace=replace)
            self._labelled.clear()
            self.forget_host_kernel()
            return fn

        return register

    def labelled(self, label: str) -> OpDef:
        """The op as its kernels with a label compute it, and nothing else; "": itself.

        Raises:
            InvalidArgumentError: there is no kernel with that label.
        """
        if label == self.label:
            return self
        found = self._labelled.get(label)
        if found is None:
            found = copy(self)
            found.label, found.kernels = label, self.kernels.labelled(label)
            found.scalar = found.prepared = found.reference_kernel = None
            found.context_kernel = found.async_kernel = None
            found.forget_host_kernel()
            self._labelled[label] = found
        return found

    def forget_host_kernel(self) -> None:
        """Have it found again: kernels have changed."""
        self.host_kernel = None

    def _checked(self, kernel: Callable[..., Any], leading: int) -> Callable[..., Any]:
        """A kernel whose results are checked; of laminar's own, the tests know what they give."""
        if kernel.__module__.startswith("laminar."):
            return kernel
        return ops.results.checked_kernel(self.type, self.infer, kernel, leading)

    def _check_free(self, what: str, present: object, replace: bool) -> None:
        if present is not None and not replace:
            raise AlreadyExistsError(
                f"{self.type} has {what} already",
                remedy="say replace=True to put another in its place",
            )

    def effect(self, fn: F, *, replace: bool = False) -> F:
        """Register `fn(context, *arrays, **attrs)`, a kernel that needs the machine's state."""
        self._check_free("a kernel with effects", self.context_kernel, replace)
        self.context_kernel = self._checked(fn, 1)
        self.forget_host_kernel()
        return fn

    def asynchronous(self, fn: F, *, replace: bool = False) -> F:
        """Register `fn(context, done, *arrays, **attrs)`, a kernel that may have to wait.

        It holds no thread: it returns at once, and ends by one call of `done(result)` or
        `done.fail(error)`, from any thread.
        """
        self._check_free("an asynchronous kernel", self.async_kernel, replace)
        self.async_kernel = fn
        self.forget_host_kernel()
        return fn

    def prepare(self, fn: Preparation) -> Preparation:
        """Register `fn(attrs, live, options)`, which makes an `effect` kernel for one plan.

        `live` tells which outputs something takes: the kernel may give None for the others. It
        takes no attributes.
        """
        self.prepared = fn
        return fn

    def grad(self, fn: F, *, replace: bool = False) -> F:
        """Register `fn(op, *douts) -> one gradient or None per input`.

        Raises:
            AlreadyExistsError: the op has a gradient, and it is not to be replaced.
        """
        self._check_free("a gradient", self.gradient, replace)
        self.gradient = fn
        return fn

    def rows(self, fn: F) -> F:
        """Register `fn(op, dout)`, the gradient of the first input as IndexedSlices, if it can be.

        It is asked on the way to a variable, of ops with one output; None has `grad` asked instead.
        `dout` may be IndexedSlices.
        """
        self.row_gradient = fn
        return fn

    def inner_rows(self, fn: F) -> F:
        """Register `fn(op, rows, *douts)`, as `grad`, for an op that has graphs inside.

        It is asked where the gradients of some inputs, whose numbers are `rows`, may be
        IndexedSlices.
        """
        self.inner_row_gradient = fn
        return fn

    # Using

    @property
    def name(self) -> str:
        """Its `type`."""
        return self.type

    def infer(
        self, specs: Sequence[TensorSpec], attrs: Mapping[str, Any]
    ) -> tuple[tuple[TensorSpec, ...], dict[str, Any]]:
        """The specs of the outputs, and the attributes with defaults filled in.

        Raises:
            InvalidArgumentError: wrong number of inputs, an unknown or a missing attribute.
            DTypeError: an element type that the op does not take, or two that differ.
            ShapeError: what the rule refuses.
        """
        key: Any = None
        try:
            # 1, 1.0 and True are equal, and are not the same attribute.
            key = (tuple(specs), tuple(attrs.items()), tuple(map(type, attrs.values())))
            outputs = self._memory.get(key)
        except TypeError:  # an attribute that cannot be hashed, such as an array
            key = outputs = None
        if outputs is not None:
            return outputs, {**self.defaults, **attrs}
        full = self._check_attrs(attrs)
        self._check_inputs(specs)
        result = self.rule(*specs, **full)
        outputs = (result,) if isinstance(result, TensorSpec) else tuple(result)
        if key is not None:
            if len(self._memory) >= _MEMORY:
                self._memory.clear()
            self._memory[key] = outputs
        return outputs, full

    def infer_eager(
        self, tensors: Sequence[Tensor], attrs: Mapping[str, Any]
    ) -> tuple[tuple[TensorSpec, ...], Mapping[str, Any]]:
        """As `infer`, for eager values: by the shapes and types of their arrays."""
        key: Any
        try:
            if self._takes_handles:
                key = tuple([(x.shape, x.dtype) for x in tensors])
            else:
                key = tuple(map(_like, tensors))
            if attrs:
                key = key, tuple(attrs.items()), tuple(map(type, attrs.values()))
            found = self._eager_memory.get(key)
        except (AttributeError, TypeError):  # a handle; an attribute that cannot be hashed
            return self.infer([x.spec for x in tensors], attrs)
        if found is None:
            if len(self._eager_memory) >= _MEMORY:
                self._eager_memory.clear()
            found = self._eager_memory[key] = self.infer([x.spec for x in tensors], attrs)
        specs, full = found
        return specs, {**self.defaults, **attrs} if attrs else full  # 0.0 and -0.0 are equal

    def _check_attrs(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        full = dict(self.defaults)
        for name, value in attrs.items():
            if name not in self.defaults and name not in self.required:
                known = [*self.required, *self.defaults]
                raise InvalidArgumentError(
                    f"{self.type}: there is no attribute {name!r}, "
                    f"the attributes are {', '.join(known) or 'none'}",
                    remedy=did_you_mean(name, known, 1),
                )
            full[name] = value
        if self._allowed is None:
            self._allowed = allowed_values(self.rule)
        for name, allowed in self._allowed.items():
            if name in attrs:
                check_attribute(self.type, name, attrs[name], allowed)
        for name in self.required:
            if name not in full:
                raise InvalidArgumentError(
                    f"{self.type}: the attribute {name!r} is missing", remedy=f"give {name}="
                )
        return full

    def _check_inputs(self, specs: Sequence[TensorSpec]) -> None:
        names = self.input_names
        fixed = len(names) - self.variadic
        if len(specs) < fixed or (len(specs) > fixed and not self.variadic):
            raise InvalidArgumentError(
                f"{self.type}: expected {'at least ' if self.variadic else ''}{fixed} inputs "
                f"({', '.join(names)}), got {len(specs)}"
            )
        first: tuple[str, DType] | None = None
        for i, spec in enumerate(specs):
            name = names[min(i, len(names) - 1)]
            allowed = self.dtypes.get(name)
            if allowed is None:
                continue
            if spec.dtype not in allowed:
                raise DTypeError(
                    f"{self.type}: {name} must be one of {', '.join(sorted(allowed))}, got {spec}",
                    remedy="cast it first",
                )
            if first is None:
                first = (name, spec.dtype)
            elif self.same_dtype and spec.dtype != first[1]:
                raise DTypeError(
                    f"{self.type}: the inputs must have one dtype, "
                    f"got {first[1]} ({first[0]}) and {spec.dtype} ({name})",
                    remedy=f'cast one of them, such as cast({name}, "{first[1]}")',
                )

    def bind(self, device_type: str, xp: Any) -> Callable[..., Any]:
        """The function of arrays and attributes that computes this op on a type of device.

        Raises:
            UnimplementedError: there is no kernel for that type.
        """
        kernel = self.kernels.get(device_type)
        reference = self.reference_kernel
        if isinstance(kernel, ByType) and reference is not None:
            return kernel.or_else(functools.partial(reference, xp))
        if kernel is not None:
            return kernel
        if reference is None:
            raise UnimplementedError(
                f"{self.type} has no kernel for {device_type!r}; "
                f"it has kernels for: {', '.join(self.kernels) or 'no device'}"
            )

        return functools.partial(reference, xp)

    def on_host(self) -> Callable[..., Any]:
        """As `bind`, for the host's own kernels."""
        return self.bind(HOST_TYPE, HOST)

    def with_attributes(self, dtype: DType | None, attrs: Mapping[str, Any]) -> Callable[..., Any]:
        """The function of the host's arrays that computes it with these attributes.

        `dtype` is that of the first input, None where there is none.
        """
        assert self.host_kernel is not None
        return functools.partial(self.host_kernel, **attrs) if attrs else self.host_kernel

    def __call__(self, *inputs: Any, name: str | None = None, **attrs: Any) -> Tensor:
        """Compute the single output, or add the operation to the graph being built."""
        (output,) = OpDef.applied(self, inputs, attrs, name)
        return output

    def many(self, *inputs: Any, name: str | None = None, **attrs: Any) -> tuple[Tensor, ...]:
        """As `__call__`, for any number of outputs."""
        return OpDef.applied(self, inputs, attrs, name)

    def __repr__(self) -> str:
        return f"<op {self.type}>"
