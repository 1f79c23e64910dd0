"""Messages of TensorFlow's that programs read and make themselves; protobuf loads on first use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from laminar.engine.errors import ShapeError
from laminar.engine.graph import TensorShape, as_dtype
from laminar.engine.ops.core.arrays import to_array
from laminar.engine.saving.meta_graph_text import messages
from laminar.engine.saving.tensorflow.graph_def import array_of, field_of
from laminar.engine.saving.tensorflow.writing import write_array, write_shape

_NAMES = {
    "AttrValue": "AttrValue",
    "MetaGraphDef": "TensorFlowMetaGraphDef",
    "NodeDef": "NodeDef",
    "TensorInfo": "TensorInfo",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(messages(), _NAMES[name])


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:
    """A TensorProto of values.

    Args:
        values: numbers, strings or an array.
        dtype: element type, by default that of the values.
        shape: where it has more elements than there are values, the last value stands for the rest.
        verify_shape: whether the values must have that shape.
        allow_broadcast: whether one value may stand for all though `verify_shape` is set.

    Raises:
        ShapeError: there are more values than elements, or not as many as asked for.
    """
    array, _ = to_array(values, None if dtype is None else as_dtype(dtype))
    array = np.asarray(array)
    wanted = array.shape if shape is None else tuple(int(d) for d in shape)
    count = math.prod(wanted)
    strict = verify_shape and wanted != array.shape
    if array.size > count or (strict and not (allow_broadcast and array.size == 1)):
        raise ShapeError(f"make_tensor_proto: values of {array.shape} do not make {wanted}")
    found = messages().TensorProto()
    if array.size == count != 1:
        write_array(found, array.reshape(wanted))
        return found
    write_array(found, array)
    found.ClearField("tensor_shape")
    found.tensor_shape.SetInParent()
    write_shape(found.tensor_shape, TensorShape(wanted))
    if array.dtype != object:
        found.ClearField("tensor_content")
        getattr(found, field_of(found.dtype)).extend(_listed(array))
    return found


def _listed(array: np.ndarray[Any, Any]) -> list[Any]:
    """Values as a TensorProto lists them: halves as bits, complex numbers as two."""
    flat = array.ravel()
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iu":
        return list(flat.view("uint16").tolist())
    if array.dtype.kind == "c":
        return list(flat.view(f"float{array.dtype.itemsize * 4}").tolist())
    return list(flat.tolist())


def make_ndarray(tensor: Any) -> np.ndarray[Any, Any]:
    """The array of a TensorProto.

    Raises:
        DataLossError: its values do not make its shape.
    """
    return np.array(array_of(tensor))
