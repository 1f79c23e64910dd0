"""The options of a session: its devices, and how to use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InvalidArgumentError
from ..graph import DeviceSpec
from ..passes.partition import Lossy
from .options import check_timeout

POLICIES = ("priority", "simulated", "learned")


@dataclass(frozen=True)
class SessionConfig:
    """How a session runs its graph.

    Attributes:
        device_count: how many devices of each type, as {"cpu": 2}: each of several CPUs has its
            share of the cores. Without a type: one CPU, all GPUs.
        memory_limit_bytes: by type, what each of its devices may hold, in bytes, or for a GPU the
            share of its memory as a float; placement respects it, and a step that needs more raises
            ResourceExhaustedError.
        allow_growth: whether a GPU's memory is taken as it is needed; False takes it at once, up to
            the limit, so that no other process does.
        allow_soft_placement: whether an operation goes elsewhere when the device that the program
            names does not exist or has no kernel for it: to another device of the task that is
            named, or if there is none, to any; otherwise that is an error.
        placement: for operations that the program puts nowhere: "priority" takes the device of the
            highest type that has a kernel and room (a GPU before the CPU), "simulated" the one that
            finishes first in a simulated step. "learned" begins with the simulated placement,
            measures operations in the first runs of each set of fetches and feeds, searches for a
            better one with these times, and keeps what has run fastest; it is for sessions of this
            process.
        placement_file: where "learned" keeps what it found, and looks for it first; None: nowhere.
        place_pruned_graph: whether only what a step runs is placed, when it is first run. False
            places the whole graph then, and again what has been added: each operation has one
            device, whichever step runs it, and one that has none anywhere is an error though no
            step needs it.
        log_device_placement: whether to write each decision, with its reason, to the log
            "laminar.placement".
        lossy_transfers: whether float32 tensors travel between devices as their upper 16 bits: True
            for all, or a function (tensor, name of the source, name of the target) -> bool.
        delay_receives: whether large tensors are received only shortly before their use, so that
            less memory is in use at a time.
        jit_compile: whether what is run is compiled to native code where that is possible: "auto"
            for each set of fetches and feeds at its tenth run, so that what runs a few times never
            waits for a compiler (runs with a time limit never do); True at the first run; False
            not at all. Compiled values equal those before to rounding. What is compiled is
            simplified too (see `optimize`).
        optimize: whether a graph is simplified before its first run: constants folded, what is
            computed twice merged, operations that give their input left out (see `pass_names`). The
            values of fetches are the same, bit for bit. The first run of each set of fetches and
            feeds takes longer. Functions are simplified always.
        inter_op_threads: the sizes of the session's own pools of threads, each the number of
            operations of a step that may run at the same time; `RunOptions.inter_op_pool` says
            which pool a run takes. Empty: the process's (`set_inter_op_threads`).
        operation_timeout_in_ms: a run that takes longer raises DeadlineExceededError, unless its
            RunOptions say otherwise; 0 for no limit.
        device_filters: of a cluster, the tasks that the session uses besides the one that it is
            connected to, as "/job:ps" or "/job:worker/task:0"; empty for all. It neither waits for
            the others nor fails with them.
        rpc_for_inprocess_master: whether a session on a server of its own process talks to it as to
            any other, rather than by calls.

        credentials: by which a session on a cluster proves itself, and knows its servers
            (`laminar.distribute.Credentials`); None for a server on this machine.

    Raises:
        InvalidArgumentError: the timeout is negative, or `jit_compile` or `placement` is none of
            these, or there is a `placement_file` without "learned".

    Examples:
        >>> config = engine.SessionConfig(device_count={"cpu": 2})
        >>> with engine.Graph().as_default(), engine.Session(config=config) as session:
        ...     len(session.list_devices())
        2
    """

    device_count: Mapping[str, int] | None = None
    memory_limit_bytes: Mapping[str, int | float] | None = None
    allow_growth: bool = True
    allow_soft_placement: bool = False
    placement: str = "priority"
    placement_file: str | None = None
    place_pruned_graph: bool = True
    log_device_placement: bool = False
    lossy_transfers: bool | Lossy = False
    delay_receives: bool = True
    jit_compile: bool | Literal["auto"] = "auto"
    optimize: bool = False
    inter_op_threads: Sequence[int] = ()
    operation_timeout_in_ms: float = 0
    device_filters: Sequence[str] = ()
    rpc_for_inprocess_master: bool = False
    credentials: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.device_filters, str):
            raise InvalidArgumentError(
                f"device_filters must be a list of names, got {self.device_filters!r}"
            )
        for name in self.device_filters:
            DeviceSpec.from_string(name)
        check_timeout("operation_timeout_in_ms", self.operation_timeout_in_ms)
        if self.placement not in POLICIES:
            raise InvalidArgumentError(
                f"placement must be one of {', '.join(POLICIES)}, got {self.placement!r}"
            )
        if self.placement_file is not None and self.placement != "learned":
            raise InvalidArgumentError(
                f"placement_file is for what is learned, and placement is {self.placement!r}",
                remedy='add placement="learned"',
            )
        if self.jit_compile not in (True, False, "auto"):
            raise InvalidArgumentError(
                f"jit_compile must be True, False or 'auto', got {self.jit_compile!r}"
            )
