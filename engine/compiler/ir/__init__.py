"""The loop program as data: storages, statements, expressions, symbolic sizes, fused kernels."""
