"""A task in a process of its own: `serve` gives tensors, `pull ADDRESS` asks for some for ever."""

from __future__ import annotations

import sys

import numpy as np

from laminar.distribute.wire import Channels, TensorClient, TensorService, make_server
from laminar.engine.runtime.rendezvous import Arrival, Receiver
from tests.distribute.wire.harness import receive

LONG = np.arange(2_000_000, dtype=np.float64)


def serve() -> None:
    def receive(step_id: int, key: str, done: Receiver) -> None:
        if key == "long":
            done(Arrival(LONG))

    server = make_server({}, "127.0.0.1:0", services=(TensorService(receive, incarnation=5),))
    server.start()
    print(server.address, flush=True)
    server.wait()


def pull(address: str) -> None:
    with Channels() as channels, TensorClient(channels) as client:
        while True:
            receive(client, address, "long").value()
            print("came", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        pull(sys.argv[2])
