"""`tf.distribute`: strategies of one replica, and the tasks of a cluster."""

from __future__ import annotations

import importlib
from typing import Any

from .face import Line, face

NAMES: dict[str, Line] = {
    **{
        name: f".strategies:{name}"
        for name in (
            "InputContext",
            "InputReplicationMode",
            "MirroredStrategy",
            "OneDeviceStrategy",
            "ReduceOp",
            "ReplicaContext",
            "Strategy",
            "experimental_set_strategy",
            "get_loss_reduction",
            "get_replica_context",
            "get_strategy",
            "has_strategy",
            "in_cross_replica_context",
        )
    },
    "Server": ".servers:Server",
    "StrategyExtended": ".strategies:Strategy",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    if name == "cluster_resolver":
        return importlib.import_module(".cluster_resolver", __package__)
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "cluster_resolver"})
