"""Rewrites of a graph, one file each."""

from .cluster import cluster as cluster
from .lower_control_flow import lower_control_flow as lower_control_flow
from .lower_control_flow import spans_devices as spans_devices
from .lower_control_flow import waits_inside as waits_inside
from .prune import needed_operations as needed_operations
