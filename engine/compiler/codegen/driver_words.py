"""What native code and Python write for each other: the words of plans, loops and pools."""

from __future__ import annotations

# An array must be contiguous and aligned. A variable's of more than a line of the cache begins at
# one, for vectors that cross lines take twice as long. One that is written in place must also
# belong to nobody else: then this is asked of it, with the number of references it may have in the
# bits above.
WANT_LINE, WANT_OWN = 1, 2

# Flags of a kernel. The result of a check stops the run, or, with STOP, the loop it is in. With
# SETTLE threads meet again when they have looked: the next iteration makes another result. In a
# kernel that MEETS, a loop of short ones, threads wait for each other often.
PARALLEL, BARRIER, CHECK, STOP, SETTLE, MEETS = 1, 2, 4, 8, 16, 32

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
JOURNAL = 13  # of a plan whose runs are recorded: see traced_kernel.py
PLAN_WORDS = 16

# Values of STATUS; calls use 3, too (OTHER_SHAPES, cpython_code.py). A run that has no room to be
# recorded has not been begun.
DONE, REFUSES, CHECK_FAILED, NO_ROOM = 0, 1, 2, 4

# How a walk through a table of kernels ends; the result of a STOP is one of these.
WENT_ON, STOPPED, FAILED = 0, 1, 2

# Words of a pool, on cache lines of their own: the phase, odd while a kernel is open; the plan, its
# kernel, and how many of its shares are left; who sleeps, of those that the pool has and of those
# that wait for the end of a plan; the barrier of loops, and who sleeps there; by how many
# rounds less than at first a thread waits before it sleeps; how often, of late, threads slept at
# that barrier. From CLAIMS on there is a word for each share: the last phase in which it was
# claimed.
WORDS_OF_LINE = 8
PHASE, PLAN, ROW, LEFT, THREADS, QUIT, ASLEEP, WAITING, ARRIVED, ROUND, MEETING = (
    i * WORDS_OF_LINE for i in range(11)
)
FEWER_SPINS, LATE, CLAIMS = (i * WORDS_OF_LINE for i in (11, 12, 13))


def pool_words(num_threads: int) -> int:
    """How many words a pool of so many threads has."""
    return CLAIMS + num_threads * WORDS_OF_LINE
