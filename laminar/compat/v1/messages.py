"""ConfigProto, RunOptions and the like: what scripts fill in, as laminar's own settings.

A session asks a ConfigProto for its `session_config()`, and RunOptions for their `run_options()`.
"""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine.devices import num_available


class Message:
    """Fields that come into being when they are set, or read to set what is in them."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self.__dict__[name] = Message()
        return found

    def __bool__(self) -> bool:
        return bool(self.__dict__)

    def CopyFrom(self, other: Message) -> None:  # noqa: N802  # its name there
        """Have the fields of another one."""
        self.__dict__.clear()
        self.__dict__.update(other.__dict__)

    MergeFrom = CopyFrom

    def HasField(self, name: str) -> bool:  # noqa: N802  # its name there
        """Whether a field was set."""
        return name in self.__dict__

    def field(self, name: str, default: Any) -> Any:
        """A field, the default where it was not set."""
        found = self.__dict__.get(name, default)
        return default if isinstance(found, Message) else found


class Repeated(list[Any]):
    """A field that is a list, of numbers and texts or of messages."""

    def add(self, **fields: Any) -> Message:
        """Append a message, which is given to be filled."""
        self.append(Message(**fields))
        found: Message = self[-1]
        return found


class ConfigProto(Message):
    """How a session runs; see `SessionConfig` for what laminar makes of it."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"device_count": {}, **fields})
        for name in ("device_filters", "session_inter_op_thread_pool"):
            self.__dict__[name] = Repeated(fields.get(name, ()))

    def session_config(self) -> engine.SessionConfig:
        """What laminar makes of it."""
        return _session_config(self)


class GPUOptions(Message):
    """`per_process_gpu_memory_fraction`, and `allow_growth` where it is False.

    Where it is not said, laminar takes of a GPU's memory what it needs. Which GPUs there are, the
    environment variable CUDA_VISIBLE_DEVICES says, not `visible_device_list`.
    """


class RPCOptions(Message):
    """`use_rpc_for_inprocess_master`."""


class GraphOptions(Message):
    """`place_pruned_graph`, `enable_recv_scheduling`, `enable_bfloat16_sendrecv`.

    What it says of rewriting changes nothing.
    """


class OptimizerOptions(Message):
    """Accepted: laminar rewrites every graph that it compiles."""

    L0, L1, ON_1, ON_2, OFF, DEFAULT = 0, -1, 1, 2, -1, 0


class ThreadPoolOptionProto(Message):
    """A pool of threads: `num_threads` of it is used."""


class RunOptions(Message):
    """How one run goes: `timeout_in_ms`, `trace_level`, `output_partition_graphs`."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)

    def run_options(self) -> engine.RunOptions:
        """What laminar makes of it."""
        return engine.RunOptions(
            timeout_in_ms=self.field("timeout_in_ms", 0),
            trace=self.field("trace_level", 0) == RunOptions.FULL_TRACE,
            output_partition_graphs=bool(self.field("output_partition_graphs", False)),
            inter_op_pool=self.field("inter_op_thread_pool", 0),
        )


def _session_config(config: ConfigProto) -> engine.SessionConfig:
    counts = {k.lower(): v for k, v in dict(config.device_count).items() if k.lower() == "cpu"}
    gpus = next((v for k, v in dict(config.device_count).items() if k.lower() == "gpu"), None)
    if gpus is not None:  # at most so many
        counts["gpu"] = min(gpus, num_available("gpu"))
    of_gpus = config.__dict__.get("gpu_options", Message())
    pools = [
        p.field("num_threads", 0) or 2 for p in config.field("session_inter_op_thread_pool", ())
    ]
    threads = config.field("inter_op_parallelism_threads", 0)
    graph_options = config.__dict__.get("graph_options", Message())
    rpc_options = config.__dict__.get("rpc_options", Message())
    return engine.SessionConfig(
        device_count=counts or None,
        memory_limit_bytes=_share_of_memory(of_gpus),
        allow_growth=bool(of_gpus.field("allow_growth", True)),
        allow_soft_placement=bool(config.field("allow_soft_placement", False)),
        place_pruned_graph=bool(graph_options.field("place_pruned_graph", True)),
        log_device_placement=bool(config.field("log_device_placement", False)),
        operation_timeout_in_ms=config.field("operation_timeout_in_ms", 0),
        device_filters=tuple(config.device_filters),
        rpc_for_inprocess_master=bool(rpc_options.field("use_rpc_for_inprocess_master", False)),
        delay_receives=bool(graph_options.field("enable_recv_scheduling", True)),
        lossy_transfers=bool(graph_options.field("enable_bfloat16_sendrecv", False)),
        inter_op_threads=pools or ([threads] if threads > 0 else []),
    )


def _share_of_memory(of_gpus: Message) -> dict[str, int | float] | None:
    """The limit of a GPU's memory; a script may set one where there is no GPU."""
    share = of_gpus.field("per_process_gpu_memory_fraction", 0)
    return {"gpu": min(float(share), 1.0)} if share else None
