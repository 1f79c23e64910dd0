"""Clusters whose servers are all in the process of the test."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from laminar import engine as eng
from laminar.distribute import ClusterSpec, Server


def free_addresses(count: int) -> list[str]:
    """Addresses of this machine that nobody uses."""
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [f"127.0.0.1:{s.getsockname()[1]}" for s in found]
    finally:
        for s in found:
            s.close()


def spec_of(jobs: Mapping[str, int]) -> ClusterSpec:
    """A cluster of so many tasks of each job, at free addresses."""
    addresses = iter(free_addresses(sum(jobs.values())))
    return ClusterSpec({job: [next(addresses) for _ in range(n)] for job, n in jobs.items()})


class LocalCluster:
    """Servers by the names of their tasks, such as "worker:0"."""

    def __init__(self, jobs: Mapping[str, int], **options: Any) -> None:
        self.spec = spec_of(jobs)
        self.options = options
        self.servers = {
            f"{job}:{i}": self.start(job, i) for job, n in jobs.items() for i in range(n)
        }

    def start(self, job: str, task: int) -> Server:
        """A server at the address of a task."""
        return Server(self.spec, job, task, **self.options)

    def restart(self, name: str) -> None:
        """Stop a server, and start another at its address."""
        self.servers[name].stop()
        job, _, task = name.partition(":")
        self.servers[name] = self.start(job, int(task))

    def target(self, name: str = "worker:0") -> str:
        """That of a server."""
        return self.servers[name].target

    def worker(self, name: str) -> Any:
        """What runs graphs in a server."""
        server: Any = self.servers[name]
        return server.made.worker

    def stop(self) -> None:
        """Stop them all."""
        for server in self.servers.values():
            server.stop()


@contextmanager
def local_cluster(jobs: Mapping[str, int], **options: Any) -> Iterator[LocalCluster]:
    """A cluster for the time of a block."""
    cluster = LocalCluster(jobs, **options)
    try:
        yield cluster
    finally:
        cluster.stop()


def op_of(tensor: Any) -> eng.Operation:
    """The operation that makes a tensor of a graph."""
    assert isinstance(tensor, eng.GraphTensor)
    return tensor.op
