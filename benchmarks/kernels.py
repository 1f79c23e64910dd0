"""Products of matrices and convolutions by themselves: `python -m benchmarks.kernels --help`.

laminar's kernels beside NumPy's products and torch, if it is installed, in one process, on as many
threads each: short blocks of each in turn, medians. Figures are billions of multiplications and
additions in a second; a ratio is the time of laminar by that of the best peer.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np

from laminar.engine.compiler.kernels import (
    Buffer,
    Convolution,
    Launch,
    Matrix,
    Target,
    plan_conv_filter_gradient,
    plan_conv_forward,
    plan_conv_input_gradient,
    plan_gemm,
)
from laminar.engine.compiler.native.threads import Pool
from laminar.engine.compiler.target import llvm
from laminar.engine.graph import float32

from . import machine as host
from .isa import ISAS, restricted
from .launches import Array, Prepared, aligned
from .report import TORCH_ON_AMD

# Long enough for the caches to forget what another library left there, and for its threads, which
# wait for more work for a while, to fall asleep: OpenBLAS's spin for 2^28 cycles, a tenth of a
# second, on a core that the next library needs.
_BLOCK_SECONDS = 5e-3
_REST_SECONDS = 0.15
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_TOLERANCE = 1e-4

PRODUCTS = (
    *((n, n, n) for n in (128, 256, 512, 1024, 2048)),
    *((128, 784, 512), (128, 512, 512), (128, 512, 10), (32, 128, 10), (1, 784, 512)),
    *((2048, 128, 512), (128, 2048, 512), (512, 2048, 128), (128, 2048, 128), (128, 2048, 1024)),
)  # rows, inner, columns
# Name: images, size, channels, filters, window, stride, padding.
CONVOLUTIONS = {
    "resnet 16": (32, 32, 16, 16, 3, 1, 1),
    "resnet 32": (32, 16, 32, 32, 3, 1, 1),
    "resnet 64": (32, 8, 64, 64, 3, 1, 1),
    "resnet 16-32, stride 2": (32, 32, 16, 32, 3, 2, 1),
    "resnet 32-64, stride 2": (32, 16, 32, 64, 3, 2, 1),
    "resnet 3-16": (32, 32, 3, 16, 3, 1, 1),
    "digits 1-32": (128, 28, 1, 32, 3, 1, 0),
    "digits 32-64": (128, 26, 32, 64, 3, 1, 0),
    "digits 1-32, 5x5": (128, 28, 1, 32, 5, 1, 2),
    "56x56 64-64": (8, 56, 64, 64, 3, 1, 1),
    "224x224 3-64, 7x7, stride 2": (8, 224, 3, 64, 7, 2, 3),
}
DEPTHWISE = {
    "depthwise 32x32 64": (32, 32, 64, 3, 1, 1),
    "depthwise 32x32 64, stride 2": (32, 32, 64, 3, 2, 1),
}  # images, size, channels, window, stride, padding

PLANS: dict[str, Callable[..., list[Launch]]] = {
    "forward": plan_conv_forward,
    "input gradient": plan_conv_input_gradient,
    "filter gradient": plan_conv_filter_gradient,
}

Run = Callable[[], Any]


class Case(NamedTuple):
    """What is timed: a name, its arithmetic, and each library's way to do it.

    `compare` says by how much, relative to the largest number, laminar's result is off.
    """

    name: str
    operations: float
    runs: dict[str, Run]
    compare: Callable[[], float]


class Machine(NamedTuple):
    """What laminar's kernels are made for, and the threads that run them; None for the caller's."""

    target: Target
    pool: Pool | None

    def run(self, launches: Sequence[Launch], arrays: Sequence[Array]) -> Run:
        """What runs launches."""
        ready = Prepared(launches, arrays)
        return ready.run if self.pool is None else ready.on(self.pool)


def normal(*shape: int) -> Array:
    array = aligned(shape)
    array[...] = np.random.default_rng(0).standard_normal(shape)
    return array


def off(found: Array, wanted: Array) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def products(machine: Machine, torch: Any) -> Iterator[Callable[[], Case]]:
    for rows, inner, columns in PRODUCTS:
        for kind in ("nn", "tn", "nt", "tt"):

            def case(m: int = rows, k: int = inner, n: int = columns, kind: str = kind) -> Case:
                turned_a, turned_b = (c == "t" for c in kind)
                a = normal(k, m) if turned_a else normal(m, k)
                b = normal(n, k) if turned_b else normal(k, n)
                c, other = aligned((m, n)), aligned((m, n))
                left, right = (a.T if turned_a else a), (b.T if turned_b else b)
                strides = [[s // 4 for s in x.strides] for x in (left, right, c)]
                matrices = [Matrix(Buffer(i), r, s) for i, (r, s) in enumerate(strides)]
                x, y, z = matrices
                launches = plan_gemm(x, y, z, m, n, k, float32, machine.target)
                runs: dict[str, Run] = {
                    "laminar": machine.run(launches, [a, b, c]),
                    "numpy": lambda: np.matmul(left, right, out=other),
                }
                if torch is not None:
                    p, q, r = (torch.from_numpy(v) for v in (left, right, np.empty_like(c)))
                    runs["torch"] = lambda: torch.mm(p, q, out=r)
                name = f"{m} x {k} x {n} {kind}"
                return Case(name, 2 * m * n * k, runs, lambda: off(c, other))

            yield case


def convolutions(machine: Machine, torch: Any) -> Iterator[Callable[[], Case]]:
    kinds = {name: (*sizes, 1) for name, sizes in CONVOLUTIONS.items()}
    for name, (n, size, c, window, stride, pad) in DEPTHWISE.items():
        kinds[name] = (n, size, c, c, window, stride, pad, c)
    for name, (n, size, c, m, window, stride, pad, groups) in kinds.items():
        conv = Convolution(
            n,
            (size,) * 2,
            c,
            m,
            (window,) * 2,
            (stride,) * 2,
            (1, 1),
            ((pad, pad),) * 2,
            groups,
        )
        for what in PLANS:

            def case(name: str = name, what: str = what, conv: Convolution = conv) -> Case:
                return convolution(f"{name}, {what}", what, conv, machine, torch)

            yield case


def convolution(name: str, what: str, conv: Convolution, machine: Machine, torch: Any) -> Case:
    x = normal(conv.images, *conv.size, conv.channels)
    inside = conv.channels // conv.groups
    filters = normal(*conv.window, inside, conv.filters)
    dy = normal(conv.images, *conv.output, conv.filters)
    operands, result = {
        "forward": ([x, filters], aligned(dy.shape)),
        "input gradient": ([dy, filters], aligned(x.shape)),
        "filter gradient": ([x, dy], aligned(filters.shape)),
    }[what]
    launches = PLANS[what](Buffer(0), Buffer(1), Buffer(2), conv, float32, machine.target)
    runs: dict[str, Run] = {"laminar": machine.run(launches, [*operands, result])}
    operations = 2.0 * math.prod(conv.output) * conv.images * filters.size
    if torch is None:
        return Case(name, operations, runs, lambda: 0.0)
    last = [torch.from_numpy(v).permute(0, 3, 1, 2) for v in (x, dy)]
    weights = torch.from_numpy(filters).permute(3, 2, 0, 1)
    before = (0, 2, 3, 1) if what != "filter gradient" else (2, 3, 1, 0)
    wanted: list[Any] = []
    for layout in ("channels_last", "contiguous_format"):
        form = getattr(torch, layout)
        u, v, w = (t.contiguous(memory_format=form) for t in (*last, weights))

        def run(u: Any = u, v: Any = v, w: Any = w) -> Any:
            wanted[:] = [torch_convolution(torch, what, conv, u, v, w)]

        runs[f"torch {'nhwc' if layout == 'channels_last' else 'nchw'}"] = run
    return Case(name, operations, runs, lambda: off(result, wanted[0].permute(*before).numpy()))


def torch_convolution(torch: Any, what: str, conv: Convolution, x: Any, dy: Any, w: Any) -> Any:
    padding = [before for before, _ in conv.padding]
    strides = list(conv.strides)
    if what == "forward":
        return torch.conv2d(x, w, None, strides, padding, 1, conv.groups)
    place = 0 if what == "input gradient" else 1
    mask = [place == i for i in range(3)]
    return torch.ops.aten.convolution_backward(
        dy, x, w, None, strides, padding, [1, 1], False, [0, 0], conv.groups, mask
    )[place]


def measure(case: Case, seconds: float, rest: float = 0.0) -> dict[str, float]:
    """Seconds of one run of each: medians of blocks, taken in turn, with a rest before each.

    The first of two blocks is not timed: another library may have left the last cache without the
    operands, and it takes some runs until they are back.
    """
    numbers = {}
    for name, run in case.runs.items():
        sleep(rest)
        run()
        start = perf_counter()
        run()
        numbers[name] = max(1, int(_BLOCK_SECONDS / (perf_counter() - start)))
    if (error := case.compare()) > _TOLERANCE:
        raise SystemExit(f"{case.name}: laminar's result is off by {error:.1e}")
    blocks: dict[str, list[float]] = {name: [] for name in case.runs}
    end = perf_counter() + seconds
    while perf_counter() < end or len(blocks["laminar"]) < 3:
        for name, run in case.runs.items():
            sleep(rest)
            for _ in range(numbers[name]):
                run()
            start = perf_counter()
            for _ in range(numbers[name]):
                run()
            blocks[name].append((perf_counter() - start) / numbers[name])
    return {name: median(times) for name, times in blocks.items()}


def cores() -> list[int]:
    """The cores that this process may use, where it can say which."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin(numbers: Sequence[int]) -> None:
    """Give this thread and those of the pool a core each, as OMP_PROC_BIND does for torch.

    A thread that is woken would share the core of the one that wakes it for a while.
    """
    workers = [t for t in threading.enumerate() if t.name.startswith("native-")]
    for core, thread in zip(numbers, [threading.main_thread(), *workers], strict=False):
        os.sched_setaffinity(thread.native_id or 0, {core})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.kernels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in the name")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each case")
    parser.add_argument("--threads", type=int, default=1, help="of each library")
    parser.add_argument("--isa", choices=ISAS, help="keep all to these instructions")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    threads = options.threads
    allowed = cores()  # before OpenMP takes one of them for this thread
    pool = Pool(threads) if threads > 1 else None
    machine = Machine(Target(llvm.vector_bytes(), threads), pool)
    print(f"vectors of {8 * machine.target.vector_bytes} bits, kept to {options.isa or 'nothing'}")
    torch: Any = None
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        if host.describe().get("vendor") == "AuthenticAMD":
            print(TORCH_ON_AMD)
    if machine.pool is not None:
        pin(allowed)
    for make in (*products(machine, torch), *convolutions(machine, torch)):
        case = make()
        if options.only not in case.name:
            continue
        times = measure(case, options.seconds, _REST_SECONDS if threads > 1 else 0.0)
        rates = "  ".join(f"{n} {case.operations / t / 1e9:6.1f}" for n, t in times.items())
        peers = [t for name, t in times.items() if name != "laminar"]
        ratio = f"  ratio {times['laminar'] / min(peers):.2f}" if peers else ""
        print(f"{case.name:45} {rates}{ratio}", flush=True)
    return 0


if __name__ == "__main__":
    wanted = _parser().parse_args()
    told = restricted(dict.fromkeys(_THREADS, str(wanted.threads)), wanted.isa)
    if any(os.environ.get(name) != value for name, value in told.items()):
        # The libraries read this when they are loaded.
        told = os.environ | told | {"OMP_PROC_BIND": "true"}
        command = [sys.executable, "-m", "benchmarks.kernels", *sys.argv[1:]]
        sys.exit(subprocess.call(command, env=told))
    sys.exit(main())
