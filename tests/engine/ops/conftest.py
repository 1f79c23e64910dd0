"""Which ops the tests of this folder reach: the fixture `coverage`, for test_catalogue.py.

Nothing counts by its name. An inference counts when a test of this folder caused it; a gradient
rule counts when it ran while `check_op` checked gradients, and the check passed. Tests that ask for
`coverage` run after all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from laminar.engine.gradients import backprop
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core import dispatch
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.registry import no_gradient

from . import harness

HERE = Path(__file__).parent

# How many inferences, and how many computations, of one op are kept to be repeated.
SAMPLES = 20
_MOST_BYTES = 1 << 16  # of an array of a computation that is kept


class Inference(NamedTuple):
    """One use of a rule: what it was asked, and what it answered."""

    specs: tuple[TensorSpec, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[TensorSpec, ...]


class Sample(NamedTuple):
    """One computation of an op on the host: what it was given, and what came out."""

    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[Any, ...]


class Coverage:
    """What the tests that have run reach.

    Attributes:
        inferences: by type of op, some uses of its rule.
        samples: by type of op, some of its computations, of different types and attributes.
        differentiated: types of the ops whose gradient rule ran in a check that passed.
        planned: by file, how many tests were collected; `begun` alike, how many have begun.
        partial: why this run cannot speak for the whole folder, or None.
    """

    def __init__(self) -> None:
        self.inferences: dict[str, list[Inference]] = {}
        self.samples: dict[str, list[Sample]] = {}
        self._kinds: dict[str, set[Any]] = {}
        self.differentiated: set[str] = set()
        self.planned: dict[Path, int] = {}
        self.begun: dict[Path, int] = {}
        self.partial: str | None = None

    def require_all(self) -> None:
        """Skip the calling test unless every other test of this folder has run."""
        missing = sorted(p for p in HERE.rglob("test_*.py") if not self.planned.get(p))
        missing += sorted(p for p, n in self.planned.items() if self.begun.get(p, 0) < n)
        if missing and self.partial is None:
            self.partial = f"not all of {missing[0].name} has run"
        if self.partial is not None:
            pytest.skip(f"speaks for whole runs of tests/engine/ops: {self.partial}")

    def note(self, op: OpDef, inference: Inference) -> None:
        """Keep an inference of an op of laminar."""
        kept = self.inferences.setdefault(op.type, [])
        if len(kept) < SAMPLES:
            kept.append(inference)

    def note_computation(self, op: OpDef, sample: Sample) -> None:
        """Keep a computation, if none like it is kept."""
        arrays = (*sample.inputs, *sample.outputs)
        if not all(isinstance(x, np.ndarray | np.generic) for x in arrays):
            return
        kind = tuple((x.dtype, x.ndim) for x in sample.inputs), repr(sample.attrs)
        kinds = self._kinds.setdefault(op.type, set())
        is_small = sum(x.nbytes for x in arrays) < _MOST_BYTES
        if kind not in kinds and len(kinds) < SAMPLES and is_small:
            kinds.add(kind)
            self.samples.setdefault(op.type, []).append(sample)


_coverage = Coverage()


@pytest.fixture
def coverage() -> Coverage:
    return _coverage


@pytest.fixture(autouse=True)
def _watch(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    infer, check = OpDef.infer, harness._check_gradients
    run_bound = dispatch.run_bound

    def watched_kernel(
        op: OpDef, kernel: Callable[..., Any], arrays: Sequence[Any], attrs: Mapping[str, Any]
    ) -> Any:
        result = run_bound(op, kernel, arrays, attrs)
        if op.context_kernel is None and op.async_kernel is None:
            outputs = tuple(result) if isinstance(result, tuple | list) else (result,)
            _coverage.note_computation(op, Sample(tuple(arrays), dict(attrs), outputs))
        return result

    def watched_infer(
        op: OpDef, specs: Sequence[TensorSpec], attrs: Mapping[str, Any]
    ) -> tuple[tuple[TensorSpec, ...], dict[str, Any]]:
        outputs, full = infer(op, specs, attrs)
        _coverage.note(op, Inference(tuple(specs), full, outputs))
        return outputs, full

    def watched_check(*args: Any, **kwargs: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            used = watch_gradients(patch)
            check(*args, **kwargs)
        _coverage.differentiated |= used

    if request.path.name != "test_results.py":  # its errors tell of the line that calls a kernel
        monkeypatch.setattr(dispatch, "run_bound", watched_kernel)
    monkeypatch.setattr(OpDef, "infer", watched_infer)
    monkeypatch.setattr(harness, "_check_gradients", watched_check)


def watch_gradients(patch: pytest.MonkeyPatch) -> set[str]:
    """A set that receives the type of each op of which a gradient rule runs while `patch` lasts."""
    used: set[str] = set()
    run = backprop._gradient_of

    def watched(record: Any, douts: list[Any], by_rows: Collection[int]) -> Any:
        definition = record.definition
        has_rule = isinstance(definition, OpDef) and definition.gradient not in (None, no_gradient)
        if has_rule and not (by_rows and definition.inner_row_gradient):
            used.add(definition.type)
        return run(record, douts, by_rows)

    patch.setattr(backprop, "_gradient_of", watched)
    return used


def _asks_for_coverage(item: pytest.Item) -> bool:
    return "coverage" in getattr(item, "fixturenames", ())


def pytest_itemcollected(item: pytest.Item) -> None:  # is asked of the tests of this folder only
    if not _asks_for_coverage(item):
        _coverage.planned[item.path] = _coverage.planned.get(item.path, 0) + 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_asks_for_coverage)
    if any("::" in argument for argument in config.args):
        _coverage.partial = "single tests were asked for"


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    if any(HERE in item.path.parents for item in items):
        _coverage.partial = "some tests were deselected"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    _coverage.begun[item.path] = _coverage.begun.get(item.path, 0) + 1
