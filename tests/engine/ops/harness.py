"""Checks that every op gets from one call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.gradients import GradientTape, gradients
from laminar.engine.graph import DType, EagerTensor, Graph, Tensor, TensorShape, as_dtype
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.cast import cast
from laminar.engine.runtime import Session

from .native import run_native

Array = np.ndarray[Any, Any]

# Relative error allowed for a result that was computed in a type, against float64.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-9}
STEP = 1e-6


def check_op(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    attrs: Mapping[str, Any] | None = None,
    grad: bool = True,
    second: bool = True,
    dtypes: Collection[str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    dynamic: bool = True,
) -> None:
    """Check `fn` against `reference`.

    Values, the shape rule, eager against graph with known and with unknown dimensions, the
    gradient and the second derivative by finite differences, and each dtype of `dtypes`.

    Args:
        fn: `fn(*tensors, **attrs)` -> a tensor or a tuple of tensors.
        reference: `reference(*arrays, **attrs)` -> an array or a tuple, computed independently.
        inputs: arrays; float64 where the op is differentiable, integers and bools as they are.
        attrs: passed to both.
        grad: whether to check gradients (for the float64 inputs).
        second: whether to check second derivatives.
        dtypes: further types that the float64 inputs are cast to.
        rtol: tolerance instead of that of each dtype; `atol` alike.
        dynamic: whether the op works when no dimension is known while building.
    """
    attrs = attrs or {}
    arrays = [np.asarray(x) for x in inputs]
    expected = _tuple(reference(*arrays, **attrs))

    def call(*tensors: Tensor) -> tuple[Tensor, ...]:
        return _tuple(fn(*tensors, **attrs))

    eager = call(*(convert_to_tensor(a) for a in arrays))
    assert len(eager) == len(expected), f"{len(eager)} outputs, the reference has {len(expected)}"
    for i, (y, e) in enumerate(zip(eager, expected, strict=True)):
        _close(y.numpy(), np.asarray(e), y.dtype, rtol, atol, f"output {i}")
    _check_graph(call, arrays, eager, static=True)
    if dynamic:
        _check_graph(call, arrays, eager, static=False)
    if grad:
        _check_gradients(call, arrays, second=second, dynamic=dynamic)
    for name in dtypes or ():
        _check_dtype(call, reference, attrs, arrays, as_dtype(name), rtol, atol)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _close(
    found: Array,
    expected: Array,
    dtype: DType,
    rtol: float | None,
    atol: float | None,
    what: str,
) -> None:
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    if not dtype.is_differentiable:
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    tolerance = rtol if rtol is not None else TOLERANCE.get(str(dtype), 2e-5)
    if dtype.is_floating:
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = float(finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(
        found,
        expected,
        rtol=tolerance,
        atol=atol if atol is not None else tolerance * max(scale, 1e-3),
        err_msg=what,
    )


def _check_graph(
    call: Callable[..., tuple[Tensor, ...]],
    arrays: Sequence[Array],
    eager: Sequence[Tensor],
    *,
    static: bool,
) -> None:
    graph = Graph()
    with graph.as_default():
        xs = [_placeholder(a, static=static) for a in arrays]
        ys = call(*xs)
    with Session(graph=graph) as session:
        values = session.run(list(ys), dict(zip(xs, arrays, strict=True)))
    for y, value, e in zip(ys, values, eager, strict=True):
        assert y.dtype == e.dtype, f"the rule says {y.dtype}, the value is {e.dtype}"
        assert y.shape.is_compatible_with(e.shape), f"the rule says {y.shape}, got {e.shape}"
        if static and y.shape.is_fully_defined:
            assert y.shape == TensorShape(np.shape(value))
        np.testing.assert_array_equal(np.asarray(value), e.numpy(), err_msg="graph against eager")
    _check_native(list(ys), xs, arrays, [e.numpy() for e in eager])


def _check_native(
    ys: Sequence[Any], xs: Sequence[Any], arrays: Sequence[Array], expected: Sequence[Array]
) -> None:
    """Native code gives what the reference kernels give, wherever there is some."""
    found = None if xs[0].graph.captures else run_native(ys, xs, arrays)
    if found is None:
        return
    for y, value, e in zip(ys, found, expected, strict=True):
        assert value.dtype == e.dtype, f"native code gives {value.dtype}, not {e.dtype}"
        _close(value, e, y.dtype, None, None, f"native code for {y}")


def _placeholder(array: Array, *, static: bool) -> Tensor:
    dtype = convert_to_tensor(array).dtype
    return placeholder(dtype, array.shape if static else [None] * array.ndim)


def _check_gradients(
    call: Callable[..., tuple[Tensor, ...]],
    arrays: Sequence[Array],
    *,
    second: bool,
    dynamic: bool,
) -> None:
    rng = np.random.default_rng(0)
    live = [i for i, a in enumerate(arrays) if a.dtype == np.float64]
    assert live, "nothing to differentiate: give float64 inputs, or grad=False"
    ys = call(*(convert_to_tensor(a) for a in arrays))
    weights = [
        EagerTensor(np.asarray(rng.normal(size=y.numpy().shape))) if y.dtype == "float64" else None
        for y in ys
    ]
    steps = {i: np.asarray(rng.normal(size=arrays[i].shape)) for i in live}
    outer = {i: EagerTensor(rng.normal(size=arrays[i].shape)) for i in live}

    def loss(values: Sequence[Any]) -> float:
        return _weighted(call(*(convert_to_tensor(v) for v in values)), weights)

    def first(values: Sequence[Any]) -> list[Tensor | None]:
        tensors = [convert_to_tensor(v) for v in values]
        with GradientTape() as tape:
            tape.watch([tensors[i] for i in live])
            found = call(*tensors)
        pairs = [(y, w) for y, w in zip(found, weights, strict=True) if w is not None]
        grads: list[Tensor | None] = tape.gradient(
            [y for y, _ in pairs], [tensors[i] for i in live], [w for _, w in pairs]
        )
        return grads

    dxs = first(arrays)
    for i, dx in zip(live, dxs, strict=True):
        numeric = _slope(loss, arrays, i, steps[i])
        found = 0.0 if dx is None else float(np.sum(dx.numpy() * steps[i]))
        if dx is not None:
            assert dx.shape == TensorShape(arrays[i].shape), f"gradient {i} has shape {dx.shape}"
            assert dx.dtype == "float64", f"gradient {i} is {dx.dtype}"
        np.testing.assert_allclose(
            found, numeric, rtol=1e-4, atol=1e-6, err_msg=f"gradient for input {i}"
        )
    _check_graph_gradients(call, arrays, live, weights, dxs, static=True)
    if dynamic:
        _check_graph_gradients(call, arrays, live, weights, dxs, static=False)
    if not second:
        return

    def slope(values: Sequence[Any]) -> float:
        grads = first(values)
        return _weighted(grads, [outer[i] for i in live])

    tensors = [convert_to_tensor(a) for a in arrays]
    with GradientTape() as tape:
        tape.watch([tensors[i] for i in live])
        grads = first(tensors)
    pairs = [(g, outer[i]) for g, i in zip(grads, live, strict=True) if g is not None]
    ddxs = tape.gradient([g for g, _ in pairs], [tensors[i] for i in live], [w for _, w in pairs])
    for i, ddx in zip(live, ddxs, strict=True):
        numeric = _slope(slope, arrays, i, steps[i])
        found = 0.0 if ddx is None else float(np.sum(ddx.numpy() * steps[i]))
        np.testing.assert_allclose(
            found, numeric, rtol=1e-3, atol=1e-5, err_msg=f"second derivative for input {i}"
        )


def _weighted(values: Sequence[Tensor | None], weights: Sequence[Tensor | None]) -> float:
    return float(
        sum(
            np.sum(v.numpy() * w.numpy())
            for v, w in zip(values, weights, strict=True)
            if v is not None and w is not None
        )
    )


def _slope(
    function: Callable[[Sequence[Any]], float], arrays: Sequence[Array], i: int, step: Array
) -> float:
    """The derivative of `function` along `step` in input `i`, by central differences."""
    plus = [a + STEP * step if j == i else a for j, a in enumerate(arrays)]
    minus = [a - STEP * step if j == i else a for j, a in enumerate(arrays)]
    return (function(plus) - function(minus)) / (2 * STEP)


def _check_graph_gradients(
    call: Callable[..., tuple[Tensor, ...]],
    arrays: Sequence[Array],
    live: Sequence[int],
    weights: Sequence[Tensor | None],
    eager: Sequence[Tensor | None],
    *,
    static: bool,
) -> None:
    graph = Graph()
    with graph.as_default():
        xs = [_placeholder(a, static=static) for a in arrays]
        pairs = [(y, w) for y, w in zip(call(*xs), weights, strict=True) if w is not None]
        dxs = gradients([y for y, _ in pairs], [xs[i] for i in live], [w for _, w in pairs])
    for dx, e in zip(dxs, eager, strict=True):
        assert (dx is None) == (e is None)
    with Session(graph=graph) as session:
        found = session.run(
            [dx for dx in dxs if dx is not None], dict(zip(xs, arrays, strict=True))
        )
    for value, e in zip(found, [e for e in eager if e is not None], strict=True):
        np.testing.assert_allclose(
            value, e.numpy(), rtol=1e-12, atol=1e-14, err_msg="gradient: graph against eager"
        )
    live_dxs = [dx for dx in dxs if dx is not None]
    _check_native(live_dxs, xs, arrays, [e.numpy() for e in eager if e is not None])


def _check_dtype(
    call: Callable[..., tuple[Tensor, ...]],
    reference: Callable[..., Any],
    attrs: Mapping[str, Any],
    arrays: Sequence[Array],
    dtype: DType,
    rtol: float | None,
    atol: float | None,
) -> None:
    tensors = [
        cast(convert_to_tensor(a), dtype) if a.dtype == np.float64 else convert_to_tensor(a)
        for a in arrays
    ]
    if dtype.is_floating:  # the reference sees the rounded inputs
        arrays = [
            t.numpy().astype(np.float64) if t.dtype == dtype else a
            for t, a in zip(tensors, arrays, strict=True)
        ]
    else:
        arrays = [t.numpy() for t in tensors]
    expected = _tuple(reference(*arrays, **attrs))
    for i, (y, e) in enumerate(zip(call(*tensors), expected, strict=True)):
        limit = rtol if rtol is None else max(rtol, TOLERANCE.get(str(y.dtype), rtol))
        _close(y.numpy(), np.asarray(e), y.dtype, limit, atol, f"output {i} in {dtype}")
    if dtype in ("float32", "float16", "bfloat16"):
        given = [t.numpy() for t in tensors]
        graph = Graph()
        with graph.as_default():
            xs = [_placeholder(a, static=True) for a in given]
            ys = call(*xs)
        _check_native(list(ys), xs, given, [y.numpy() for y in call(*tensors)])
