"""Native code that runs a plan: finds the data of Python's arrays, and runs the kernels in order.

    enter(ptr plan, ptr objects, i64 count): checks the arrays, fills in their addresses;
    run(ptr plan, ptr objects): `enter` and `work` on one thread;
    share(ptr plan, ptr objects): `enter` and `start`, on the pool that the plan names;
    work(ptr plan, i64 tid, i64 nth): one thread's part of all kernels, with barriers between them,
        and with subnormal numbers as 0;
    alone(ptr code, ptr words): a kernel by itself, on one thread, as `work` runs it;
    loop(ptr words, i64 tid, i64 nth): a kernel that runs a table of kernels many times;
    worker(ptr pool, i64 tid): what a thread of the pool does all its life;
    wake(ptr pool): tells the threads of the pool that there is a new job, or that they end;
    start(ptr pool, ptr plan): runs `work` on all threads of the pool, this one being number 0.

The words of a plan and of a pool are named below. A plan's tables hold, for each array, what is
asked of it (0, or WANT_OWN), for each address in the kernels' words (its place, the array, the
offset), and for each kernel (code, words, flags, the address of a check's result). In one more,
`enter` marks the arrays that are not as they must be.

A loop has a table of kernels, and words of its own, for each thread: before iteration t a thread
moves on, by t steps, the addresses in its own kernels' words, so no thread waits for another.

A plan that takes long can be cancelled as long as it has written to no variable: between its first
kernels, of which it says how many, and in loops among those between iterations. All threads must
end at one place. So thread 0, before they meet, writes down the place: behind the kernel or the
iteration where they do. Whoever comes to a place looks for one that is not behind it; one that is
further on, of a thread 0 that was fast, lets it go on to that.
"""

from __future__ import annotations

from collections.abc import Callable

from ...graph import int32, int64, uint8
from ..target import host
from ..target.code import Code
from ..target.llvm import vector_bytes
from .abi import BASE, DATA, FLAGS, REFERENCES, TYPE, at, field, pointer, put, word
from .control import fold, loop, repeat, replaced, when
from .conversions import convert
from .function import POINTER, IRFunction, Module, Value
from .memory import address_at, load, store
from .subnormals import flushed

# An array must be contiguous and aligned. A variable's of more than a line of the cache begins at
# one, for vectors that cross lines take twice as long. One that is written in place must also
# belong to nobody else: then this is asked of it, with the number of references it may have in the
# bits above.
WANT_LINE, WANT_OWN = 1, 2

# Flags of a kernel. The result of a check stops the run, or, with STOP, the loop it is in. With
# SETTLE threads meet again when they have looked: the next iteration makes another result.
PARALLEL, BARRIER, CHECK, STOP, SETTLE = 1, 2, 4, 8, 16

# Words of a loop, and of a thread's part of it.
LOOP_PLAN, LOOP_COUNT, LOOP_THREADS, LOOP_FAILED, LOOP_CANCELLABLE, LOOP_END = range(6)
PART_KERNELS, PART_NUM_KERNELS, PART_MOVES, PART_NUM_MOVES = range(4)
# What moves on: the address of a word, what it is in iteration 0, by how much it grows in each.
MOVE_WORDS = 3
ROW_WORDS = 4
# Iterations of a loop that ends by its test.
ENDLESS = 1 << 62

# Words of a plan.
STATUS, NUM_ARRAYS, WANTS, NUM_ADDRESSES, ADDRESSES = range(5)
NUM_KERNELS, KERNELS, POOL, ARRAY_TYPE, REFUSED, CANCELLED, CANCELLABLE, END = range(5, 13)
PLAN_WORDS = 16

# Values of STATUS.
DONE, REFUSES, CHECK_FAILED = 0, 1, 2

# How a walk through a table of kernels ends; the result of a STOP is one of these.
_WENT_ON, _STOPPED, _FAILED = 0, 1, 2

# Words of a pool, on cache lines of their own.
JOB, PLAN, QUIT, FINISHED, ARRIVED, ROUND, THREADS, ASLEEP = (i * 8 for i in range(8))
POOL_WORDS = 64

# Flags of an ndarray.
_ASKED, _WRITEABLE = 0x101, 0x400  # contiguous and aligned

