"""A server of a cluster as a program: python -m laminar.distribute.server --help."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.engine.runtime import SessionConfig

from .servers import Server
from .wire import Credentials


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one task until the program is told to end (SIGTERM, Ctrl-C); gives the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    try:
        server = _server(options)
    except (LaminarError, OSError) as error:
        print(f"laminar.distribute.server: {error}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    with server:
        print(f"/job:{options.job}/task:{options.task} serves at {server.target}", flush=True)
        server.join()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m laminar.distribute.server",
        description="Serve one task of a cluster. Every process of it is given the same cluster.",
    )
    add = parser.add_argument
    add("--cluster", required=True, help="worker=host:port,host:port;ps=host:port, or as JSON")
    add("--job", required=True, help="the job of this task")
    add("--task", type=int, default=0, help="which task of the job it is, from 0")
    add("--cpus", type=int, help="how many CPU devices it has, each a share of the cores")
    add("--root", action="append", default=[], help="a folder whose files graphs may touch")
    add("--lease-seconds", type=float, default=60.0, help="how long silent sessions live")
    add("--ca", help="file: the certificate of the cluster's authority")
    add("--cert", help="file: this task's certificate")
    add("--key", help="file: its key")
    add("--token-file", help="file: the token of the cluster")
    add(
        "--allow-insecure-network",
        action="store_true",
        help="let other machines in without credentials; who gets in can run any graph",
    )
    return parser


def _server(options: argparse.Namespace) -> Server:
    files = {name: getattr(options, name) for name in ("ca", "cert", "key", "token_file")}
    credentials = Credentials.from_files(**files) if any(files.values()) else None
    config = None if options.cpus is None else SessionConfig(device_count={"cpu": options.cpus})
    return Server(
        parse_cluster(options.cluster),
        options.job,
        options.task,
        config=config,
        credentials=credentials,
        allow_insecure_network=options.allow_insecure_network,
        lease_seconds=options.lease_seconds,
        roots=options.root,
    )


def parse_cluster(text: str) -> Any:
    """The cluster of a text: "worker=host:port,host:port;ps=host:port", or JSON.

    Raises:
        InvalidArgumentError: it is neither.
    """
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as cause:
            raise InvalidArgumentError(f"--cluster: no JSON: {cause}") from cause
        return {
            job: {int(i): a for i, a in tasks.items()} if isinstance(tasks, dict) else tasks
            for job, tasks in found.items()
        }
    jobs: dict[str, list[str]] = {}
    for part in filter(None, text.split(";")):
        job, equals, tasks = part.partition("=")
        if not equals or job.strip() in jobs:
            raise InvalidArgumentError(
                f"--cluster: {part!r} is not the tasks of one more job",
                remedy='write --cluster "worker=host:port,host:port;ps=host:port"',
            )
        jobs[job.strip()] = [address.strip() for address in tasks.split(",")]
    return jobs


if __name__ == "__main__":
    sys.exit(main())
