"""The processor, LLVM, and the caches of object code."""
