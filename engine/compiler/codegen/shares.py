"""Native code by which threads share plans: pools, the shares of kernels, and waiting.

    wait(ptr pool, i64 nth): a barrier, inside of loops;
    next(ptr pool, ptr plan, i64 row): goes on in a plan behind a kernel whose shares are all done;
    help(ptr pool, i64 tid, i64 phase): does shares of a kernel, if some are left;
    worker(ptr pool, i64 tid): what a thread of the pool does all its life;
    wake(ptr pool): tells the threads of the pool that they end;
    start(ptr pool, ptr plan): runs a plan on all threads of the pool, this one being number 0.

A kernel that is worth threads has as many shares as the pool has threads, and a share gives the
same bits whoever does it. So nobody waits for a thread that another process keeps from running: a
thread does its own share first, which the caches of its core know, then those that nobody has
begun. Who does the last one goes on: it runs what needs one thread, and opens the next kernel that
is for several. `PHASE` of the pool is odd while a kernel is open, and another one for each; a share
is claimed by writing that number into its word. A thread that comes late finds no share left, and
looks at nothing else, so the plan may have ended meanwhile. Whoever finds nothing to do waits for
the next phase: it looks for a moment, then sleeps.

In a native loop all threads meet between kernels. As none of them claims a second share there
before it has done the first, each has one. Where other processes leave two threads one core, one of
them runs loops of short kernels alone for a while: changing over at each meeting would take longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...graph import bool_, int32, int64, uint8
from ..target import host
from .abi import at, pointer, put, word
from .clock import MONOTONIC, TWO_WORDS, nanoseconds
from .control import loop, repeat, replaced, when
from .conversions import convert
from .driver_words import (
    ARRIVED,
    ASLEEP,
    CANCELLABLE,
    CANCELLED,
    CHECK,
    CHECK_FAILED,
    CLAIMS,
    FEWER_SPINS,
    KERNELS,
    LATE,
    LEFT,
    MEETING,
    MEETS,
    NUM_KERNELS,
    PARALLEL,
    PHASE,
    PLAN,
    QUIT,
    ROUND,
    ROW,
    ROW_WORDS,
    STATUS,
    THREADS,
    WAITING,
    WORDS_OF_LINE,
)
from .function import POINTER, IRFunction, Module, Value
from .memory import address_at, load
from .subnormals import flushed

Ending: TypeAlias = Callable[[Value], Value]

# Rounds of waiting before a thread sleeps. If it then sleeps for longer than kernels take, another
# process keeps the one that is waited for from running: the next waits are short, so that it gets
# the core that the waiting one has, and longer again by a little each.
_MOST_SPINS, _FEWER_SPINS, _MORE_SPINS = 3000, 2700, 2
_LONG = 300_000  # nanoseconds
# Threads that meet in a loop of short kernels sleep there only if they have one core for both, and
# then changing over takes longer than what they do. Each time adds so much to LATE, up to a limit;
# each wait takes 1 from it. From so much on, one of two threads runs such loops alone.
_LATE, _MOST_LATE, _CROWDED = 40, 1000, 750
_IDLE_SPINS = 32000  # where it waits for another plan
_FUTEX_WAIT, _FUTEX_WAKE = 128, 129  # private to the process
_FUTEX_X86, _FUTEX_ARM = 202, 98  # Linux's number of the call


def shares_text(module: Module) -> None:
    """Write the functions."""
    _wait(module)
    _next(module)
    _help(module)
    _worker(module)
    _wake(module)
    _start(module)


def atomic(fn: IRFunction, place: str) -> Value:
    """Read a word that other threads write.

    All threads see all writes and reads of such words in one order: one that falls asleep has said
    so before it looks whether there is something to do, and one that has something has said so
    before it looks for sleepers, so at least one of them notices. On ARM reads that only acquire
    may come before earlier writes.
    """
    return fn.instruction(f"load atomic i64, ptr {place} seq_cst, align 8", int64, 0)


def publish(fn: IRFunction, value: Value, place: str) -> None:
    """Write a word that other threads read."""
    fn.line(f"store atomic {value}, ptr {place} seq_cst, align 8")


def _add(fn: IRFunction, place: str, value: int) -> Value:
    """Add to a counter; gives what it was."""
    return fn.instruction(f"atomicrmw add ptr {place}, i64 {value} seq_cst", int64, 0)


def _pause(fn: IRFunction) -> None:
    """Tell the processor that this is a loop of waiting."""
    if host.is_x86():
        fn.module.declarations["pause"] = "declare void @llvm.x86.sse2.pause()"
        fn.line("call void @llvm.x86.sse2.pause()")
    elif host.is_arm():
        fn.module.declarations["pause"] = "declare void @llvm.aarch64.hint(i32 immarg)"
        fn.line("call void @llvm.aarch64.hint(i32 1)")


def _until_changed(
    fn: IRFunction,
    pool: str,
    place: str,
    old: Value,
    asleep: str,
    is_idle: Value,
    moment: str,
    *,
    is_meeting: bool = False,
) -> None:
    """Wait until a word is not `old`: look for some rounds, then sleep; `moment` is for times."""
    fewer_place, late_place = at(fn, pool, FEWER_SPINS), at(fn, pool, LATE)
    late = atomic(fn, late_place)
    fewer = atomic(fn, fewer_place)
    spins = fn.select(is_idle, fn.number(_IDLE_SPINS), _MOST_SPINS - fewer)

    def again(round: Value) -> tuple[Value, Value]:
        _pause(fn)
        following = round + 1
        return following, (atomic(fn, place) == old) & (following < spins)

    def sleep() -> None:
        in_kernel = atomic(fn, at(fn, pool, LEFT)) > 0  # otherwise one runs what is for one
        begin = nanoseconds(fn, MONOTONIC, moment)
        _add(fn, asleep, 1)
        repeat(fn, old, doze)
        _add(fn, asleep, -1)
        is_long = nanoseconds(fn, MONOTONIC, moment) - begin > _LONG
        when(
            fn,
            is_long & in_kernel & ~is_idle,
            lambda: publish(fn, fn.number(_FEWER_SPINS), fewer_place),
        )
        if is_meeting:
            more = atomic(fn, late_place) + _LATE
            publish(fn, fn.select(more < _MOST_LATE, more, fn.number(_MOST_LATE)), late_place)

    def doze(x: Value) -> tuple[Value, Value]:
        _futex(fn, place, _FUTEX_WAIT, old)
        return x, atomic(fn, place) == old

    def recover() -> None:
        publish(fn, fn.select(fewer > _MORE_SPINS, fewer - _MORE_SPINS, fn.number(0)), fewer_place)

    repeat(fn, fn.number(0), again)
    when(fn, ~is_idle & (fewer > 0), recover)
    when(fn, ~is_idle & (late > 0), lambda: publish(fn, late - 1, late_place))
    when(fn, atomic(fn, place) == old, sleep)


def _rouse(fn: IRFunction, place: str, sleepers: Value) -> None:
    """Wake those that sleep until the word at `place` changes, as it has, if there are some."""
    when(fn, sleepers > 0, lambda: _futex(fn, place, _FUTEX_WAKE, fn.number(1 << 30)))


def _futex(fn: IRFunction, place: str, operation: int, value: Value) -> None:
    """Sleep while the word at `place` is `value`, or wake those that do.

    Where the system's call for that is not known, sleep for a moment.
    """
    number = _FUTEX_X86 if host.is_x86() else _FUTEX_ARM if host.is_arm() else None
    if not host.is_linux() or number is None:
        fn.module.declarations["usleep"] = "declare i32 @usleep(i32)"
        if operation == _FUTEX_WAIT:
            fn.line(f"{fn.fresh()} = call i32 @usleep(i32 50)")
        return
    fn.module.declarations["syscall"] = "declare i64 @syscall(i64, ...)"
    low = convert(fn, value, int32)
    fn.line(
        f"{fn.fresh()} = call i64 (i64, ...) @syscall(i64 {number}, ptr {place}, "
        f"i32 {operation}, {low}, ptr null, ptr null, i32 0)"
    )


def _wait(module: Module) -> None:
    fn = IRFunction(module, "wait", [POINTER, "i64"])
    pool = fn.arguments[0]
    nth = Value(fn, fn.arguments[1], int64, 0)
    moment = fn.named(TWO_WORDS)
    round_place, arrived, meeting = (at(fn, pool, w) for w in (ROUND, ARRIVED, MEETING))
    round = atomic(fn, round_place)
    last = _add(fn, arrived, 1) + 1 == nth

    def release() -> None:
        publish(fn, fn.number(0), arrived)
        publish(fn, round + 1, round_place)
        _rouse(fn, round_place, atomic(fn, meeting))

    def hold() -> None:
        never = fn.number(0) != 0
        _until_changed(fn, pool, round_place, round, meeting, never, moment, is_meeting=True)

    when(fn, last, release)
    when(fn, ~last, hold)


def _next(module: Module) -> None:
    fn = IRFunction(module, "next", [POINTER, POINTER, "i64"])
    pool, plan = fn.arguments[:2]
    first = Value(fn, fn.arguments[2], int64, 0)
    kernels = pointer(fn, word(fn, plan, KERNELS))
    count, cancellable = word(fn, plan, NUM_KERNELS), word(fn, plan, CANCELLABLE)
    phase_place = at(fn, pool, PHASE)
    no = fn.number(0) != 0
    are_two = word(fn, pool, THREADS) == 2
    is_crowded = are_two & (atomic(fn, at(fn, pool, LATE)) > _CROWDED)

    def fails_behind(i: Value) -> Value:
        """Whether the plan ends behind kernel i, by its check or because it has been cancelled."""
        row = address_at(fn, kernels, i, 8 * ROW_WORDS)
        is_check = fn.binary("and", word(fn, row, 2), CHECK) != 0

        def look() -> list[Value]:
            return [load(fn, pointer(fn, word(fn, row, 3)), uint8, 0) != 0]

        (is_bad,) = replaced(fn, is_check, [no], look)
        is_cancelled = (atomic(fn, at(fn, plan, CANCELLED)) != 0) & (i < cancellable)
        return is_bad | is_cancelled

    def one(i: Value) -> tuple[Value, Value]:
        """Run kernel i if it is for one thread; its number stays where it is for several."""
        row = address_at(fn, kernels, i, 8 * ROW_WORDS)
        flags = word(fn, row, 2)
        is_late = (fn.binary("and", flags, MEETS) != 0) & is_crowded
        is_parallel = (fn.binary("and", flags, PARALLEL) != 0) & ~is_late

        def alone() -> list[Value]:
            code, words = (pointer(fn, word(fn, row, k)) for k in (0, 1))
            fn.line(f"call void {code}(ptr {words}, i64 0, i64 1)")
            bad = fails_behind(i)
            when(fn, bad, lambda: put(fn, plan, STATUS, fn.number(CHECK_FAILED)))
            return [fn.select(bad, count, i + 1)]

        (following,) = replaced(fn, ~is_parallel, [i], alone)
        return following, ~is_parallel & (following < count)

    def failed() -> list[Value]:
        bad = fails_behind(first - 1)
        when(fn, bad, lambda: put(fn, plan, STATUS, fn.number(CHECK_FAILED)))
        return [fn.select(bad, count, first)]

    (begin,) = replaced(fn, first > 0, [first], failed)
    (row,) = replaced(fn, begin < count, [begin], lambda: [repeat(fn, begin, one)])
    is_open = row < count
    put(fn, pool, ROW, row)
    publish(fn, word(fn, pool, THREADS), at(fn, pool, LEFT))
    phase = atomic(fn, phase_place)
    odd = fn.binary("or", phase + 1, 1)
    publish(fn, fn.select(is_open, odd, fn.binary("and", phase + 2, -2)), phase_place)
    # Who has nothing to do sleeps on when a plan ends; who has started it does not.
    asleep, waiting = (atomic(fn, at(fn, pool, w)) for w in (ASLEEP, WAITING))
    _rouse(fn, phase_place, fn.select(is_open, asleep + waiting, waiting))


def _help(module: Module) -> None:
    fn = IRFunction(module, "help", [POINTER, "i64", "i64"])
    pool = fn.arguments[0]
    tid, phase = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
    nth = word(fn, pool, THREADS)

    def one(k: Value) -> None:
        turn = tid + k
        share = fn.select(turn < nth, turn, turn - nth)
        place = at(fn, pool, share * WORDS_OF_LINE + CLAIMS)
        held = atomic(fn, place)
        (mine,) = replaced(fn, held < phase, [fn.number(0) != 0], lambda: [claim(place, held)])
        when(fn, mine, lambda: do(share))

    def claim(place: str, held: Value) -> Value:
        found = fn.named(f"cmpxchg ptr {place}, {held}, {phase} seq_cst seq_cst")
        return fn.instruction(f"extractvalue {{ i64, i1 }} {found}, 1", bool_, 0)

    def do(share: Value) -> None:
        plan, number = pointer(fn, word(fn, pool, PLAN)), word(fn, pool, ROW)
        row = address_at(fn, pointer(fn, word(fn, plan, KERNELS)), number, 8 * ROW_WORDS)
        code, words = (pointer(fn, word(fn, row, k)) for k in (0, 1))
        fn.line(f"call void {code}(ptr {words}, {share}, {nth})")
        is_last = _add(fn, at(fn, pool, LEFT), -1) == 1
        following = number + 1
        when(fn, is_last, lambda: fn.line(f"call void @next(ptr {pool}, ptr {plan}, {following})"))

    loop(fn, fn.number(0), nth, 1, one)


def _taking_part(fn: IRFunction, pool: str, tid: Value, asleep: int, ends: Ending) -> None:
    """Do shares of what is open, and wait for more, until `ends(phase)`."""
    place = at(fn, pool, PHASE)
    moment = fn.named(TWO_WORDS)

    def again(x: Value) -> tuple[Value, Value]:
        phase = atomic(fn, place)
        is_open = fn.binary("and", phase, 1) != 0
        when(fn, is_open, lambda: fn.line(f"call void @help(ptr {pool}, {tid}, {phase})"))
        goes_on = ~ends(phase)
        sleepers = at(fn, pool, asleep)
        when(
            fn, goes_on, lambda: _until_changed(fn, pool, place, phase, sleepers, ~is_open, moment)
        )
        return x, goes_on

    repeat(fn, tid, again)


def _worker(module: Module) -> None:
    fn = IRFunction(module, "worker", [POINTER, "i64"])
    pool = fn.arguments[0]
    tid = Value(fn, fn.arguments[1], int64, 0)
    quits = at(fn, pool, QUIT)
    flushed(fn, lambda: _taking_part(fn, pool, tid, ASLEEP, lambda _: atomic(fn, quits) != 0))


def _wake(module: Module) -> None:
    fn = IRFunction(module, "wake", [POINTER])
    pool = fn.arguments[0]
    place = at(fn, pool, PHASE)
    _add(fn, place, 2)
    _rouse(fn, place, atomic(fn, at(fn, pool, ASLEEP)))


def _start(module: Module) -> None:
    fn = IRFunction(module, "start", [POINTER, POINTER])
    pool, plan = fn.arguments

    def run() -> None:
        put(fn, pool, PLAN, fn.instruction(f"ptrtoint ptr {plan} to i64", int64, 0))
        fn.line(f"call void @next(ptr {pool}, ptr {plan}, i64 0)")
        _taking_part(fn, pool, fn.number(0), WAITING, lambda phase: fn.binary("and", phase, 1) == 0)

    flushed(fn, run)