_SPINS = 4000  # rounds of waiting before a thread gives its core away
_FUTEX_WAIT, _FUTEX_WAKE = 128, 129  # private to the process
_FUTEX_X86, _FUTEX_ARM = 202, 98  # Linux's number of the call


POOL_FUNCTIONS = ("start", "wake", "worker")  # what a pool calls


def driver_code(symbol: str) -> Code:
    """The code of one of the functions."""
    return Code(symbol, vector_bytes(), text, ())


def text() -> str:
    """The IR of the functions."""
    module = Module()
    IRFunction(module, "nothing", [POINTER, "i64", "i64"])  # the kernel of a check
    _enter(module)
    _wait(module)
    _walk(module)
    _work(module)
    _alone(module)
    _loop(module)
    _run(module)
    _worker(module)
    _wake(module)
    _start(module)
    _share(module)
    return module.text()


def _enter(module: Module) -> None:
    fn = IRFunction(module, "enter", [POINTER, POINTER])
    plan, objects = fn.arguments
    count = word(fn, plan, NUM_ARRAYS)
    wants = pointer(fn, word(fn, plan, WANTS))
    array_type = word(fn, plan, ARRAY_TYPE)
    refused = pointer(fn, word(fn, plan, REFUSED))

    def check(i: Value, carried: list[Value]) -> list[Value]:
        held = pointer(fn, word(fn, objects, i))
        is_array = field(fn, held, TYPE, int64) == array_type
        (bad,) = replaced(fn, is_array, [fn.splat(carried[0] | True, 0)], lambda: [look(held, i)])
        put(fn, refused, i, fn.select(bad, fn.number(1), fn.number(0)))
        return [carried[0] | bad]

    def look(held: str, i: Value) -> Value:
        """Whether an array is not as it must be."""
        want = word(fn, wants, i)
        flags = field(fn, held, FLAGS, int32)
        bad = fn.binary("and", flags, _ASKED) != _ASKED
        own = fn.binary("and", want, WANT_OWN) != 0
        at_line = fn.binary("and", want, WANT_LINE) != 0
        beside = fn.binary("and", field(fn, held, DATA, int64), host.LINE - 1) != 0
        known = fn.binary("lshr", want, 8)
        base = field(fn, held, BASE, int64)

        def lent() -> list[Value]:
            """Whether what holds the memory has other views, or is no array."""
            holder = pointer(fn, base)
            views = field(fn, holder, REFERENCES, int64)
            return [(views != 1) | (field(fn, holder, TYPE, int64) != array_type)]

        (is_lent,) = replaced(fn, base != 0, [base != base], lent)
        shared = (
            (field(fn, held, REFERENCES, int64) > known)
            | is_lent
            | (fn.binary("and", flags, _WRITEABLE) == 0)
        )
        return bad | (own & shared) | (at_line & beside)

    no = fn.number(0) != 0
    (found,) = fold(fn, fn.number(0), count, 1, [no], check)
    status = fn.select(found, fn.number(REFUSES), fn.number(DONE))
    put(fn, plan, STATUS, status)
    put(fn, plan, END, fn.number(ENDLESS))
    addresses = pointer(fn, word(fn, plan, ADDRESSES))

    def fill(i: Value) -> None:
        row = address_at(fn, addresses, i, 24)
        target = pointer(fn, word(fn, row, 0))
        held = pointer(fn, word(fn, objects, word(fn, row, 1)))
        data = field(fn, held, DATA, int64)
        store(fn, data + word(fn, row, 2), target)

    total = fn.select(found, fn.number(0), word(fn, plan, NUM_ADDRESSES))
    loop(fn, fn.number(0), total, 1, fill)


def _pause(fn: IRFunction) -> None:
    """Tell the processor that this is a loop of waiting."""
    if host.is_x86():
        fn.module.declarations["pause"] = "declare void @llvm.x86.sse2.pause()"
        fn.line("call void @llvm.x86.sse2.pause()")
    elif host.is_arm():
        fn.module.declarations["pause"] = "declare void @llvm.aarch64.hint(i32 immarg)"
        fn.line("call void @llvm.aarch64.hint(i32 1)")


def _atomic(fn: IRFunction, place: str) -> Value:
    """Read a word that other threads write.

    All threads see all writes and reads of such words in one order: one that falls asleep has said
    so before it looks for a job, and one with a job has said so before it looks for sleepers, so at
    least one of them notices. On ARM reads that only acquire may come before earlier writes.
    """
    return fn.instruction(f"load atomic i64, ptr {place} seq_cst, align 8", int64, 0)


