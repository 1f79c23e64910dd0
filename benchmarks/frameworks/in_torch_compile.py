"""The workloads with a network in PyTorch, forward and backward by torch.compile."""

from __future__ import annotations

import shutil

from .in_torch import network_cases

if not any(map(shutil.which, ("c++", "g++", "clang++"))):
    raise ImportError("torch.compile needs a C++ compiler")

CASES = network_cases(is_compiled=True)
