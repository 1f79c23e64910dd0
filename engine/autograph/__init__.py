"""Python's control flow on tensors: `if`, `while`, `for`, `and`, ... as operations of a graph.

A function is rewritten from its source (`rewriting.py`): statements become calls of the functions
in `runtime.py`, which do what Python does unless a tensor of a graph decides. Then they build a
condition or a loop of the graph.
Source: Moldovan et al., "AutoGraph: Imperative-style Coding with Graph-based Performance", MLSys
    2019, arXiv:1810.08061.
"""

from .conversion import convert as convert
