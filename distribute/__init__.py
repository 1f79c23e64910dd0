"""Training over several devices and machines."""

from .data_parallel import DataParallel as DataParallel
from .staleness import Staleness as Staleness
