"""Running plans on an emulated processor: linked into a program in C that stands in for Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from laminar.engine.compiler.codegen import driver_words
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.plan.executable_plan import ExecutablePlan, driver_codes

from ..ops.native import Array
from .cross_compiling import symbol_of
from .families import Case

COMPILER = shutil.which("aarch64-linux-gnu-gcc")
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")

# The numbers at the beginning of the file of a case; then come its words, moves, codes, arrays.
_HEADER = (
    *("words", "moves", "patches", "kernels", "wants", "num_patches", "num_kernels"),
    *("num_wants", "arena", "constants", "codes", "arrays", "outputs"),
)
_PROGRAM = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int64_t word;
typedef void (*native)(void *, void *);
typedef void (*worker)(void *, word);
%(declared)s
static void *codes[] = {%(codes)s};
static word pool[%(POOL_WORDS)d] __attribute__((aligned(64)));
static worker live;

static void *aligned(size_t size) { return aligned_alloc(64, (size + 128) / 64 * 64); }

static void *thread(void *number) { live(pool, (word)number); return 0; }

/* What is in the file: its size, then its bytes. */
static void *array(FILE *file, word *size) {
    if (fread(size, 8, 1, file) != 1) abort();
    void *data = aligned(*size);
    if (fread(data, 1, *size, file) != (size_t)*size) abort();
    return data;
}

int main(int count, char **paths) {
    for (int i = 1; i + 2 < count; i += 3) {
        word n[%(header)d], size, plan[%(PLAN_WORDS)d] = {0};
        word threads = atoi(paths[i + 2]);
        FILE *file = fopen(paths[i], "rb");
        if (!file || fread(n, sizeof n, 1, file) != 1) abort();
        word *words = array(file, &size), *moves = array(file, &size), *used = array(file, &size);
        word *bases = aligned(8 * (3 + n[9] + n[10]));
        bases[0] = (word)words;
        bases[1] = (word)aligned(n[8]);
        bases[2] = (word)plan;
        for (word k = 0; k < n[9]; k++) bases[3 + k] = (word)array(file, &size);
        for (word k = 0; k < n[10]; k++) bases[3 + n[9] + k] = (word)codes[used[k]];
        for (word k = 0; k < n[1]; k++) words[moves[2 * k]] += bases[moves[2 * k + 1]];
        /* Arrays as Python holds them. */
        word **objects = aligned(8 * n[11]), *sizes = aligned(8 * n[11]);
        for (word k = 0; k < n[11]; k++) {
            objects[k] = memset(aligned(128), 0, 128);
            objects[k][0] = 1;
            objects[k][1] = (word)&main;
            objects[k][2] = (word)array(file, &sizes[k]);
            objects[k][8] = 0x501;
        }
        fclose(file);
        plan[%(NUM_ARRAYS)d] = n[7];
        plan[%(WANTS)d] = (word)(words + n[4]);
        plan[%(NUM_ADDRESSES)d] = n[5];
        plan[%(ADDRESSES)d] = (word)(words + n[2]);
        plan[%(NUM_KERNELS)d] = n[6];
        plan[%(KERNELS)d] = (word)(words + n[3]);
        plan[%(ARRAY_TYPE)d] = (word)&main;
        plan[%(REFUSED)d] = (word)aligned(8 * n[11]);
        native run = codes[used[n[10]]], share = codes[used[n[10] + 1]];
        if (threads == 1) {
            run(plan, objects);
        } else {
            native wake = codes[used[n[10] + 3]];
            live = (worker)codes[used[n[10] + 4]];
            memset(pool, 0, sizeof pool);
            pool[%(THREADS)d] = threads;
            pthread_t others[16];
            for (word t = 1; t < threads; t++) pthread_create(&others[t], 0, thread, (void *)t);
            plan[%(POOL)d] = (word)pool;
            share(plan, objects);
            pool[%(QUIT)d] = 1;
            wake(pool, 0);
            for (word t = 1; t < threads; t++) pthread_join(others[t], 0);
        }
        if (plan[%(STATUS)d] != %(DONE)d) return 1;
        file = fopen(paths[i + 1], "wb");
        for (word k = n[11] - n[12]; k < n[11]; k++) {
            if (fwrite((void *)objects[k][2], 1, sizes[k], file) != (size_t)sizes[k]) abort();
        }
        fclose(file);
    }
    return 0;
}
"""
_OFFSETS = {
    name: getattr(driver_words, name)
    for name in (
        *("STATUS", "NUM_ARRAYS", "WANTS", "NUM_ADDRESSES", "ADDRESSES", "NUM_KERNELS", "KERNELS"),
        *("POOL", "ARRAY_TYPE", "REFUSED", "PLAN_WORDS", "DONE"),
        *("QUIT", "THREADS"),
    )
}


