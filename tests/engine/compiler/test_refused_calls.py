"""A call that cannot be made natively leaves the other calls of its function as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import function, ops
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.plan.specializations import Specializations
from laminar.engine.errors import ShapeError
from laminar.engine.graph import TensorSpec


def _native(fn: Any, *args: Any) -> NativeCluster:
    (body,) = fn.concrete(*args).clusters
    assert isinstance(body.native, NativeCluster)
    return body.native


def _ones(*shape: int) -> Any:
    return ops.convert_to_tensor(np.ones(shape, np.float32))


def test_sizes_that_do_not_fit_leave_others_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_FALLBACK", "always")
    signature = [TensorSpec((None,), "float32")] * 2
    add = function(lambda x, y: x * 2 + y, input_signature=signature)
    add(_ones(3), _ones(3))
    with pytest.raises(ValueError, match="broadcast"):
        add(_ones(3), _ones(4))
    np.testing.assert_array_equal(add(_ones(5), _ones(5)), np.full(5, 3, np.float32))
    cluster = _native(add, _ones(3), _ones(3))
    assert ((5,), (5,)) in cluster._contexts[0].ready


def test_a_sum_over_axes_of_other_sizes_is_refused() -> None:
    signature = [TensorSpec((None, None), "float32"), TensorSpec((None,) * 3, "float32")]
    product = function(lambda x, y: ops.einsum("ij,bjk->bik", x, y), input_signature=signature)
    np.testing.assert_array_equal(product(_ones(1, 3), _ones(2, 3, 1)), np.full((2, 1, 1), 3))
    with pytest.raises(ShapeError, match="'j'.*1 and 3"):
        product(_ones(1, 1), _ones(2, 3, 1))


def test_who_interrupts_a_compilation_has_it_for_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    double = function(lambda x: x * 2, input_signature=[TensorSpec((None,), "float32")])
    made = Specializations._compile

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            "laminar.engine.compiler.plan.plan_cache.PlanCache.read", lambda *_, **__: None
        )
        patch.setattr(Specializations, "_compile", interrupted)
        with pytest.raises(KeyboardInterrupt):
            double(_ones(3))
        patch.setattr(Specializations, "_compile", made)
        double(_ones(3))
        double(_ones(4))
    assert len(_native(double, _ones(3))._specializations) == 1
