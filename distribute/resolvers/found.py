"""The resolver for the environment that this process is in."""

from __future__ import annotations

import os
from collections.abc import Mapping

from laminar.engine.errors import NotFoundError

from .kubernetes import KubeflowResolver
from .mpi import MPIResolver, mpi_place
from .resolver import ClusterResolver
from .slurm import SlurmResolver
from .tf_config import TFConfigResolver
from .torchrun import TorchrunResolver


def resolve(
    jobs: Mapping[str, int] | None = None, environ: Mapping[str, str] | None = None
) -> ClusterResolver:
    """The resolver for what started this process, by its environment variables.

    Those of Kubernetes' Jobs, Ray, Dask and Spark have to be told more: make them by name.

    Args:
        jobs: how many tasks each job has, in the order of ranks; TF_CONFIG says so itself.
        environ: the environment, by default that of the process.

    Raises:
        NotFoundError: nothing in the environment tells of a cluster.
    """
    given = os.environ if environ is None else environ
    # What was written for this program alone comes first; Slurm is last, as it also surrounds what
    # other launchers start inside of its jobs.
    if "TF_CONFIG" in given:
        return TFConfigResolver(given)
    if "PET_NODE_RANK" in given:
        return KubeflowResolver(jobs, environ=given)
    if "TORCHELASTIC_RESTART_COUNT" in given:
        return TorchrunResolver(jobs=jobs, environ=given)
    if mpi_place(given) is not None:
        return MPIResolver(jobs, environ=given)
    if "SLURM_PROCID" in given and "SLURM_STEP_ID" in given:
        return SlurmResolver(jobs, environ=given)
    raise NotFoundError(
        "no environment variable tells of a cluster: neither TF_CONFIG, nor those of Kubeflow, "
        "torchrun, MPI or Slurm",
        remedy="start the program by one of them, or make ClusterSpec by hand",
    )