def _publish(fn: IRFunction, value: Value, place: str) -> None:
    fn.line(f"store atomic {value}, ptr {place} seq_cst, align 8")


def _add(fn: IRFunction, place: str, value: int) -> Value:
    """Add to a counter; gives what it was."""
    return fn.instruction(f"atomicrmw add ptr {place}, i64 {value} seq_cst", int64, 0)


def _give_way(fn: IRFunction) -> None:
    fn.module.declarations["sched_yield"] = "declare i32 @sched_yield()"
    fn.line(f"{fn.fresh()} = call i32 @sched_yield()")


def _until_changed(fn: IRFunction, place: str, old: Value, spins: int) -> tuple[Value, Value]:
    """Wait until a word is not `old`, `spins` rounds at most; gives the word, and if it changed."""

    def again(round: Value) -> tuple[Value, Value]:
        _pause(fn)
        following = round + 1
        return following, (_atomic(fn, place) == old) & (following < spins)

    repeat(fn, fn.number(0), again)
    now = _atomic(fn, place)
    return now, now != old


def _wait(module: Module) -> None:
    """`wait(ptr pool, i64 nth)`: a barrier."""
    fn = IRFunction(module, "wait", [POINTER, "i64"])
    pool = fn.arguments[0]
    nth = Value(fn, fn.arguments[1], int64, 0)
    round_place, arrived = at(fn, pool, ROUND), at(fn, pool, ARRIVED)
    round = _atomic(fn, round_place)
    last = _add(fn, arrived, 1) + 1 == nth

    def release() -> None:
        _publish(fn, fn.number(0), arrived)
        _publish(fn, round + 1, round_place)

    def hold() -> None:
        def again(x: Value) -> tuple[Value, Value]:
            _until_changed(fn, round_place, round, _SPINS)
            waiting = _atomic(fn, round_place) == round
            when(fn, waiting, lambda: _give_way(fn))
            return x, _atomic(fn, round_place) == round

        repeat(fn, round, again)

    when(fn, last, release)
    when(fn, ~last, hold)


def _end_here(fn: IRFunction, plan: str, place: str, here: Value) -> None:
    """Write down that a plan, or a loop in it, ends at `here`, if it has been cancelled."""
    is_first = (_atomic(fn, at(fn, plan, CANCELLED)) != 0) & (_atomic(fn, place) > here)
    when(fn, is_first, lambda: _publish(fn, here, place))


def _walk(module: Module) -> None:
    """`walk(ptr plan, ptr kernels, i64 count, i64 first, i64 tid, i64 nth, ptr end)`: run a table.

    Behind each of the `first` kernels it ends if the plan has been cancelled. A loop that ends by a
    test fails there then.
    """
    fn = IRFunction(module, "walk", [POINTER, POINTER, *["i64"] * 4, POINTER])
    plan, kernels, *_, end = fn.arguments
    count, first, tid, nth = (Value(fn, a, int64, 0) for a in fn.arguments[2:6])
    pool = pointer(fn, word(fn, plan, POOL))
    store(fn, fn.number(_WENT_ON), end)

    def one(i: Value) -> tuple[Value, Value]:
        row = address_at(fn, kernels, i, 8 * ROW_WORDS)
        flags = word(fn, row, 2)
        parallel = fn.binary("and", flags, PARALLEL) != 0
        mine = parallel | (tid == 0)
        code = pointer(fn, word(fn, row, 0))
        words = pointer(fn, word(fn, row, 1))
        threads = fn.select(parallel, nth, fn.number(1))
        when(fn, mine, lambda: fn.line(f"call void {code}(ptr {words}, {tid}, {threads})"))
        several = nth > 1
        stops = fn.binary("and", flags, STOP) != 0

        def ask() -> None:
            failed = convert(fn, fn.number(_FAILED), uint8)
            cancelled = _atomic(fn, at(fn, plan, CANCELLED)) != 0
            when(fn, cancelled, lambda: store(fn, failed, pointer(fn, word(fn, row, 3))))

        when(fn, stops & (tid == 0), ask)
        meet = (fn.binary("and", flags, BARRIER) != 0) & several
        may_end = (meet | (nth == 1)) & (i < first)
        place = at(fn, plan, END)
        when(fn, may_end & (tid == 0), lambda: _end_here(fn, plan, place, i))
        when(fn, meet, lambda: fn.line(f"call void @wait(ptr {pool}, {nth})"))
        following = i + 1
        checked = fn.binary("and", flags, CHECK | STOP) != 0

        def look() -> list[Value]:
            result = load(fn, pointer(fn, word(fn, row, 3)), uint8, 0)
            bad = result != 0
            is_stop = stops & (result == _STOPPED)
            ended = fn.select(is_stop, fn.number(_STOPPED), fn.number(_FAILED))
            when(fn, bad, lambda: store(fn, ended, end))
            again = (fn.binary("and", flags, SETTLE) != 0) & several
            when(fn, again, lambda: fn.line(f"call void @wait(ptr {pool}, {nth})"))
            return [fn.select(bad, count, following)]

        (following,) = replaced(fn, checked, [following], look)

        def leave() -> list[Value]:
            ends = _atomic(fn, place) <= i
            when(fn, ends, lambda: store(fn, fn.number(_FAILED), end))
            return [fn.select(ends, count, following)]

        (following,) = replaced(fn, may_end, [following], leave)
        return following, following < count

    when(fn, count > 0, lambda: repeat(fn, fn.number(0), one))


