"""Every op of the table on a GPU: the uses that the tests of this folder make, once more there.

Where there is a GPU it is that one, else the stand-in whose library refuses what cupy refuses. On
that no kernel may make the host wait, but for those whose sizes depend on values, and none may give
results that depend on the order of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.devices import GpuDevice
from laminar.engine.ops.core.op_def import OpDef
from tests.engine.cuda.strict_cupy import StrictCupy
from tests.engine.runtime.fake_gpu import real_or_fake_gpu

from .conftest import Coverage, Sample
from .test_catalogue import OURS

# Sizes of what NonZero and Unique give depend on values, which the host must know to make the
# array, and so do places, orders and paddings that are tensors; Eig is an iteration that the
# library ends by looking at values, as series, fractions and square roots of matrices end when all
# values are there; drawing by rejection ends when all draws are accepted.
DEPENDS_ON_VALUES = {
    "BandPartBy",
    "Betainc",
    "BetaincGradA",
    "ConcatOffset",
    "Eig",
    "Igamma",
    "IgammaBendA",
    "IgammaGradA",
    "Igammac",
    "MatrixLogarithm",
    "MatrixSquareRoot",
    "NonZero",
    "PadBy",
    "PadGrad",
    "PadSumBy",
    "PolygammaOf",
    "RaggedRange",
    "RandomBeta",
    "RandomBinomial",
    "RandomGamma",
    "RandomPoisson",
    "SliceBy",
    "TileBy",
    "TileSumBy",
    "TransposeBy",
    "Unique",
    "UnsliceBy",
    "Zeta",
}
# What calls Python or prints, and what gives arrays of sizes that depend on values.
ON_THE_HOST = {
    "CtcBeamSearch",
    "DynamicPartition",
    "DynamicStitch",
    "FrontOrder",
    "HostFunction",
    "Print",
    "PyFunction",
    "ReductionOrder",
    "ReportUninitialized",
    "SampleDistortedBox",
    "UniqueWithCounts",
}
COMPUTED = {t: op for t, op in OURS.items() if op.reference_kernel or "gpu" in op.kernels}
TOLERANCE = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 2e-4, "float64": 1e-9}


@pytest.fixture(scope="module")
def device() -> GpuDevice:
    return real_or_fake_gpu()


def test_most_ops_compute_there() -> None:
    """The rest keep state, steer, or work with strings and files, on the host."""
    assert len(COMPUTED) >= 300
    others = [op for t, op in OURS.items() if t not in COMPUTED]
    stateless = [op for op in others if op.context_kernel is None and op.async_kernel is None]
    assert {op.type for op in stateless if not _of_host_files(op)} == ON_THE_HOST


def _of_host_files(op: OpDef) -> bool:
    """Whether an op works with strings, files, or arrays whose sizes depend on values."""
    room, file = op.rule.__module__.split(".")[-2:]
    return room in ("text", "io") or file.startswith("sparse")


@pytest.mark.parametrize("op", COMPUTED.values(), ids=list(COMPUTED))
def test_a_gpu_computes_what_the_host_does(
    op: OpDef, device: GpuDevice, coverage: Coverage
) -> None:
    coverage.require_all()
    for sample in coverage.samples.get(op.type, ()):
        _check(op, sample, device)


def _check(op: OpDef, sample: Sample, device: GpuDevice) -> None:
    if any(np.asarray(x).dtype == object for x in (*sample.inputs, *sample.outputs)):
        return  # strings stay on the host
    library = device.xp if isinstance(device.xp, StrictCupy) else None
    with device.running():
        inputs = [device.put(x) for x in sample.inputs]
        if library is not None:
            library.waits.clear()
            library.unordered.clear()
        with np.errstate(all="ignore"):  # as where ops run
            found = device.bind(op)(*inputs, **sample.attrs)
        if library is not None:
            waits = dict(library.waits)
            assert not waits or op.type in DEPENDS_ON_VALUES, f"the host waits: {waits}"
            assert not library.unordered, f"the order of threads: {dict(library.unordered)}"
        results = found if isinstance(found, tuple | list) else [found]
        for y, expected in zip(results, sample.outputs, strict=True):
            _close(device.get(y), expected, f"{op.type}{sample.attrs}")


def _close(found: Any, expected: Any, what: str) -> None:
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype, f"{what}: {found.dtype}, not {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: {found.shape}, not {expected.shape}"
    name = expected.real.dtype.name
    if name not in TOLERANCE:
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    finite = np.abs(expected.astype(wide))
    finite = finite[np.isfinite(finite)]
    scale = float(finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(
        found.astype(wide),
        expected.astype(wide),
        rtol=TOLERANCE[name],
        atol=TOLERANCE[name] * max(scale, 1e-3),
        err_msg=what,
    )
