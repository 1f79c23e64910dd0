"""From clusters of pure operations to native code."""

from .native.cluster_kernel import NativeCompiler as NativeCompiler
