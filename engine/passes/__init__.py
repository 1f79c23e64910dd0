"""Rewrites of a graph, one file each."""

from .client_graph import client_graph as client_graph
from .cluster import cluster as cluster
from .cluster import gains as gains
from .fed_variables import other_reads as other_reads
from .lower_control_flow import lower_control_flow as lower_control_flow
from .lower_control_flow import spans_devices as spans_devices
from .lower_control_flow import waits_inside as waits_inside
from .pipeline import Devices as Devices
from .pipeline import Preparation as Preparation
from .pipeline import lower as lower
from .pipeline import pass_names as pass_names
from .pipeline import prepare as prepare
from .pipeline import register_pass as register_pass
from .pipeline import run_passes as run_passes
from .pipeline import unregister_pass as unregister_pass
from .prune import needed_operations as needed_operations
from .purity import is_unfed_constant as is_unfed_constant
from .step_graph import StepGraph as StepGraph
from .updates import places_to_record as places_to_record
from .updates import update_waits as update_waits
from .updates import writes_variables as writes_variables
from .verify import verify as verify
