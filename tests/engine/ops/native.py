"""Running single operations as native code, in checks of ops."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.native import cluster_kernel
from laminar.engine.passes import StepGraph, cluster
from laminar.engine.runtime import Plan, StepContext

Array = np.ndarray[Any, Any]


@contextmanager
def every_cluster() -> Iterator[None]:
    """Cluster single operations too, and let no cluster fall back to the reference kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[cluster.__module__], "_LEAST", 1)
        patch.setattr(cluster_kernel.NativeCluster, "_refuse", _fail)
        yield


def _fail(self: Any, _: Any, error: Exception) -> None:
    raise AssertionError(f"{self._body.name} was accepted, but could not be compiled") from error


def run_native(ys: Sequence[Any], xs: Sequence[Any], arrays: Sequence[Array]) -> list[Array] | None:
    """The values of `ys` from native code; None if no operation has any."""
    with every_cluster():
        plan = Plan(StepGraph(ys, xs), compiled=True)
        if not any(op.type == "Cluster" for op in plan.operations):
            return None
        return plan.run(arrays, StepContext())
