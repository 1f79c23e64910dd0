"""How gRPC is set up on both sides: limits of messages, and who notices that the other has gone.

A network that is cut off says nothing: without pings, a call waits until its deadline. With a ping
each `time_seconds` that must be answered within `timeout_seconds`, it fails after their sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from laminar.engine.errors import InvalidArgumentError

MESSAGE_BYTES = 4 << 20  # gRPC's own limit; what is longer goes in chunks

# gRPC answers pings whatever a process does. Along a link it is Python, and one call of an
# extension may keep the interpreter for seconds: it gets so many times longer.
PATIENCE = 4

_LEAST_SECONDS = 0.01


@dataclass(frozen=True)
class Keepalive:
    """How soon a connection that has been cut off is noticed.

    Attributes:
        time_seconds: between pings.
        timeout_seconds: until an answer must have come.

    Examples:
        >>> laminar.distribute.Keepalive(time_seconds=10.0, timeout_seconds=5.0).timeout_seconds
        5.0
    """

    time_seconds: float = 10.0
    timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= _LEAST_SECONDS:
                raise InvalidArgumentError(
                    f"Keepalive: {name} must be at least {_LEAST_SECONDS} s, got {value!r}"
                )


USUAL = Keepalive()


def _pings(keepalive: Keepalive) -> list[tuple[str, int]]:
    return [
        ("grpc.keepalive_time_ms", round(1000 * keepalive.time_seconds)),
        ("grpc.keepalive_timeout_ms", round(1000 * keepalive.timeout_seconds)),
        # gRPC from 1.60 on waits for the answer of a ping for this long: a minute by default.
        ("grpc.http2.ping_timeout_ms", round(1000 * keepalive.timeout_seconds)),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def channel_options(keepalive: Keepalive) -> list[tuple[str, int]]:
    """The options of a channel."""
    return [
        *_pings(keepalive),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.max_send_message_length", MESSAGE_BYTES),
        ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),  # what may be sent twice is decided here
        # A task that was restarted is found again within a second; to connect may take five.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 5000),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]


def server_options(keepalive: Keepalive, message_bytes: int) -> list[tuple[str, int]]:
    """The options of a server."""
    return [
        *_pings(keepalive),
        ("grpc.max_receive_message_length", message_bytes),
        ("grpc.max_send_message_length", message_bytes),
        ("grpc.so_reuseport", 0),  # a second server on a port is an error
        ("grpc.http2.min_ping_interval_without_data_ms", 10),
        ("grpc.http2.max_ping_strikes", 0),
    ]
