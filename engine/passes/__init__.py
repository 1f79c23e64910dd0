"""Rewrites of a graph, one file each."""

from ..late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