def _walk_on(
    fn: IRFunction, plan: str, kernels: str, count: Value, first: Value, tid: Value, nth: Value
) -> Callable[[], Value]:
    """A call of `walk` on a table: calling what it gives runs it, and tells how it ended."""
    numbers = f"{count}, {first}, {tid}, {nth}"
    end = fn.named("alloca i64, align 8")

    def run() -> Value:
        fn.line(f"call void @walk(ptr {plan}, ptr {kernels}, {numbers}, ptr {end})")
        return load(fn, end, int64, 0)

    return run


def _work(module: Module) -> None:
    fn = IRFunction(module, "work", [POINTER, "i64", "i64"])
    plan = fn.arguments[0]
    tid, nth = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
    kernels = pointer(fn, word(fn, plan, KERNELS))
    count, first = word(fn, plan, NUM_KERNELS), word(fn, plan, CANCELLABLE)
    walk = _walk_on(fn, plan, kernels, count, first, tid, nth)

    def run() -> None:
        failed = walk() == _FAILED
        when(fn, failed, lambda: put(fn, plan, STATUS, fn.number(CHECK_FAILED)))

    flushed(fn, run)


def _alone(module: Module) -> None:
    fn = IRFunction(module, "alone", [POINTER, POINTER])
    code, words = fn.arguments
    flushed(fn, lambda: fn.line(f"call void {code}(ptr {words}, i64 0, i64 1)"))


def _loop(module: Module) -> None:
    fn = IRFunction(module, "loop", [POINTER, "i64", "i64"])
    words = fn.arguments[0]
    tid, nth = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
    plan = pointer(fn, word(fn, words, LOOP_PLAN))
    count = word(fn, words, LOOP_COUNT)
    part = pointer(fn, word(fn, pointer(fn, word(fn, words, LOOP_THREADS)), tid))
    kernels = pointer(fn, word(fn, part, PART_KERNELS))
    moves = pointer(fn, word(fn, part, PART_MOVES))
    num_moves = word(fn, part, PART_NUM_MOVES)
    num_kernels = word(fn, part, PART_NUM_KERNELS)
    walk = _walk_on(fn, plan, kernels, num_kernels, fn.number(0), tid, nth)
    is_cancellable = word(fn, words, LOOP_CANCELLABLE) != 0
    end = at(fn, words, LOOP_END)

    def begin() -> None:
        put(fn, words, LOOP_FAILED, fn.number(0))
        _publish(fn, fn.number(ENDLESS), end)

    when(fn, tid == 0, begin)

    def iteration(t: Value) -> tuple[Value, Value]:
        def move(i: Value) -> None:
            row = address_at(fn, moves, i, 8 * MOVE_WORDS)
            place = pointer(fn, word(fn, row, 0))
            store(fn, word(fn, row, 1) + t * word(fn, row, 2), place)

        loop(fn, fn.number(0), num_moves, 1, move)
        following = t + 1
        when(fn, is_cancellable & (tid == 0), lambda: _end_here(fn, plan, end, following))
        way = walk()
        goes_on = (way == _WENT_ON) & (following < count)
        (ends,) = replaced(
            fn,
            goes_on & is_cancellable,
            [fn.number(0) != 0],
            lambda: [_atomic(fn, end) <= following],
        )
        failed = (way == _FAILED) | ends
        when(fn, failed, lambda: put(fn, words, LOOP_FAILED, fn.number(1)))
        return following, goes_on & ~ends

    when(fn, count > 0, lambda: repeat(fn, fn.number(0), iteration))


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


