"""TestCase, whose tests build graphs and compare arrays."""
# ruff: noqa: N802, PT009, PT027  # the names and the assertions of unittest

from __future__ import annotations

import contextlib
import random
import re
import shutil
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.errors import LaminarError
from laminar.engine.graph import Tensor, building, get_default_graph
from laminar.engine.tree import map_structure

from .adapting import Mode, in_graph
from .sessions import Session
from .variables import set_random_seed

_SEED = 87654321


class TestCase(unittest.TestCase):
    """A test case with a graph and seeds of its own for each test.

    `evaluate` gives values of tensors, in the session of `session()` or `cached_session()`, or at
    once in eager execution; the assertions on arrays take tensors, too.
    """

    def __init__(self, methodName: str = "runTest") -> None:  # noqa: N803  # unittest's name
        super().__init__(methodName)
        self._folder: str | None = None
        self._kept: Session | None = None

    def setUp(self) -> None:
        """Begin with an empty default graph, and with the same random numbers each time."""
        super().setUp()
        self._forget()
        random.seed(_SEED)
        np.random.seed(_SEED)
        if building() is None:
            engine.reset_default_graph()
            if not Mode.is_eager:
                set_random_seed(_SEED)

    def tearDown(self) -> None:
        """Close the session that was kept."""
        self._forget()
        super().tearDown()

    def _forget(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def get_temp_dir(self) -> str:
        """A folder for this test, which is removed after it."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    @contextlib.contextmanager
    def session(
        self,
        graph: engine.Graph | None = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session | None]:
        """A new session for a block; None in eager execution."""
        if Mode.is_eager:
            yield None
            return
        found = Session(graph=graph, config=config)
        with found:
            yield found

    @contextlib.contextmanager
    def cached_session(
        self,
        graph: engine.Graph | None = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session | None]:
        """The session that all such blocks of the test share; None in eager execution."""
        if Mode.is_eager:
            yield None
            return
        wanted = graph or get_default_graph()
        if self._kept is None or self._kept.graph is not wanted:
            self._forget()
            self._kept = Session(graph=wanted, config=config)
        with self._kept.graph.as_default(), self._kept.as_default():
            yield self._kept

    test_session = cached_session
    test_session.__test__ = False  # type: ignore[attr-defined]  # it is no test

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors in a structure: in the default session, or those they have."""
        if Mode.is_eager:
            return map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, tensors)
        session = engine.get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as found:
            assert found is not None
            return found.run(tensors)

    def _array(self, x: Any) -> np.ndarray[Any, Any]:
        if isinstance(x, Tensor | engine.Variable | engine.SparseValues):
            x = self.evaluate(x)
        elif isinstance(x, list | tuple):
            x = [self._array(item) for item in x]
        found = np.array(x)
        if found.dtype.kind in "SU":
            found = found.astype(object)
        if found.dtype == object:
            flat = [item.encode() if isinstance(item, str) else item for item in found.ravel()]
            found = np.array([*flat, None], object)[:-1].reshape(found.shape)
        return found

    # Arrays

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Both have the same shape and elements; NaN equals NaN."""
        x, y = self._array(a), self._array(b)
        self.assertEqual(x.shape, y.shape, msg)
        np.testing.assert_array_equal(x, y, err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Some elements differ."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllEqual(a, b)

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """|a - b| <= atol + rtol * |b| everywhere, in structures of the same form."""
        if hasattr(a, "_asdict"):
            a = a._asdict()
        if hasattr(b, "_asdict"):
            b = b._asdict()
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertIsInstance(a, Mapping, msg)
            self.assertIsInstance(b, Mapping, msg)
            self.assertCountEqual(a, b, msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            try:
                x, y = self._array(a), self._array(b)
            except ValueError:  # the parts differ in shape
                self.assertEqual(len(a), len(b), msg)
                for one, other in zip(a, b, strict=True):
                    self.assertAllClose(one, other, rtol, atol, msg)
                return
        else:
            x, y = self._array(a), self._array(b)
        self.assertEqual(x.shape, y.shape, msg)
        x, y = (v.astype("float64") if v.dtype.kind not in "biufc" else v for v in (x, y))
        np.testing.assert_allclose(x, y, rtol, atol, err_msg=msg or "")

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:
        """Some elements are not close; see `assertAllClose`."""
        with self.assertRaises(AssertionError):
            self.assertAllClose(a, b, **kwargs)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """`assertAllClose` with the limits of the coarser of the two types."""
        x, y = self._array(a), self._array(b)
        kinds = {str(x.dtype), str(y.dtype)}
        for names, relative, absolute in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if kinds & names:
                rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(x, y, rtol, atol, msg)

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """|f1 - f2| <= err."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1} != {f2} +/- {err}. {msg or ''}")

    def assertArrayNear(
        self, farray1: Any, farray2: Any, err: float, msg: str | None = None
    ) -> None:
        """`assertNear` for each pair of elements."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for x, y in zip(farray1, farray2, strict=True):
            self.assertNear(float(x), float(y), err, msg)

    def assertNDArrayNear(
        self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None
    ) -> None:
        """The norm of the difference is below `err`."""
        distance = np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2))
        self.assertTrue(distance < err, f"{distance} >= {err}. {msg or ''}")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Every element is above a number."""
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Every element is a number or above it."""
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Every element is below a number."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Every element is a number or below it."""
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Every element is between two numbers, which count unless they are `open`."""
        found = self._array(target)
        low = found > lower_bound if open_lower_bound else found >= lower_bound
        high = found < upper_bound if open_upper_bound else found <= upper_bound
        inside = low & high
        self.assertTrue(inside.all(), f"outside of the range: {found[~inside]}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Every element is one of a set."""
        self.assertLessEqual(set(self._array(target).ravel().tolist()), set(expected_set))

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """The elements are of a type."""
        found = target.dtype if hasattr(target, "dtype") else self._array(target).dtype
        self.assertEqual(engine.as_dtype(found), engine.as_dtype(expected_dtype))

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:
        """An array has the static shape of a tensor."""
        self.assertEqual(tuple(np_array.shape), tuple(tf_tensor.shape), msg)

    # Errors and texts

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """A block raises an error of laminar's whose text matches, or satisfies a predicate."""
        return self.assertRaisesWithPredicateMatch(LaminarError, expected_err_re_or_predicate)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """A block raises an error whose text matches, or satisfies a predicate."""
        expected = expected_err_re_or_predicate
        fits: Callable[[Any], Any] = (
            expected
            if callable(expected)
            else lambda error: re.search(expected, str(error), re.IGNORECASE)
        )
        try:
            yield
        except exception_type as error:
            self.assertTrue(fits(error), f"another error than expected: {error!r}")
        else:
            self.fail(f"no {exception_type} was raised")

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """A text begins with another."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not begin so")

    def assertItemsEqual(self, first: Any, second: Any, msg: str | None = None) -> None:
        """Both have the same items, in any order."""
        self.assertCountEqual(first, second, msg)


class StubOutForTesting:
    """Sets attributes for a test, and back afterwards: `Set`, then `CleanUp`."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Give an object another attribute."""
        self._before.append((parent, child_name, getattr(parent, child_name)))
        setattr(parent, child_name, new_child)

    SmartSet = Set

    def CleanUp(self) -> None:
        """Set all attributes back."""
        while self._before:
            setattr(*self._before.pop())

    UnsetAll = SmartUnsetAll = CleanUp

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *_: object) -> None:
        self.CleanUp()


