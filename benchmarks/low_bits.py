"""A layer of 4096 x 4096 with weights in few bits: `python -m benchmarks.low_bits --help`.

laminar's Dense in float32 and in its modes beside torch's linear layer in float32 and, where it has
that, with weights in 8 bits, in one process, on as many threads each. Runs are taken in turn, so
that no weights are left in a cache for the next run of the same; figures are medians, and medians
of the ratio to laminar's float32 in the same round.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import laminar
from laminar import layers, quantizers

_SIZE = 4096
_BASE = "float32"
MODES: dict[str, Any] = {
    _BASE: None,
    "int8": quantizers.Int8QuantizationConfig(),
    "int8, inputs in float32": quantizers.Int8QuantizationConfig(activation_quantizer=None),
    "int4, blocks of 128": quantizers.Int4QuantizationConfig(),
    "int4": quantizers.Int4QuantizationConfig(block_size=None),
}

Run = Callable[[], Any]


def of_laminar(x: Any, size: int, config: Any) -> Run:
    """A compiled call of a layer."""
    layer = layers.Dense(size)
    layer.build(x.shape)
    if config is not None:
        layer.quantize(config=config)
    call = laminar.function(lambda x: layer(x))
    return partial(call, laminar.ops.convert_to_tensor(x))


def of_torch(x: Any, size: int) -> dict[str, Run]:
    """Calls of torch's layers, none where it is not installed."""
    if not importlib.util.find_spec("torch"):
        return {}
    torch: Any = importlib.import_module("torch")
    torch.set_grad_enabled(False)
    given, linear = torch.from_numpy(x), torch.nn.Linear(x.shape[1], size)
    found: dict[str, Run] = {"torch, float32": partial(linear, given)}
    try:
        rounded = torch.ao.quantization.quantize_dynamic(
            torch.nn.Sequential(linear), {torch.nn.Linear}, dtype=torch.qint8
        )
        rounded(given)
    except RuntimeError:  # no engine for this processor
        return found
    return {**found, "torch, int8": partial(rounded, given)}


def runs_of(batch: int, size: int = _SIZE) -> dict[str, Run]:
    """What is measured for a batch."""
    x = np.random.default_rng(0).normal(size=(batch, size)).astype("float32")
    found = {name: of_laminar(x, size, config) for name, config in MODES.items()}
    return found | of_torch(x, size)


def measure(runs: dict[str, Run], rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds of a run of each, and its ratio to that of the first: medians of rounds."""
    for run in runs.values():
        run()
        run()
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = perf_counter()
            run()
            taken[name].append(perf_counter() - start)
    base = taken[_BASE]
    return {
        name: (median(times), median(t / b for t, b in zip(times, base, strict=True)))
        for name, times in taken.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.low_bits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--threads", type=int, default=1, help="of each library")
    parser.add_argument("--rounds", type=int, default=40, help="how often each is run")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 4, 32], help="sizes of batches")
    options = parser.parse_args(arguments)
    laminar.set_threads(options.threads)
    if importlib.util.find_spec("torch"):
        importlib.import_module("torch").set_num_threads(options.threads)
    print(f"{options.threads} threads, load {os.getloadavg()[0]:.1f}")
    for batch in options.batch:
        print(f"batch {batch}")
        for name, (seconds, ratio) in measure(runs_of(batch), options.rounds).items():
            print(f"    {name:26} {seconds * 1e6:9.0f} us   {ratio:.2f} of float32", flush=True)


if __name__ == "__main__":
    main()
