"""Graphs, devices and gradients, where TensorFlow 1 has other arguments."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from laminar import engine
from laminar.engine.graph import DType, Tensor, TensorShape, building, get_default_graph
from laminar.engine.graph.shapes import broadcast_shapes
from laminar.engine.ops.core.basic import placeholder as make_placeholder
from laminar.engine.state.creation import variables_of_nobody

from .adapting import v1
from .values import static

# The version whose names these are; scripts ask whether it is below 2.
VERSION = "1.15.0"
GIT_VERSION, COMPILER_VERSION = "unknown", "unknown"
# Of TensorFlow's format, which `tf.train.import_meta_graph` reads.
GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER, GRAPH_DEF_VERSION_MIN_PRODUCER = 134, 0, 0


class UnconnectedGradients(enum.Enum):
    """The gradient by what a result does not depend on."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """Accepted: gradients are summed by one operation."""

    ADD_N, DEFAULT, EXPERIMENTAL_TREE, EXPERIMENTAL_ACCUMULATE_N = 0, 0, 1, 2


@v1()
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> Any:
    """The gradients of the sum of `ys` by each of `xs`; see `laminar.engine.gradients`."""
    unconnected = getattr(unconnected_gradients, "value", unconnected_gradients) or "none"
    return engine.gradients(
        ys, xs, grad_ys, stop_gradients=stop_gradients or (), unconnected=unconnected, name=name
    )


class GradientTape(engine.GradientTape):
    """See `laminar.engine.GradientTape`."""

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradients of `target` by `sources`."""
        unconnected = getattr(unconnected_gradients, "value", unconnected_gradients)
        return super().gradient(target, sources, output_gradients, unconnected)


@v1()
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A tensor that is fed at each run."""
    if building() is None:
        raise RuntimeError("placeholder: there is none in eager execution")
    return make_placeholder(dtype, static(shape), name)


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Any = None
) -> Iterator[str]:
    """Prefix the names of operations; see `laminar.engine.name_scope`."""
    with engine.name_scope(name, default_name, values or ()) as scope:
        yield scope


@contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """`name_scope` with its values first."""
    with engine.name_scope(name, default_name, values) as scope:
        yield scope


def device(device_name_or_function: Any) -> Any:
    """Where operations of a block go; None for anywhere."""
    return engine.device(device_name_or_function)


@contextmanager
def init_scope() -> Iterator[None]:
    """A block outside of the functions that are being traced: in the plain graph around, or eager.

    What is made in it is none of a function's: each trace may make variables there.
    """
    inner = graph = building()
    while graph is not None and graph.captures_values:
        graph = graph.outer
    if graph is inner:
        with nullcontext() if graph is None else graph.control_dependencies(None):
            yield
        return
    outside = engine.eager_scope() if graph is None else graph.as_default()
    forgotten = nullcontext() if graph is None else graph.control_dependencies(None)
    with outside, forgotten, variables_of_nobody():
        yield


@v1()
def import_graph_def(
    graph_def: Any,
    input_map: Any = None,
    return_elements: Any = None,
    name: str | None = "import",
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> Any:
    """Add the nodes of a GraphDef to the default graph; gives the elements that are asked for."""
    found = engine.import_graph_def(
        graph_def, input_map, return_elements or (), "import" if name is None else name
    )
    return None if return_elements is None else found


def add_to_collections(names: Any, value: Any) -> None:
    """Append to several collections of the default graph."""
    for key in dict.fromkeys([names] if isinstance(names, str) else names):
        engine.add_to_collection(key, value)


def get_collection_ref(key: str) -> list[Any]:
    """The list of the default graph under a key, which can be changed."""
    return get_default_graph().get_collection_ref(key)


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The seeds of a draw: of the graph, and its own; see `laminar.engine.get_seed`."""
    found = engine.get_seed(op_seed)
    return (0, 2**31 - 1) if found == (0, 0) else found


@v1()
def hessians(ys: Any, xs: Any, name: str = "hessians", **hints: Any) -> list[Any]:
    """The second derivatives of the sum of `ys` by each of `xs`: (*shape of x, *shape of x)."""
    single = not isinstance(xs, list | tuple)
    found = []
    for x, dx in zip([xs] if single else xs, engine.gradients(ys, xs), strict=True):
        flat = engine.lookup("Reshape")(dx, shape=(-1,))
        size = int(flat.shape[0] or 0)
        rows = [engine.gradients(flat[i], x)[0] for i in range(size)]
        whole = engine.lookup("Stack")(*rows, axis=0)
        found.append(engine.lookup("Reshape")(whole, shape=(*x.shape, *x.shape)))
    return found


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a constant, None of any other tensor."""
    from_value = static(tensor)
    return None if isinstance(from_value, Tensor) else from_value


def as_dtype(type_value: Any) -> DType:
    """An element type."""
    return engine.as_dtype(type_value)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of what two shapes broadcast to."""
    return broadcast_shapes("broadcast_static_shape", TensorShape(shape_x), TensorShape(shape_y))


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that the graph keeps averages of."""
    return engine.get_collection(engine.GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def dimension_value(dimension: Any) -> int | None:
    """The number of a dimension, None where it is unknown; also of a Dimension."""
    return dimension.value if isinstance(dimension, engine.Dimension) else dimension


def dimension_at_index(shape: Any, index: int) -> engine.Dimension:
    """A dimension of a shape as a Dimension, which is unknown where the rank is."""
    return engine.Dimension(TensorShape(shape)[index])


def control_flow_v2_enabled() -> bool:
    """True: conditions and loops are operations with graphs; variables are resources."""
    return True
