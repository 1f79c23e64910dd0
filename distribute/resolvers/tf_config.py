"""TF_CONFIG: what TensorFlow's launchers, Kubeflow's TFJob and Ray Train's backend for it set."""

from __future__ import annotations

import json
from typing import Any

from laminar.engine.errors import InvalidArgumentError

from ..cluster_spec import ClusterSpec
from .resolver import EnvironmentResolver

_EXAMPLE = (
    'TF_CONFIG=\'{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}\''
)


class TFConfigResolver(EnvironmentResolver):
    """The cluster and the task that the environment variable TF_CONFIG describes, as JSON.

    Args:
        environ: the environment, by default that of the process.

    Raises:
        NotFoundError: there is no TF_CONFIG.
        InvalidArgumentError: it is not JSON, lacks a part, or names a task that is not in it.
    """

    def _read(self) -> None:
        text = self._text("TF_CONFIG")
        try:
            config = json.loads(text)
        except (ValueError, RecursionError) as cause:
            raise _bad(f"it is not JSON ({cause})") from cause
        cluster, task = _part(config, "cluster"), _part(config, "task")
        kind, index = task.get("type"), task.get("index", 0)
        if isinstance(index, str) and index.isdecimal():
            index = int(index)
        if not isinstance(kind, str) or type(index) is not int or index < 0:
            raise _bad(f"its task is {task!r}")
        self._cluster = ClusterSpec(cluster)
        if kind != "evaluator":  # is no part of the cluster
            self._cluster.task_address(kind, index)
        self.task_type, self.task_id = kind, index


def _part(config: Any, name: str) -> dict[str, Any]:
    found = config.get(name) if isinstance(config, dict) else None
    if not isinstance(found, dict):
        raise _bad(f"it has no {name!r}")
    return found


def _bad(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"TFConfigResolver: TF_CONFIG: {why}", remedy=f"write {_EXAMPLE}")
