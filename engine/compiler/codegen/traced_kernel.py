"""Code that runs a plan and its kernels and writes down when: it stands for theirs while they are
watched.

    traced_run(ptr plan, ptr objects), traced_share(ptr plan, ptr objects): for `run` and `share`;
    traced_kernel(ptr words, i64 tid, i64 nth): for a kernel;
    clocks(ptr words): what the clocks show at one moment.

A plan names a journal, where each run has a record: first three words of the run itself, then three
for each thread of each kernel: when it began, when it ended, and who ran it. A run goes on to the
next record when it has ended. Where there is none, it does not begin, and says so.

Times are those of the processor's counter where it counts at one rate on all cores, which is read
in a third of the time of the system's clock. `clocks` writes both.
"""

from __future__ import annotations

from ...graph import int64
from ..target import host
from ..target.code import Code
from ..target.llvm import vector_bytes
from .abi import pointer, put, word
from .clock import MONOTONIC, TWO_WORDS, nanoseconds
from .control import when
from .driver_words import JOURNAL, NO_ROOM, STATUS
from .function import POINTER, IRFunction, Module, Value
from .memory import address_at

# Words of a kernel: the code and the words of the one that it runs, the journal, and where in a
# record its first thread writes, in bytes.
KERNEL_CODE, KERNEL_WORDS, KERNEL_JOURNAL, KERNEL_PLACE = range(4)
KERNEL_TRACE_WORDS = 4
# Words of a journal: the record that is written, the end of the last one, the bytes of each; the
# code of `run` and of `share`.
RECORD, END, STRIDE, RUN, SHARE = range(5)
JOURNAL_WORDS = 5
ENTRY_WORDS = 3
BEGAN, ENDED, THREAD = range(ENTRY_WORDS)
# What `clocks` writes: the counter, the nanoseconds of the system's clock.
COUNTER, NANOSECONDS = range(2)


def traced_code(symbol: str) -> Code:
    """The code of one of the functions."""
    return Code(symbol, vector_bytes(), text, (MONOTONIC, host.has_steady_counter()))


def text(clock: int, has_counter: bool) -> str:
    """The IR; `clock` is the system's number of the clock that it reads."""
    module = Module()
    module.declarations["pthread_self"] = "declare i64 @pthread_self()"
    module.declarations["counter"] = "declare i64 @llvm.readcyclecounter()"
    for symbol, place in (("traced_run", RUN), ("traced_share", SHARE)):
        _run(module, symbol, place, clock, has_counter)
    _kernel(module, clock, has_counter)
    _clocks(module, clock, has_counter)
    return module.text()


class _Clock:
    """Reads what times are written of."""

    def __init__(self, fn: IRFunction, clock: int, has_counter: bool) -> None:
        self._fn = fn
        self._clock = clock
        self._has_counter = has_counter
        self._moment = fn.named(TWO_WORDS)

    def nanoseconds(self) -> Value:
        return nanoseconds(self._fn, self._clock, self._moment)

    def read(self) -> Value:
        if not self._has_counter:
            return self.nanoseconds()
        return self._fn.instruction("call i64 @llvm.readcyclecounter()", int64, 0)


def _write(fn: IRFunction, entry: str, began: Value, ended: Value) -> None:
    put(fn, entry, BEGAN, began)
    put(fn, entry, ENDED, ended)
    put(fn, entry, THREAD, fn.instruction("call i64 @pthread_self()", int64, 0))


def _run(module: Module, symbol: str, place: int, clock: int, has_counter: bool) -> None:
    fn = IRFunction(module, symbol, [POINTER, POINTER])
    plan, objects = fn.arguments
    times = _Clock(fn, clock, has_counter)
    journal = pointer(fn, word(fn, plan, JOURNAL))
    record, end = word(fn, journal, RECORD), word(fn, journal, END)
    put(fn, plan, STATUS, fn.number(NO_ROOM))

    def run() -> None:
        code = pointer(fn, word(fn, journal, place))
        began = times.read()
        fn.line(f"call void {code}(ptr {plan}, ptr {objects})")
        _write(fn, pointer(fn, record), began, times.read())
        put(fn, journal, RECORD, record + word(fn, journal, STRIDE))

    when(fn, record < end, run)


def _kernel(module: Module, clock: int, has_counter: bool) -> None:
    fn = IRFunction(module, "traced_kernel", [POINTER, "i64", "i64"])
    words = fn.arguments[0]
    tid, nth = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
    times = _Clock(fn, clock, has_counter)
    code = pointer(fn, word(fn, words, KERNEL_CODE))
    own = pointer(fn, word(fn, words, KERNEL_WORDS))
    journal = pointer(fn, word(fn, words, KERNEL_JOURNAL))
    place = word(fn, journal, RECORD) + word(fn, words, KERNEL_PLACE)
    entry = address_at(fn, pointer(fn, place), tid, 8 * ENTRY_WORDS)
    began = times.read()
    fn.line(f"call void {code}(ptr {own}, {tid}, {nth})")
    _write(fn, entry, began, times.read())


def _clocks(module: Module, clock: int, has_counter: bool) -> None:
    fn = IRFunction(module, "clocks", [POINTER])
    (words,) = fn.arguments
    times = _Clock(fn, clock, has_counter)
    counter = times.read()
    put(fn, words, COUNTER, counter)
    put(fn, words, NANOSECONDS, times.nanoseconds())
