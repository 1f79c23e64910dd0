"""A plan of kernels that count, to see that each thread of a pool does its part of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine.compiler.codegen import driver_words
from laminar.engine.compiler.codegen.function import POINTER, IRFunction, Module, Value
from laminar.engine.compiler.codegen.memory import address_at, load, store
from laminar.engine.compiler.native.threads import Pool
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.code_cache import address_of
from laminar.engine.compiler.target.llvm import vector_bytes
from laminar.engine.graph import int64


def _counting() -> str:
    """words[1 + tid] += words[0], a kernel of which each thread does its own part."""
    module = Module()
    fn = IRFunction(module, "count", [POINTER, "i64", "i64"])
    tid = Value(fn, fn.arguments[1], int64, 0)
    step = load(fn, fn.arguments[0], int64, 0)
    place = address_at(fn, fn.arguments[0], tid + 1, 8)
    store(fn, load(fn, place, int64, 0) + step, place)
    return module.text()


def counting_plan(pool: Pool, num_kernels: int) -> tuple[Any, Any, Any]:
    """The plan, its table, which must live as long, and the words that threads count in by 3."""
    words = np.zeros(16, np.int64)
    words[0] = 3
    code = address_of(Code("count", vector_bytes(), _counting, ()))
    row = (code, words.ctypes.data, driver_words.PARALLEL | driver_words.BARRIER, 0)
    table = np.array([row] * num_kernels, np.int64)
    plan = np.zeros(driver_words.PLAN_WORDS, np.int64)
    plan[driver_words.NUM_KERNELS] = num_kernels
    plan[driver_words.KERNELS] = table.ctypes.data
    plan[driver_words.POOL] = pool.address
    return plan, table, words