def _run(module: Module) -> None:
    """`run(ptr plan, ptr objects)`: enter and work, on one thread."""
    fn = IRFunction(module, "run", [POINTER, POINTER])
    plan, objects = fn.arguments
    fn.line(f"call void @enter(ptr {plan}, ptr {objects})")
    fine = word(fn, plan, STATUS) == DONE
    when(fn, fine, lambda: fn.line(f"call void @work(ptr {plan}, i64 0, i64 1)"))


def _worker(module: Module) -> None:
    fn = IRFunction(module, "worker", [POINTER, "i64", "i64"])
    pool = fn.arguments[0]
    tid, first = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
    job_place = at(fn, pool, JOB)

    def life(seen: Value) -> tuple[Value, Value]:
        job, changed = _until_changed(fn, job_place, seen, _SPINS * 8)

        def sleep() -> list[Value]:
            asleep = at(fn, pool, ASLEEP)
            _add(fn, asleep, 1)
            _futex(fn, job_place, _FUTEX_WAIT, seen)
            _add(fn, asleep, -1)
            now = _atomic(fn, job_place)
            return [now, now != seen]

        job, changed = replaced(fn, ~changed, [job, changed], sleep)
        quit = _atomic(fn, at(fn, pool, QUIT)) != 0

        def run() -> None:
            plan = pointer(fn, word(fn, pool, PLAN))
            threads = word(fn, pool, THREADS)
            fn.line(f"call void @work(ptr {plan}, {tid}, {threads})")
            _add(fn, at(fn, pool, FINISHED), 1)

        when(fn, changed & ~quit, run)
        return fn.select(changed, job, seen), ~quit

    repeat(fn, first, life)


def _wake(module: Module) -> None:
    """`wake(ptr pool)`: there is a new job."""
    fn = IRFunction(module, "wake", [POINTER])
    pool = fn.arguments[0]
    threads = word(fn, pool, THREADS)
    _add(fn, at(fn, pool, JOB), 1)
    asleep = _atomic(fn, at(fn, pool, ASLEEP))
    when(fn, asleep > 0, lambda: _futex(fn, at(fn, pool, JOB), _FUTEX_WAKE, threads))


def _start(module: Module) -> None:
    fn = IRFunction(module, "start", [POINTER, POINTER])
    pool, plan = fn.arguments
    address = fn.instruction(f"ptrtoint ptr {plan} to i64", int64, 0)
    put(fn, pool, PLAN, address)
    finished = at(fn, pool, FINISHED)
    _publish(fn, fn.number(0), finished)
    threads = word(fn, pool, THREADS)
    fn.line(f"call void @wake(ptr {pool})")
    fn.line(f"call void @work(ptr {plan}, i64 0, {threads})")

    def again(x: Value) -> tuple[Value, Value]:
        now = _atomic(fn, finished)
        waiting = now + 1 < threads
        _until_changed(fn, finished, now, _SPINS)
        when(fn, waiting, lambda: _give_way(fn))
        return x, _atomic(fn, finished) + 1 < threads

    when(fn, _atomic(fn, finished) + 1 < threads, lambda: repeat(fn, fn.number(0), again))


def _share(module: Module) -> None:
    """`share(ptr plan, ptr objects)`: enter and work, on all threads of the plan's pool."""
    fn = IRFunction(module, "share", [POINTER, POINTER])
    plan, objects = fn.arguments
    fn.line(f"call void @enter(ptr {plan}, ptr {objects})")
    fine = word(fn, plan, STATUS) == DONE

    def start() -> None:
        fn.line(f"call void @start(ptr {pointer(fn, word(fn, plan, POOL))}, ptr {plan})")

    when(fn, fine, start)
