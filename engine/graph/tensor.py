"""Tensors: an eager value (EagerTensor), or the edge of a graph that will carry one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import (
    DTypeError,
    InvalidArgumentError,
    UnknownSizeError,
    UnknownTruthError,
    UnknownValueError,
)
from ..source import why_not_converted
from .device import DeviceSpec, EagerPlace
from .dtypes import Array, DType, as_dtype, resource
from .operators import Operators
from .shapes import TensorShape, shape_of_array
from .spec import TensorSpec

if TYPE_CHECKING:  # a symbol knows the operation that makes it, and its graph
    from .graph import Graph
    from .operation import Operation


class Tensor(Operators):
    """An array of one element type. Abstract: `EagerTensor` and `GraphTensor` are the two kinds.

    Examples:
        >>> isinstance(engine.constant(1.0), engine.Tensor)
        True
    """

    # The layers keep the mask of a tensor (which of its time steps count) on the tensor itself:
    # a mask refers to its graph, so a table of masks beside it would keep both alive.
    __slots__ = ("__weakref__", "_keras_mask")

    @property
    def shape(self) -> TensorShape:
        """The dimensions; None for those that are unknown while a graph is built."""
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        """The element type, a string such as "float32"."""
        raise NotImplementedError

    @property
    def device(self) -> str:
        """The device that holds or computes it."""
        raise NotImplementedError

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype together."""
        return TensorSpec(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Any:  # noqa: N802  # NumPy's name
        """The tensor with its axes reversed."""
        return self.table.transpose(self)  # type: ignore[attr-defined]  # every table has it

    def numpy(self) -> Any:
        """The value as a NumPy array of its own."""
        raise NotImplementedError


# The array of an EagerTensor, as its `value`, for calls that cost little else; and its dtype, None
# until somebody asks for it, with the shape of the array, which a resource does not have.
value_of: Callable[[Any], Any] = operator.attrgetter("_value")
form_of: Callable[[Any], tuple[DType | None, Any]] = operator.attrgetter("_dtype", "_value.shape")


class EagerTensor(Tensor):
    """A tensor with a value. The value never changes: an update makes another tensor.

    Examples:
        >>> x = engine.constant([1.0, 2.0])
        >>> isinstance(x, engine.EagerTensor), x.numpy()
        (True, array([1., 2.], dtype=float32))
    """

    __slots__ = ("_dtype", "_shape", "_value")

    def __init__(self, value: Array, dtype: DType | None = None) -> None:
        """Wrap `value`, an array of the host (or a resource), without a copy."""
        self._value = value
        self._dtype = dtype
        self._shape: TensorShape | None = None

    @property
    def value(self) -> Array:
        """The array itself, shared: it must not be written to."""
        return self._value

    @property
    def shape(self) -> TensorShape:
        shape = self._shape
        if shape is None:
            shape = self._shape = shape_of_array(getattr(self._value, "shape", ()))
        return shape

    @property
    def dtype(self) -> DType:
        dtype = self._dtype
        if dtype is None:
            dtype = self._dtype = as_dtype(self._value.dtype)
        return dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self._value.size)

    @property
    def nbytes(self) -> int:
        """The bytes of the value."""
        return int(self._value.nbytes)

    @property
    def device(self) -> str:
        return "/device:cpu:0"

    def twin(self) -> EagerTensor:
        """Another tensor of the same value."""
        return EagerTensor(self._value, self.dtype)

    def _host(self) -> np.ndarray[Any, Any]:
        if self.dtype == resource:
            raise InvalidArgumentError(f"a handle to {self._value} has no numeric value")
        value: np.ndarray[Any, Any] = self._value
        return value

    def numpy(self) -> Any:
        """The value as a NumPy array of its own: writing to it leaves the tensor as it is."""
        return self._host().copy()

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self._host().item()

    def tolist(self) -> Any:
        """The value as nested Python lists."""
        return self._host().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        value = self._value
        host = value if type(value) is np.ndarray else self._host()
        if dtype is not None and np.dtype(dtype) != host.dtype:
            return host.astype(dtype)
        if copy:
            return host.copy()
        view = host.view()
        view.setflags(write=False)
        return view

    def __dlpack__(self, **options: Any) -> Any:
        # A copy: DLPack has no agreed way to say "read only".
        return self._host().copy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        found: tuple[int, int] = self._host().__dlpack_device__()
        return found

    def __bool__(self) -> bool:
        return bool(self._host())

    def _number(self) -> Any:
        array = self._host()
        if array.size != 1:
            raise DTypeError(
                f"one number was asked for, the tensor is {self.spec}",
                remedy="index it, or take its sum or mean",
            )
        return array.item()

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        return int(self._host().__index__())

    def __len__(self) -> int:
        return len(self._host())

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise InvalidArgumentError("a scalar tensor cannot be iterated")
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __repr__(self) -> str:
        if self.dtype == resource:
            return f"Tensor({self._value}, resource)"
        text = np.array2string(self._host(), separator=", ", prefix="Tensor(", threshold=100)
        return f"Tensor({text}, shape={tuple(self.shape)}, dtype={self.dtype})"


