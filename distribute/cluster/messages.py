"""What travels between clients, masters and workers, as messages of control.proto and back.

A message and the values of its tensors are two things until they leave the process: then the
values are its field `tensors`, which is written behind it, so that they are copied once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.devices import Device, DeviceList
from laminar.engine.devices.registry import DeviceAttributes
from laminar.engine.errors import DataLossError, InvalidArgumentError, ResourceExhaustedError
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.runtime import (
    CostNode,
    DeviceStats,
    NodeStats,
    RunMetadata,
    RunOptions,
    SessionConfig,
)

from ..wire import decode_many, encode_many

# Of the messages: who speaks another one is refused.
WIRE_VERSION = 1
_MOST_NODES = 1_000_000  # of a graph
_TENSORS = 15 << 3 | 2  # the key of the field `tensors`: number 15, bytes
_JIT = {True: "always", False: "never", "auto": "auto"}
_JIT_BACK = {text: wish for wish, text in _JIT.items()}


def messages() -> Any:
    """The module of the messages, and with it protobuf, which loads on first use."""
    from ..proto import control_pb2

    return control_pb2


def pack(message: Any, values: Sequence[Any]) -> bytes:
    """A message with its values as bytes."""
    data: bytes = message.SerializeToString()
    if not values:
        return data
    tensors = encode_many([("", value) for value in values])
    return b"".join((data, bytes((_TENSORS,)), _varint(len(tensors)), tensors))


def unpack(kind: str, data: bytes) -> tuple[Any, list[Any]]:
    """The message of a kind, and its values.

    Raises:
        DataLossError: the bytes are not that.
    """
    message = getattr(messages(), kind)()
    try:
        message.ParseFromString(data)
    except Exception as cause:  # DecodeError; its module differs between implementations
        raise DataLossError(f"the bytes are not a {kind}: {cause}") from cause
    tensors = getattr(message, "tensors", b"")
    if not tensors:
        return message, []
    message.ClearField("tensors")
    return message, [as_held(frame.value) for frame in decode_many(tensors)]


def as_held(value: Any) -> Any:
    """A value that came over the wire as graphs hold it: one string alone is an array, too."""
    return np.array(value, object) if isinstance(value, bytes) else value


def check_nodes(graph: Any, before: int = 0) -> None:
    """ResourceExhaustedError where a GraphDef message, beside what there is, has too many nodes."""
    count = before + len(graph.node) + sum(len(f.node) for f in graph.function)
    if count > _MOST_NODES:
        raise ResourceExhaustedError(f"a graph has {count} nodes, {_MOST_NODES} are the most")


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


# Devices


def write_device(to: Any, device: Device) -> None:
    """Put what is known of a device into a Device message."""
    to.name, to.device_type = device.name, device.device_type
    to.memory_limit_bytes = device.limit_bytes or 0
    to.incarnation, to.description = device.incarnation, device.description


def read_device(message: Any) -> DeviceAttributes:
    """What a Device message tells."""
    return DeviceAttributes(
        message.name,
        message.device_type,
        message.memory_limit_bytes or None,
        message.incarnation,
        message.description,
    )


def read_devices(message: Any) -> DeviceList:
    """The devices of a ListDevicesResponse."""
    return DeviceList([read_device(d) for d in message.device], {})


# Configs and options


def write_config(to: Any, config: SessionConfig) -> None:
    """Put a config into a Config message.

    Raises:
        InvalidArgumentError: it asks for what only a session of this process can have.
    """
    for name in ("device_count", "memory_limit_bytes"):
        if getattr(config, name) is not None:
            raise InvalidArgumentError(
                f"SessionConfig.{name} is about the devices of this process, and a session on a "
                f"cluster has those of its servers",
                remedy=f"give {name} to the servers: Server(..., config=SessionConfig({name}=...))",
            )
    if not config.allow_growth:
        raise InvalidArgumentError(
            "SessionConfig.allow_growth is about the devices of this process, and a session on a "
            "cluster has those of its servers",
            remedy="give it to the servers: Server(..., config=SessionConfig(allow_growth=False))",
        )
    if callable(config.lossy_transfers):
        raise InvalidArgumentError(
            "SessionConfig.lossy_transfers is a Python function, which does not travel",
            remedy="use True or False on a cluster",
        )
    if config.placement == "learned":
        raise InvalidArgumentError(
            "SessionConfig.placement 'learned' is for sessions of this process",
            remedy="use 'simulated' on a cluster, or say where operations are",
        )
    to.allow_soft_placement = config.allow_soft_placement
    to.placement = config.placement
    to.log_device_placement = config.log_device_placement
    to.lossy_transfers = config.lossy_transfers
    to.delay_receives = config.delay_receives
    to.jit_compile = _JIT[config.jit_compile]
    to.optimize = config.optimize
    to.inter_op_threads.extend(config.inter_op_threads)
    to.operation_timeout_in_ms = config.operation_timeout_in_ms
    to.device_filters.extend(config.device_filters)
    to.place_whole_graph = not config.place_pruned_graph


def read_config(message: Any) -> SessionConfig:
    """The config in a Config message; InvalidArgumentError where it is none."""
    if message.jit_compile not in _JIT_BACK:
        raise InvalidArgumentError(f"jit_compile is {message.jit_compile!r}")
    return SessionConfig(
        allow_soft_placement=message.allow_soft_placement,
        placement=message.placement,
        log_device_placement=message.log_device_placement,
        lossy_transfers=message.lossy_transfers,
        delay_receives=message.delay_receives,
        jit_compile=_JIT_BACK[message.jit_compile],  # type: ignore[arg-type]  # one of the three
        optimize=message.optimize,
        inter_op_threads=list(message.inter_op_threads),
        operation_timeout_in_ms=message.operation_timeout_in_ms,
        device_filters=list(message.device_filters),
        place_pruned_graph=not message.place_whole_graph,
    )


def write_options(to: Any, options: RunOptions) -> None:
    """Put options into an Options message."""
    to.SetInParent()
    to.timeout_in_ms = options.timeout_in_ms
    to.trace = options.trace
    to.output_partition_graphs = options.output_partition_graphs
    to.inter_op_pool = options.inter_op_pool


def read_options(message: Any) -> RunOptions:
    """The options in an Options message."""
    return RunOptions(
        message.timeout_in_ms, message.trace, message.output_partition_graphs, message.inter_op_pool
    )


# What a run tells of itself


def write_metadata(to: Any, metadata: RunMetadata) -> None:
    """Put what a run tells into a Metadata message."""
    for stats in metadata.step_stats:
        device = to.step_stats.add(device=stats.device)
        for node in stats.nodes:
            device.node.add(**node.__dict__)
    for cost in metadata.cost_graph:
        to.cost_graph.add(
            name=cost.name,
            device=cost.device,
            input=cost.inputs,
            control_input=cost.control_inputs,
            seconds=cost.seconds,
            output_bytes=cost.output_bytes,
            executions=cost.executions,
        )
    to.partition_graph.extend(graph.message for graph in metadata.partition_graphs)


def read_metadata(message: Any, into: RunMetadata, *, ahead_us: float = 0.0) -> None:
    """Add what a Metadata message tells; the clock of its task is so much ahead of this one's."""
    for device in message.step_stats:
        into.step_stats.append(
            DeviceStats(
                device.device,
                [
                    NodeStats(
                        n.name,
                        n.type,
                        n.start_us - ahead_us,
                        n.duration_us,
                        n.output_bytes,
                        n.thread,
                    )
                    for n in device.node
                ],
            )
        )
    into.cost_graph += [
        CostNode(
            c.name,
            c.device,
            tuple(c.input),
            tuple(c.control_input),
            c.seconds,
            c.output_bytes,
            c.executions,
        )
        for c in message.cost_graph
    ]
    into.partition_graphs += [GraphDef(graph) for graph in message.partition_graph]
