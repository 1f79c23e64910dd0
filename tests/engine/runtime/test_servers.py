"""Who makes servers of a protocol."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
)
from laminar.engine.runtime import ServerDef, make_server

number = itertools.count()


class Made:
    def __init__(self, definition: ServerDef) -> None:
        tasks = definition.cluster[definition.job_name]
        self.target = f"{definition.protocol}://{tasks[definition.task_index]}"

    def start(self) -> None: ...
    def join(self) -> None: ...
    def stop(self) -> None: ...


def definition(protocol: str, **changes: Any) -> ServerDef:
    cluster = {"worker": ["a:1", "b:2"], "ps": ["c:3"]}
    arguments = {"cluster": cluster, "job_name": "worker", "task_index": 1, **changes}
    return ServerDef(protocol=protocol, **arguments)


def test_a_registered_protocol_makes_servers() -> None:
    name = f"protocol{next(number)}"
    with pytest.raises(NotFoundError, match=f"no server speaks the protocol {name!r}"):
        make_server(definition(name))
    eng.register_server_protocol(name, Made)
    assert make_server(definition(name)).target == f"{name}://b:2"
    with pytest.raises(AlreadyExistsError, match="replace=True"):
        eng.register_server_protocol(name, Made)
    eng.register_server_protocol(name, lambda found: 1 / 0, replace=True)  # type: ignore[arg-type,return-value]  # it fails
    with pytest.raises(InternalError, match="worker:1: division by zero"):
        make_server(definition(name))


@pytest.mark.parametrize("changes", [{"task_index": 2}, {"task_index": -1}, {"job_name": "chief"}])
def test_no_such_task(changes: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"its jobs, .*: worker \(2\), ps \(1\)"):
        make_server(definition("any", **changes))


def test_a_protocol_has_a_name() -> None:
    with pytest.raises(InvalidArgumentError, match="has a name"):
        eng.register_server_protocol(" ", Made)
