"""Rewrites of a graph, one file each."""

from .cluster import cluster as cluster
from .prune import needed_operations as needed_operations
