"""ConfigProto, RunOptions and the like: what scripts fill in, as laminar's own settings."""

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


class ConfigProto(Message):
    """How a session runs; see `SessionConfig` for what laminar makes of it."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"device_count": {}, **fields})


class GPUOptions(Message):
    """`per_process_gpu_memory_fraction`, and `allow_growth` where it is False.

    Where it is not said, laminar takes of a GPU's memory what it needs. Which GPUs there are, the
    environment variable CUDA_VISIBLE_DEVICES says, not `visible_device_list`.
    """


class GraphOptions(Message):
    """`place_pruned_graph`; what else it says of rewriting changes nothing."""


class OptimizerOptions(Message):
    """Accepted: laminar rewrites every graph that it compiles."""

    L0, L1, ON_1, ON_2, OFF, DEFAULT = 0, -1, 1, 2, -1, 0


class ThreadPoolOptionProto(Message):
    """A pool of threads: `num_threads` of it is used."""


class RunOptions(Message):
    """How one run goes: `timeout_in_ms`, `trace_level`, `output_partition_graphs`."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)


def as_config(config: Any) -> engine.SessionConfig | None:
    """The settings of a session."""
    if config is None or isinstance(config, engine.SessionConfig):
        return config
    if not isinstance(config, ConfigProto):
        raise TypeError(f"Session: config must be a ConfigProto, got {config!r}")
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
    return engine.SessionConfig(
        device_count=counts or None,
        memory_limit_bytes=_share_of_memory(of_gpus),
        allow_growth=bool(of_gpus.field("allow_growth", True)),
        allow_soft_placement=bool(config.field("allow_soft_placement", False)),
        place_pruned_graph=bool(graph_options.field("place_pruned_graph", True)),
        log_device_placement=bool(config.field("log_device_placement", False)),
        operation_timeout_in_ms=config.field("operation_timeout_in_ms", 0),
        inter_op_threads=pools or ([threads] if threads > 0 else []),
    )


def _share_of_memory(of_gpus: Message) -> dict[str, int | float] | None:
    """The limit of a GPU's memory; a script may set one where there is no GPU."""
    share = of_gpus.field("per_process_gpu_memory_fraction", 0)
    return {"gpu": min(float(share), 1.0)} if share else None


def as_options(options: Any) -> engine.RunOptions | None:
    """The settings of a run."""
    if options is None or isinstance(options, engine.RunOptions):
        return options
    if not isinstance(options, RunOptions):
        raise TypeError(f"run: options must be RunOptions, got {options!r}")
    return engine.RunOptions(
        timeout_in_ms=options.field("timeout_in_ms", 0),
        trace=options.field("trace_level", 0) == RunOptions.FULL_TRACE,
        output_partition_graphs=bool(options.field("output_partition_graphs", False)),
        inter_op_pool=options.field("inter_op_thread_pool", 0),
    )
