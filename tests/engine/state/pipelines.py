"""Running input pipelines in tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from laminar.engine import (
    Coordinator,
    Graph,
    Session,
    local_variables_initializer,
    start_queue_runners,
)
from laminar.engine.errors import OutOfRangeError


@contextmanager
def running(graph: Graph) -> Iterator[tuple[Session, Coordinator]]:
    """A session with its local variables set and its runners at work; all are joined at the end."""
    with graph.as_default():
        init = local_variables_initializer()
    with Session(graph=graph) as session:
        session.run(init)
        coord = Coordinator()
        threads = start_queue_runners(session, coord)
        try:
            yield session, coord
        finally:
            coord.request_stop()
            coord.join(threads, stop_grace_period_secs=20)


def drain(graph: Graph, fetch: Any) -> list[Any]:
    """What `fetch` gives until the end of the input."""
    found = []
    with running(graph) as (session, _):
        while True:
            try:
                found.append(session.run(fetch))
            except OutOfRangeError:
                return found