class LoopProgram:
    """The program with the object code of some plans.

    Args:
        folder: where its files go.
        executable plans: the plans.
        made: object code by its key.
    """

    def __init__(
        self, folder: Path, executable_plans: Sequence[ExecutablePlan], made: Mapping[str, bytes]
    ) -> None:
        assert COMPILER
        self._folder = folder
        functions = {
            f
            for executable_plan in executable_plans
            for f in (*executable_plan.codes, *driver_codes(True))
        }
        symbols = sorted({symbol_of(f) for f in functions})
        self._numbers = {symbol: i for i, symbol in enumerate(symbols)}
        numbers = {
            **_OFFSETS,
            "POOL_WORDS": driver_words.pool_words(16),
            "header": len(_HEADER),
            "declared": "\n".join(f"void {symbol}(void);" for symbol in symbols),
            "codes": ", ".join(f"(void *){symbol}" for symbol in symbols),
        }
        source = folder / "program.c"
        source.write_text(_PROGRAM % numbers)
        objects = []
        for key, content in made.items():
            objects.append(folder / f"{key}.o")
            objects[-1].write_bytes(content)
        self._path = folder / "program"
        options = ["-O1", "-static", "-pthread"]
        subprocess.run([COMPILER, *options, "-o", self._path, source, *objects], check=True)

    def run(self, cases: Sequence[tuple[Case, ExecutablePlan]], threads: int) -> list[list[Array]]:
        """The outputs of cases."""
        assert EMULATOR
        command: list[str | Path] = [EMULATOR, self._path]
        for i, (case, executable_plan) in enumerate(cases):
            given, made = self._folder / f"{i}.in", self._folder / f"{i}.{threads}.out"
            self._write(given, case, executable_plan)
            command += [given, made, str(threads)]
        subprocess.run(command, check=True, timeout=30)
        return [
            self._read(self._folder / f"{i}.{threads}.out", case)
            for i, (case, _) in enumerate(cases)
        ]

    def _write(self, path: Path, case: Case, executable_plan: ExecutablePlan) -> None:
        arrays = [case.inputs[i] for i in _arrays_of(case)]
        arrays += [np.full(y.shape, 77, y.dtype) for y in case.expected]
        codes = [self._numbers[symbol_of(f)] for f in executable_plan.codes]
        used = [*codes, *(self._numbers[symbol_of(f)] for f in driver_codes(True))]
        values = {
            "words": len(executable_plan.memory),
            "moves": len(executable_plan.moves),
            **dict(zip(("patches", "kernels", "wants"), executable_plan.places, strict=True)),
            **dict(
                zip(
                    ("num_patches", "num_kernels", "num_wants"), executable_plan.counts, strict=True
                )
            ),
            "arena": executable_plan.arena_bytes,
            "constants": len(executable_plan.constants),
            "codes": len(codes),
            "arrays": len(arrays),
            "outputs": len(case.expected),
        }
        with path.open("wb") as file:
            file.write(np.array([values[name] for name in _HEADER], "<i8").tobytes())
            for part in (
                *(executable_plan.memory, executable_plan.moves, np.array(used, "<i8")),
                *(*executable_plan.constants, *arrays),
            ):
                data = np.ascontiguousarray(part).tobytes()
                file.write(np.array([len(data)], "<i8").tobytes() + data)

    def _read(self, path: Path, case: Case) -> list[Array]:
        data, found = path.read_bytes(), []
        for y in case.expected:
            found.append(np.frombuffer(data[: y.nbytes], y.dtype).reshape(y.shape))
            data = data[y.nbytes :]
        return found


def _arrays_of(case: Case) -> list[int]:
    """Which inputs are arrays, and no sizes."""
    return NativeCluster(case.body)._arrays