def main(argv: Any = None) -> None:
    """Run the tests of the program."""
    unittest.main(argv=argv)


def get_temp_dir() -> str:
    """The folder for temporary files."""
    return tempfile.gettempdir()


def is_built_with_cuda() -> bool:
    """Whether GPUs can be used: whether there is one."""
    with in_graph():
        return any("gpu" in d.name for d in engine.list_devices())


def is_built_with_rocm() -> bool:
    """False: there is no support for ROCm."""
    return False


def assert_equal_graph_def(
    actual: engine.GraphDef, expected: engine.GraphDef, checkpoint_v2: bool = False
) -> None:
    """AssertionError unless two graphs have the same nodes, in any order.

    Raises:
        TypeError: one is no GraphDef.
    """
    for graph in (actual, expected):
        if not isinstance(graph, engine.GraphDef):
            raise TypeError(f"assert_equal_graph_def: expected a GraphDef, got {graph!r:.80}")
    mine, theirs = ({node.name: node for node in graph.node} for graph in (actual, expected))
    if mine.keys() != theirs.keys():
        raise AssertionError(f"nodes of one graph alone: {sorted(mine.keys() ^ theirs.keys())}")
    different = sorted(name for name in mine if mine[name] != theirs[name])
    if different:
        raise AssertionError(f"these nodes differ: {different}")
