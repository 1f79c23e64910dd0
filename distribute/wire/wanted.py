"""What is asked of another task: one tensor, who wants it, and what the links of a task share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from laminar.engine.graph import TensorSpec
from laminar.engine.runtime.rendezvous import Arrival, Receiver

from . import links
from .buffers import BufferPool
from .channels import Channels
from .frames import Data, Header, check_spec, parse_header
from .links import Request

_log = logging.getLogger(__name__)


class Transfer(NamedTuple):
    """What one tensor cost.

    Attributes:
        way: "link", "unary", "stream" or "memory".
        start_seconds, end_seconds: of `time.monotonic()`, from the request to the arrival.
    """

    address: str
    step_id: int
    key: str
    num_bytes: int
    way: str
    start_seconds: float
    end_seconds: float


@dataclass(slots=True)
class Wanted:
    """A request."""

    step_id: int
    key: str
    incarnation: int
    spec: TensorSpec | None
    done: Receiver
    start: float
    end: float
    is_retried: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the links of a task share.

    Attributes:
        channels: that connect.
        pool: of memory for what comes.
        has_sockets: whether links are sockets where they can be.
        fetch: has a thread do what takes long.
        on_transfer: told of what has come.
    """

    channels: Channels
    pool: BufferPool
    has_sockets: bool
    fetch: Callable[[Callable[[], None]], None]
    on_transfer: Callable[[Transfer], object] | None


def announced_header(data: Data, wanted: Wanted) -> Header:
    """The header of a tensor that comes by itself, if it is what is wanted."""
    header = parse_header(data)
    if header.size != len(data) or not header.is_separate:
        raise links.damage("a tensor is announced without its header")
    if wanted.spec is not None:
        check_spec(header, wanted.spec)
    return header


def request_of(number: int, wanted: Wanted) -> bytes:
    """The message that asks for it, under that number."""
    asked = Request(number, wanted.step_id, wanted.incarnation, wanted.is_retried, wanted.key)
    return asked.to_bytes()


def deliver(wanted: Wanted, arrival: Arrival) -> None:
    """Tell who wanted a tensor; what they raise is theirs, and does not stop others."""
    try:
        wanted.done(arrival)
    except Exception:
        _log.exception("%s of step %d arrived, and its receiver failed", wanted.key, wanted.step_id)
