"""What all tests share: their cores, their caches, the settings of hypothesis, the quick subset."""

from __future__ import annotations

import functools
import gc
import os
import signal
import threading
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from typing import Any, Literal

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from . import keras_on_jax

# Keras is the reference that files and arithmetic are compared with. Any backend serves where
# nothing is trained: this one compiles nothing. keras_on_jax.py runs what needs another.
os.environ.setdefault("KERAS_BACKEND", "numpy")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # its code is compiled to run once
# What the compiler gets wrong is an error here, not a reason to run without it.
os.environ.setdefault("LAMINAR_FALLBACK", "never")
# The libraries that tests compare with have one thread: workers use all cores. They read
# this when they are imported, so it stands here and not in a hook.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

_MOST_WORKERS = 8  # each takes about 1 GB
# What runs in one worker: the coverage of ops, which their conftest.py notes, is one process's; the
# files with tests of keras_on_jax.py share the process beside, which takes seconds to start.
_OPS = "tests/engine/ops/"
_ON_JAX = "tests on JAX"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive", "--slow", action="store_true", help="run the exhaustive tests too"
    )


@pytest.hookimpl(tryfirst=True)  # a profile that is named on the command line replaces this one
def pytest_configure(config: pytest.Config) -> None:
    quick = config.option.markexpr == "not slow"
    hypothesis.settings.register_profile(
        "laminar",
        deadline=None,  # the first example compiles
        max_examples=25 if quick else 100,
        derandomize=quick or "CI" in os.environ,
    )
    hypothesis.settings.load_profile("laminar")


def pytest_sessionstart(session: pytest.Session) -> None:
    """What is compiled, once for all processes of a run: workers start after this.

    Native code is beside pytest's own cache, or where LAMINAR_CACHE says, as in CI, which may keep
    it between runs. Without bytecode each of some hundred programs would compile all of laminar.
    """
    if hasattr(session.config, "cache"):  # there is none with -p no:cacheprovider
        os.environ.setdefault("LAMINAR_CACHE", str(session.config.cache.mkdir("laminar")))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell does that to its jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than cores, for some tests wait for other processes most of their time.

    None for a single file, which is done before they have started.
    """
    if len(config.args) == 1 and config.args[0].partition("::")[0].endswith(".py"):
        return 0
    return min(len(os.sched_getaffinity(0)) + 1, _MOST_WORKERS)


@functools.cache
def _place_of(file: str) -> str:
    """What a file belongs to that runs in one worker."""
    if file.startswith(_OPS):
        return _OPS
    return _ON_JAX if keras_on_jax.has_tests(keras_on_jax.ROOT / file) else file


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]  # has no types of its own
    """A file runs in one worker.

    `assigned_work` holds only the tests that have not ended: of a run of many thousands, none are
    gone through at the end of each.
    """

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        """Where each test stands in what all workers have collected."""
        assert self.collection is not None
        return {name: place for place, name in enumerate(self.collection)}

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        name = self.registered_collections[node][item_index]
        file = self._split_scope(name)
        tests = self.assigned_work[node][file]
        del tests[name]
        if not tests:
            del self.assigned_work[node][file]
        self._reschedule(node)

    def _pending_of(self, workload: Mapping[str, Collection[str]]) -> int:
        return sum(map(len, workload.values()))

    def _assign_work_unit(self, node: Any) -> None:
        file, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][file] = tests
        node.send_runtest_some([self._places[name] for name in tests])

    def _split_scope(self, nodeid: str) -> str:
        return _place_of(nodeid.partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    return _ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected is no garbage: looking for some takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.set_threshold(10_000)  # passes take time, and find little


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("exhaustive"):
        skip = pytest.mark.skip(reason="exhaustive: run with --exhaustive")
        for item in items:
            if "exhaustive" in item.keywords:
                item.add_marker(skip)
    if hasattr(config, "workerinput"):  # workers begin with the files that take longest
        long = {item.path for item in items if "slow" in item.keywords}
        rooms = [_OPS, _ON_JAX]

        def turn(item: pytest.Item) -> tuple[int, bool]:
            place = _place_of(item.nodeid.partition("::")[0])
            return rooms.index(place) if place in rooms else len(rooms), item.path not in long

        items.sort(key=turn)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker tells of a set-up or an end only if it does not pass, or somebody asks for all.

    To write, send and read three reports takes longer than most tests do.
    """
    option = item.config.option
    asked = option.durations is not None or option.xmlpath or option.setupshow or option.setuponly
    if not hasattr(item.config, "workerinput") or asked:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _reports(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
    """Run a test, as pytest does: those of its set-up, call and end."""

    def report(when: Literal["setup", "call", "teardown"], hook: Any, **given: Any) -> Any:
        call = pytest.CallInfo.from_call(
            lambda: hook(item=item, **given),
            when=when,
            reraise=(pytest.exit.Exception, KeyboardInterrupt),
        )
        return item.ihook.pytest_runtest_makereport(item=item, call=call)

    set_up = report("setup", item.ihook.pytest_runtest_setup)
    yield set_up
    if set_up.passed:
        yield report("call", item.ihook.pytest_runtest_call)
    is_last = item.session.shouldfail or item.session.shouldstop
    following = None if is_last else nextitem
    yield report("teardown", item.ihook.pytest_runtest_teardown, nextitem=following)
    if isinstance(item, pytest.Function):
        item.funcargs = {}  # what fixtures gave lives no longer than the test


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not keras_on_jax.goes_there(pyfuncitem):
        return None
    keras_on_jax.check(pyfuncitem)
    return True


def pytest_sessionfinish() -> None:
    keras_on_jax.close()


def names_of_threads_left(before: Collection[threading.Thread]) -> list[str]:
    """Threads of laminar that work for one object only, and still live some time after it."""
    end = time.monotonic() + 20
    while True:
        left = [
            t.name
            for t in threading.enumerate()
            if t not in before and t.name.startswith("laminar-") and "inter-op" not in t.name
        ]
        if not left or time.monotonic() > end:
            return left
        gc.collect()
        time.sleep(0.01)


@pytest.fixture(scope="module", autouse=True)
def what_stays_is_no_garbage() -> None:
    """Who looks for garbage (many tests do) need not go through all that other modules left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def no_thread_outlives_its_module() -> Iterator[None]:
    """Threads that make batches, train replicas or write files end with what they are for."""
    before = set(threading.enumerate())
    yield
    left = names_of_threads_left(before)
    assert not left, f"threads that nobody ended: {left}"
