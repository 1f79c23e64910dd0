"""Training over several devices and machines."""

from .cluster_spec import ClusterSpec as ClusterSpec
from .data_parallel import DataParallel as DataParallel
from .staleness import Staleness as Staleness
