"""What a GPU does: `python -m benchmarks.gpu` measures, prints, and keeps it as JSON.

Copies tell the bandwidth that elementwise kernels are compared with; products, their rate; training
steps, the time of a whole step of `fit`, host and all. Each is the median of blocks of runs, at the
end of which the host waits once.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import laminar
from laminar import layers, ops
from laminar.engine.cuda import loading
from laminar.engine.devices import Device, local_devices
from laminar.engine.graph import DeviceSpec

RESULTS = Path(__file__).parent / "results" / "gpu.json"
_BLOCKS = 5
_BLOCK_SECONDS = 0.2


def seconds_of(run: Callable[[], Any], device: Device, block_seconds: float) -> float:
    """What one run takes, when many are asked for one after the other."""
    run()
    run()  # the second makes the graph of a compiled step
    device.synchronize()
    start = perf_counter()
    run()
    device.synchronize()
    count = max(1, math.ceil(block_seconds / max(perf_counter() - start, 1e-7)))
    found = []
    for _ in range(_BLOCKS):
        start = perf_counter()
        for _ in range(count):
            run()
        device.synchronize()
        found.append((perf_counter() - start) / count)
    return median(found)


def _function(compute: Callable[..., Any], *arrays: Any) -> Callable[[], Any]:
    compiled = laminar.function(compute)
    return lambda: compiled(*arrays)


def memory_bound(elements: int) -> Iterator[tuple[str, Callable[[], Any], float]]:
    """Name, what runs, and the bytes that it reads and writes."""
    x = ops.reshape(ops.arange(elements, dtype="float32") / elements, (-1, 1024))
    size = 4.0 * elements
    yield "copy and scale", _function(lambda x: x * 2.0, x), 2 * size
    yield "gelu", _function(lambda x: ops.gelu(x), x), 2 * size
    yield "softmax of rows of 1024", _function(lambda x: ops.softmax(x), x), 2 * size
    yield "sum of all", _function(lambda x: ops.sum(x), x), size
    ones = ops.ones((1024,))
    yield (
        "layer normalization of rows of 1024",
        _function(lambda x: ops.layer_normalization(x, gamma=ones, beta=ones), x),
        2 * size,
    )


def products(sizes: tuple[int, ...]) -> Iterator[tuple[str, Callable[[], Any], float]]:
    """Name, what runs, and its multiplications and additions."""
    for dtype in ("float32", "bfloat16"):
        for n in sizes:
            a = ops.cast(ops.ones((n, n)), dtype)
            yield f"{dtype} product of {n}", _function(lambda a: ops.matmul(a, a), a), 2.0 * n**3


def steps(small: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name, and one training step."""
    width = 16 if small else 512
    mlp = laminar.Sequential(
        [layers.Input((784,)), *(layers.Dense(width, activation="relu") for _ in range(2))]
        + [layers.Dense(10)]
    )
    conv = laminar.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(4 if small else 32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(4 if small else 64, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    rng = np.random.default_rng(0)
    batch = 8 if small else 128
    y = rng.integers(0, 10, batch)
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    for name, model, shape in (("MLP", mlp, (784,)), ("convnet", conv, (28, 28, 1))):
        x = rng.normal(size=(batch, *shape)).astype("float32")
        model.compile("adam", loss)
        yield f"{name}, Adam, batch {batch}", functools.partial(model.train_on_batch, x, y)


def measure(name: str, *, small: bool = False) -> dict[str, Any]:
    """All figures of a device."""
    device: Device = local_devices().matching(DeviceSpec.from_string(name))[0]
    block = 0.01 if small else _BLOCK_SECONDS
    found: dict[str, Any] = {"gigabytes_per_second": {}, "teraflops": {}, "step_milliseconds": {}}
    with laminar.device(name):
        for what, run, amount in memory_bound(1 << (12 if small else 26)):
            found["gigabytes_per_second"][what] = amount / seconds_of(run, device, block) / 1e9
        for what, run, amount in products((64,) if small else (1024, 4096, 8192)):
            found["teraflops"][what] = amount / seconds_of(run, device, block) / 1e12
        for what, run in steps(small):
            found["step_milliseconds"][what] = seconds_of(run, device, block) * 1e3
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "laminar": laminar.version(),
        "device": device.description,
        **_driver(),
        **found,
    }


def _driver() -> dict[str, Any]:
    cupy, reason = loading.load()
    if cupy is None:
        return {"why_no_gpu": reason}
    return {"cupy": cupy.__version__, "driver": int(cupy.cuda.runtime.driverGetVersion())}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="gpu:0", help="which one (default: gpu:0)")
    parser.add_argument("--output", type=Path, default=RESULTS, help=f"default: {RESULTS}")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args()
    text = json.dumps(measure(options.device, small=options.small), indent=2)
    print(text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