class DeviceTensor(EagerTensor):
    """A value that lies on another device than the host's first, or a handle to state there.

    Attributes:
        place: the device, as what computes at once knows it.
    """

    __slots__ = ("place",)

    def __init__(self, value: Any, dtype: DType, place: EagerPlace) -> None:
        """Wrap `value`, an array of the device's library (or a resource), without a copy."""
        super().__init__(value, dtype)
        self.place = place

    @property
    def value(self) -> Array:
        """The value as an array of the host; the resource of a handle."""
        return self._value if self._dtype == resource else self._host()

    @property
    def device(self) -> str:
        spec = self.place.spec
        return DeviceSpec(device_type=spec.device_type, device_index=spec.device_index).to_string()

    def twin(self) -> EagerTensor:
        return DeviceTensor(self._value, self.dtype, self.place)

    def _host(self) -> np.ndarray[Any, Any]:
        return super()._host() if self._dtype == resource else self.place.get(self._value)

    def __reduce__(self) -> Any:
        return (EagerTensor, (self.value, self._dtype))  # a copy lies on the host


class _Maker:
    """Who makes tensors of results."""

    make: Callable[[list[Any], list[DType]], list[Any]] | None = None


def set_tensor_maker(make: Callable[[list[Any], list[DType]], list[Any]]) -> None:
    """Have `tensors_of` call `make`, of as many values as types."""
    _Maker.make = staticmethod(make)


def tensors_of(values: list[Any], dtypes: list[DType]) -> list[Any]:
    """A tensor for each value; the list given is not to be used any more: it may be the result."""
    make = _Maker.make
    return list(map(EagerTensor, values, dtypes)) if make is None else make(values, dtypes)


class Literal(EagerTensor):
    """A value written in the code that builds `home`: a constant of that graph, not a capture."""

    __slots__ = ("home",)

    def __init__(self, value: Array, dtype: DType, home: Graph) -> None:
        super().__init__(value, dtype)
        self.home = home

    def __reduce__(self) -> Any:
        return (EagerTensor, (self._value, self._dtype))  # a copy belongs to no graph


class GraphTensor(Tensor):
    """Output `value_index` of operation `op`: a symbol of its graph, without a value.

    Examples:
        >>> with engine.Graph().as_default():
        ...     x = engine.placeholder("float32", [None, 3])
        >>> x.shape, x.dtype
        ((None, 3), 'float32')
    """

    __slots__ = ("_spec", "op", "value_index")

    def __init__(self, op: Operation, value_index: int, spec: TensorSpec) -> None:
        self.op = op
        self.value_index = value_index
        self._spec = spec if spec.name is None else TensorSpec(spec.shape, spec.dtype)

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        return self.op.graph

    @property
    def name(self) -> str:
        """ "operation:index", unique in the graph."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def shape(self) -> TensorShape:
        return self._spec.shape

    @property
    def dtype(self) -> DType:
        return self._spec.dtype

    @property
    def spec(self) -> TensorSpec:
        return self._spec

    @property
    def device(self) -> str:
        return self.op.device

    def set_shape(self, shape: Any) -> None:
        """Add what is known of the shape; ShapeError when it contradicts the shape so far."""
        self.graph.check_open(f"setting the shape of {self.name}")
        self._spec = TensorSpec(self._spec.shape.merge_with(shape), self._spec.dtype)

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input."""
        return list(self.graph.consumers_of(self))

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Compute the value.

        Args:
            feed_dict: values of tensors, as `Session.run` takes them.
            session: by default that of the block around.

        Raises:
            FailedPreconditionError: there is no session, or it is one of another graph.
        """
        return self.graph.session_for(session, f"{self.name}.eval()").run(self, feed_dict)

    def _refuse(self, remedy: str) -> NoReturn:
        raise UnknownValueError(
            f"tensor {self.name} ({self.spec}) is symbolic: it has no value while a graph is built",
            remedy=remedy,
        )

    def numpy(self) -> NoReturn:
        """Refuse: a symbol has no value.

        Raises:
            UnknownValueError: always.
        """
        self._refuse("return it from the function, or fetch it with Session.run, and read it there")

    def item(self) -> NoReturn:
        """Refuse, as `numpy`."""
        self.numpy()

    def tolist(self) -> NoReturn:
        """Refuse, as `numpy`."""
        self.numpy()

    def _refuse_library(self) -> NoReturn:
        self._refuse(
            "compute with laminar.ops in the place of numpy and math (ops.sin for np.sin), call "
            "Python at run time with laminar.engine.py_function, or return the tensor, and go on "
            "with its value"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._refuse_library()

    def __int__(self) -> int:
        self._refuse_library()

    def __float__(self) -> float:
        self._refuse_library()

    def __complex__(self) -> complex:
        self._refuse_library()

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse("print it with print(), or return it, and format its value")
        return repr(self)

    def __bool__(self) -> bool:
        raise UnknownTruthError(
            f"data-dependent control flow: the truth of tensor {self.name} is asked while a graph "
            f"is built, and Python cannot branch on a value that does not exist yet"
            + why_not_converted(),
            remedy="let laminar.function convert what branches (autograph=True), use "
            "laminar.ops.cond or while_loop, or make the condition a Python value",
        )

    def __len__(self) -> int:
        if self.shape.rank is None or not self.shape or self.shape[0] is None:
            raise UnknownSizeError(f"len() of {self.name} ({self.spec}) is not known yet")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if self.shape.rank is None or not self.shape or self.shape[0] is None:
            raise UnknownSizeError(
                f"iterating over {self.name} ({self.spec}) needs a first axis of known size",
                remedy="use laminar.ops.scan or map, or give the first axis a size",
            )
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {self.spec}>"
