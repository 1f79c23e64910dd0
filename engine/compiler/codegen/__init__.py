"""LLVM IR of fused kernels."""
