"""Native code that runs a plan: finds the data of Python's arrays, and runs the kernels in order.

    enter(ptr plan, ptr objects, i64 count): checks the arrays, fills in their addresses;
    run(ptr plan, ptr objects): `enter` and `work` on one thread;
    share(ptr plan, ptr objects): `enter` and `start`, on the pool that the plan names;
    work(ptr plan): all kernels on one thread, with subnormal numbers as 0;
    alone(ptr code, ptr words): a kernel by itself, on one thread, as `work` runs it;
    loop(ptr words, i64 tid, i64 nth): a kernel that runs a table of kernels many times;
    start, wake, worker: how threads share a plan, see shares.py.

The words of a plan and of a pool are named in driver_words.py. A plan's tables hold, for each
array, what is asked of it (0, or WANT_OWN), for each address in the kernels' words (its place, the
array, the offset), and for each kernel (code, words, flags, the address of a check's result). In
one more, `enter` marks the arrays that are not as they must be.

A loop has a table of kernels, and words of its own, for each thread: before iteration t a thread
moves on, by t steps, the addresses in its own kernels' words, so no thread waits for another.

A plan that takes long can be cancelled as long as it has written to no variable: between its first
kernels, of which it says how many, and in loops among those between iterations. In a loop all
threads must end at one place. So thread 0, before they meet, writes down the place: behind the
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
from .driver_words import (
    ADDRESSES,
    ARRAY_TYPE,
    BARRIER,
    CANCELLABLE,
    CANCELLED,
    CHECK,
    CHECK_FAILED,
    DONE,
    END,
    ENDLESS,
    FAILED,
    KERNELS,
    LOOP_CANCELLABLE,
    LOOP_COUNT,
    LOOP_END,
    LOOP_FAILED,
    LOOP_PLAN,
    LOOP_THREADS,
    MOVE_WORDS,
    NUM_ADDRESSES,
    NUM_ARRAYS,
    NUM_KERNELS,
    PARALLEL,
    PART_KERNELS,
    PART_MOVES,
    PART_NUM_KERNELS,
    PART_NUM_MOVES,
    POOL,
    REFUSED,
    REFUSES,
    ROW_WORDS,
    SETTLE,
    STATUS,
    STOP,
    STOPPED,
    WANT_LINE,
    WANT_OWN,
    WANTS,
    WENT_ON,
)
from .function import POINTER, IRFunction, Module, Value
from .memory import address_at, load, store
from .shares import atomic, publish, shares_text
from .subnormals import flushed

# Flags of an ndarray.
_ASKED, _WRITEABLE = 0x101, 0x400  # contiguous and aligned


POOL_FUNCTIONS = ("start", "wake", "worker")  # what a pool calls


def driver_code(symbol: str) -> Code:
    """The code of one of the functions."""
    return Code(symbol, vector_bytes(), text, ())


def text() -> str:
    """The IR of the functions."""
    module = Module()
    IRFunction(module, "nothing", [POINTER, "i64", "i64"])  # the kernel of a check
    _enter(module)
    shares_text(module)
    _walk(module)
    _work(module)
    _alone(module)
    _loop(module)
    _run(module)
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


def _end_here(fn: IRFunction, plan: str, place: str, here: Value) -> None:
    """Write down that a plan, or a loop in it, ends at `here`, if it has been cancelled."""
    is_first = (atomic(fn, at(fn, plan, CANCELLED)) != 0) & (atomic(fn, place) > here)
    when(fn, is_first, lambda: publish(fn, here, place))


def _walk(module: Module) -> None:
    """`walk(ptr plan, ptr kernels, i64 count, i64 first, i64 tid, i64 nth, ptr end)`: run a table.

    Behind each of the `first` kernels it ends if the plan has been cancelled. A loop that ends by a
    test fails there then.
    """
    fn = IRFunction(module, "walk", [POINTER, POINTER, *["i64"] * 4, POINTER])
    plan, kernels, *_, end = fn.arguments
    count, first, tid, nth = (Value(fn, a, int64, 0) for a in fn.arguments[2:6])
    pool = pointer(fn, word(fn, plan, POOL))
    store(fn, fn.number(WENT_ON), end)

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
            failed = convert(fn, fn.number(FAILED), uint8)
            cancelled = atomic(fn, at(fn, plan, CANCELLED)) != 0
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
            is_stop = stops & (result == STOPPED)
            ended = fn.select(is_stop, fn.number(STOPPED), fn.number(FAILED))
            when(fn, bad, lambda: store(fn, ended, end))
            again = (fn.binary("and", flags, SETTLE) != 0) & several
            when(fn, again, lambda: fn.line(f"call void @wait(ptr {pool}, {nth})"))
            return [fn.select(bad, count, following)]

        (following,) = replaced(fn, checked, [following], look)

        def leave() -> list[Value]:
            ends = atomic(fn, place) <= i
            when(fn, ends, lambda: store(fn, fn.number(FAILED), end))
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
    fn = IRFunction(module, "work", [POINTER])
    (plan,) = fn.arguments
    kernels = pointer(fn, word(fn, plan, KERNELS))
    count, first = word(fn, plan, NUM_KERNELS), word(fn, plan, CANCELLABLE)
    walk = _walk_on(fn, plan, kernels, count, first, fn.number(0), fn.number(1))

    def run() -> None:
        failed = walk() == FAILED
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
        publish(fn, fn.number(ENDLESS), end)

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
        goes_on = (way == WENT_ON) & (following < count)
        (ends,) = replaced(
            fn,
            goes_on & is_cancellable,
            [fn.number(0) != 0],
            lambda: [atomic(fn, end) <= following],
        )
        failed = (way == FAILED) | ends
        when(fn, failed, lambda: put(fn, words, LOOP_FAILED, fn.number(1)))
        return following, goes_on & ~ends

    when(fn, count > 0, lambda: repeat(fn, fn.number(0), iteration))


def _run(module: Module) -> None:
    """`run(ptr plan, ptr objects)`: enter and work, on one thread."""
    fn = IRFunction(module, "run", [POINTER, POINTER])
    plan, objects = fn.arguments
    fn.line(f"call void @enter(ptr {plan}, ptr {objects})")
    fine = word(fn, plan, STATUS) == DONE
    when(fn, fine, lambda: fn.line(f"call void @work(ptr {plan})"))


def _share(module: Module) -> None:
    """`share(ptr plan, ptr objects)`: enter and work, on all threads of the plan's pool."""
    fn = IRFunction(module, "share", [POINTER, POINTER])
    plan, objects = fn.arguments
    fn.line(f"call void @enter(ptr {plan}, ptr {objects})")
    fine = word(fn, plan, STATUS) == DONE

    def start() -> None:
        fn.line(f"call void @start(ptr {pointer(fn, word(fn, plan, POOL))}, ptr {plan})")

    when(fn, fine, start)
