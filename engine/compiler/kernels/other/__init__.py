"""Kernels that are neither loops over elements nor contractions."""
