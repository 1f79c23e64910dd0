"""The process that tensors come from: it serves until its input ends."""

from __future__ import annotations

import sys

import numpy as np

from laminar.distribute.wire import Call, TensorService, make_server
from laminar.engine.runtime.rendezvous import Arrival, Receiver

from .machine import use_all_cores
from .transfers import ECHO


def numbers(num_bytes: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """What is sent: 0, 1, 2, ..., which both sides know."""
    return np.arange(num_bytes // 4, dtype=np.float32)


def main() -> None:
    """Serve arrays of the size that is asked for, each of which is made once."""
    use_all_cores()
    arrays: dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}

    def receive(step_id: int, key: str, done: Receiver) -> None:
        if key not in arrays:
            arrays[key] = numbers(int(key))
        done(Arrival(arrays[key]))

    def echo(request: bytes, call: Call) -> bytes:
        return request

    server = make_server({ECHO: echo}, "127.0.0.1:0", services=(TensorService(receive),))
    server.start()
    print(server.address, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
