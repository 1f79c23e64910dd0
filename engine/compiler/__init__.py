"""From clusters of pure operations to native code."""

from .native import NativeCompiler as NativeCompiler
