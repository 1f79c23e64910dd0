"""`tf.distribute.cluster_resolver`: where a process stands in its cluster."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "ClusterResolver": "distribute.resolvers:ClusterResolver",
    "SimpleClusterResolver": ".known_clusters:SimpleClusterResolver",
    "SlurmClusterResolver": (
        "jobs, port_base=8888, gpus_per_node=1, gpus_per_task=1, tasks_per_node=None, "
        "auto_set_gpu=True, rpc_layer='grpc'",
        "distribute.resolvers:SlurmResolver(jobs, port_base)",
    ),
    "TFConfigClusterResolver": (
        "task_type=None, task_id=None, rpc_layer=None, environment=None",
        "distribute.resolvers:TFConfigResolver()",
    ),
    "UnionResolver": ".known_clusters:UnionResolver",
}

__getattr__, __dir__ = face(__name__, NAMES)
