"""Rewrites of a graph, one file each."""

from .prune import needed_operations as needed_operations
