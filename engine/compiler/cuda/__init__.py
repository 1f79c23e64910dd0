"""From clusters of pure operations to CUDA programs."""

from .cluster import CudaCompiler as CudaCompiler
